/* reset.c - hipDeviceReset: back to the state before the first call, and the only way out of a
 * sticky error. */
#include "soft/runtime/error.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/heap.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/mempool.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/stream.h"

static void close_stream(void *object, void *user) {
    struct soft_stream *st = object;
    if (st->device == *(const int *)user && !st->per_thread)
        soft_hipStreamDestroy((hipStream_t)st);
}

/* What is queued is worked off first; after a fault that means it is skipped. Variables of loaded
 * modules stay where they are and keep their values, as in ROCm's runtime. */
hipError_t soft_hipDeviceReset(void) {
    int device = soft_current_device();
    soft_schedule_drain(device);
    soft_handles_each(soft_streams(), close_stream, &device);
    soft_heap_reset(device);
    soft_memory_reset(device);
    soft_mempool_reset(device);
    soft_error_reset(device);
    return hipSuccess;
}
