/* module_call.c - the call configuration: what `kernel<<<grid, block, shared, stream>>>(…)` leaves
 * for the function that launches. Each thread has a stack of its own, because a launch's arguments
 * may contain launches. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/function.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/runtime.h"

/* Few: thread-local memory of this library must fit what dlopen() has left in the static TLS block,
 * some 1.6 KiB for all libraries together. */
enum { CALLS_MAX = 8, ARGUMENTS_MAX = 4096 };

struct call {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
    unsigned char *arguments; /* hipSetupArgument: ARGUMENTS_MAX bytes, or NULL */
    size_t bytes;
};

/* A thread's stack. On the heap, because thread-local storage of a library that may be opened late
 * is scarce. */
struct calls {
    int depth;
    struct call at[CALLS_MAX];
};

static _Thread_local struct calls *calls;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_thread(void *own) {
    struct calls *c = own;
    while (c->depth)
        free(c->at[--c->depth].arguments);
    free(c);
}

static void make_key(void) {
    pthread_key_create(&key, end_thread);
}

static bool prepare(void) {
    if (calls)
        return true;
    pthread_once(&once, make_key);
    calls = calloc(1, sizeof *calls);
    return calls && !pthread_setspecific(key, calls);
}

static bool is_configured(void) {
    return calls && calls->depth;
}

static hipError_t push(dim3 grid, dim3 block, size_t shared, hipStream_t stream) {
    if (!prepare() || calls->depth == CALLS_MAX)
        return hipErrorOutOfMemory;
    calls->at[calls->depth++] =
        (struct call){ .grid = grid, .block = block, .shared = shared, .stream = stream };
    return hipSuccess;
}

hipError_t soft___hipPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                           hipStream_t stream) {
    return push(gridDim, blockDim, sharedMem, stream);
}

hipError_t soft___hipPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem,
                                          hipStream_t *stream) {
    if (!gridDim || !blockDim || !sharedMem || !stream)
        return hipErrorInvalidValue;
    if (!is_configured())
        return hipErrorMissingConfiguration;
    struct call *c = &calls->at[--calls->depth];
    *gridDim = c->grid;
    *blockDim = c->block;
    *sharedMem = c->shared;
    *stream = c->stream;
    free(c->arguments);
    return hipSuccess;
}

hipError_t soft_hipConfigureCall(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                 hipStream_t stream) {
    return push(gridDim, blockDim, sharedMem, stream);
}

hipError_t soft_hipSetupArgument(const void *arg, size_t size, size_t offset) {
    if (!is_configured())
        return hipErrorMissingConfiguration;
    if (!arg || size > ARGUMENTS_MAX || offset > ARGUMENTS_MAX - size)
        return hipErrorInvalidValue;
    struct call *c = &calls->at[calls->depth - 1];
    if (!c->arguments && !(c->arguments = calloc(1, ARGUMENTS_MAX)))
        return hipErrorOutOfMemory;
    memcpy(c->arguments + offset, arg, size);
    if (offset + size > c->bytes)
        c->bytes = offset + size;
    return hipSuccess;
}

hipError_t soft_hipLaunchByPtr(const void *func) {
    if (!is_configured())
        return hipErrorMissingConfiguration;
    struct call c = calls->at[--calls->depth];
    struct soft_function *f;
    hipError_t r = soft_function_for_host(func, &f);
    void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, c.arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE,
                      &c.bytes, HIP_LAUNCH_PARAM_END };
    if (r == hipSuccess)
        r = soft_hipModuleLaunchKernel((hipFunction_t)f, c.grid.x, c.grid.y, c.grid.z, c.block.x,
                                       c.block.y, c.block.z, (unsigned)c.shared, c.stream, NULL,
                                       c.arguments ? extra : NULL);
    free(c.arguments);
    return r;
}
