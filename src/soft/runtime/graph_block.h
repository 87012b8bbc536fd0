/* graph_block.h - memory of graphs: what hipGraphAddMemAllocNode and a captured hipMallocAsync
 * give.
 *
 * The address is fixed when the node is made. The block is accessible from the moment at which a
 * launch reaches the node until a free node, hipFree or hipFreeAsync ends that; the next launch
 * brings it back at the same address. Every operation of such a node is a user of the block, and so
 * is every copy of it that is queued. Thread-safe. */
#ifndef SOFT_RUNTIME_GRAPH_BLOCK_H
#define SOFT_RUNTIME_GRAPH_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hip/hip_types.h"

struct soft_graph_block {
    uint64_t addr;
    hipMemAllocNodeParams params; /* as given back by GetParams; accessDescs is owned */
    int device;
    uint32_t users;                /* under the lock */
    struct soft_graph_block *next; /* of all, under the lock */
};

/* Checks the parameters and reserves an address; the caller is the only user. */
hipError_t soft_graph_block_new(const hipMemAllocNodeParams *params, struct soft_graph_block **out);
/* The block that begins at addr, with the caller as one more user; NULL if there is none. */
struct soft_graph_block *soft_graph_block_find(uint64_t addr);
void soft_graph_block_share(struct soft_graph_block *block);
void soft_graph_block_drop(
    struct soft_graph_block *block); /* the last user gives the address back */

/* What the two kinds of nodes do when they run. commit: false without memory. */
bool soft_graph_block_commit(const struct soft_graph_block *block);
void soft_graph_block_withdraw(const struct soft_graph_block *block);

#endif
