/* synth.h - writes models with random weights: any shape, any type; the same seed gives the same
 * bytes.
 *
 * Weights are drawn so that activations stay near 1 and logits near 2 through any number of layers.
 * Every piece of every tensor has its own stream of random numbers, derived from the seed, the
 * tensor's name and the position: the file does not depend on threads or order. Functions are
 * thread-safe as long as they write different files. */
#ifndef MODEL_SYNTH_H
#define MODEL_SYNTH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "model/config.h"
#include "model/gguf/gguf_writer.h"
#include "model/quant/quant_mix.h"

struct synth_options {
    struct config shape;         /* from synth_parse_shape(), or filled and completed */
    const struct quant_mix *mix; /* types of the matrices */
    uint64_t seed;
    const gguf *vocab; /* whose tokenizer to copy; NULL: greta's built-in one */
    int threads;       /* 0: all */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *progress_user;
    const atomic_bool *cancel;
};

/* A name of config_shape.def, or "key=value,..." with keys dim, layers, heads, kv_heads, head_dim,
 * hidden, vocab, ctx, arch, tied (0/1), rope_dims, rope_base, rope_local_base, rope_scaling (none,
 * linear, yarn, llama3, longrope), rope_factor, rope_ctx, window, window_period; what is not given
 * follows from what is. RC_USAGE with the reason if it cannot be understood. *vocab_given says
 * whether the vocabulary's size was among them. */
NODISCARD enum rc synth_parse_shape(const char *text, struct config *out, bool *vocab_given,
                                    struct err *e);

/* Writes the model to path, whole or not at all. If a vocabulary is given, its number of tokens
 * becomes shape.vocab. */
NODISCARD enum rc synth_write(const char *path, const struct synth_options *o, struct err *e);

/* Adds the keys of a SentencePiece-style tokenizer with exactly `size` tokens, at least
 * SYNTH_VOCAB_MIN: <unk>, <s>, </s>, 256 bytes for fallback, printable characters, pieces of common
 * English words, and letter combinations. */
enum { SYNTH_VOCAB_MIN = 3 + 256 + 1 };
NODISCARD enum rc synth_add_vocab(gguf_writer *w, uint32_t size, struct err *e);

#endif
