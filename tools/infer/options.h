/* options.h - the command line of greta_infer (options.def). */
#ifndef TOOLS_INFER_OPTIONS_H
#define TOOLS_INFER_OPTIONS_H

#include "infer/sampler.h"
#include "tools/common/option.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/infer/options.def"
};

/* Its check also refuses options that would do nothing. */
extern const struct option_table options_table;

/* How to draw, by the options and a seed. */
struct sampler_options options_sampling(const struct options *o, uint64_t seed);
/* A conversation at a terminal, line by line. */
bool options_are_interactive(const struct options *o);

/* Tokens that are generated without --max-tokens. */
enum { TOKENS_DEFAULT = 128, TOKENS_DEFAULT_CHAT = 512 };

#endif
