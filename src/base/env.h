/* env.h - environment variables as typed values.
 *
 * Two forms. env_read_* is strict: a value it cannot understand is RC_USAGE with a message that
 * says what was expected and found, and *out stays as it was. env_get_* falls back to the default,
 * for places that have nobody to tell. An unset and an empty variable are the same: the default.
 *
 * Strings belong to the environment. Nothing is cached: callers read once, at start, before other
 * threads may call setenv. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* A decimal or 0x number with an optional suffix K, M, G or T (powers of 1024, either case, "B" or
 * "iB" may follow). False, and *out untouched, if text is anything else or does not fit. */
bool env_parse_u64(const char *text, uint64_t *out);

/* 1/on/yes/true and 0/off/no/false in any case; other numbers count as true unless zero. */
bool env_parse_bool(const char *text, bool *out);

NODISCARD enum rc env_read_u64(const char *name, uint64_t fallback, uint64_t *out, struct err *e);
NODISCARD enum rc env_read_bool(const char *name, bool fallback, bool *out, struct err *e);

uint64_t env_get_u64(const char *name, uint64_t fallback);
bool env_get_bool(const char *name, bool fallback);
const char *env_get_str(const char *name, const char *fallback);

#endif
