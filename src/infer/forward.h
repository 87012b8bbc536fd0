/* forward.h - the forward pass of a device's layers: tokens in, logits or the next tokens out.
 *
 * The caller owns device, weights and cache, which must outlive the pass. Used by one thread
 * at a time. */
#ifndef INFER_FORWARD_H
#define INFER_FORWARD_H

#include "infer/device.h"
#include "infer/inject.h"
#include "infer/kvcache.h"
#include "infer/trace.h"
#include "infer/weights.h"
#include "model/config.h"

typedef struct forward forward;

/* ---- buffers -------------------------------------------------------------------------------- */

enum forward_buffer_id {
#define BUFFER(field, name, type, written, rows, width) FORWARD_##field,
#include "infer/forward.def"
#undef BUFFER
    FORWARD_BUFFERS
};

/* When the part of a buffer that a batch uses holds something; forward.def says more. */
enum forward_written {
    FORWARD_UPLOADED,
    FORWARD_FIRST,
    FORWARD_LAYER,
    FORWARD_LAST,
    FORWARD_PARTLY,
    FORWARD_FUSED
};

struct forward_buffer {
    const char *name; /* in the ledger */
    enum tensor_type type;
    enum forward_written written;
};
const struct forward_buffer *forward_buffer_at(enum forward_buffer_id id);

/* What determines the sizes of the buffers. */
struct forward_shape {
    const struct config *config;
    uint32_t tokens;      /* of a batch, at most */
    uint32_t wanted;      /* at most that many of them want logits */
    uint32_t sequences;   /* of a batch, at most */
    uint32_t context;     /* positions of a sequence, at most */
    bool all_floats;      /* weights_are_floats() */
    uint32_t first, last; /* layers of this device: from the first up to the last, without it */
};

/* Never overflow: what cannot be counted is UINT64_MAX. */
uint64_t forward_buffer_bytes(const struct forward_shape *s, enum forward_buffer_id id);
uint64_t forward_bytes(const struct forward_shape *s); /* of all buffers */
/* The most parts of an attention, over all tokens of one head, that the buffers have room for. */
uint64_t forward_parts_most(const struct forward_shape *s);

/* ---- the pass ------------------------------------------------------------------------------- */

/* Tokens that go through the model together, from any number of sequences. */
struct forward_batch {
    uint32_t tokens;
    const int32_t *ids;     /* [tokens] */
    const int32_t *pos;     /* [tokens] position in its sequence */
    const int32_t *seqs;    /* [tokens] row of `tables` that belongs to its sequence */
    const int32_t *tables;  /* [sequences, table_width] blocks of the KV cache, in order */
    const int32_t *numbers; /* [sequences] their numbers in traces */
    uint32_t sequences, table_width;
    uint32_t wanted;     /* tokens whose logits are wanted */
    const int32_t *rows; /* [wanted] which ones: indexes below tokens */
    /* [wanted, KERN_SETTINGS] how the device draws a token from each; NULL: it does not. There are
     * as many as sequences at most then. */
    const int32_t *settings;
    int64_t step; /* for logs and traces */
    /* Asked between layers of a large batch; true abandons the batch. May be NULL. */
    bool (*interrupted)(void *user);
    void *user;
};

/* Allocates the buffers. The configuration stays the caller's. t may be NULL. On failure *out is
 * untouched. */
NODISCARD enum rc forward_open(forward **out, const struct device *d,
                               const struct forward_shape *shape, const struct weights *w,
                               const struct kvcache *k, trace *t, struct err *e);
void forward_close(forward **f); /* sets *f to NULL; *f may be NULL */

/* All buffers [FORWARD_BUFFERS], by number. They stay the pass's. */
struct kern_view *forward_views(forward *f);
uint32_t forward_dim(const forward *f); /* of the model: floats of a row of x */
/* Faults to inject (inject.h), which the caller closes before the pass; NULL: none. */
void forward_set_inject(forward *f, inject *i);

/* A batch goes through the devices in three stages. First each gets the numbers that describe it,
 * which stay the caller's until the last stage is over. */
NODISCARD enum rc forward_begin(forward *f, const struct forward_batch *b, struct err *e);
/* Then each queues its layers, after x of the device before it has been copied to its own. RC_BUSY
 * if interrupted() said so: nothing of the batch can be relied on then. */
NODISCARD enum rc forward_queue(forward *f, struct err *e);
/* The last device has the result: tokens receives [wanted] if it draws them, else logits [wanted,
 * vocab]; the other may be NULL. RC_DEVICE if the device failed. */
NODISCARD enum rc forward_finish(forward *f, float *logits, int32_t *tokens, struct err *e);

#endif
