/* inject_internal.h - shared by inject.c (what is asked for, and where) and inject_strike.c (what
 * is done). */
#ifndef INFER_INJECT_INTERNAL_H
#define INFER_INJECT_INTERNAL_H

#include "infer/forward.h"
#include "infer/inject.h"

enum inject_kind {
#define INJECT(kind, hypothesis, when, tensors, tensor, text) INJECT_KIND_##kind,
#include "infer/inject.def"
#undef INJECT
    INJECT_KINDS
};

enum { INJECT_MAX = 16, INJECT_NAME_MAX = 96 };

/* One --inject. */
struct shot {
    enum inject_kind kind;
    char spec[160];
    char tensor[INJECT_NAME_MAX]; /* as the ledger has it, once attached */
    int64_t layer, step;          /* -1: none was given */
    struct kern_view *view;       /* the tensor */
    bool struck;
};

/* A view of the engine's that was changed. */
struct change {
    struct kern_view *view;
    struct kern_view was; /* ptr NULL: it is freed */
    void *mine;           /* device memory to be freed; NULL: none */
};

struct inject {
    struct shot shots[INJECT_MAX];
    size_t count;
    inject_note note;
    void *user;
    struct inject_scene scene;
    bool attached;
    uint32_t kv_heads; /* what the file has; 0: not to be changed */
    int64_t steps;     /* that were run */

    struct change changes[INJECT_MAX];
    size_t change_count;
    hipStream_t side;       /* a second stream; NULL: not needed so far */
    void *host[INJECT_MAX]; /* pinned memory */
    size_t host_count;
    void *registered; /* plain memory that was registered; NULL: none */
    size_t registered_bytes;
};

/* One function per kind; e says what failed. */
typedef enum rc (*strike_fn)(inject *i, struct shot *s, const struct forward_batch *b,
                             struct err *e);
extern const strike_fn strike_table[INJECT_KINDS];

/* Releases all that injections allocated, and restores the engine's views. */
void strike_undo(inject *i);

#endif
