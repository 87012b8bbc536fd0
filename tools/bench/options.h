/* options.h - the command line of greta_bench (options.def). */
#ifndef TOOLS_BENCH_OPTIONS_H
#define TOOLS_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { OPTIONS_COUNTS_MAX = 16 };
struct options_counts {
    uint32_t items[OPTIONS_COUNTS_MAX];
    size_t count;
};
struct options_number {
    double value;
    bool given;
};

#define OPTIONS_TYPE_TEXT     const char *
#define OPTIONS_TYPE_OPTIONAL const char *
#define OPTIONS_TYPE_COUNTS   struct options_counts
#define OPTIONS_TYPE_COUNT    uint32_t
#define OPTIONS_TYPE_SIZE     uint64_t
#define OPTIONS_TYPE_NUMBER   struct options_number
#define OPTIONS_TYPE_SWITCH   bool

struct options {
#define OPTION(field, flag, kind, value, does) OPTIONS_TYPE_##kind field;
#include "bench/options.def"
#undef OPTION
    bool help, version;
};

/* RC_USAGE with what is wrong: a word, a value, or options that do not go together. What was not
 * given has its default, but for threads, which stays empty. Texts stay in argv; an OPTIONAL
 * without its text is "-". */
NODISCARD enum rc options_parse(struct options *o, int argc, char **argv, struct err *e);
void options_print_help(FILE *out);

#endif
