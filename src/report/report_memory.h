/* report_memory.h - the lives of allocations and of the tensors in them, for pictures of memory.
 *
 * Events are shown to it in order; it remembers every block with its two ends and knows which one
 * an address belongs to at that moment. It judges nothing: memory that a lost event freed ends when
 * its address is given out again. A zeroed struct with a limit is ready; report_memory_clear frees
 * it. Not thread-safe. */
#ifndef VERDICT_REPORT_MEMORY_H
#define VERDICT_REPORT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rangemap.h"
#include "record/reader.h"
#include "verdict/table.h"

struct report_block {
    uint64_t base, bytes;
    uint64_t begin, end;       /* events; EVENT_NO_SEQ: it has not ended */
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; end_ns 0: it has not ended */
    uint32_t name;             /* reader_string() */
    uint32_t site;
    uint16_t family; /* DETAIL_FAMILY_* */
    uint16_t device;
    bool tensor; /* a named range inside an allocation */
};

enum { REPORT_FAMILIES = 16 };

struct report_memory {
    size_t limit; /* blocks to remember; 0: as many as there are */
    struct report_block *blocks;
    size_t count, room;
    uint64_t omitted; /* blocks past the limit */
    bool out_of_memory;
    struct report_space *spaces; /* one per process */
    size_t space_count;
    struct table space_of;           /* by process: its place in spaces, from 1 */
    uint64_t alive[REPORT_FAMILIES]; /* bytes, of all of them */
};

/* Call for every event, in order. */
void report_memory_see(struct report_memory *m, const reader *r, const struct reader_event *e);

/* The index of the tensor, else of the allocation, that holds the address in the process of that
 * thread at this moment; SIZE_MAX if none does or it is past the limit. */
size_t report_memory_find(const struct report_memory *m, const reader *r, uint32_t thread,
                          uint64_t address);

/* Bytes of that family (DETAIL_FAMILY_*) that are alive, in all processes. */
uint64_t report_memory_alive(const struct report_memory *m, unsigned family);

void report_memory_clear(struct report_memory *m);

#endif
