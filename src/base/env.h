/* env.h - greta's environment variables (env.def) as typed values.
 *
 * Two forms. env_read_* is strict: a value that it cannot understand, or out of range, is RC_USAGE
 * with a message that says what was expected and found, and *out stays as it was. env_flag() and
 * env_text() are for code that cannot report an error. An unset and an empty variable are the same:
 * the fallback of env.def.
 *
 * Strings belong to the environment. Nothing is cached: callers read once, at start, before other
 * threads may call setenv. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum env_id {
#define ENV(name, type, fallback, low, high, values, meaning) ENV_##name,
#include "base/env.def"
    ENV_COUNT
};

/* A decimal or 0x number with an optional suffix K, M, G or T (powers of 1024, either case, "B" or
 * "iB" may follow). False, and *out untouched, if text is anything else or does not fit. */
bool env_parse_u64(const char *text, uint64_t *out);

/* 1/on/yes/true and 0/off/no/false in any case; other numbers count as true unless zero. */
bool env_parse_bool(const char *text, bool *out);

/* Of a NUMBER. One without a fallback leaves *out as it was when it is unset. */
NODISCARD enum rc env_read_number(enum env_id id, uint64_t *out, struct err *e);
/* Of a FLAG. */
NODISCARD enum rc env_read_flag(enum env_id id, bool *out, struct err *e);

const char *env_name(enum env_id id);
/* Of a FLAG; what cannot be understood is the fallback. */
bool env_flag(enum env_id id);
/* The value as it is written, or the fallback; NULL if there is neither. */
const char *env_text(enum env_id id);

/* RC_USAGE if a variable is set whose name begins with the prefix and that env.def does not have;
 * the message suggests the nearest name. */
NODISCARD enum rc env_refuse_unknown(const char *prefix, struct err *e);

#endif
