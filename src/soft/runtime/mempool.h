/* mempool.h - memory pools, as the rest of the runtime uses them. Thread-safe. */
#ifndef SOFT_RUNTIME_MEMPOOL_H
#define SOFT_RUNTIME_MEMPOOL_H

#include <stdbool.h>

#include "soft/runtime/memory.h"

/* A block is given back: its pool, if it has one, no longer counts it. */
void soft_mempool_return(const struct soft_block *block);
/* hipDeviceReset: nothing of the device's pools is in use. */
void soft_mempool_reset(int device);

/* Pools that processes share: mempool_share.c. device is that of a valid pool, else false. */
hipMemPool_t soft_mempool_new(int device);
bool soft_mempool_device(hipMemPool_t pool, int *device);
bool soft_mempool_is_exportable(hipMemPool_t pool);
/* The pool, a valid one, counts this block from now on. */
void soft_mempool_adopt(hipMemPool_t pool, struct soft_block *block);
/* As soft_memory_claim(), for a block that hipMemPoolImportPointer made. */
struct soft_block *soft_mempool_claim_imported(const void *ptr);

#endif
