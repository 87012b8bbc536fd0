/* ipc.h - blocks of device memory that several processes share. Thread-safe. */
#ifndef SOFT_RUNTIME_IPC_H
#define SOFT_RUNTIME_IPC_H

#include "hip/hip_types.h"
#include "soft/runtime/memory.h"

/* A new block on the device with the bytes of the block that the handle names, also if that is one
 * of this process; the errors are those of hipIpcOpenMemHandle. */
hipError_t soft_ipc_open(const hipIpcMemHandle_t *handle, int device, struct soft_block **out);

#endif
