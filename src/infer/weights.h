/* weights.h - a model's tensors on the device.
 *
 * Matrices stay in the type they have in the file; norms and biases become F32. Every tensor is a
 * separate allocation, so that a kernel that runs past one faults there. Immutable once open,
 * except for weights_repack_more(). */
#ifndef INFER_WEIGHTS_H
#define INFER_WEIGHTS_H

#include "infer/device.h"
#include "kernels/cpu/packed_file.h"
#include "model/config.h"
#include "model/gguf/gguf.h"

struct weights_layer {
    struct kern_view tensor[CONFIG_TENSOR_COUNT]; /* by role; ptr NULL where the model has none */
    bool packed; /* matrices are in the order the device multiplies them in */
};

/* A matrix that is read where it is in the file. */
struct weights_mapped {
    const struct gguf_tensor *tensor; /* NULL: no longer */
    const void *memory; /* where it is: in the model's file or in that of packed ones */
    struct kern_view *view;
    struct kern_view packed; /* where its packed copy will be; ptr NULL: it stays in the file */
    bool ready;              /* the copy is ready, and waits for the rest of its layer */
    int32_t layer;           /* -1: none */
};

enum weights_order {
    WEIGHTS_AS_IN_FILE,  /* used where they are; the file must stay open */
    WEIGHTS_PACKED,      /* copies in the device's own order; the file may be closed */
    WEIGHTS_PACKED_LATER /* used where they are until weights_repack_more() comes to them */
};

struct weights {
    struct kern_view tensor[CONFIG_TENSOR_COUNT]; /* those that are not of a layer */
    struct kern_view output;                      /* OUTPUT, or the embedding where it is tied */
    struct kern_view rope_freqs;                  /* [rope_dims / 2] angles per position */
    struct kern_view rope_local_freqs;            /* the same of local layers with a base of their
                                                     own; ptr NULL: there are none */
    struct weights_layer *layers;
    uint32_t layer_count;
    uint32_t version; /* changes whenever a view does */
    bool packed;      /* packed, as in struct weights_layer, for those that are not of a layer */
    bool all_floats;  /* no matrix is quantised */
    struct weights_mapped *mapped;
    size_t mapped_count;
    int32_t unpacked;                 /* the first layer that is to be packed; -1: none is yet */
    char (*names)[GGUF_MAX_NAME + 1]; /* of all views */
    uint64_t name_count;
    struct gguf_tensor *parts; /* of fused tensors, as tensors of their own */
    uint64_t part_count;
    packed_file *cached;             /* matrices are mapped from it; NULL: there is none */
    packed_writer *writer;           /* while its file is made */
    struct weights_loading *loading; /* while they are loaded; NULL: they have been */
};

/* Where weights_load() keeps packed matrices, and maps them from. */
struct weights_cache {
    bool on;
    const char *folder;                         /* NULL: greta's cache folder */
    void (*note)(const char *text, void *user); /* why it is made again or not used; may be NULL */
    void *user;
};

/* Which part of a model: layers `first` to `last` - 1, the embedding with the first of all, the
 * output with the last. */
struct weights_range {
    uint32_t first, last;
};
/* Bytes that the tensors of a part have in the file. */
uint64_t weights_bytes(const gguf *g, const struct config *c, const struct weights_range *range);

/* No matrix that c wants from g is quantised. */
bool weights_are_floats(const gguf *g, const struct config *c);

/* Bytes done so far, and in total; returns false to give up. */
typedef bool (*weights_progress)(uint64_t done, uint64_t total, void *user);

/* Loads a part of what c says from g; a fused tensor becomes its parts. context: positions of a
 * sequence in this run, which LongRoPE goes by. GPU code gets its weights through pinned buffers
 * (upload.h). RC_BUSY if progress said stop. On failure *w is empty.
 *
 * With a cache, packed matrices are mapped from its file, which is written first if it is not
 * there or not whole; the order is then WEIGHTS_PACKED. If that fails, loading continues without
 * it. */
NODISCARD enum rc weights_load(struct weights *w, const struct device *d, const gguf *g,
                               const struct config *c, const struct weights_range *range,
                               uint32_t context, enum weights_order order,
                               const struct weights_cache *cache, weights_progress progress,
                               void *user, struct err *e);

/* Asked at short intervals while packing; true stops it. */
struct weights_pause {
    bool (*interrupted)(void *user);
    void *user;
};

/* With WEIGHTS_PACKED_LATER, between two passes: packs a quarter of the layers, until all are
 * packed. RC_BUSY if interrupted() said so. A layer that failed or was interrupted stays as it was;
 * what is ready of it is not done again. */
NODISCARD enum rc weights_repack_more(struct weights *w, const struct device *d, const gguf *g,
                                      const struct weights_pause *pause, struct err *e);
void weights_free(struct weights *w, const struct device *d); /* a zeroed struct is fine */

#endif
