#include "base/env.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

const char *env_get_str(const char *name, const char *fallback) {
    const char *v = getenv(name);
    return v && *v ? v : fallback;
}

enum rc env_read_u64(const char *name, uint64_t fallback, uint64_t *out, struct err *e) {
    const char *text = env_get_str(name, NULL);
    if (!text)
        *out = fallback;
    else if (!env_parse_u64(text, out))
        return err_set(e, RC_USAGE, "%s='%s': expected a number such as 4096, 0x1000 or 64M", name,
                       text);
    return RC_OK;
}

enum rc env_read_bool(const char *name, bool fallback, bool *out, struct err *e) {
    const char *text = env_get_str(name, NULL);
    if (!text)
        *out = fallback;
    else if (!env_parse_bool(text, out))
        return err_set(e, RC_USAGE, "%s='%s': expected 0 or 1", name, text);
    return RC_OK;
}

uint64_t env_get_u64(const char *name, uint64_t fallback) {
    uint64_t v = fallback;
    return env_read_u64(name, fallback, &v, NULL) == RC_OK ? v : fallback;
}

bool env_get_bool(const char *name, bool fallback) {
    bool v = fallback;
    return env_read_bool(name, fallback, &v, NULL) == RC_OK ? v : fallback;
}
