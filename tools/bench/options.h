/* options.h - the command line of greta_bench (options.def). */
#ifndef TOOLS_BENCH_OPTIONS_H
#define TOOLS_BENCH_OPTIONS_H

#include "tools/common/option.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/bench/options.def"
};

/* The defaults; the list of threads stays empty. */
extern const struct options options_default;
extern const struct option_table options_table;

#endif
