#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the UTF-8 character at p, 0 if it is none; *code is its number. */
static size_t decode(const unsigned char *p, size_t left, uint32_t *code) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (n == 0 || n > left)
        return 0;
    *code = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        *code = *code << 6 | (p[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < least[n] || *code > 0x10ffff || surrogate ? 0 : n;
}

static bool turns_direction(uint32_t code) {
    return code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static bool is_control(uint32_t code) {
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0) ||
           code == 0x2028 || code == 0x2029;
}

static void scrub(char *text, size_t n, uint32_t from) {
    for (size_t at = 0; at < n;) {
        uint32_t code = 0;
        size_t bytes = decode((const unsigned char *)text + at, n - at, &code);
        if (!bytes || (code >= from && (is_control(code) || turns_direction(code))))
            memset(text + at, '?', bytes ? bytes : 1);
        at += bytes ? bytes : 1;
    }
}

void printable_scrub(char *text, size_t n) {
    scrub(text, n, 0);
}

void printable_scrub_wide(char *text, size_t n) {
    scrub(text, n, 0x80);
}
