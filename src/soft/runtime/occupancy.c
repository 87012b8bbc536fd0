/* occupancy.c - function attributes, and how many blocks fit on a compute unit.
 *
 * The figures are those of the GPU that the device says it is, so that a program sizes its grids as
 * it would there; gfx90a and gfx942 differ in the number of compute units only. A native kernel
 * uses no registers and no fixed shared memory. Pure functions of immutable data; thread-safe. */
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/function.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"

enum {
    WAVE = 64,
    THREADS_MAX = 1024,    /* a block */
    SHARED_MAX = 64 << 10, /* a compute unit, and a block */
    SIMDS = 4,             /* a compute unit */
    WAVES_MAX = 8,         /* a SIMD */
    VGPRS = 512,           /* a lane of a SIMD */
    VGPR_GRANULE = 8,      /* allocated at a time */
    ISA_VERSION = 90,      /* major * 10 + minor */
};

/* ---- attributes ---------------------------------------------------------------------------- */

static const struct soft_module_function *as_function(hipFunction_t f) {
    return soft_handle_valid(soft_functions(), f) ? (const struct soft_module_function *)f : NULL;
}

static int shared_left(const struct soft_function *f) {
    return f->shared_bytes < SHARED_MAX ? SHARED_MAX - (int)f->shared_bytes : 0;
}

static int max_threads(const struct soft_function *f) {
    return f->max_threads && f->max_threads < THREADS_MAX ? (int)f->max_threads : THREADS_MAX;
}

static void fill_attributes(const struct soft_module_function *m, struct hipFuncAttributes *a) {
    const struct soft_function *f = &m->function;
    int set = atomic_load(&m->max_dynamic_shared);
    *a = (struct hipFuncAttributes){
        .binaryVersion = ISA_VERSION,
        .ptxVersion = ISA_VERSION,
        .localSizeBytes = f->private_bytes,
        .sharedSizeBytes = f->shared_bytes,
        .maxDynamicSharedSizeBytes = set ? set : shared_left(f),
        .maxThreadsPerBlock = max_threads(f),
        .numRegs = m->kernel ? (int)m->kernel->vgprs : 0,
    };
}

hipError_t soft_hipFuncGetAttributes(struct hipFuncAttributes *attr, const void *func) {
    struct soft_function *f;
    if (!attr)
        return hipErrorInvalidValue;
    hipError_t r = soft_function_for_host(func, &f);
    if (r == hipSuccess)
        fill_attributes((const struct soft_module_function *)f, attr);
    return r;
}

hipError_t soft_hipFuncGetAttribute(int *value, hipFunction_attribute attrib, hipFunction_t hfunc) {
    const struct soft_module_function *m = as_function(hfunc);
    struct hipFuncAttributes a;
    if (!value)
        return hipErrorInvalidValue;
    if (!m)
        return hipErrorInvalidHandle;
    fill_attributes(m, &a);
    switch (attrib) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = a.maxThreadsPerBlock;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)a.sharedSizeBytes;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)a.localSizeBytes;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
        *value = a.numRegs;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = a.binaryVersion;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = a.maxDynamicSharedSizeBytes;
        return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = 0;
        return hipSuccess;
    default:
        return hipErrorInvalidValue;
    }
}

hipError_t soft_hipFuncSetAttribute(const void *func, hipFuncAttribute attr, int value) {
    struct soft_function *f;
    if (!func)
        return hipErrorInvalidDeviceFunction;
    if ((unsigned)attr > hipFuncAttributeMax)
        return hipErrorInvalidValue;
    hipError_t r = soft_function_for_host(func, &f);
    if (r != hipSuccess)
        return r;
    if (attr == hipFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || value > shared_left(f))
            return hipErrorInvalidValue;
        atomic_store(&((struct soft_module_function *)f)->max_dynamic_shared, value);
    }
    if (attr == hipFuncAttributePreferredSharedMemoryCarveout && (value < -1 || value > 100))
        return hipErrorInvalidValue;
    return hipSuccess;
}

hipError_t soft_hipFuncSetCacheConfig(const void *func, hipFuncCache_t config) {
    if (!func)
        return hipErrorInvalidDeviceFunction;
    return soft_hipDeviceSetCacheConfig(config);
}

hipError_t soft_hipFuncSetSharedMemConfig(const void *func, hipSharedMemConfig config) {
    if (!func)
        return hipErrorInvalidDeviceFunction;
    return soft_hipDeviceSetSharedMemConfig(config);
}

/* ---- occupancy ----------------------------------------------------------------------------- */

static int round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* Threads that the registers and wave slots of one compute unit hold. */
static int threads_by_registers(const struct soft_module_function *m) {
    int waves = WAVES_MAX;
    if (m->kernel && m->kernel->vgprs && m->kernel->vgprs <= VGPRS) {
        int fit = VGPRS / round_up((int)m->kernel->vgprs, VGPR_GRANULE);
        waves = fit < waves ? fit : waves;
    }
    return SIMDS * waves * WAVE;
}

static int blocks_by_shared(const struct soft_module_function *m, size_t dynamic) {
    size_t used = m->function.shared_bytes;
    if (dynamic > SHARED_MAX)
        return 0;
    used += dynamic;
    return used ? (int)(SHARED_MAX / used) : INT_MAX;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

static hipError_t blocks_per_unit(const struct soft_module_function *m, int block, size_t dynamic,
                                  int *out) {
    if (block <= 0)
        return hipErrorInvalidValue;
    *out = 0;
    if (block <= THREADS_MAX)
        *out =
            smaller(threads_by_registers(m) / round_up(block, WAVE), blocks_by_shared(m, dynamic));
    return hipSuccess;
}

/* The largest block that is allowed, and the grid of such blocks that fills the device. */
static void best_block(const struct soft_module_function *m, size_t dynamic, int limit, int *grid,
                       int *block) {
    if (limit <= 0 || limit > THREADS_MAX)
        limit = THREADS_MAX;
    limit = smaller(limit, max_threads(&m->function));
    int threads = threads_by_registers(m);
    *block = smaller(threads, round_up(limit, WAVE));
    *grid = soft_arch_info(soft_settings()->arch)->units *
            smaller(threads / *block, blocks_by_shared(m, dynamic));
}

static bool bad_flags(unsigned flags) {
    return flags > hipOccupancyDisableCachingOverride;
}

static const struct soft_module_function *host_function(const void *host) {
    struct soft_function *f;
    return soft_function_for_host(host, &f) == hipSuccess ? (const struct soft_module_function *)f
                                                          : NULL;
}

hipError_t soft_hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *f,
                                                                      int blockSize,
                                                                      size_t dynSharedMemPerBlk,
                                                                      unsigned int flags) {
    if (!numBlocks || bad_flags(flags))
        return hipErrorInvalidValue;
    const struct soft_module_function *m = host_function(f);
    return m ? blocks_per_unit(m, blockSize, dynSharedMemPerBlk, numBlocks)
             : hipErrorInvalidDeviceFunction;
}

hipError_t soft_hipOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *f,
                                                             int blockSize,
                                                             size_t dynSharedMemPerBlk) {
    return soft_hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, f, blockSize,
                                                                      dynSharedMemPerBlk, 0);
}

hipError_t soft_hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, hipFunction_t f, int blockSize, size_t dynSharedMemPerBlk, unsigned int flags) {
    if (!numBlocks || !f || bad_flags(flags))
        return hipErrorInvalidValue;
    const struct soft_module_function *m = as_function(f);
    return m ? blocks_per_unit(m, blockSize, dynSharedMemPerBlk, numBlocks) : hipErrorInvalidHandle;
}

hipError_t soft_hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, hipFunction_t f,
                                                                   int blockSize,
                                                                   size_t dynSharedMemPerBlk) {
    return soft_hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, f, blockSize,
                                                                            dynSharedMemPerBlk, 0);
}

hipError_t soft_hipOccupancyMaxPotentialBlockSize(int *gridSize, int *blockSize, const void *f,
                                                  size_t dynSharedMemPerBlk, int blockSizeLimit) {
    if (!gridSize || !blockSize)
        return hipErrorInvalidValue;
    const struct soft_module_function *m = host_function(f);
    if (!m)
        return hipErrorInvalidDeviceFunction;
    best_block(m, dynSharedMemPerBlk, blockSizeLimit, gridSize, blockSize);
    return hipSuccess;
}

hipError_t soft_hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *gridSize, int *blockSize,
                                                                 hipFunction_t f,
                                                                 size_t dynSharedMemPerBlk,
                                                                 int blockSizeLimit,
                                                                 unsigned int flags) {
    if (!gridSize || !blockSize || !f || bad_flags(flags))
        return hipErrorInvalidValue;
    const struct soft_module_function *m = as_function(f);
    if (!m)
        return hipErrorInvalidHandle;
    best_block(m, dynSharedMemPerBlk, blockSizeLimit, gridSize, blockSize);
    return hipSuccess;
}

hipError_t soft_hipModuleOccupancyMaxPotentialBlockSize(int *gridSize, int *blockSize,
                                                        hipFunction_t f, size_t dynSharedMemPerBlk,
                                                        int blockSizeLimit) {
    return soft_hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
        gridSize, blockSize, f, dynSharedMemPerBlk, blockSizeLimit, 0);
}
