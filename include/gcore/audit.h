/* gcore/audit.h - the audit as a whole: the runtime it sits on, and what it has seen.
 *
 * gcore_open() loads a HIP runtime, puts the audit in front of it and reads the environment
 * (docs/d2h.md), once. The functions of d2h.h call it when they need it, so that a program calls it
 * only to choose a device or to learn why it failed.
 *
 * All functions may be called from any thread, gcore_close() while no other is being called. */
#ifndef GCORE_AUDIT_H
#define GCORE_AUDIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef GCORE_API
#define GCORE_API __attribute__((visibility("default")))
#endif

/* device is "auto" (ROCm if it has a device, else the software device), "hip" or "soft"; NULL takes
 * GRETA_DEVICE. Returns 0, also if a runtime is open already (which stays as it is), or -1 with the
 * reason in message (size bytes; may be NULL). A failure is remembered: later calls of gcore
 * functions repeat it until gcore_close(). */
GCORE_API int gcore_open(const char *device, char *message, size_t size);

/* Ends the recording, closes the logs and forgets the runtime; the next call starts afresh. */
GCORE_API void gcore_close(void);

/* "0.1.0" */
GCORE_API const char *gcore_version(void);

/* "rocm" or "soft"; "none" if no runtime is open. */
GCORE_API const char *gcore_device_kind(void);

/* The audited HIP function of that name ("hipMalloc"), to be cast to its type, or NULL if there is
 * no such function or no runtime. Work that goes through these functions is known to the audit; a
 * program that also calls the runtime directly is safe too, but its checked copies must wait for
 * the whole device. */
typedef void (*gcore_function)(void);
GCORE_API gcore_function gcore_hip_function(const char *name);

/* A symbol of the runtime's library that is not HIP's, e.g. "greta_soft_kernel_register", or NULL.
 */
GCORE_API void *gcore_runtime_symbol(const char *name);

/* A remark in the recording, with three numbers of the caller's choice. Marks called "step" and
 * "layer" tell reports which step and layer the thread is in: a is its number. */
GCORE_API void gcore_mark(const char *text, uint64_t a, uint64_t b, uint64_t c);

struct gcore_counts {
    uint64_t allocations_live, bytes_live;
    uint64_t allocations_made, allocations_freed;
    uint64_t freed_forgotten; /* freed allocations that are no longer remembered */
    uint64_t double_frees, unknown_frees;
    uint64_t events, events_lost; /* of the recording */
};
GCORE_API void gcore_count(struct gcore_counts *out);

#ifdef __cplusplus
}
#endif
#endif
