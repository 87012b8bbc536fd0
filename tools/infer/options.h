/* options.h - the command line of greta_infer (options.def). */
#ifndef TOOLS_INFER_OPTIONS_H
#define TOOLS_INFER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "infer/sampler.h"

enum { OPTIONS_LIST_MAX = 16 };
struct options_list {
    const char *items[OPTIONS_LIST_MAX];
    size_t count;
};

/* A value with whether it was given. */
struct options_count {
    uint64_t value;
    bool given;
};
struct options_number {
    double value;
    bool given;
};

#define OPTIONS_TYPE_TEXT   const char *
#define OPTIONS_TYPE_LIST   struct options_list
#define OPTIONS_TYPE_COUNT  struct options_count
#define OPTIONS_TYPE_NUMBER struct options_number
#define OPTIONS_TYPE_SWITCH bool

struct options {
#define OPTION(field, flag, kind, value, does) OPTIONS_TYPE_##kind field;
#include "infer/options.def"
#undef OPTION
    bool help, version;
};

/* RC_USAGE with what is wrong: a word, a value, or options that do not go together or would do
 * nothing. Texts stay in argv. */
NODISCARD enum rc options_parse(struct options *o, int argc, char **argv, struct err *e);
/* How to draw, by the options and a seed. */
struct sampler_options options_sampling(const struct options *o, uint64_t seed);
/* A conversation that goes on, line by line, at a terminal. */
bool options_are_interactive(const struct options *o);
void options_print_help(FILE *out);

#endif
