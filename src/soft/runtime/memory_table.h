/* memory_table.h - the table of blocks, shared by memory.c, which keeps it, memory_share.c and
 * slack.c. */
#ifndef SOFT_RUNTIME_MEMORY_TABLE_H
#define SOFT_RUNTIME_MEMORY_TABLE_H

#include "base/rangemap.h"
#include "base/spin.h"
#include "soft/runtime/memory.h"

enum { SOFT_MEMORY_PAGE = 4096, SOFT_MEMORY_HUGE_PAGE = 2 << 20 };

extern struct spin soft_memory_lock;
extern struct rangemap soft_memory_table; /* address -> struct soft_block; under the lock */

/* A block that is in no table yet; NULL without memory. */
struct soft_block *soft_memory_new_block(int device, enum soft_block_kind kind, uint64_t size,
                                         unsigned flags);
/* Enters a block that has an address; false without memory, or if another is in the way. */
bool soft_memory_insert(struct soft_block *b);
/* Books map_size bytes and an address range for b and enters it; false if the device has neither.
 */
bool soft_memory_place(struct soft_block *b);
/* Undoes that and frees b. */
void soft_memory_displace(struct soft_block *b);

/* Under the lock: a freed block enters the history; it leaves it, and its addresses may be used
 * again. */
void soft_memory_remember(struct soft_block *b);
void soft_memory_forget(struct soft_block *b);

static inline uint64_t soft_memory_round_up(uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
}

#endif
