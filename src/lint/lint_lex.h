/* lint_lex.h - C and C++ source as tokens, for lint.c.
 *
 * Knows what it takes to tell code from text: comments, string and character literals with their
 * prefixes, raw strings, numbers with separators, line continuations (in the middle of a name too)
 * and directives. Never fails: what is not closed ends with its line or with the file.
 *
 * The text stays the caller's and must outlive the lexer. A lexer may be copied to look ahead. Not
 * thread-safe. */
#ifndef VERDICT_LINT_LEX_H
#define VERDICT_LINT_LEX_H

#include <stdbool.h>
#include <stddef.h>

enum lex_kind {
    LEX_END,
    LEX_NAME,
    LEX_NUMBER,
    LEX_STRING,  /* and character literals */
    LEX_PUNCT,   /* one character; '>' for ->, ':' for :: */
    LEX_HASH,    /* begins a directive */
    LEX_NEWLINE, /* ends one; elsewhere line breaks are no tokens */
};

enum { LEX_NAME_MAX = 96 };

struct lex_token {
    enum lex_kind kind;
    char punct;              /* LEX_PUNCT: which */
    char name[LEX_NAME_MAX]; /* LEX_NAME and LEX_NUMBER, cut; else "" */
    size_t at;               /* offset of its first byte */
    unsigned line, column;   /* of that byte, from 1 */
    bool after_blank;        /* blanks or comments stand before it */
};

enum { LEX_ARROW = 1, LEX_SCOPE, LEX_EQUAL }; /* -> :: == */

struct lex {
    const char *text;
    size_t length, at;
    size_t line_at; /* where the line begins */
    unsigned line;
    bool line_start;   /* no token on this logical line yet */
    bool in_directive; /* from LEX_HASH to LEX_NEWLINE */
    /* Called with every comment, its markers included; may be NULL. alone: no token stands before
     * it on its line. */
    void (*comment)(void *user, const char *text, size_t length, unsigned first_line,
                    unsigned last_line, bool alone);
    void *user;
};

struct lex lex_begin(const char *text, size_t length);
void lex_next(struct lex *x, struct lex_token *out);

#endif
