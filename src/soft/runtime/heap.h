/* heap.h - memory that kernels allocate for themselves: malloc() in device code.
 *
 * AMD's device libraries keep a heap of their own in device memory, whose blocks share slabs:
 * bounds between them are lost. Here their two functions are replaced when a module is loaded
 * (module.c), and every block has its size, a gap after it and a history, as those of hipMalloc
 * have.
 *
 * Blocks are cut from chunks, one after the other, and nothing is used twice: memory that was freed
 * stays inaccessible. A chunk goes back to the device when it is used up and all of it is freed. A
 * large block is a chunk of its own. Thread-safe. */
#ifndef SOFT_RUNTIME_HEAP_H
#define SOFT_RUNTIME_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct soft_heap_piece {
    uint64_t start, bytes;
    bool freed;
    uint32_t site; /* where it was allocated; 0: unknown */
};

/* A call of malloc() in a kernel, and how much of what it returned is not freed. */
struct soft_heap_site {
    const char *kernel;
    const char *place; /* "keep at heap.hip:18"; NULL: unknown */
    uint64_t pc;
    uint64_t tag, node; /* of the first launch that came there; see struct greta_soft_fault */
    int device;
    uint64_t blocks, bytes;
};

/* The number of the call at pc of that kernel; 0: it is new. */
uint32_t soft_heap_find_site(uint64_t pc, const char *kernel);
/* The number of a new one, whose strings are copied; 0 if memory ran out. */
uint32_t soft_heap_add_site(const struct soft_heap_site *site);

/* The address of a new block, aligned to 16; 0 for 0 bytes, or if the device has no memory left. */
uint64_t soft_heap_alloc(int device, uint64_t bytes, uint32_t site);

enum soft_heap_freed {
    SOFT_HEAP_FREED,
    SOFT_HEAP_FREED_TWICE,
    SOFT_HEAP_UNKNOWN, /* no block begins there */
};
enum soft_heap_freed soft_heap_free(uint64_t address);

/* Whether the address is the heap's, and which of its blocks contains it or is nearest to it. */
bool soft_heap_find(uint64_t address, struct soft_heap_piece *out);

/* Reports every call of which some blocks were not freed. tell() must not call functions of this
 * file.
 */
void soft_heap_each_leak(void (*tell)(const struct soft_heap_site *site));

/* Frees all of a device. */
void soft_heap_reset(int device);

#endif
