/* gcore/d2h.h - checked copies between host and device.
 *
 * Every copy is described by one struct gcore_d2h_meta and moves exactly meta.size bytes at
 * base + meta.offset: what is checked is what is copied. Before anything reaches the HIP runtime
 * the ledger (which allocation, which named tensor, freed by whom) decides, not what the caller
 * claims; a copy that fails a check is refused with a typed code, one log line and a message that
 * says what was expected, what was found and what to do, and the program goes on.
 *
 * A copy that passes is ordered after all work that was submitted, on any stream, before the call,
 * so that it cannot overtake the kernel that produces its data. A synchronous copy is complete when
 * the call returns; an asynchronous one when gcore_d2h_wait() says so.
 *
 * The first call loads the HIP runtime (see gcore_open in audit.h) unless the program has done so.
 * Logs and environment: docs/d2h.md. Usable with and without the HIP headers, from C and C++:
 * a hipStream_t and a hipError_t are passed as they are.
 *
 * All functions may be called from any thread at any time. Strings and structs belong to the caller
 * and need to live only until the call returns. errno is preserved. */
#ifndef GCORE_D2H_H
#define GCORE_D2H_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef GCORE_API
#define GCORE_API __attribute__((visibility("default")))
#endif

struct ihipStream_t; /* hipStream_t is a pointer to it */

enum gcore_d2h_code {
#define GCORE_D2H_CODE(name, text) GCORE_D2H_##name,
#include <gcore/d2h_codes.def>
#undef GCORE_D2H_CODE
    GCORE_D2H_CODE_COUNT
};

/* "FREED", and "the memory has been freed"; "?" for a number that is no code. */
GCORE_API const char *gcore_d2h_code_name(enum gcore_d2h_code code);
GCORE_API const char *gcore_d2h_code_text(enum gcore_d2h_code code);

/* What is copied. offset counts from the device base pointer that is passed beside it (for a
 * device-to-device copy: from the source). */
struct gcore_d2h_meta {
    const char *tensor; /* name for logs and for the ledger's names; NULL: "unnamed" */
    int64_t step;       /* decoding step, -1: none */
    int32_t layer;      /* -1: none */
    size_t offset;      /* bytes */
    size_t size;        /* bytes; 0: the copy succeeds and touches nothing */
    size_t alloc;       /* bytes at base according to the caller; 0: no claim */
};

struct gcore_d2h_result {
    enum gcore_d2h_code code;
    int hip_error;     /* hipError_t; 0 unless the runtime reported something */
    uint64_t op_id;    /* the id in the audit log, or UINT64_MAX if none was given */
    char message[488]; /* empty if code is OK */
};

/* ---- synchronous copies --------------------------------------------------------------------- */

/* Each returns result->code; result may be NULL. On success all bytes are in place. If the copy is
 * refused, the destination is unaltered; if the runtime failed (DEVICE_ERROR), it is undefined. An
 * error is never retried: HIP's device errors are sticky and a second try would report them again.
 * stream is where the copy is queued; NULL is the default stream of the current device. */
GCORE_API enum gcore_d2h_code gcore_d2h_copy(void *host, const void *device_base,
                                             const struct gcore_d2h_meta *meta,
                                             struct ihipStream_t *stream,
                                             struct gcore_d2h_result *result);
GCORE_API enum gcore_d2h_code gcore_h2d_copy(void *device_base, const void *host,
                                             const struct gcore_d2h_meta *meta,
                                             struct ihipStream_t *stream,
                                             struct gcore_d2h_result *result);
GCORE_API enum gcore_d2h_code gcore_d2d_copy(void *device_to, const void *device_base,
                                             const struct gcore_d2h_meta *meta,
                                             struct ihipStream_t *stream,
                                             struct gcore_d2h_result *result);

/* The same with hipMemcpyKind as a value: 1 host to device, 2 device to host, 3 device to device,
 * 4 let the ledger decide. meta->offset counts from the device side (source if both are). */
GCORE_API enum gcore_d2h_code gcore_copy(void *to, const void *from, int kind,
                                         const struct gcore_d2h_meta *meta,
                                         struct ihipStream_t *stream,
                                         struct gcore_d2h_result *result);

/* ---- asynchronous copies --------------------------------------------------------------------- */

/* A queued copy. Belongs to the caller from the copy to gcore_d2h_wait(), which is called once for
 * each; abandoning one leaks an event until gcore_close(). */
struct gcore_d2h_op {
    uint64_t op_id; /* as in struct gcore_d2h_result */
    void *pending;  /* gcore's own; NULL: nothing to wait for */
};

/* Queues the copy. If the result is OK the buffers must stay as they are until gcore_d2h_wait(op)
 * has returned; otherwise *op needs no wait (waiting is allowed and returns OK at once). op may be
 * NULL where the caller synchronises the stream itself. */
GCORE_API enum gcore_d2h_code gcore_d2h_copy_async(void *host, const void *device_base,
                                                   const struct gcore_d2h_meta *meta,
                                                   struct ihipStream_t *stream,
                                                   struct gcore_d2h_op *op,
                                                   struct gcore_d2h_result *result);
GCORE_API enum gcore_d2h_code gcore_h2d_copy_async(void *device_base, const void *host,
                                                   const struct gcore_d2h_meta *meta,
                                                   struct ihipStream_t *stream,
                                                   struct gcore_d2h_op *op,
                                                   struct gcore_d2h_result *result);
GCORE_API enum gcore_d2h_code gcore_d2d_copy_async(void *device_to, const void *device_base,
                                                   const struct gcore_d2h_meta *meta,
                                                   struct ihipStream_t *stream,
                                                   struct gcore_d2h_op *op,
                                                   struct gcore_d2h_result *result);

/* Returns when the copy has completed, with how it ended. Sets op->pending to NULL. */
GCORE_API enum gcore_d2h_code gcore_d2h_wait(struct gcore_d2h_op *op,
                                             struct gcore_d2h_result *result);

/* ---- several copies, one synchronisation ----------------------------------------------------- */

struct gcore_d2h_item {
    void *to;
    const void *from;
    int kind; /* as in gcore_copy */
    struct gcore_d2h_meta meta;
    struct gcore_d2h_result result; /* out: how this one ended */
};

/* Copies every item that passes its checks and waits once for all of them. The items are
 * independent: one that is refused does not keep the others back. Returns the code of the first
 * item that is not OK (result, which may be NULL, is a copy of that item's), or OK. */
GCORE_API enum gcore_d2h_code gcore_d2h_batch(struct gcore_d2h_item *items, size_t count,
                                              struct ihipStream_t *stream,
                                              struct gcore_d2h_result *result);

/* ---- what the ledger knows ------------------------------------------------------------------- */

/* Names [address, address + bytes), a tensor inside a live allocation; copies whose base lies in it
 * must stay in it. Naming the same range again renames it. Refused (with a code as above) if the
 * range is not inside one allocation, or overlaps a differently bounded name. The name goes with
 * gcore_unname_range (by its first address), or when the allocation is freed. */
GCORE_API enum gcore_d2h_code gcore_name_range(const void *address, size_t bytes, const char *name);
GCORE_API enum gcore_d2h_code gcore_unname_range(const void *address);

/* Which side of the bus memory that was obtained outside HIP is on. */
enum gcore_side { GCORE_SIDE_DEVICE = 0, GCORE_SIDE_HOST = 1 };

/* Puts memory that did not come through the HIP table into the ledger (an arena of another library,
 * a mapping), and takes it out again. device is its ordinal, ignored for host memory. */
GCORE_API enum gcore_d2h_code gcore_track_alloc(const void *address, size_t bytes,
                                                enum gcore_side side, int device);
GCORE_API enum gcore_d2h_code gcore_track_free(const void *address);

/* Says that plain or registered host memory is given back (free, munmap, to a pool of the
 * program's). greta_audit run sees free and munmap itself; a program that records itself says it,
 * so that a copy which still uses the memory is found. */
GCORE_API void gcore_host_freed(const void *address, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
