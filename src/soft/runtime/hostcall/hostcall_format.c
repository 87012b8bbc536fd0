/* hostcall_format.c - the text of a device's printf.
 *
 * Each conversion is printed by the C library, with what the device sent: integers and pointers as
 * 64-bit words, floats as doubles, strings with their bytes. Lengths (h, l, ...) cut integers and
 * are otherwise dropped. %n takes its argument and writes nothing; what stands between two percent
 * signs changes nothing, as in glibc. */
#include "soft/runtime/hostcall/hostcall.h"

#include <stdarg.h>
#include <string.h>

struct reader {
    const uint64_t *at, *end;
};

/* What stands between % and the conversion. */
struct conversion {
    char flags[8];
    bool has_width, has_precision;
    int width, precision;
    char length; /* 'h', 'H' for hh, 'l' for all of 64 bits, 0 */
    char kind;
};

static uint64_t take(struct reader *r) {
    return r->at < r->end ? *r->at++ : 0;
}

static const char *take_string(struct reader *r) {
    if (r->at >= r->end)
        return "";
    const char *text = (const char *)r->at;
    size_t words = strlen(text) / sizeof *r->at + 1;
    r->at += words < (size_t)(r->end - r->at) ? words : (size_t)(r->end - r->at);
    return text;
}

static int number(const char **p, struct reader *r) {
    int n = 0;
    if (**p == '*') {
        (*p)++;
        return (int)take(r);
    }
    for (; **p >= '0' && **p <= '9'; (*p)++)
        n = n < 100000 ? 10 * n + (**p - '0') : n;
    return n;
}

/* Reads a conversion from after its %; false at the end of the format. */
static bool parse(const char **p, struct reader *r, struct conversion *c) {
    size_t flags = 0;
    memset(c, 0, sizeof *c);
    for (; **p && strchr("-+ #0'", **p); (*p)++)
        if (flags < sizeof c->flags - 1 && !strchr(c->flags, **p))
            c->flags[flags++] = **p;
    if (**p == '*' || (**p >= '0' && **p <= '9')) {
        c->has_width = true;
        c->width = number(p, r);
    }
    if (**p == '.') {
        (*p)++;
        c->precision = number(p, r);
        c->has_precision = c->precision >= 0;
    }
    for (; **p && strchr("hlqjztL", **p); (*p)++)
        c->length = **p != 'h' ? 'l' : c->length == 'h' ? 'H' : 'h';
    c->kind = **p;
    if (!c->kind)
        return false;
    (*p)++;
    return true;
}

static int64_t signed_value(const struct conversion *c, uint64_t v) {
    switch (c->length) {
    case 'l':
        return (int64_t)v;
    case 'h':
        return (int16_t)v;
    case 'H':
        return (int8_t)v;
    default:
        return (int32_t)v;
    }
}

static uint64_t unsigned_value(const struct conversion *c, uint64_t v) {
    switch (c->length) {
    case 'l':
        return v;
    case 'h':
        return (uint16_t)v;
    case 'H':
        return (uint8_t)v;
    default:
        return (uint32_t)v;
    }
}

/* "%FLAGS*.*KIND", without the parts that are not there. */
static void build(const struct conversion *c, const char *kind, char out[32]) {
    snprintf(out, 32, "%%%s%s%s%s", c->flags, c->has_width ? "*" : "", c->has_precision ? ".*" : "",
             kind);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#define PRINT(value)                                                                               \
    (c->has_width && c->has_precision ? fprintf(to, format, c->width, c->precision, value)         \
     : c->has_width                   ? fprintf(to, format, c->width, value)                       \
     : c->has_precision               ? fprintf(to, format, c->precision, value)                   \
                                      : fprintf(to, format, value))

static int print(FILE *to, const struct conversion *c, struct reader *r) {
    char format[32], kind[4] = { 'l', 'l', c->kind, 0 };
    double d;
    uint64_t word;
    switch (c->kind) {
    case 'd':
    case 'i':
        build(c, kind, format);
        return PRINT((long long)signed_value(c, take(r)));
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        build(c, kind, format);
        return PRINT((unsigned long long)unsigned_value(c, take(r)));
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        build(c, kind + 2, format);
        word = take(r);
        memcpy(&d, &word, sizeof d);
        return PRINT(d);
    case 'c':
        build(c, "c", format);
        return PRINT((int)take(r));
    case 's':
        build(c, "s", format);
        return PRINT(take_string(r));
    case 'p':
        build(c, "p", format);
        return PRINT((void *)(uintptr_t)take(r));
    case 'n':
        take(r);
        return 0;
    case '%':
        return fputc('%', to) == EOF ? -1 : 1;
    default: /* undefined by C: as it stands */
        return fprintf(to, "%%%c", c->kind);
    }
}
#pragma GCC diagnostic pop

int hostcall_format(FILE *to, const uint64_t *words, size_t count) {
    struct reader r = { words, words + count };
    const char *p = take_string(&r);
    int printed = 0, n;
    flockfile(to);
    while (*p && printed >= 0) {
        struct conversion c;
        size_t plain = strcspn(p, "%");
        if (plain) {
            n = (int)fwrite(p, 1, plain, to);
            p += plain;
        } else {
            p++;
            if (!parse(&p, &r, &c))
                break;
            n = print(to, &c, &r);
        }
        printed = n < 0 ? n : printed + n;
    }
    funlockfile(to);
    return printed;
}
