/* upload.h - copies weights to a device through two alternating pinned buffers: one is filled from
 * the file while the device copies the other.
 *
 * Every piece is a checked asynchronous copy with its tensor and layer (<gcore/d2h.h>), and a
 * buffer is filled again only when its last copy has completed. If no memory can be pinned, pieces
 * are copied from where they are, one after another. Used by one thread at a time. */
#ifndef INFER_UPLOAD_H
#define INFER_UPLOAD_H

#include "infer/device.h"

enum { UPLOAD_BUFFERS = 2, UPLOAD_PIECE = 8 << 20 };

struct upload {
    const struct device *d;
    void *buffer[UPLOAD_BUFFERS]; /* NULL: none could be pinned */
    struct gcore_d2h_op op[UPLOAD_BUFFERS];
    unsigned next; /* the buffer whose copy is the oldest */
};

/* staged: copies go through pinned buffers, which is faster where the device has memory of its own.
 * Never fails. */
void upload_open(struct upload *u, const struct device *d, bool staged);
/* Sends bytes to a place in a view. They may be changed when it returns; the device has them after
 * upload_finish(), or for work that is queued on its stream later. layer -1: none. */
NODISCARD enum rc upload_add(struct upload *u, const struct kern_view *to, uint64_t offset,
                             const void *from, uint64_t bytes, int32_t layer, struct err *e);
/* Waits for all copies. */
NODISCARD enum rc upload_finish(struct upload *u, struct err *e);
void upload_close(struct upload *u); /* a zeroed struct is fine */

#endif
