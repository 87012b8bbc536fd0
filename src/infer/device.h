/* device.h - the engine's side of a HIP device: buffers with names, checked copies, one stream.
 *
 * Everything goes through the audited table; copies through <gcore/d2h.h>. Used by one thread at a
 * time. */
#ifndef INFER_DEVICE_H
#define INFER_DEVICE_H

#include <stdint.h>

#include <gcore/d2h.h>

#include "base/err.h"
#include "kernels/kern.h"

struct device {
    const struct hip_api *hip;
    kern_device *kernels;
    hipStream_t stream;
    int ordinal;
    bool shared; /* the process uses other devices too, so that the current one changes */
};

/* choice: auto, hip, soft; NULL takes GRETA_DEVICE. exec: native, isa; NULL: what suits the device.
 * record: where the recording goes; NULL takes GCORE_RECORD. RC_REFUSED if there is no such device,
 * or no kernels for it, RC_USAGE for another choice, RC_IO if a log or a recording cannot be
 * written.
 */
NODISCARD enum rc device_open(struct device *d, const char *choice, const char *exec,
                              const char *record, struct err *e);
/* The same, but where the choice is auto and the GPU cannot be used, the software device is taken
 * instead; gpu then says why. */
NODISCARD enum rc device_open_usable(struct device *d, const char *choice, const char *exec,
                                     const char *record, struct err *gpu, struct err *e);
/* Other devices of the runtime beside one that is open. count is how many there are. */
NODISCARD enum rc device_count(const struct device *d, int *count, struct err *e);
/* Another device of the same runtime, with the same kind of kernels. From now on both are shared.
 */
NODISCARD enum rc device_open_beside(struct device *d, struct device *first, int ordinal,
                                     const char *exec, struct err *e);
/* Switches a device that has just been opened to another one of its runtime. */
NODISCARD enum rc device_move(struct device *d, int ordinal, const char *exec, struct err *e);
/* Lets it copy straight from the memory of another, where the hardware can do that. */
void device_reach(const struct device *d, const struct device *other);
void device_close(struct device *d); /* a zeroed struct is fine */

/* Makes it the thread's current device, if there are several. Functions that call HIP do this
 * first. */
NODISCARD enum rc device_use(const struct device *d, struct err *e);

/* "greta software device, 17.6 GiB free": for people. */
void device_describe(const struct device *d, char *text, size_t size);
NODISCARD enum rc device_free_bytes(const struct device *d, uint64_t *out, struct err *e);

/* A new buffer, named in the ledger; name must outlive it. On failure *out is zeroed. */
NODISCARD enum rc device_alloc(const struct device *d, struct kern_view *out, const char *name,
                               enum tensor_type type, uint64_t bytes, struct err *e);
/* Host memory as it is, for kernels that only read it; it must stay there until device_unmap(). */
NODISCARD enum rc device_map(const struct device *d, struct kern_view *out, const char *name,
                             enum tensor_type type, const void *memory, uint64_t bytes,
                             struct err *e);
void device_unmap(const struct device *d, const void *memory);
void device_free(const struct device *d, struct kern_view *v); /* zeroes *v; v->ptr may be NULL */

/* Checked copies of the first `bytes` of a view. step and layer are for logs, -1: none. */
NODISCARD enum rc device_upload(const struct device *d, const struct kern_view *to,
                                const void *from, uint64_t bytes, int64_t step, int32_t layer,
                                struct err *e);
/* The same for the `bytes` from an offset on. */
NODISCARD enum rc device_upload_part(const struct device *d, const struct kern_view *to,
                                     uint64_t offset, const void *from, uint64_t bytes,
                                     int64_t step, int32_t layer, struct err *e);
NODISCARD enum rc device_download(const struct device *d, void *to, const struct kern_view *from,
                                  uint64_t bytes, int64_t step, int32_t layer, struct err *e);

/* Queues a copy of the first `bytes` of a view of another device to one of d's, after all work that
 * was queued on that device, on d's stream. */
NODISCARD enum rc device_copy_from(const struct device *d, const struct kern_view *to,
                                   const struct kern_view *from, uint64_t bytes, int64_t step,
                                   int32_t layer, struct err *e);

/* Waits for the stream; RC_DEVICE with HIP's error if the device has failed. */
NODISCARD enum rc device_wait(const struct device *d, const char *what, struct err *e);

/* The engine's error for a failed checked copy. */
enum rc device_copy_failed(const char *direction, const struct gcore_d2h_result *r, struct err *e);

#endif
