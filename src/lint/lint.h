/* lint.h - finds direct HIP copies in C, C++ and HIP sources: those that bypass <gcore/d2h.h>.
 *
 * Sources are read as tokens, not as lines: comments, strings, raw strings, `#if 0` and other names
 * that contain hipMemcpy are no copies; a call that is split over lines, hidden in a macro or made
 * through a table of functions is one. Nothing is preprocessed: both sides of an #if are read, and
 * no header is opened that was not named.
 *
 * A copy that is meant to be direct says so, with a reason, in a comment on its line or on the line
 * before:  // gcore-lint: allow the D2H audit itself makes this copy
 *
 * Everything a lint returns belongs to it and lives until lint_close(). Not thread-safe. */
#ifndef VERDICT_LINT_H
#define VERDICT_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct lint_hit {
    unsigned line, column;       /* from 1; column counts bytes */
    const char *name;            /* "hipMemcpyAsync" */
    const char *snippet;         /* its line, without the blanks around it */
    const char *instead;         /* the wrapper to use; "" if gcore has none for it */
    const char *reason;          /* of the comment that allows it; NULL: not allowed */
    const struct lint_hit *next; /* in the order of the file */
};

struct lint_file {
    const char *path;
    unsigned found, allowed;     /* direct copies, and those of them that a comment allows */
    unsigned reasonless;         /* comments that allow without a reason: they allow nothing */
    const struct lint_hit *hits; /* allowed ones too */
    const struct lint_file *next;
};

struct lint_totals {
    uint64_t files, files_with_hits; /* read; with copies that are not allowed */
    uint64_t found, allowed;         /* not allowed ones: found - allowed */
    uint64_t reasonless;
    uint64_t unreadable; /* files and folders that could not be read */
};

typedef struct lint lint;

/* On failure *out is untouched. */
NODISCARD enum rc lint_open(lint **out, struct err *e);
void lint_close(lint **l);

/* Reads a file, whatever its name, or every source below a folder: names that end in .c .cc .cpp
 * .cxx .h .hh .hpp .hxx .hip .cu .cuh .inc .inl .ipp .tpp; not those that begin with a dot, nor
 * symbolic links. Folders are read in order of names. RC_IO if something could not be read: the
 * rest was, and problem (may be NULL) was called with a sentence about each. */
NODISCARD enum rc lint_add(lint *l, const char *path, void (*problem)(const char *text),
                           struct err *e);

/* The same for text that is in memory. */
NODISCARD enum rc lint_add_text(lint *l, const char *path, const char *text, size_t length,
                                struct err *e);

const struct lint_file *lint_files(const lint *l); /* in the order they were read */
struct lint_totals lint_totals(const lint *l);

/* file:line:column and the line for each; counts a file; the total. Allowed ones only if
 * all is set. Errors of the stream stay in it. */
void lint_text(FILE *out, const lint *l, bool all);
NODISCARD enum rc lint_json(FILE *out, const lint *l, struct err *e);

#endif
