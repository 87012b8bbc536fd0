/* mempool_share.c - memory pools of another process.
 *
 * What hipMemPoolExportToShareableHandle hands out is a file without a name that says which device
 * the pool is of: no memory moves until a pointer is exported. Blocks are then shared as by hipIpc*
 * (ipc.h), whose handle fits into the data of an exported pointer; the importing pool only counts
 * them. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soft/runtime/error.h"
#include "soft/runtime/ipc.h"
#include "soft/runtime/mempool.h"
#include "soft/runtime/runtime.h"

struct content {
    char magic[8];
    int32_t device;
};
static const char magic[8] = "gretaMPL";

_Static_assert(sizeof(hipMemPoolPtrExportData) == sizeof(hipIpcMemHandle_t), "one fits the other");

hipError_t soft_hipMemPoolExportToShareableHandle(void *shared_handle, hipMemPool_t pool,
                                                  hipMemAllocationHandleType type,
                                                  unsigned int flags) {
    struct content c = { .device = 0 };
    if (!shared_handle || flags || type != hipMemHandleTypePosixFileDescriptor ||
        !soft_mempool_device(pool, &c.device) || !soft_mempool_is_exportable(pool))
        return hipErrorInvalidValue;
    memcpy(c.magic, magic, sizeof magic);
    int file = memfd_create("greta-pool", MFD_CLOEXEC);
    if (file < 0)
        return hipErrorOutOfMemory;
    if (pwrite(file, &c, sizeof c, 0) != (ssize_t)sizeof c) {
        close(file);
        return hipErrorOutOfMemory;
    }
    *(int *)shared_handle = file; /* the program's to close */
    return hipSuccess;
}

/* shared_handle is a descriptor. Only its lower half counts, as in ROCm: programs keep descriptors
 * in variables as wide as a pointer, of which the export wrote an int. */
hipError_t soft_hipMemPoolImportFromShareableHandle(hipMemPool_t *pool, void *shared_handle,
                                                    hipMemAllocationHandleType type,
                                                    unsigned int flags) {
    struct content c;
    if (!pool || !shared_handle || flags || type != hipMemHandleTypePosixFileDescriptor)
        return hipErrorInvalidValue;
    int file = (int)(uintptr_t)shared_handle;
    if (pread(file, &c, sizeof c, 0) != (ssize_t)sizeof c ||
        memcmp(c.magic, magic, sizeof magic) != 0 || soft_check_device(c.device) != hipSuccess)
        return hipErrorInvalidValue;
    *pool = soft_mempool_new(c.device);
    return *pool ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t soft_hipMemPoolExportPointer(hipMemPoolPtrExportData *data, void *ptr) {
    struct soft_block b;
    hipIpcMemHandle_t handle;
    if (!data || !ptr || !soft_memory_find((uint64_t)(uintptr_t)ptr, &b) ||
        !soft_mempool_is_exportable(b.pool))
        return hipErrorInvalidValue;
    hipError_t r = soft_hipIpcGetMemHandle(&handle, ptr);
    if (r == hipSuccess)
        memcpy(data, &handle, sizeof handle);
    return r;
}

hipError_t soft_hipMemPoolImportPointer(void **ptr, hipMemPool_t pool,
                                        hipMemPoolPtrExportData *data) {
    struct soft_block *b;
    hipIpcMemHandle_t handle;
    int device;
    if (!ptr || !data || !soft_mempool_device(pool, &device))
        return hipErrorInvalidValue;
    memcpy(&handle, data, sizeof handle);
    hipError_t r = soft_ipc_open(&handle, device, &b);
    if (r != hipSuccess)
        return r;
    soft_mempool_adopt(pool, b);
    *ptr = (void *)(uintptr_t)b->addr;
    return hipSuccess;
}
