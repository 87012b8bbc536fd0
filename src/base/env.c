#include "base/env.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The power of two a size suffix stands for, or -1. */
static int suffix_shift(const char *s) {
    static const char letters[] = "kmgt";
    if (!*s)
        return 0;
    const char *at = strchr(letters, tolower((unsigned char)*s));
    if (!at)
        return -1;
    s++;
    if (*s && strcasecmp(s, "b") != 0 && strcasecmp(s, "ib") != 0)
        return -1;
    return 10 * (int)(at - letters + 1);
}

bool env_parse_u64(const char *text, uint64_t *out) {
    /* strtoull would take blanks and signs, and read a leading 0 as octal. */
    if (!isdigit((unsigned char)text[0]))
        return false;
    bool hex = text[0] == '0' && tolower((unsigned char)text[1]) == 'x';
    if (hex && !isxdigit((unsigned char)text[2]))
        return false;
    int saved = errno;
    errno = 0;
    char *end;
    unsigned long long v = strtoull(text, &end, hex ? 16 : 10);
    bool fits = errno == 0;
    errno = saved;
    int shift = suffix_shift(end);
    if (!fits || shift < 0 || v > UINT64_MAX >> shift)
        return false;
    *out = (uint64_t)v << shift;
    return true;
}

bool env_parse_bool(const char *text, bool *out) {
    static const char *const yes[] = { "on", "yes", "true" };
    static const char *const no[] = { "off", "no", "false" };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (strcasecmp(text, yes[i]) == 0) {
            *out = true;
            return true;
        }
        if (strcasecmp(text, no[i]) == 0) {
            *out = false;
            return true;
        }
    }
    uint64_t number;
    if (!env_parse_u64(text, &number))
        return false;
    *out = number != 0;
    return true;
}

enum type { FLAG, NUMBER, TEXT };

static const struct {
    const char *name, *fallback;
    enum type type;
    uint64_t low, high;
    const char *values;
} rows[ENV_COUNT] = {
#define ENV(name, type, fallback, low, high, values, meaning)                                      \
    [ENV_##name] = { #name, fallback, type, low, high, values },
#include "base/env.def"
};

const char *env_name(enum env_id id) {
    return rows[id].name;
}

const char *env_text(enum env_id id) {
    const char *text = getenv(rows[id].name);
    text = text && *text ? text : rows[id].fallback;
    return *text ? text : NULL;
}

enum rc env_read_number(enum env_id id, uint64_t *out, struct err *e) {
    assert(rows[id].type == NUMBER);
    const char *text = env_text(id);
    uint64_t number;
    if (!text)
        return RC_OK;
    if (!env_parse_u64(text, &number))
        return err_set(e, RC_USAGE, "%s='%s': expected a number such as 4096, 0x1000 or 64M",
                       rows[id].name, text);
    if (number < rows[id].low || number > rows[id].high)
        return err_set(e, RC_USAGE, "%s: expected %s, found '%s'", rows[id].name, rows[id].values,
                       text);
    *out = number;
    return RC_OK;
}

enum rc env_read_flag(enum env_id id, bool *out, struct err *e) {
    assert(rows[id].type == FLAG);
    const char *text = env_text(id);
    if (!env_parse_bool(text, out))
        return err_set(e, RC_USAGE, "%s='%s': expected 0 or 1", rows[id].name, text);
    return RC_OK;
}

bool env_flag(enum env_id id) {
    bool flag = false;
    if (env_read_flag(id, &flag, NULL))
        env_parse_bool(rows[id].fallback, &flag);
    return flag;
}

static size_t common_start(const char *a, const char *b) {
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

enum rc env_refuse_unknown(const char *prefix, struct err *e) {
    for (char **at = environ; at && *at; at++) {
        size_t length = strcspn(*at, "="), best = 0;
        enum env_id nearest = 0;
        bool known = strncmp(*at, prefix, strlen(prefix)) != 0;
        for (int i = 0; i < ENV_COUNT && !known; i++) {
            size_t common = common_start(*at, rows[i].name);
            known = common == length && !rows[i].name[length];
            if (common > best) {
                best = common;
                nearest = (enum env_id)i;
            }
        }
        if (!known)
            return err_set(e, RC_USAGE, "%s: there is no such setting; the nearest is %s (%s)", *at,
                           rows[nearest].name, rows[nearest].values);
    }
    return RC_OK;
}
