#include "base/line.h"

enum { DIGITS_MAX = 20 };

void line_add_u64(struct line *l, uint64_t value, unsigned digits) {
    char text[DIGITS_MAX];
    unsigned at = DIGITS_MAX, least = DIGITS_MAX - (digits < DIGITS_MAX ? digits : DIGITS_MAX);
    do
        text[--at] = (char)('0' + value % 10);
    while (value /= 10);
    while (at > least)
        text[--at] = '0';
    line_add_bytes(l, text + at, DIGITS_MAX - at);
}

void line_add_i64(struct line *l, int64_t value) {
    if (value < 0)
        line_add_bytes(l, "-", 1);
    line_add_u64(l, value < 0 ? -(uint64_t)value : (uint64_t)value, 1);
}

void line_add_hex(struct line *l, uint64_t value) {
    static const char digits[] = "0123456789abcdef";
    char text[2 + 16];
    unsigned at = sizeof text;
    do
        text[--at] = digits[value & 15];
    while (value >>= 4);
    text[--at] = 'x';
    text[--at] = '0';
    line_add_bytes(l, text + at, sizeof text - at);
}
