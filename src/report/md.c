#include "report/md.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The length of the UTF-8 sequence at s, 0 if there is none. */
static size_t sequence_length(const unsigned char *s) {
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (n > 1 && (s[0] < 0xc2 || s[0] > 0xf4))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* Writes the character at s, which is not markup, and returns its length. */
static size_t put_character(FILE *out, const unsigned char *s) {
    size_t n = sequence_length(s);
    if (!n) {
        fputs("\xef\xbf\xbd", out);
        return 1;
    }
    if (n == 1 && (s[0] < ' ' || s[0] == 127))
        putc(' ', out);
    else
        fwrite(s, 1, n, out);
    return n;
}

static bool is_word(unsigned char c) {
    return isalnum(c) || c >= 0x80;
}

/* An underscore between letters is no markup, and names are full of them. */
static bool needs_escape(const unsigned char *s, const unsigned char *begin) {
    if (*s == '_')
        return s == begin || !is_word(s[-1]) || !is_word(s[1]);
    if (*s == '#' || *s == '+' || *s == '-' || *s == '=')
        return s == begin && !is_word(s[1]);
    return *s && strchr("\\`*[]<>|~&$!", *s);
}

void md_text(FILE *out, const char *text) {
    const unsigned char *begin = (const unsigned char *)text, *s = begin;
    while (*s) {
        if (needs_escape(s, begin))
            putc('\\', out);
        s += put_character(out, s);
    }
}

/* The longest run of backquotes. */
static int longest_run(const char *text) {
    int longest = 0;
    for (int run = 0; *text; text++) {
        run = *text == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void put_fence(FILE *out, int n) {
    while (n-- > 0)
        putc('`', out);
}

static void put_code(FILE *out, const char *text, bool cell) {
    if (!*text) {
        putc('-', out);
        return;
    }
    int run = longest_run(text);
    put_fence(out, run + 1);
    if (run)
        putc(' ', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        if (*s == '|' && cell)
            putc('\\', out); /* tables are cut into cells before code spans are read */
        s += put_character(out, s);
    }
    if (run)
        putc(' ', out);
    put_fence(out, run + 1);
}

void md_code(FILE *out, const char *text) {
    put_code(out, text, false);
}

void md_code_cell(FILE *out, const char *text) {
    put_code(out, text, true);
}
