/* launch.c - launches of native kernels and of machine code.
 *
 * Arguments are copied when the launch is queued, packed as hipcc packs them, with the program's
 * addresses. They are translated when the kernel runs: only then is it known what is mapped. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <greta/soft.h>

#include "soft/runtime/defined.h"
#include "soft/runtime/error.h"
#include "soft/runtime/fault_signal.h"
#include "soft/runtime/function.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/launch.h"
#include "soft/runtime/machine/machine.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/pool.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/slack.h"
#include "soft/runtime/start.h"
#include "soft/runtime/stream.h"

enum { SHARED_MAX = 64 << 10 };

/* ---- what is checked ------------------------------------------------------------------------ */

int greta_soft_check_of(const void *function, struct greta_soft_check *out) {
    struct soft_function *f = (struct soft_function *)(uintptr_t)function;
    if (!out || soft_start() != hipSuccess)
        return -1;
    if (!soft_handle_valid(soft_functions(), f) &&
        soft_function_for_host(function, &f) != hipSuccess)
        return -1;
    *out = (struct greta_soft_check){ .how = GRETA_SOFT_CHECKED_NOTHING };
    if (f->native) {
        out->how = GRETA_SOFT_CHECKED_GUARDS;
        soft_slack_limits(out);
    } else if (f->machine) {
        out->how = soft_settings()->checks & SOFT_CHECK_BOUNDS ? GRETA_SOFT_CHECKED_EVERY_ACCESS
                                                               : GRETA_SOFT_CHECKED_NOTHING;
        out->barriers = out->how == GRETA_SOFT_CHECKED_EVERY_ACCESS;
        out->init = (soft_settings()->checks & SOFT_CHECK_INIT) != 0;
        out->races = (soft_settings()->checks & (SOFT_CHECK_RACE | SOFT_CHECK_SOME_RACES)) != 0;
        out->could = !out->races;
    }
    return 0;
}

/* ---- queueing ------------------------------------------------------------------------------- */

static uint32_t argument_bytes(const struct greta_soft_kernel *k) {
    uint32_t end = 0;
    for (uint32_t i = 0; i < k->param_count; i++)
        end = soft_param_offset(end, k->params[i].size) + k->params[i].size;
    return end;
}

static hipError_t pack_params(struct soft_op *op, const struct greta_soft_kernel *k,
                              void **params) {
    for (uint32_t i = 0, at = 0; i < k->param_count; i++) {
        at = soft_param_offset(at, k->params[i].size);
        if (!params[i])
            return hipErrorInvalidValue;
        memcpy(op->data + at, params[i], k->params[i].size);
        at += k->params[i].size;
    }
    return hipSuccess;
}

/* extra: { HIP_LAUNCH_PARAM_BUFFER_POINTER, buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, END } */
static hipError_t pack_extra(struct soft_op *op, void **extra) {
    if (extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != HIP_LAUNCH_PARAM_BUFFER_SIZE ||
        extra[4] != HIP_LAUNCH_PARAM_END || !extra[1] || !extra[3] ||
        *(const size_t *)extra[3] < op->bytes)
        return hipErrorInvalidValue;
    memcpy(op->data, extra[1], op->bytes);
    return hipSuccess;
}

static hipError_t pack_machine(struct soft_op *op, const struct soft_machine *m, void **params,
                               void **extra) {
    if (!soft_op_reserve(op, soft_machine_argument_bytes(m)))
        return hipErrorOutOfMemory;
    return soft_machine_pack(m, params, extra, op->data);
}

static hipError_t pack(struct soft_op *op, const struct greta_soft_kernel *k, void **params,
                       void **extra) {
    if (!soft_op_reserve(op, argument_bytes(k)))
        return hipErrorOutOfMemory;
    if (!op->bytes)
        return hipSuccess;
    return params  ? pack_params(op, k, params)
           : extra ? pack_extra(op, extra)
                   : hipErrorInvalidValue;
}

/* A dispatch packet counts the threads of each dimension in 32 bits. */
static hipError_t check_shape(const uint32_t grid[3], const uint32_t block[3],
                              uint32_t shared_bytes) {
    uint64_t blocks = 1, threads = 1;
    for (int i = 0; i < 3; i++) {
        if (!grid[i] || !block[i] || block[i] > SOFT_THREADS_MAX)
            return hipErrorInvalidConfiguration;
        if ((uint64_t)grid[i] * block[i] > UINT32_MAX ||
            __builtin_mul_overflow(blocks, grid[i], &blocks))
            return hipErrorInvalidConfiguration;
        threads *= block[i];
    }
    return threads > SOFT_THREADS_MAX || shared_bytes > SHARED_MAX ? hipErrorInvalidConfiguration
                                                                   : hipSuccess;
}

static hipError_t refuse_machine_code(const struct soft_function *f) {
    static _Atomic bool said;
    if (!atomic_exchange(&said, true))
        fprintf(stderr,
                "greta: kernel %s is GPU machine code and has no native twin on the software "
                "device; returning hipErrorNotSupported\n",
                f->name);
    return hipErrorNotSupported;
}

hipError_t soft_op_launch(struct soft_op **out, struct soft_function *f, const uint32_t grid[3],
                          const uint32_t block[3], uint32_t shared_bytes, void **params,
                          void **extra) {
    if (!soft_handle_valid(soft_functions(), f))
        return hipErrorInvalidResourceHandle;
    hipError_t r = check_shape(grid, block, shared_bytes);
    if (r != hipSuccess)
        return r;
    if (!f->native && !f->machine)
        return refuse_machine_code(f);
    if (!f->native && block[0] * block[1] * block[2] > f->max_threads)
        return hipErrorLaunchFailure; /* more than its __launch_bounds__, as ROCm says it */
    struct soft_op *op = soft_op_new(SOFT_OP_LAUNCH, f->name);
    if (!op)
        return hipErrorOutOfMemory;
    struct soft_launch *l = &op->u.launch;
    l->function = f;
    l->shared_bytes = shared_bytes;
    memcpy(l->grid, grid, sizeof l->grid);
    memcpy(l->block, block, sizeof l->block);
    r = f->native ? pack(op, f->native, params, extra)
                  : pack_machine(op, f->machine, params, extra);
    if (r != hipSuccess) {
        soft_op_free(op);
        return r;
    }
    *out = op;
    return hipSuccess;
}

/* ---- running -------------------------------------------------------------------------------- */

/* Device addresses at their alias, pinned and registered host memory as it is; any other pointer
 * becomes one that faults when used. */
static uint64_t translate(uint64_t pointer) {
    struct soft_block b;
    if (soft_memory_is_device_address(pointer))
        return (uint64_t)(uintptr_t)soft_reach(pointer);
    return !pointer || soft_memory_find(pointer, &b) ? pointer : soft_fault_poison(pointer);
}

struct run {
    const struct greta_soft_kernel *kernel;
    struct greta_soft_work work;
    void *args[SOFT_PARAMS_MAX];
};

static void run_blocks(void *user, uint64_t first, uint64_t last, unsigned worker,
                       unsigned workers) {
    const struct run *run = user;
    struct greta_soft_work work = run->work;
    work.first = first;
    work.last = last;
    work.worker = worker;
    work.workers = workers;
    run->kernel->run(&work, run->args);
}

static void run_machine(const struct soft_op *op) {
    struct soft_machine_stop stop;
    if (!soft_machine_run(op, op->u.launch.function->machine, &stop))
        soft_fault_report_stop(op, &stop);
}

bool soft_launch_run(const struct soft_op *op, uint64_t *address, int *kind) {
    const struct soft_launch *l = &op->u.launch;
    const struct greta_soft_kernel *k = l->function->native;
    if (!k) {
        run_machine(op);
        return true;
    }
    soft_defined_write_all();
    _Alignas(16) unsigned char data[SOFT_ARGUMENT_BYTES_MAX];
    struct run run;
    run.kernel = k;
    run.work = (struct greta_soft_work){
        .grid = { l->grid[0], l->grid[1], l->grid[2] },
        .block = { l->block[0], l->block[1], l->block[2] },
        .shared_bytes = l->shared_bytes,
        .device_base = (uintptr_t)soft_layout.base,
        .device_span = (uintptr_t)soft_layout.span,
        .device_alias = (ptrdiff_t)soft_layout.alias,
    };
    memcpy(data, op->data, op->bytes);
    for (uint32_t i = 0, at = 0; i < k->param_count; i++) {
        at = soft_param_offset(at, k->params[i].size);
        run.args[i] = data + at;
        if (k->params[i].flags & GRETA_SOFT_POINTER) {
            uint64_t pointer;
            memcpy(&pointer, data + at, sizeof pointer);
            pointer = translate(pointer);
            memcpy(data + at, &pointer, sizeof pointer);
        }
        at += k->params[i].size;
    }
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    soft_pool_time_as(k->name);
    bool good = soft_pool_run_guarded(run_blocks, &run, blocks, address, kind);
    soft_pool_time_as(NULL);
    return good;
}

/* ---- the HIP calls -------------------------------------------------------------------------- */

static hipError_t launch(struct soft_function *f, const uint32_t grid[3], const uint32_t block[3],
                         size_t shared_bytes, hipStream_t stream, void **params, void **extra) {
    struct soft_stream *st;
    struct soft_op *op;
    if (shared_bytes > SHARED_MAX)
        return hipErrorInvalidConfiguration;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r == hipSuccess)
        r = soft_op_launch(&op, f, grid, block, (uint32_t)shared_bytes, params, extra);
    return r == hipSuccess ? soft_submit(st, op, NULL) : r;
}

static hipError_t launch_host(const void *host, dim3 grid, dim3 block, void **args,
                              size_t shared_bytes, hipStream_t stream) {
    struct soft_function *f;
    hipError_t r = soft_function_for_host(host, &f);
    return r == hipSuccess
               ? launch(f, (uint32_t[]){ grid.x, grid.y, grid.z },
                        (uint32_t[]){ block.x, block.y, block.z }, shared_bytes, stream, args, NULL)
               : r;
}

/* As many groups as the GPU could hold at once, or fewer. */
static bool fits_at_once(const struct soft_function *f, const uint32_t grid[3],
                         const uint32_t block[3], size_t shared_bytes) {
    int blocks = 0;
    uint64_t groups = (uint64_t)grid[0] * grid[1] * grid[2];
    if (f->native || soft_hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
                         &blocks, (hipFunction_t)(uintptr_t)f,
                         (int)(block[0] * block[1] * block[2]), shared_bytes) != hipSuccess)
        return true;
    return groups <= (uint64_t)blocks * (unsigned)soft_arch_info(soft_settings()->arch)->units;
}

/* The groups of a cooperative launch may wait for each other: all of them run at once. */
static hipError_t launch_together(struct soft_function *f, const uint32_t grid[3],
                                  const uint32_t block[3], size_t shared_bytes, hipStream_t stream,
                                  void **params) {
    struct soft_stream *st;
    struct soft_op *op;
    if (shared_bytes > SHARED_MAX)
        return hipErrorInvalidConfiguration;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r == hipSuccess)
        r = soft_op_launch(&op, f, grid, block, (uint32_t)shared_bytes, params, NULL);
    if (r != hipSuccess)
        return r;
    if (!fits_at_once(f, grid, block, shared_bytes)) {
        soft_op_free(op);
        return hipErrorCooperativeLaunchTooLarge;
    }
    op->u.launch.cooperative = true;
    return soft_submit(st, op, NULL);
}

static hipError_t with_events(hipError_t launched, hipEvent_t stop, hipStream_t stream) {
    return launched == hipSuccess && stop ? soft_hipEventRecord(stop, stream) : launched;
}

/* The same for functions of modules, for which ROCm reports a bad shape as an invalid value. */
static hipError_t launch_function(hipFunction_t f, const uint32_t grid[3], const uint32_t block[3],
                                  size_t shared_bytes, hipStream_t stream, void **params,
                                  void **extra) {
    if (params && extra)
        return hipErrorInvalidValue;
    hipError_t r =
        launch((struct soft_function *)f, grid, block, shared_bytes, stream, params, extra);
    return r == hipErrorInvalidConfiguration ? hipErrorInvalidValue : r;
}

hipError_t soft_hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
                                      unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
                                      hipStream_t stream, void **params, void **extra) {
    return launch_function(f, (uint32_t[]){ gx, gy, gz }, (uint32_t[]){ bx, by, bz }, shared_bytes,
                           stream, params, extra);
}

hipError_t soft_hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy,
                                                 unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                 unsigned shared_bytes, hipStream_t stream,
                                                 void **params) {
    return launch_together((struct soft_function *)f, (uint32_t[]){ gx, gy, gz },
                           (uint32_t[]){ bx, by, bz }, shared_bytes, stream, params);
}

/* Work sizes are in threads here; a size that the block does not divide is refused as by ROCm. */
hipError_t soft_hipExtModuleLaunchKernel(hipFunction_t f, uint32_t wx, uint32_t wy, uint32_t wz,
                                         uint32_t bx, uint32_t by, uint32_t bz, size_t shared_bytes,
                                         hipStream_t stream, void **params, void **extra,
                                         hipEvent_t start, hipEvent_t stop, uint32_t flags) {
    (void)flags;
    if (!bx || !by || !bz || wx % bx || wy % by || wz % bz)
        return hipErrorInvalidValue;
    if (start) {
        hipError_t r = soft_hipEventRecord(start, stream);
        if (r != hipSuccess)
            return r;
    }
    return with_events(launch_function(f, (uint32_t[]){ wx / bx, wy / by, wz / bz },
                                       (uint32_t[]){ bx, by, bz }, shared_bytes, stream, params,
                                       extra),
                       stop, stream);
}

hipError_t soft_hipHccModuleLaunchKernel(hipFunction_t f, uint32_t wx, uint32_t wy, uint32_t wz,
                                         uint32_t bx, uint32_t by, uint32_t bz, size_t shared_bytes,
                                         hipStream_t stream, void **params, void **extra,
                                         hipEvent_t start, hipEvent_t stop) {
    return soft_hipExtModuleLaunchKernel(f, wx, wy, wz, bx, by, bz, shared_bytes, stream, params,
                                         extra, start, stop, 0);
}

hipError_t soft_hipLaunchKernel(const void *host, dim3 grid, dim3 block, void **args,
                                size_t shared_bytes, hipStream_t stream) {
    return launch_host(host, grid, block, args, shared_bytes, stream);
}

/* Only hipGetLastError reports its errors. */
void soft_hipLaunchKernelGGLImpl(uintptr_t host, const dim3 *grid, const dim3 *block,
                                 uint32_t shared_bytes, hipStream_t stream, void **kernarg) {
    struct soft_function *f;
    hipError_t r = soft_enter(HIP_FN_hipLaunchKernelGGLImpl);
    if (r == hipSuccess)
        r = grid && block ? soft_function_for_host((const void *)host, &f) : hipErrorInvalidValue;
    if (r == hipSuccess)
        r = launch(f, (uint32_t[]){ grid->x, grid->y, grid->z },
                   (uint32_t[]){ block->x, block->y, block->z }, shared_bytes, stream, NULL,
                   kernarg);
    (void)soft_leave(r);
}

hipError_t soft_hipLaunchKernel_spt(const void *host, dim3 grid, dim3 block, void **args,
                                    size_t shared_bytes, hipStream_t stream) {
    return launch_host(host, grid, block, args, shared_bytes, stream ? stream : hipStreamPerThread);
}

hipError_t soft_hipExtLaunchKernel(const void *host, dim3 grid, dim3 block, void **args,
                                   size_t shared_bytes, hipStream_t stream, hipEvent_t start,
                                   hipEvent_t stop, int flags) {
    (void)flags;
    hipError_t r = start ? soft_hipEventRecord(start, stream) : hipSuccess;
    if (r != hipSuccess)
        return r;
    return with_events(launch_host(host, grid, block, args, shared_bytes, stream), stop, stream);
}

hipError_t soft_hipLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **args,
                                           unsigned shared_bytes, hipStream_t stream) {
    struct soft_function *f;
    hipError_t r = soft_function_for_host(host, &f);
    return r == hipSuccess ? launch_together(f, (uint32_t[]){ grid.x, grid.y, grid.z },
                                             (uint32_t[]){ block.x, block.y, block.z },
                                             shared_bytes, stream, args)
                           : r;
}

hipError_t soft_hipLaunchCooperativeKernel_spt(const void *host, dim3 grid, dim3 block, void **args,
                                               uint32_t shared_bytes, hipStream_t stream) {
    return soft_hipLaunchCooperativeKernel(host, grid, block, args, shared_bytes,
                                           stream ? stream : hipStreamPerThread);
}

hipError_t soft_hipLaunchKernelExC(const hipLaunchConfig_t *config, const void *host, void **args) {
    if (!config)
        return hipErrorInvalidValue;
    return launch_host(host, config->gridDim, config->blockDim, args, config->dynamicSmemBytes,
                       config->stream);
}

hipError_t soft_hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *config, hipFunction_t f,
                                     void **params, void **extra) {
    if (!config)
        return hipErrorInvalidValue;
    return soft_hipModuleLaunchKernel(f, config->gridDimX, config->gridDimY, config->gridDimZ,
                                      config->blockDimX, config->blockDimY, config->blockDimZ,
                                      config->sharedMemBytes, config->hStream, params, extra);
}

/* ---- one launch on each of several devices --------------------------------------------------- */

/* The streams of such a call: each of a device of its own, none of them a default stream. */
static hipError_t check_streams(hipStream_t (*stream_of)(const void *list, int i), const void *list,
                                int count) {
    bool seen[SOFT_DEVICES_MAX] = { false };
    if (!list || count <= 0 || count > (int)soft_settings()->devices)
        return hipErrorInvalidValue;
    for (int i = 0; i < count; i++) {
        struct soft_stream *st;
        hipStream_t handle = stream_of(list, i);
        if (!handle || soft_stream_resolve(handle, &st) != hipSuccess || st->is_null)
            return hipErrorInvalidResourceHandle;
        if (seen[st->device])
            return hipErrorInvalidDevice;
        seen[st->device] = true;
    }
    return hipSuccess;
}

static hipStream_t stream_of_params(const void *list, int i) {
    return ((const hipLaunchParams *)list)[i].stream;
}

static hipStream_t stream_of_function(const void *list, int i) {
    return ((const hipFunctionLaunchParams *)list)[i].hStream;
}

hipError_t soft_hipExtLaunchMultiKernelMultiDevice(hipLaunchParams *launchParamsList,
                                                   int numDevices, unsigned int flags) {
    (void)flags; /* about waiting for the other devices' earlier work, which nothing needs here */
    hipError_t r = check_streams(stream_of_params, launchParamsList, numDevices);
    for (int i = 0; i < numDevices && r == hipSuccess; i++) {
        const hipLaunchParams *p = &launchParamsList[i];
        r = launch_host(p->func, p->gridDim, p->blockDim, p->args, p->sharedMem, p->stream);
    }
    return r;
}

/* The grids of several devices cannot wait for each other here (cooperativeMultiDeviceLaunch is 0);
 * on one device that is a cooperative launch. */
hipError_t soft_hipLaunchCooperativeKernelMultiDevice(hipLaunchParams *launchParamsList,
                                                      int numDevices, unsigned int flags) {
    (void)flags;
    hipError_t r = check_streams(stream_of_params, launchParamsList, numDevices);
    if (r != hipSuccess)
        return r;
    const hipLaunchParams *p = launchParamsList;
    return numDevices > 1
               ? hipErrorNotSupported
               : soft_hipLaunchCooperativeKernel(p->func, p->gridDim, p->blockDim, p->args,
                                                 (unsigned)p->sharedMem, p->stream);
}

hipError_t
soft_hipModuleLaunchCooperativeKernelMultiDevice(hipFunctionLaunchParams *launchParamsList,
                                                 unsigned int numDevices, unsigned int flags) {
    (void)flags;
    hipError_t r = check_streams(stream_of_function, launchParamsList, (int)numDevices);
    if (r != hipSuccess)
        return r;
    const hipFunctionLaunchParams *p = launchParamsList;
    return numDevices > 1
               ? hipErrorNotSupported
               : soft_hipModuleLaunchCooperativeKernel(
                     p->function, p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY,
                     p->blockDimZ, p->sharedMemBytes, p->hStream, p->kernelParams);
}
