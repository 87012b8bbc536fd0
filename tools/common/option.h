/* option.h - command lines. One table of options, the rows of a .def file, gives the struct that
 * the values go to, the parser, the help text and the completions (completion.h).
 *
 *   OPTION(field, "--flag", kind, "VALUE", "what it does")
 *   ALSO(field, "--flag", kind, "VALUE", "what it does")   for a field that is there already
 *   HEADING("Runs:")                                       a line of the help between the rows
 *
 * A kind K is a type option_K_type and a constant option_K that says how a text becomes one; those
 * below are for everybody, a program may have more. A flag may be "-o, --output"; users may
 * abbreviate a long flag as long as it stays unambiguous. A line break in what an option does is
 * one in the help. The files end with #undef, so that
 *
 *   struct options {
 *   #define OPTION OPTION_FIELD
 *   #include "tools/bench/options.def"
 *   };
 *   static const struct option_row rows[] = {
 *   #define OPTION OPTION_ROW
 *   #include "tools/bench/options.def"
 *   };
 *
 * is all that a program writes. Texts stay in argv. Not thread-safe. */
#ifndef TOOLS_COMMON_OPTION_H
#define TOOLS_COMMON_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* ---- kinds of values ------------------------------------------------------------------------- */

struct option_kind {
    /* Stores the value at `to`; `all` is the struct it is in. RC_USAGE with what was expected, "a
     * whole number", if text is none; any other failure says all of it. */
    enum rc (*read)(void *to, const char *text, void *all, struct err *e);
    bool bare;           /* has no value: text is NULL */
    bool optional;       /* the value may be left out: text is "-" then */
    bool several;        /* may be given more than once */
    const char *choices; /* words with blanks between them; NULL: anything */
};

struct option_count {
    uint64_t value;
    bool given;
};
struct option_number {
    double value;
    bool given;
};
enum { OPTION_LIST_MAX = 16 };
struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t count;
};
struct option_counts {
    uint32_t items[OPTION_LIST_MAX];
    size_t count;
};

/* clang-format off */
#define OPTION_KINDS(KIND)                                                                         \
    KIND(switch,   bool)                                                                           \
    KIND(text,     const char *)                                                                   \
    KIND(optional, const char *)          /* a text that may be left out */                        \
    KIND(device,   const char *)          /* auto, hip or soft */                                  \
    KIND(exec,     const char *)          /* native or isa */                                      \
    KIND(kv_type,  const char *)          /* F16 or Q8_0 */                                        \
    KIND(list,     struct option_list)    /* texts, one each time it is given */                   \
    KIND(count,    struct option_count)   /* a whole number */                                     \
    KIND(counts,   struct option_counts)  /* whole numbers with commas between them */             \
    KIND(number,   struct option_number)                                                           \
    KIND(integer,  uint64_t)              /* decimal or 0x; K, M, G or T may follow */             \
    KIND(size,     uint64_t)              /* the same, for bytes */                                \
    KIND(threads,  unsigned)              /* 1 to 256 */                                           \
    KIND(wait,     double)                /* seconds */                                            \
    KIND(timeout,  double)                /* seconds, more than 0 */
/* clang-format on */
#define OPTION_DECLARE(kind, type)                                                                 \
    typedef type option_##kind##_type;                                                             \
    extern const struct option_kind option_##kind;
OPTION_KINDS(OPTION_DECLARE)

/* ---- tables ---------------------------------------------------------------------------------- */

struct option_row {
    const char *flag, *value, *does; /* a heading has no flag */
    const struct option_kind *kind;
    size_t offset;
};

#define OPTION_FIELD(field, flag, kind, value, does) option_##kind##_type field;
#define OPTION_ROW_IN(type, field, flag, kind, value, does)                                        \
    { flag, value, does, &option_##kind, offsetof(type, field) },
#define OPTION_ROW(field, flag, kind, value, does)                                                 \
    OPTION_ROW_IN(struct options, field, flag, kind, value, does)
#define OPTION_HEADING(text) { .does = text },

struct option_table {
    const char *name; /* "greta_infer", "greta_audit dump" */
    const struct option_row *rows;
    size_t count;
    /* What the help says before and after the options; `more` prints something between `before` and
     * the options. after and more may be NULL. */
    const char *before, *after;
    void (*more)(FILE *out);
    /* Checks options against each other; NULL: nothing to check. */
    enum rc (*check)(const void *values, struct err *e);
    /* One command of several: takes operands; has no --version. */
    bool command;
    bool first_ends; /* the first operand and what follows belong to another program */
};

#define OPTION_COUNT_OF(rows) (sizeof(rows) / sizeof *(rows))

/* What is left after the options: the operands, followed by a NULL. They are moved to argv[1] and
 * following. */
struct option_operands {
    char **words;
    int count;
    bool separated; /* by -- */
};

/* Reads the options of argv into values, which hold the defaults, and checks them. Returns -1 to go
 * on, otherwise the exit code after having printed the help, the version, the completions or what
 * is wrong. operands may be NULL if the table is not that of a command. */
int option_begin(const struct option_table *t, void *values, int argc, char **argv,
                 struct option_operands *operands);

/* RC_USAGE unless the count is from min to max; one that was not given is fine. */
NODISCARD enum rc option_check_range(const char *flag, struct option_count count, uint64_t min,
                                     uint64_t max, struct err *e);

/* The columns of a UTF-8 text in a terminal. */
int option_columns(const char *text);

/* The rows with a flag, one after another, then those that every table has: --help and its like.
 * NULL past the last one. */
const struct option_row *option_row(const struct option_table *t, size_t index);
#define OPTION_SHELLS "bash zsh fish" /* of --completion */

/* The flags of a row: "--output", and 'o' or 0. */
const char *option_long_flag(const struct option_row *row);
char option_short_flag(const struct option_row *row);

/* Prints "NAME: " and the message. */
void option_say(const struct option_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints "NAME: what[: value]; …" with the way to the help, and returns EXIT_WRONG. */
int option_wrong(const struct option_table *t, const char *what, const char *value);
/* Whether all of standard output could be written; if not, says why. */
bool option_flush(const struct option_table *t);

#endif
