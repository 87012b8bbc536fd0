/* kernel.h - names and arguments of kernels, by function handle or host address.
 *
 * Thread-safe. Names stay valid until audit_detach(). */
#ifndef AUDIT_KERNEL_H
#define AUDIT_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "record/event.h"

enum { KERNEL_PARAMS_MAX = 64 };

/* How a kernel's arguments lie, so that the pointers among kernelParams can be told. HIP itself
 * does not say; who knows (a table of kernels, the metadata of a code object) registers a source.
 */
struct kernel_layout {
    unsigned count;
    struct {
        uint16_t size;  /* bytes */
        uint8_t access; /* EVENT_ARG_READ | EVENT_ARG_WRITE; 0: not a pointer */
        bool place;     /* by its name it says where in a buffer the work is */
    } param[KERNEL_PARAMS_MAX];
};

/* Fills *out for a kernel and returns true, or returns false if it does not know it. Called once
 * for every function, when it is first launched. */
typedef bool (*kernel_source)(const char *name, struct kernel_layout *out, void *user);

/* Asks this source from now on; NULL: none. Call before the first launch. */
void kernel_set_source(kernel_source source, void *user);

/* The device's own source, asked where the other does not know a kernel. */
void kernel_set_device_source(kernel_source source, void *user);

/* function stands for the kernel of that name. */
void kernel_enter(const void *function, const char *name);

struct kernel {
    const char *name;                   /* "?" if unknown */
    uint32_t record_name;               /* in the recording, 0: none */
    const struct kernel_layout *layout; /* NULL: unknown */
};
struct kernel kernel_find(const void *function);

/* Arguments of a launch that may matter: pointers, and numbers of 4 and 8 bytes, by which kernels
 * know sizes; out holds `room`. Returns how many there are. Values of an `extra` buffer count as
 * pointers if they point into the ledger; *bytes is its size. */
unsigned kernel_pointers(const struct kernel *k, void **params, void **extra, struct event_arg *out,
                         unsigned room, uint64_t *bytes);

/* Which bytes a launch touches, for kernels whose sizes say so. Fills at most room ranges and
 * returns how many; 0 if it does not know. Called at every launch of a kernel whose layout is
 * known. */
typedef unsigned (*kernel_footprint)(const char *name, void **params, struct event_access *out,
                                     unsigned room, void *user);

/* Asks this from now on; NULL: nobody. Call before the first launch. */
void kernel_set_footprint(kernel_footprint footprint, void *user);

unsigned kernel_accesses(const struct kernel *k, void **params, struct event_access *out,
                         unsigned room);

/* A hash of the arguments that may say which part of a buffer a launch works on, so that two
 * launches which got the same pointer can be told to share it or to use the same bytes; 0 if
 * unknown. */
uint32_t kernel_hash(const struct kernel *k, void **params, void **extra);

void kernel_reset(void);

#endif
