#include "lint/lint_lex.h"

#include <ctype.h>
#include <string.h>

struct lex lex_begin(const char *text, size_t length) {
    struct lex x = { .text = text, .length = length, .line = 1, .line_start = true };
    if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        x.at = x.line_at = 3;
    return x;
}

/* ---- characters ---------------------------------------------------------------------------- */

/* Bytes of a continuation at `at`: a backslash, blanks (compilers allow them), a line break. */
static size_t splice_length(const struct lex *x, size_t at) {
    size_t n = at;
    if (n >= x->length || x->text[n] != '\\')
        return 0;
    for (n++; n < x->length && strchr(" \t\r\v\f", x->text[n]) && x->text[n]; n++)
        ;
    return n < x->length && x->text[n] == '\n' ? n + 1 - at : 0;
}

static void new_line(struct lex *x) {
    x->line++;
    x->line_at = x->at;
}

/* Steps over continuations, so that at is at a character of the program. */
static void skip_splices(struct lex *x) {
    for (size_t n; (n = splice_length(x, x->at)) != 0;) {
        x->at += n;
        new_line(x);
    }
}

/* The character at the position, -1 at the end. */
static int peek(struct lex *x) {
    skip_splices(x);
    return x->at < x->length ? (unsigned char)x->text[x->at] : -1;
}

/* The one after it. */
static int peek_second(struct lex *x) {
    skip_splices(x);
    size_t at = x->at + 1;
    for (size_t n; (n = splice_length(x, at)) != 0;)
        at += n;
    return at < x->length ? (unsigned char)x->text[at] : -1;
}

static void step(struct lex *x) {
    bool line_break = x->text[x->at] == '\n';
    x->at++;
    if (line_break)
        new_line(x);
}

static bool is_name_start(int c) {
    return c == '_' || c == '$' || c >= 0x80 || (c >= 0 && isalpha(c));
}

static bool is_name_part(int c) {
    return is_name_start(c) || (c >= '0' && c <= '9');
}

/* ---- comments ------------------------------------------------------------------------------ */

static void tell_comment(struct lex *x, size_t from, unsigned first, bool alone) {
    if (x->comment)
        x->comment(x->user, x->text + from, x->at - from, first, x->line, alone);
}

static void skip_line_comment(struct lex *x) {
    size_t from = x->at;
    unsigned first = x->line;
    bool alone = x->line_start;
    while (peek(x) != -1 && peek(x) != '\n')
        step(x);
    tell_comment(x, from, first, alone);
}

static void skip_block_comment(struct lex *x) {
    size_t from = x->at;
    unsigned first = x->line;
    bool alone = x->line_start;
    step(x);
    peek(x);
    step(x);
    while (peek(x) != -1 && !(peek(x) == '*' && peek_second(x) == '/'))
        step(x);
    for (int i = 0; i < 2 && peek(x) != -1; i++)
        step(x);
    tell_comment(x, from, first, alone);
}

/* Blanks and comments; stops at a line break inside a directive. True if there were any. */
static bool skip_blanks(struct lex *x) {
    bool any = false;
    for (int c; (c = peek(x)) != -1; any = true) {
        if (c == '\n') {
            if (x->in_directive)
                return any;
            step(x);
            x->line_start = true;
        } else if (isspace(c)) {
            step(x);
        } else if (c == '/' && peek_second(x) == '/') {
            skip_line_comment(x);
        } else if (c == '/' && peek_second(x) == '*') {
            skip_block_comment(x);
        } else {
            break;
        }
    }
    return any;
}

/* ---- literals ------------------------------------------------------------------------------ */

/* From the opening quote; a line break ends a literal that was not closed. */
static void skip_quoted(struct lex *x, int quote) {
    step(x);
    for (int c; (c = peek(x)) != -1 && c != '\n';) {
        step(x);
        if (c == quote)
            return;
        if (c == '\\' && peek(x) != -1 && peek(x) != '\n')
            step(x);
    }
}

/* From the opening quote of R"delimiter(…)delimiter". Continuations are text here. What is no raw
 * string after all is read as an ordinary one. */
static void skip_raw(struct lex *x) {
    size_t open = x->at + 1, n = 0;
    while (open + n < x->length && n <= 16 && !strchr("()\\ \t\n\v\f\"", x->text[open + n]))
        n++;
    if (n > 16 || open + n >= x->length || x->text[open + n] != '(') {
        skip_quoted(x, '"');
        return;
    }
    size_t at = open + n + 1;
    for (; at < x->length; at++)
        if (x->text[at] == ')' && x->length - at > n + 1 && x->text[at + 1 + n] == '"' &&
            !memcmp(x->text + at + 1, x->text + open, n))
            break;
    size_t end = at < x->length ? at + n + 2 : x->length;
    while (x->at < end)
        step(x);
}

static bool is_raw_prefix(const char *name) {
    return !strcmp(name, "R") || !strcmp(name, "u8R") || !strcmp(name, "uR") ||
           !strcmp(name, "UR") || !strcmp(name, "LR");
}

static bool is_prefix(const char *name) {
    return !strcmp(name, "u8") || !strcmp(name, "u") || !strcmp(name, "U") || !strcmp(name, "L");
}

/* ---- tokens -------------------------------------------------------------------------------- */

static void take_into_name(struct lex *x, struct lex_token *out, size_t *n) {
    if (*n + 1 < LEX_NAME_MAX)
        out->name[(*n)++] = x->text[x->at];
    step(x);
}

static void read_name(struct lex *x, struct lex_token *out) {
    size_t n = 0;
    out->kind = LEX_NAME;
    while (is_name_part(peek(x)))
        take_into_name(x, out, &n);
    int quote = peek(x);
    if (quote == '"' && is_raw_prefix(out->name)) {
        skip_raw(x);
        out->kind = LEX_STRING;
    } else if ((quote == '"' || quote == '\'') && is_prefix(out->name)) {
        skip_quoted(x, quote);
        out->kind = LEX_STRING;
    }
    if (out->kind == LEX_STRING)
        out->name[0] = '\0';
}

/* A preprocessing number: 0x1p-3, 1'000'000, 1.5e+3f. */
static void read_number(struct lex *x, struct lex_token *out) {
    size_t n = 0;
    out->kind = LEX_NUMBER;
    for (int c; (c = peek(x)) != -1;) {
        int second = peek_second(x);
        bool exponent = strchr("eEpP", c) && (second == '+' || second == '-');
        if (exponent || (c == '\'' && is_name_part(second))) {
            take_into_name(x, out, &n);
            peek(x);
        } else if (!is_name_part(c) && c != '.') {
            break;
        }
        take_into_name(x, out, &n);
    }
}

static void read_punct(struct lex *x, struct lex_token *out) {
    int c = peek(x), second = peek_second(x);
    out->kind = LEX_PUNCT;
    out->punct = (char)c;
    if (c == '-' && second == '>')
        out->punct = LEX_ARROW;
    else if (c == ':' && second == ':')
        out->punct = LEX_SCOPE;
    else if (c == '=' && second == '=')
        out->punct = LEX_EQUAL;
    step(x);
    if (out->punct != (char)c) {
        peek(x);
        step(x);
    }
}

static void read_hash(struct lex *x, struct lex_token *out) {
    out->kind = LEX_HASH;
    if (peek(x) == '%') { /* the digraph %: */
        step(x);
        peek(x);
    }
    step(x);
    x->in_directive = true;
}

void lex_next(struct lex *x, struct lex_token *out) {
    *out = (struct lex_token){ .after_blank = skip_blanks(x) };
    int c = peek(x);
    out->at = x->at;
    out->line = x->line;
    out->column = (unsigned)(x->at - x->line_at) + 1;
    if (c == -1) {
        out->kind = x->in_directive ? LEX_NEWLINE : LEX_END;
        x->in_directive = false;
        return;
    }
    if (c == '\n') { /* only inside a directive */
        out->kind = LEX_NEWLINE;
        x->in_directive = false;
        return;
    }
    bool first = x->line_start;
    x->line_start = false;
    if (first && (c == '#' || (c == '%' && peek_second(x) == ':')))
        read_hash(x, out);
    else if (is_name_start(c))
        read_name(x, out);
    else if (isdigit(c) || (c == '.' && peek_second(x) >= '0' && peek_second(x) <= '9'))
        read_number(x, out);
    else if (c == '"' || c == '\'') {
        out->kind = LEX_STRING;
        skip_quoted(x, c);
    } else
        read_punct(x, out);
}
