/* audit_fake.h - a HIP runtime that does nothing but count, for tests of the audit.
 *
 * Every function of hip_api.def has a fake that counts its calls and returns fake.result; those
 * that the tests need do something as well. Device memory is a piece of the test's own memory.
 * Copies are made at once, asynchronous ones when their stream (or everything) is synchronised, in
 * order, each followed by the callbacks queued after it. One table per test program; included by
 * one file. */
#ifndef TESTS_UNIT_AUDIT_FAKE_H
#define TESTS_UNIT_AUDIT_FAKE_H

#include "unit/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gcore/d2h.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "hip/hip_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"

enum { FAKE_QUEUE = 64, FAKE_MEMORY = 1 << 20 };

struct fake_work {
    hipStream_t stream;
    void *dst;
    const void *src;
    size_t bytes;
    hipStreamCallback_t callback;
    void *user;
};

static struct {
    _Atomic unsigned long calls[HIP_FN_COUNT];
    hipError_t result;      /* of everything without a behaviour, and of copies and waits */
    hipError_t next_result; /* of the next call of alloc or free only */
    void *next_pointer;     /* what the next allocation returns; NULL: from memory */
    hipPointerAttribute_t attributes; /* of any address, where attributes_size is not 0 */
    void *attributes_base;
    size_t attributes_size;
    int set_errno; /* what hipGetDeviceCount leaves in errno */
    struct fake_work queue[FAKE_QUEUE];
    unsigned queued;
    size_t used;
    uintptr_t handles;
} fake;

static _Alignas(4096) unsigned char fake_memory[FAKE_MEMORY];
static _Thread_local int fake_device;

#define HIP_FN(ret, name, params, args, cls, since)                                                \
    static ret fake_##name params {                                                                \
        atomic_fetch_add(&fake.calls[HIP_FN_##name], 1);                                           \
        ret r;                                                                                     \
        memset(&r, 0, sizeof r);                                                                   \
        if (_Generic((r), hipError_t : true, default : false))                                     \
            memcpy(&r, &fake.result,                                                               \
                   sizeof r < sizeof fake.result ? sizeof r : sizeof fake.result);                 \
        return r;                                                                                  \
    }
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    static void fake_##name params {                                                               \
        atomic_fetch_add(&fake.calls[HIP_FN_##name], 1);                                           \
    }
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

#define FAKE_COUNT(name) atomic_fetch_add(&fake.calls[HIP_FN_##name], 1)
#define fake_calls(name) ((unsigned long)atomic_load(&fake.calls[HIP_FN_##name]))

static hipError_t fake_once(void) {
    hipError_t r = fake.next_result;
    fake.next_result = hipSuccess;
    return r;
}

static hipError_t fake_allocate(void **ptr, size_t size) {
    hipError_t r = fake_once();
    if (r != hipSuccess)
        return r;
    if (fake.next_pointer) {
        *ptr = fake.next_pointer;
        fake.next_pointer = NULL;
    } else {
        *ptr = size ? fake_memory + fake.used : NULL;
        fake.used += (size + 8191) & ~(size_t)4095; /* a page between any two */
        assert_true(fake.used <= FAKE_MEMORY);
    }
    return hipSuccess;
}

#define FAKE_ALLOC(name, params, ptr, size)                                                        \
    static hipError_t real_##name params {                                                         \
        FAKE_COUNT(name);                                                                          \
        return fake_allocate((void **)ptr, size);                                                  \
    }
FAKE_ALLOC(hipMalloc, (void **ptr, size_t size), ptr, size)
FAKE_ALLOC(hipHostMalloc, (void **ptr, size_t size, unsigned flags), ptr, size)
FAKE_ALLOC(hipMallocManaged, (void **ptr, size_t size, unsigned flags), ptr, size)
FAKE_ALLOC(hipMallocAsync, (void **ptr, size_t size, hipStream_t stream), ptr, size)
FAKE_ALLOC(hipMallocFromPoolAsync, (void **ptr, size_t size, hipMemPool_t pool, hipStream_t stream),
           ptr, size)
FAKE_ALLOC(hipIpcOpenMemHandle, (void **ptr, hipIpcMemHandle_t handle, unsigned flags), ptr, 64)
FAKE_ALLOC(hipMallocArray,
           (hipArray_t * array, const hipChannelFormatDesc *desc, size_t width, size_t height,
            unsigned flags),
           array, 64)
FAKE_ALLOC(hipModuleGetGlobal,
           (hipDeviceptr_t * dptr, size_t *bytes, hipModule_t hmod, const char *name), dptr,
           *bytes = 128)

static hipError_t real_hipMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height) {
    FAKE_COUNT(hipMallocPitch);
    *pitch = (width + 255) & ~(size_t)255;
    return fake_allocate(ptr, *pitch * height);
}
static hipError_t real_hipMalloc3D(hipPitchedPtr *out, hipExtent extent) {
    FAKE_COUNT(hipMalloc3D);
    out->pitch = (extent.width + 255) & ~(size_t)255;
    out->ysize = extent.height;
    return fake_allocate(&out->ptr, out->pitch * extent.height * extent.depth);
}
static hipError_t real_hipHostRegister(void *ptr, size_t size, unsigned flags) {
    FAKE_COUNT(hipHostRegister);
    return fake_once();
}
#define FAKE_FREE(name, params)                                                                    \
    static hipError_t real_##name params {                                                         \
        FAKE_COUNT(name);                                                                          \
        return fake_once();                                                                        \
    }
FAKE_FREE(hipFree, (void *ptr))
FAKE_FREE(hipHostFree, (void *ptr))
FAKE_FREE(hipHostUnregister, (void *ptr))
FAKE_FREE(hipFreeAsync, (void *ptr, hipStream_t stream))
FAKE_FREE(hipFreeArray, (hipArray_t array))
FAKE_FREE(hipIpcCloseMemHandle, (void *ptr))
FAKE_FREE(hipModuleUnload, (hipModule_t module))

static hipError_t real_hipGetDeviceCount(int *count) {
    FAKE_COUNT(hipGetDeviceCount);
    *count = 2;
    if (fake.set_errno)
        errno = fake.set_errno;
    return fake.result;
}
static hipError_t real_hipGetDevice(int *device) {
    FAKE_COUNT(hipGetDevice);
    *device = fake_device;
    return hipSuccess;
}
static hipError_t real_hipSetDevice(int device) {
    FAKE_COUNT(hipSetDevice);
    if (device < 0 || device > 1)
        return hipErrorInvalidDevice;
    fake_device = device;
    return hipSuccess;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void fake_push(struct fake_work work) {
    assert_true(fake.queued < FAKE_QUEUE);
    fake.queue[fake.queued++] = work;
}

/* Runs what is queued on the stream; all: on every stream. */
static void fake_run(hipStream_t stream, bool all, hipError_t status) {
    for (unsigned i = 0; i < fake.queued;) {
        struct fake_work work = fake.queue[i];
        if (!all && work.stream != stream) {
            i++;
            continue;
        }
        memmove(&fake.queue[i], &fake.queue[i + 1], (--fake.queued - i) * sizeof work);
        if (work.callback)
            work.callback(work.stream, status, work.user);
        else if (status == hipSuccess)
            memcpy(work.dst, work.src, work.bytes);
    }
}

static hipError_t real_hipMemcpy(void *dst, const void *src, size_t bytes, hipMemcpyKind kind) {
    FAKE_COUNT(hipMemcpy);
    if (fake.result == hipSuccess)
        memcpy(dst, src, bytes);
    return fake.result;
}
static hipError_t real_hipMemcpyAsync(void *dst, const void *src, size_t bytes, hipMemcpyKind kind,
                                      hipStream_t stream) {
    FAKE_COUNT(hipMemcpyAsync);
    if (fake.result == hipSuccess)
        fake_push((struct fake_work){ stream, dst, src, bytes, NULL, NULL });
    return fake.result;
}
static hipError_t real_hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback,
                                            void *user, unsigned flags) {
    FAKE_COUNT(hipStreamAddCallback);
    if (fake.result == hipSuccess)
        fake_push((struct fake_work){ stream, NULL, NULL, 0, callback, user });
    return fake.result;
}
static hipError_t real_hipStreamSynchronize(hipStream_t stream) {
    FAKE_COUNT(hipStreamSynchronize);
    fake_run(stream, false, fake.result);
    return fake.result;
}
static hipError_t real_hipDeviceSynchronize(void) {
    FAKE_COUNT(hipDeviceSynchronize);
    fake_run(NULL, true, fake.result);
    return fake.result;
}
static hipError_t real_hipEventSynchronize(hipEvent_t event) {
    FAKE_COUNT(hipEventSynchronize);
    if (fake.result == hipSuccess) /* the copies only: callbacks come when they come */
        for (unsigned i = 0; i < fake.queued;) {
            struct fake_work work = fake.queue[i];
            if (work.callback) {
                i++;
                continue;
            }
            memmove(&fake.queue[i], &fake.queue[i + 1], (--fake.queued - i) * sizeof work);
            memcpy(work.dst, work.src, work.bytes);
        }
    return fake.result;
}
static hipError_t real_hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
    FAKE_COUNT(hipStreamCreateWithFlags);
    *stream = (hipStream_t)(0x10000 + (fake.handles += 0x100));
    return fake.result;
}
static hipError_t real_hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
    FAKE_COUNT(hipEventCreateWithFlags);
    *event = (hipEvent_t)(0x10000 + (fake.handles += 0x100));
    return fake.result;
}
static hipError_t real_hipModuleGetFunction(hipFunction_t *f, hipModule_t module,
                                            const char *name) {
    FAKE_COUNT(hipModuleGetFunction);
    *f = (hipFunction_t)(0x10000 + (fake.handles += 0x100));
    return fake.result;
}

static hipError_t real_hipPointerGetAttributes(hipPointerAttribute_t *out, const void *ptr) {
    FAKE_COUNT(hipPointerGetAttributes);
    uintptr_t at = (uintptr_t)ptr, base = (uintptr_t)fake.attributes_base;
    if (at - base >= fake.attributes_size)
        return hipErrorInvalidValue;
    *out = fake.attributes;
    return hipSuccess;
}
static hipError_t real_hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size,
                                             hipDeviceptr_t ptr) {
    FAKE_COUNT(hipMemGetAddressRange);
    if ((uintptr_t)ptr - (uintptr_t)fake.attributes_base >= fake.attributes_size)
        return hipErrorNotFound;
    *base = fake.attributes_base;
    *size = fake.attributes_size;
    return hipSuccess;
}

static struct hip_api fake_table(void) {
    struct hip_api t;
#define HIP_FN(ret, name, params, args, cls, since) t.name = fake_##name;
#define HIP_VOID_FN(name, params, args, cls, since) t.name = fake_##name;
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
#define REAL(name) t.name = real_##name
    REAL(hipMalloc), REAL(hipHostMalloc), REAL(hipMallocManaged), REAL(hipMallocAsync);
    REAL(hipMallocFromPoolAsync), REAL(hipIpcOpenMemHandle), REAL(hipMallocArray);
    REAL(hipModuleGetGlobal), REAL(hipMallocPitch), REAL(hipMalloc3D), REAL(hipHostRegister);
    REAL(hipFree), REAL(hipHostFree), REAL(hipHostUnregister), REAL(hipFreeAsync);
    REAL(hipFreeArray), REAL(hipIpcCloseMemHandle), REAL(hipModuleUnload);
    REAL(hipGetDeviceCount), REAL(hipGetDevice), REAL(hipSetDevice), REAL(hipMemcpy);
    REAL(hipMemcpyAsync), REAL(hipStreamAddCallback), REAL(hipStreamSynchronize);
    REAL(hipDeviceSynchronize), REAL(hipEventSynchronize), REAL(hipStreamCreateWithFlags);
    REAL(hipEventCreateWithFlags), REAL(hipModuleGetFunction), REAL(hipPointerGetAttributes);
    REAL(hipMemGetAddressRange);
#undef REAL
    return t;
}

/* ---- attaching and reading the log ----------------------------------------------------------- */

static struct hip_api api; /* the decorated table */
static char fake_log_path[64];

static void fake_attach_with(struct audit_config config, bool partial) {
    memset((void *)&fake, 0, sizeof fake);
    memset(fake_memory, 0, sizeof fake_memory);
    fake_device = 0;
    strcpy(fake_log_path, "/tmp/greta-test-XXXXXX");
    int fd = mkstemp(fake_log_path);
    assert_true(fd >= 0);
    close(fd);
    config.d2h_log = fake_log_path;
    api = fake_table();
    struct audit_options options = { .config = &config, .partial = partial };
    struct err e = { 0 };
    if (audit_attach(&api, &options, &e) != RC_OK)
        fail_msg("%s", e.msg);
}

static int fake_attach(void **state) {
    (void)state;
    fake_attach_with((struct audit_config){ 0 }, false);
    return 0;
}

static int fake_detach(void **state) {
    (void)state;
    audit_detach();
    unlink(fake_log_path);
    return 0;
}

/* The log so far, in a static buffer. */
static const char *fake_log(void) {
    static char text[1 << 16];
    FILE *f = fopen(fake_log_path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

/* Copies of any kind that reached the runtime. */
static unsigned long fake_copies(void) {
    unsigned long n = 0;
    for (int fn = 0; fn < HIP_FN_COUNT; fn++)
        if (hip_fn_class((enum hip_fn)fn) == HIP_CLASS_COPY)
            n += atomic_load(&fake.calls[fn]);
    return n;
}

#endif
