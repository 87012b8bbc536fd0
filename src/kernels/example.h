/* example.h - arguments for kernels, in host memory: random numbers that look like a model's.
 *
 * For twin_compare(). All memory is freed by example_close(); a struct example is used by one
 * thread. */
#ifndef KERNELS_EXAMPLE_H
#define KERNELS_EXAMPLE_H

#include "kernels/kern.h"

enum { EXAMPLE_VIEWS = 48 };

struct example {
    uint64_t seed;
    void *memory[EXAMPLE_VIEWS];
    unsigned count;
    bool failed; /* memory ran out: views are empty */
};

void example_close(struct example *x); /* a zeroed struct is fine */

/* rows * width random numbers as a tensor of a type; a row is a whole number of blocks. */
struct kern_view example_tensor(struct example *x, enum tensor_type type, uint64_t rows,
                                uint64_t width);
/* n integers, as given. */
struct kern_view example_ints(struct example *x, const int32_t *values, uint64_t n);
/* Room that holds nothing in particular. */
struct kern_view example_room(struct example *x, enum tensor_type type, uint64_t bytes);
/* Room for levels of tokens * k numbers; empty if run is 0. */
struct kern_view example_levels_room(struct example *x, uint32_t tokens, uint32_t k, uint32_t run);
/* Activations of tokens * k numbers, quantised by the native kernel; empty if run is 0. */
struct kern_view example_levels(struct example *x, const struct kern_view *numbers, uint32_t tokens,
                                uint32_t k, uint32_t run);

struct kern_matmul example_matmul(struct example *x, enum tensor_type type, uint32_t tokens,
                                  uint32_t n, uint32_t k, bool biased, bool added);
struct kern_matmul_qkv example_matmul_qkv(struct example *x, const enum tensor_type types[3],
                                          uint32_t tokens, uint32_t q_n, uint32_t kv_n,
                                          uint32_t dim, bool biased);
struct kern_matmul_gate_up example_matmul_gate_up(struct example *x,
                                                  const enum tensor_type types[2], uint32_t tokens,
                                                  uint32_t hidden, uint32_t dim);
/* types[1] is not used by an activation without a gate. */
struct kern_matmul_gate_up example_activated_gate_up(struct example *x,
                                                     const enum tensor_type types[2],
                                                     uint32_t tokens, uint32_t hidden, uint32_t dim,
                                                     uint32_t out_run, bool ungated);
struct kern_matmul_activate example_matmul_activate(struct example *x,
                                                    const enum tensor_type types[2],
                                                    uint32_t tokens, uint32_t hidden, uint32_t dim,
                                                    uint32_t out_run, bool ungated);

/* A step of `tokens` sequences with heads of this shape: positions, blocks and cache are the
 * caller's (pos, seqs, tables, keys, values, rows, sequences, table_width), as are window, fresh,
 * scale, cap and run. */
struct kern_attention_step example_attention_step(struct example *x, uint32_t tokens,
                                                  uint32_t heads, uint32_t kv_heads,
                                                  uint32_t head_size, uint32_t ranges,
                                                  uint32_t run);

/* Rows of logits and how to draw from them, with lists as kernel shortlist makes them. Row i keeps
 * keep[i % 4]; every third row has few different logits, so that there are ties. */
struct kern_sample example_sample(struct example *x, uint32_t rows, uint32_t vocab,
                                  const uint32_t keep[4]);
/* The same for kernel shortlist. */
struct kern_shortlist example_shortlist(struct example *x, uint32_t rows, uint32_t vocab,
                                        const uint32_t keep[4]);

#endif
