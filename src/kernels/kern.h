/* kern.h - greta's kernels as the engine calls them.
 *
 * A kernel takes views: where a buffer is, how large, of what type, and what it is called. Before a
 * launch, what kernel.def says it will touch is compared with what is there; a launch that does not
 * fit is refused by name. Kernels are functions of a HIP module: host code on the software device
 * (src/kernels/cpu), a code object on a GPU.
 *
 * A kern_device is used by one thread at a time. */
#ifndef KERNELS_KERN_H
#define KERNELS_KERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "hip/hip_api.h"
#include "hip/hip_load.h"
#include "model/quant/tensor_type.h"

/* A buffer on the device. The name lives as long as the view is used. */
struct kern_view {
    void *ptr; /* first: this is what the kernel gets */
    uint64_t bytes;
    uint32_t type; /* enum tensor_type */
    const char *name;
};

/* Rows of a matmul per block of work. */
enum { KERN_PANEL = 32 };
#define KERN_PANELS(n) (((uint64_t)(n) + KERN_PANEL - 1) / KERN_PANEL)

/* Quantised activations: for every 256 elements of a row their 8-bit levels, 16 scales, 16 sums. */
enum { KERN_SLAB = 256, KERN_SLAB_BYTES = 256 + 16 * 4 + 16 * 4 };
/* A run of this length stands for activations that are not quantised, but split: into three parts
 * of 16 bits, for devices that multiply floats that way. Others leave them as they are. */
enum { KERN_SPLIT = 1, KERN_SPLIT_BYTES = 256 * 3 * 2 };

/* Positions of a block of the KV cache. */
enum { KERN_BLOCK = 32 };
#define KERN_BLOCKS(positions) (((uint64_t)(positions) + KERN_BLOCK - 1) / KERN_BLOCK)

/* Tokens of an attention per block of work. */
enum { KERN_TOKENS = 32 };
#define KERN_TOKEN_BLOCKS(n) (((uint64_t)(n) + KERN_TOKENS - 1) / KERN_TOKENS)
/* Positions of a range of its context. */
enum { KERN_RANGE = 256 };
#define KERN_RANGES(positions) (((uint64_t)(positions) + KERN_RANGE - 1) / KERN_RANGE)
/* Floats of a row of an attention's parts: sums, padded, and two more numbers, padded with 0. */
enum { KERN_LANES = 16 };
#define KERN_PART_SUMS(head_size)                                                                  \
    (((uint64_t)(head_size) + KERN_LANES - 1) / KERN_LANES * KERN_LANES)
#define KERN_PART(head_size) (KERN_PART_SUMS(head_size) + KERN_LANES)
/* Elements of a head for which a GPU has room. */
enum { KERN_HEAD_MAX = 256 };
/* Workgroups of a GPU for a matmul of n rows of weights: 8 rows each if there are few tokens, else
 * tiles of 128 rows and 64 tokens. */
enum { KERN_FEW = 4, KERN_FEW_ROWS = 8, KERN_TILE_ROWS = 128, KERN_TILE_TOKENS = 64 };
#define KERN_TILES(tokens, n)                                                                      \
    ((tokens) <= KERN_FEW ? ((uint64_t)(n) + KERN_FEW_ROWS - 1) / KERN_FEW_ROWS                    \
                          : ((uint64_t)(n) + KERN_TILE_ROWS - 1) / KERN_TILE_ROWS *                \
                                (((uint64_t)(tokens) + KERN_TILE_TOKENS - 1) / KERN_TILE_TOKENS))
/* Elements of a swiglu per block of work, and per workgroup of a GPU. */
enum { KERN_STRIP = 4096 };
#define KERN_STRIPS(tokens, hidden) (((uint64_t)(tokens) * (hidden) + KERN_STRIP - 1) / KERN_STRIP)
enum { KERN_PIECE = 1024 };
#define KERN_PIECES(tokens, hidden) (((uint64_t)(tokens) * (hidden) + KERN_PIECE - 1) / KERN_PIECE)

/* Logits that one block of work chooses tokens from, and how many it keeps of them at most. */
enum { KERN_CHOICES = 4096, KERN_KEPT = 128 };
#define KERN_LISTS(vocab) (((uint64_t)(vocab) + KERN_CHOICES - 1) / KERN_CHOICES)
/* Numbers of a shortlist: tokens, their logits, and how many logits are NaN or +Inf. */
enum { KERN_LISTED = 2 * KERN_KEPT + 1 };
/* How a token is drawn: the numbers of a row of settings (kernels/cpu/choose.h). */
enum { KERN_SETTINGS = 8 };

enum kern_id {
#define KERN_BEGIN(k) KERN_##k,
#include "kernels/kernel.def"
    KERN_COUNT
};

/* struct kern_embed { struct kern_view out, table, ids; uint32_t tokens, dim, vocab; }, … */
#define KERN_BEGIN(k)                           struct kern_##k {
#define KERN_VIEW(k, name, access, type, bytes) struct kern_view name;
#define KERN_U32(k, name)                       uint32_t name;
#define KERN_F32(k, name)                       float name;
#define KERN_END(k)                                                                                \
    }                                                                                              \
    ;
#include "kernels/kernel.def"

typedef struct kern_device kern_device;

/* Which code of the kernels runs. */
enum kern_exec {
    KERN_EXEC_DEFAULT, /* native code on the software device, GPU code on a GPU */
    KERN_EXEC_NATIVE,  /* host code: the software device only */
    KERN_EXEC_ISA,     /* GPU code, which the software device interprets */
};

/* "native", "isa"; NULL and "" are the default. RC_USAGE for anything else. */
NODISCARD enum rc kern_exec_find(enum kern_exec *out, const char *name, struct err *e);

/* Loads the kernels into a runtime (which stays the caller's, and open) through the given table,
 * which may be an audited one. RC_UNSUPPORTED if there are none for its device, RC_DEVICE if HIP
 * fails. On failure *out is untouched.
 *
 * The software device prefers native code to GPU code of the same name. A process that runs both
 * therefore opens KERN_EXEC_ISA first; the other way round is RC_UNSUPPORTED. */
NODISCARD enum rc kern_open(kern_device **out, const struct hip_runtime *runtime,
                            const struct hip_api *table, enum kern_exec exec, struct err *e);
void kern_close(kern_device **d); /* sets *d to NULL; *d may be NULL */

/* From now on launches are neither checked before they are queued nor examined afterwards, as in
 * programs without greta: for fault injection. */
void kern_trust(kern_device *d);

/* Whether the kernels are GPU code, which multiplies weights as they are in the file. */
bool kern_is_gpu(const kern_device *d);
/* How many tokens matmul_activate takes at most. */
uint32_t kern_tokens_most(const kern_device *d);

/* kern_embed(device, stream, &arguments, e), …: checks and queues. RC_REFUSED, and nothing was
 * queued, if a view is too small or of the wrong type (GCORE_ENFORCE=0 lets it through); RC_DEVICE
 * if HIP refuses the launch. A fault in the kernel is reported later, by a call that waits. */
#define KERN_BEGIN(k)                                                                              \
    NODISCARD enum rc kern_##k(kern_device *device, hipStream_t stream,                            \
                               const struct kern_##k *arguments, struct err *e);
#include "kernels/kernel.def"

/* "rope", for reports. */
const char *kern_name(enum kern_id id);

#endif
