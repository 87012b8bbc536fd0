/* mempool.h - memory pools: what the rest of the runtime tells them. Thread-safe. */
#ifndef SOFT_RUNTIME_MEMPOOL_H
#define SOFT_RUNTIME_MEMPOOL_H

#include "soft/runtime/memory.h"

/* A block is given back: its pool, if it has one, no longer counts it. */
void soft_mempool_return(const struct soft_block *block);
/* hipDeviceReset: nothing of the device's pools is in use. */
void soft_mempool_reset(int device);

#endif
