/* dump.h - logits of a run as files: logits.npy (float32 [positions, vocab]), tokens.npy (int32
 * [positions], the token at each position) and metadata.json. Not thread-safe. */
#ifndef TOOLS_INFER_DUMP_H
#define TOOLS_INFER_DUMP_H

#include "infer/engine.h"
#include "infer/npy.h"

struct dump {
    struct npy logits, tokens;
    char folder[400];
    bool open, any;
    uint32_t first; /* position of the first row */
};

/* Makes the folder if it is absent. */
NODISCARD enum rc dump_open(struct dump *d, const char *folder, uint32_t vocab, struct err *e);
NODISCARD enum rc dump_row(struct dump *d, uint32_t position, int32_t token, const float *logits,
                           struct err *e);
/* Writes metadata.json and closes; a zeroed struct is fine. */
NODISCARD enum rc dump_close(struct dump *d, const engine *g, const char *model,
                             const struct engine_result *result, struct err *e);

#endif
