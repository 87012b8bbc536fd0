/* kernel.h - names and arguments of kernels, by function handle or host address.
 *
 * Thread-safe. Names stay valid until audit_detach(). */
#ifndef AUDIT_KERNEL_H
#define AUDIT_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/layout.h"
#include "record/event.h"

/* Fills *out for a kernel and returns true, or returns false if it does not know it. Called once
 * for every function, when it is first launched. */
typedef bool (*kernel_source)(const char *name, struct kernel_layout *out, void *user);

/* Asks this source from now on; NULL: none. Call before the first launch. */
void kernel_set_source(kernel_source source, void *user);

/* The device's own source, asked where the other does not know a kernel. */
void kernel_set_device_source(kernel_source source, void *user);

/* function stands for the kernel of that name, in the module with that handle (NULL: none). */
void kernel_enter(const void *function, const char *name, const void *module);

/* function stands for the same kernel as the host address `symbol`. */
void kernel_alias(const void *function, const void *symbol);

struct kernel {
    const char *name;                   /* "?" if unknown */
    uint32_t record_name;               /* in the recording, 0: none */
    const struct kernel_layout *layout; /* NULL: unknown */
};
struct kernel kernel_find(const void *function);

/* Arguments of a launch that may matter: pointers, and numbers of 4 and 8 bytes, which may be
 * sizes; out holds `room`. Returns how many there are. Words of a struct that look like addresses
 * are guessed pointers; so are, in an `extra` buffer of unknown layout, values that lie in a known
 * allocation. *bytes is the size of that buffer. */
unsigned kernel_pointers(const struct kernel *k, void **params, void **extra, struct event_arg *out,
                         unsigned room, uint64_t *bytes);

/* Which bytes a launch touches, for kernels whose sizes say so. Fills at most room ranges and
 * returns how many; 0 if it does not know. Called at every launch of a kernel whose layout is
 * known. */
typedef unsigned (*kernel_footprint)(const char *name, void **params, struct event_access *out,
                                     unsigned room, void *user);

/* Asks this from now on; NULL: none. Call before the first launch. */
void kernel_set_footprint(kernel_footprint footprint, void *user);

unsigned kernel_accesses(const struct kernel *k, void **params, struct event_access *out,
                         unsigned room);

/* A hash of the arguments that may say which part of a buffer a launch works on. It shows whether
 * two launches with the same pointer use the same bytes or different parts; 0 if unknown. */
uint32_t kernel_hash(const struct kernel *k, void **params, void **extra);

void kernel_reset(void);

#endif
