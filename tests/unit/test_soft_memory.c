/* Device memory: blocks, frees, what HIP tells about an address, accounting. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/soft_fixture.h"

#define MIB ((size_t)1 << 20)

static size_t free_memory(void) {
    size_t free_bytes, total;
    OK(hip->hipMemGetInfo(&free_bytes, &total));
    MUST(free_bytes <= total);
    return free_bytes;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static bool blocks_do_not_overlap(void) {
    enum { COUNT = 500 };
    static char *block[COUNT];
    static size_t size[COUNT];
    unsigned seed = 7;
    for (int i = 0; i < COUNT; i++) {
        size[i] = 1 + (unsigned)rand_r(&seed) % (i % 10 ? 5000 : 500000);
        OK(hip->hipMalloc((void **)&block[i], size[i]));
        OK(hip->hipMemset(block[i], i, size[i]));
        size_t alignment = size[i] & (~size[i] + 1);
        MUST((uintptr_t)block[i] % (alignment < 256 ? alignment : 256) == 0);
    }
    char *copy = malloc(500000);
    for (int i = 0; i < COUNT; i++) {
        OK(hip->hipMemcpy(copy, block[i], size[i], hipMemcpyDeviceToHost));
        for (size_t j = 0; j < size[i]; j++)
            if (copy[j] != (char)i)
                return false;
        OK(hip->hipFree(block[i]));
    }
    free(copy);
    return true;
}

static bool sizes_at_the_edges(void) {
    void *p = &p;
    OK(hip->hipMalloc(&p, 0));
    MUST(p == NULL);
    OK(hip->hipFree(NULL));
    OK(hip->hipHostFree(NULL));
    FAILS(hipErrorInvalidValue, hip->hipMalloc(NULL, 4));
    FAILS(hipErrorOutOfMemory, hip->hipMalloc(&p, SIZE_MAX));
    FAILS(hipErrorOutOfMemory, hip->hipMalloc(&p, SIZE_MAX - 4095));
    FAILS(hipErrorOutOfMemory, hip->hipMalloc(&p, (size_t)1 << 47));
    FAILS(hipErrorOutOfMemory, hip->hipHostMalloc(&p, SIZE_MAX, 0));
    FAILS(hipErrorInvalidValue, hip->hipHostMalloc(NULL, 4, 0));
    FAILS(hipErrorOutOfMemory, hip->hipMallocManaged(&p, SIZE_MAX, hipMemAttachGlobal));
    FAILS(hipErrorInvalidValue, hip->hipMallocManaged(&p, 4, 0x77));
    FAILS(hipErrorInvalidValue, hip->hipMallocManaged(&p, 0, hipMemAttachGlobal));
    OK(hip->hipMallocHost(&p, 4));
    OK(hip->hipFreeHost(p));
    OK(hip->hipExtMallocWithFlags(&p, 4, 0));
    OK(hip->hipFree(p));
    return true;
}

static void blocks_are_apart_and_aligned(void **state) {
    (void)state;
    soft_expect(blocks_do_not_overlap, NULL);
    soft_expect(blocks_do_not_overlap, "GRETA_SOFT_CHECK=off");
    soft_expect(sizes_at_the_edges, NULL);
}

/* ---- wrong frees --------------------------------------------------------------------------- */

static bool wrong_frees(void) {
    char *p, *pinned, *heap = malloc(100);
    hipStream_t s = soft_free_stream();
    OK(hip->hipMalloc((void **)&p, 100));
    OK(hip->hipHostMalloc((void **)&pinned, 100, 0));
    size_t before = free_memory();
    FAILS(hipErrorInvalidValue, hip->hipFree(p + 1));
    FAILS(hipErrorInvalidValue, hip->hipFree(p + 99));
    FAILS(hipErrorInvalidValue, hip->hipFree(p + 100));
    FAILS(hipErrorInvalidValue, hip->hipFree(heap));
    FAILS(hipErrorInvalidValue, hip->hipFree(&heap));
    FAILS(hipErrorInvalidValue, hip->hipFree((void *)1));
    FAILS(hipErrorInvalidValue, hip->hipFree(pinned + 1));
    FAILS(hipErrorInvalidValue, hip->hipHostFree(p + 1));
    FAILS(hipErrorInvalidValue, hip->hipHostFree(pinned + 1));
    FAILS(hipErrorInvalidValue, hip->hipHostFree(heap));
    FAILS(hipErrorInvalidValue, hip->hipFreeAsync(p + 1, s));
    FAILS(hipErrorInvalidValue, hip->hipFreeAsync(pinned, s));
    FAILS(hipErrorInvalidValue, hip->hipFreeAsync(NULL, s));
    FAILS(hipErrorInvalidHandle, hip->hipFreeAsync(p, (hipStream_t)&heap));
    MUST(free_memory() == before);
    OK(hip->hipMemset(p, 1, 100)); /* nothing has happened to it */
    pinned[99] = 1;
    OK(hip->hipFree(p));
    FAILS(hipErrorInvalidValue, hip->hipFree(p));
    FAILS(hipErrorInvalidValue, hip->hipFreeAsync(p, s));
    OK(hip->hipHostFree(pinned));
    FAILS(hipErrorInvalidValue, hip->hipHostFree(pinned));
    OK(hip->hipMallocAsync((void **)&p, 100, s));
    OK(hip->hipFreeAsync(p, s));
    FAILS(hipErrorInvalidValue, hip->hipFreeAsync(p, s));
    OK(hip->hipStreamSynchronize(s));
    FAILS(hipErrorInvalidValue, hip->hipFreeAsync(p, s));
    FAILS(hipErrorInvalidValue, hip->hipFree(p));
    OK(hip->hipDeviceSynchronize());
    free(heap);
    return true;
}

/* As ROCm's runtime, and many programs rely on it. */
static bool any_free_frees_all(void) {
    void *p;
    size_t before = free_memory();
    char *registered = malloc(100);
    OK(hip->hipHostMalloc(&p, 100, 0));
    OK(hip->hipFree(p));
    FAILS(hipErrorInvalidValue, hip->hipHostFree(p));
    OK(hip->hipMalloc(&p, 100));
    OK(hip->hipHostFree(p));
    FAILS(hipErrorInvalidValue, hip->hipFree(p));
    OK(hip->hipMallocManaged(&p, 100, hipMemAttachGlobal));
    OK(hip->hipFreeHost(p));
    FAILS(hipErrorInvalidValue, hip->hipFree(p));
    MUST(free_memory() == before);
    OK(hip->hipHostRegister(registered, 100, 0)); /* but not what HIP did not allocate */
    FAILS(hipErrorInvalidValue, hip->hipFree(registered));
    FAILS(hipErrorInvalidValue, hip->hipHostFree(registered));
    OK(hip->hipHostUnregister(registered));
    free(registered);
    return true;
}

static void host_and_device_memory_have_one_free(void **state) {
    (void)state;
    soft_expect(any_free_frees_all, NULL);
    soft_expect(any_free_frees_all, "GRETA_SOFT_SCHEDULE=lazy");
}

static void wrong_frees_are_refused(void **state) {
    (void)state;
    soft_expect(wrong_frees, NULL);
    soft_expect(wrong_frees, "GRETA_SOFT_SCHEDULE=lazy");
}

static char *contested;
static _Atomic int freed;

static void *free_contested(void *unused) {
    if (hip->hipFree(contested) == hipSuccess)
        atomic_fetch_add(&freed, 1);
    return unused;
}
static void *free_contested_pinned(void *unused) {
    if (hip->hipHostFree(contested) == hipSuccess)
        atomic_fetch_add(&freed, 1);
    return unused;
}

static void free_in_four_threads(void *(*main)(void *)) {
    pthread_t t[4];
    atomic_store(&freed, 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&t[i], NULL, main, NULL) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(t[i], NULL) == 0);
    MUST(atomic_load(&freed) == 1);
}

static bool four_threads_free_one_block(void) {
    for (int round = 0; round < 100; round++) {
        OK(hip->hipMalloc((void **)&contested, 100));
        free_in_four_threads(free_contested);
        OK(hip->hipHostMalloc((void **)&contested, 100, 0));
        free_in_four_threads(free_contested_pinned);
    }
    return true;
}

static void of_several_frees_at_once_one_succeeds(void **state) {
    (void)state;
    soft_expect(four_threads_free_one_block, NULL);
}

/* ---- quarantine ---------------------------------------------------------------------------- */

static bool addresses_are_not_reused_soon(void) {
    enum { COUNT = 2000 };
    static char *was[COUNT];
    for (int i = 0; i < COUNT; i++) {
        OK(hip->hipMalloc((void **)&was[i], 1000 + (size_t)i % 7));
        for (int j = 0; j < i; j++)
            MUST(was[i] + 1006 <= was[j] || was[j] + 1006 <= was[i]);
        OK(hip->hipFree(was[i]));
    }
    return true;
}

/* The address space is large but not endless: old addresses come back before it runs out. */
static bool memory_can_be_used_for_ever(void) {
    for (int i = 0; i < 7000; i++) {
        char *p;
        OK(hip->hipMalloc((void **)&p, 24 * MIB));
        OK(hip->hipFree(p));
    }
    return true;
}

static void freed_addresses_rest_before_they_are_used_again(void **state) {
    (void)state;
    soft_expect(addresses_are_not_reused_soon, NULL);
    soft_expect(memory_can_be_used_for_ever, "GRETA_SOFT_MEMORY=32M");
}

/* ---- accounting ---------------------------------------------------------------------------- */

static bool memory_is_counted(void) {
    size_t free_bytes, total, before;
    void *p, *q, *host;
    OK(hip->hipMemGetInfo(&free_bytes, &total));
    MUST(total == 64 * MIB && free_bytes == total);
    OK(hip->hipDeviceTotalMem(&total, 0));
    MUST(total == 64 * MIB);
    before = free_bytes;
    OK(hip->hipMalloc(&p, MIB));
    MUST(free_memory() == before - MIB);
    OK(hip->hipMalloc(&q, 1));
    MUST(free_memory() < before - MIB && free_memory() >= before - MIB - 65536);
    OK(hip->hipHostMalloc(&host, MIB, 0)); /* not the device's */
    OK(hip->hipFree(q));
    MUST(free_memory() == before - MIB);
    OK(hip->hipFree(p));
    MUST(free_memory() == before);

    OK(hip->hipMalloc(&p, 40 * MIB));
    FAILS(hipErrorOutOfMemory, hip->hipMalloc(&q, 40 * MIB));
    MUST(q == NULL);
    FAILS(hipErrorOutOfMemory, hip->hipMallocAsync(&q, 40 * MIB, NULL));
    FAILS(hipErrorOutOfMemory, hip->hipMallocManaged(&q, 40 * MIB, hipMemAttachGlobal));
    FAILS(hipErrorOutOfMemory, hip->hipGetLastError());
    MUST(free_memory() == before - 40 * MIB);
    OK(hip->hipMalloc(&q, 24 * MIB)); /* to the last byte */
    MUST(free_memory() == 0);
    FAILS(hipErrorOutOfMemory, hip->hipMalloc(&host, 1));
    OK(hip->hipFree(p));
    OK(hip->hipFree(q));
    MUST(free_memory() == before);
    FAILS(hipErrorInvalidValue, hip->hipMemGetInfo(NULL, NULL));
    return true;
}

static bool each_device_has_its_own(void) {
    void *p, *q;
    OK(hip->hipMalloc(&p, 10 * MIB));
    OK(hip->hipSetDevice(1));
    MUST(free_memory() == 16 * MIB);
    OK(hip->hipMalloc(&q, 10 * MIB));
    OK(hip->hipFree(p)); /* of the other device */
    MUST(free_memory() == 6 * MIB);
    OK(hip->hipSetDevice(0));
    MUST(free_memory() == 16 * MIB);
    OK(hip->hipFree(q));
    return true;
}

static void used_memory_is_counted_and_limited(void **state) {
    (void)state;
    soft_expect(memory_is_counted, "GRETA_SOFT_MEMORY=64M");
    soft_expect(memory_is_counted, "GRETA_SOFT_MEMORY=64M GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(each_device_has_its_own, "GRETA_SOFT_MEMORY=16M GRETA_SOFT_DEVICES=2");
}

/* A leak of pages would show here: the device has 32 MiB, the process may have little more. */
static bool freed_memory_goes_back(void) {
    char *p;
    long before = 0;
    for (int i = 0; i < 60; i++) {
        OK(hip->hipMalloc((void **)&p, 16 * MIB));
        OK(hip->hipMemset(p, 1, 16 * MIB));
        OK(hip->hipFree(p));
        FILE *f = fopen("/proc/self/statm", "r");
        long size, resident = 0;
        MUST(f && fscanf(f, "%ld %ld", &size, &resident) == 2);
        fclose(f);
        if (i == 5)
            before = resident;
        else if (i > 5)
            MUST(resident - before < 4096); /* pages: 16 MiB */
    }
    return true;
}

static void freed_memory_goes_back_to_the_system(void **state) {
    (void)state;
    soft_expect(freed_memory_goes_back, NULL);
}

/* ---- questions ----------------------------------------------------------------------------- */

static bool what_is_known_of_a_device_block(void) {
    char *p, *base;
    size_t size;
    hipPointerAttribute_t a;
    OK(hip->hipMalloc((void **)&p, 1000));
    OK(hip->hipMemGetAddressRange((hipDeviceptr_t *)&base, &size, p + 500));
    MUST(base == p && size == 1000);
    FAILS(hipErrorNotFound, hip->hipMemGetAddressRange((hipDeviceptr_t *)&base, &size, p + 1000));
    FAILS(hipErrorNotFound, hip->hipMemGetAddressRange((hipDeviceptr_t *)&base, &size, &size));
    OK(hip->hipMemPtrGetInfo(p, &size));
    MUST(size == 1000);
    OK(hip->hipPointerGetAttributes(&a, p + 10));
    MUST(a.device == 0 && a.devicePointer == p + 10 && a.hostPointer == NULL && !a.isManaged);
    OK(hip->hipPointerGetAttribute(&base, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 10));
    MUST(base == p);
    OK(hip->hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, p + 10));
    MUST(size == 1000);
    FAILS(hipErrorInvalidValue,
          hip->hipPointerGetAttribute(&base, HIP_POINTER_ATTRIBUTE_HOST_POINTER, p));
    hipPointer_attribute list[] = { HIP_POINTER_ATTRIBUTE_HOST_POINTER,
                                    HIP_POINTER_ATTRIBUTE_RANGE_SIZE };
    void *answers[] = { &base, &size };
    size = 0;
    OK(hip->hipDrvPointerGetAttributes(2, list, answers, p));
    MUST(base == NULL && size == 1000);
    FAILS(hipErrorInvalidValue, hip->hipDrvPointerGetAttributes(0, list, answers, p));
    OK(hip->hipFree(p));
    FAILS(hipErrorNotFound, hip->hipMemGetAddressRange((hipDeviceptr_t *)&base, &size, p));
    FAILS(hipErrorInvalidValue, hip->hipPointerGetAttributes(&a, p));
    FAILS(hipErrorInvalidValue, hip->hipMemPtrGetInfo(p, &size));
    FAILS(hipErrorInvalidValue, hip->hipPointerGetAttributes(NULL, p));
    FAILS(hipErrorInvalidValue, hip->hipPointerGetAttributes(&a, NULL));
    return true;
}

static bool what_is_known_of_host_memory(void) {
    char *p, *device, *heap = malloc(100);
    unsigned flags;
    hipPointerAttribute_t a;
    FAILS(hipErrorInvalidValue, hip->hipHostMalloc((void **)&p, 100, ~0u));
    FAILS(hipErrorInvalidValue,
          hip->hipHostMalloc((void **)&p, 100,
                             hipHostMallocCoherent | (unsigned)hipHostMallocNonCoherent));
    OK(hip->hipHostMalloc((void **)&p, 100, hipHostMallocPortable | hipHostMallocMapped));
    OK(hip->hipHostGetDevicePointer((void **)&device, p, 0));
    MUST(device == p);
    OK(hip->hipHostGetFlags(&flags, p));
    MUST(flags == (hipHostMallocPortable | hipHostMallocMapped));
    OK(hip->hipPointerGetAttributes(&a, p));
    MUST(a.hostPointer == p && a.devicePointer == p);
    FAILS(hipErrorInvalidValue, hip->hipHostGetDevicePointer((void **)&device, heap, 0));
    FAILS(hipErrorInvalidValue, hip->hipHostGetFlags(&flags, heap));
    free(heap);
    return true;
}

static bool blocks_know_their_device(void) {
    int *p, device;
    hipPointerAttribute_t a;
    OK(hip->hipSetDevice(1));
    OK(hip->hipMalloc((void **)&p, 100));
    OK(hip->hipSetDevice(0));
    OK(hip->hipPointerGetAttributes(&a, p));
    MUST(a.device == 1);
    OK(hip->hipPointerGetAttribute(&device, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    MUST(device == 1);
    return true;
}

static void addresses_can_be_asked_about(void **state) {
    (void)state;
    soft_expect(what_is_known_of_a_device_block, NULL);
    soft_expect(what_is_known_of_host_memory, NULL);
    soft_expect(blocks_know_their_device, "GRETA_SOFT_DEVICES=2");
}

/* ---- registered memory --------------------------------------------------------------------- */

static bool registration(void) {
    char *heap = malloc(10000), *pinned, *device;
    OK(hip->hipHostMalloc((void **)&pinned, 1000, 0));
    OK(hip->hipMalloc((void **)&device, 1000));
    OK(hip->hipHostRegister(heap + 1000, 1000, hipHostRegisterDefault));
    /* Overlaps, of every kind. */
    static const size_t bad[][2] = { { 1000, 1000 }, { 1000, 1 },   { 1999, 1 },   { 500, 501 },
                                     { 500, 5000 },  { 1500, 100 }, { 1500, 5000 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(hipErrorHostMemoryAlreadyRegistered,
              hip->hipHostRegister(heap + bad[i][0], bad[i][1], hipHostRegisterDefault));
    FAILS(hipErrorHostMemoryAlreadyRegistered, hip->hipHostRegister(pinned, 10, 0));
    FAILS(hipErrorInvalidValue, hip->hipHostRegister(device, 10, 0));
    FAILS(hipErrorInvalidValue, hip->hipHostRegister(NULL, 10, 0));
    FAILS(hipErrorInvalidValue, hip->hipHostRegister(heap, 0, 0));
    FAILS(hipErrorInvalidValue, hip->hipHostRegister(heap, SIZE_MAX, 0));
    FAILS(hipErrorInvalidValue, hip->hipHostRegister(heap, 1000, 0xf0));
    FAILS(hipErrorInvalidValue, hip->hipHostRegister(heap, (size_t)1 << 46, 0)); /* not all there */
    OK(hip->hipHostRegister(heap, 1000, hipHostRegisterDefault)); /* neighbours are fine */
    OK(hip->hipHostRegister(heap + 2000, 1000, hipHostRegisterDefault));

    FAILS(hipErrorHostMemoryNotRegistered, hip->hipHostUnregister(heap + 1));
    FAILS(hipErrorHostMemoryNotRegistered, hip->hipHostUnregister(heap + 5000));
    FAILS(hipErrorHostMemoryNotRegistered, hip->hipHostUnregister(pinned));
    FAILS(hipErrorHostMemoryNotRegistered, hip->hipHostUnregister(device));
    FAILS(hipErrorInvalidValue, hip->hipHostUnregister(NULL));
    FAILS(hipErrorInvalidValue, hip->hipHostFree(heap)); /* registered is not allocated */
    for (int i = 0; i < 3; i++)
        OK(hip->hipHostUnregister(heap + 1000 * i));
    FAILS(hipErrorHostMemoryNotRegistered, hip->hipHostUnregister(heap));
    OK(hip->hipHostRegister(heap, 10000, hipHostRegisterDefault));
    OK(hip->hipHostUnregister(heap));
    free(heap);
    return true;
}

static void registered_ranges_do_not_overlap(void **state) {
    (void)state;
    soft_expect(registration, NULL);
}

/* ---- managed memory ------------------------------------------------------------------------ */

static bool both_sides_see_managed_memory(void) {
    enum { COUNT = 100000 };
    int *m = soft_managed_ints(COUNT), back;
    for (int i = 0; i < COUNT; i++)
        m[i] = i;
    OK(hip->hipMemPrefetchAsync(m, COUNT * sizeof *m, 0, NULL));
    OK(hip->hipMemAdvise(m, COUNT * sizeof *m, hipMemAdviseSetReadMostly, 99)); /* for all */
    FAILS(hipErrorInvalidDevice,
          hip->hipMemAdvise(m, COUNT * sizeof *m, hipMemAdviseSetAccessedBy, 99));
    for (int i = 0; i < COUNT; i += 9999)
        soft_fold(NULL, m + i, 2, 1);
    OK(hip->hipDeviceSynchronize());
    for (int i = 0; i < COUNT; i++)
        MUST(m[i] == (i % 9999 ? i : 2 * i + 1));
    OK(hip->hipMemcpy(&back, m + 9999, sizeof back, hipMemcpyDeviceToHost));
    MUST(back == 19999);
    OK(hip->hipMemcpy(m, m + 9999, sizeof *m, hipMemcpyDefault));
    OK(hip->hipDeviceSynchronize());
    MUST(m[0] == 19999);
    FAILS(hipErrorInvalidValue, hip->hipMemPrefetchAsync(m, COUNT * sizeof *m + 1, 0, NULL));
    FAILS(hipErrorInvalidValue, hip->hipMemPrefetchAsync(&back, 4, 0, NULL));
    const hipMemLocation device = { hipMemLocationTypeDevice, 0 }, nowhere = { 0 };
    OK(hip->hipMemPrefetchAsync_v2(m, COUNT * sizeof *m, device, 0, NULL));
    FAILS(hipErrorInvalidValue,
          hip->hipMemPrefetchAsync_v2(m, COUNT * sizeof *m, nowhere, 0, NULL));
    FAILS(hipErrorInvalidValue, hip->hipMemPrefetchAsync_v2(m, COUNT * sizeof *m, device, 1, NULL));
    hipStream_t s = soft_free_stream();
    OK(hip->hipStreamAttachMemAsync(s, m, 0, hipMemAttachSingle));
    OK(hip->hipStreamAttachMemAsync(s, m, COUNT * sizeof *m, hipMemAttachGlobal));
    FAILS(hipErrorInvalidValue, hip->hipStreamAttachMemAsync(s, m, 4, hipMemAttachSingle));
    FAILS(hipErrorInvalidValue, hip->hipStreamAttachMemAsync(s, &back, 0, hipMemAttachSingle));
    OK(hip->hipFree(m));
    return true;
}

static void host_and_device_see_managed_memory(void **state) {
    (void)state;
    soft_expect(both_sides_see_managed_memory, NULL);
    soft_expect(both_sides_see_managed_memory, "GRETA_SOFT_SCHEDULE=lazy");
}

/* ---- pitched memory ------------------------------------------------------------------------ */

static bool pitched(void) {
    char *p;
    size_t pitch;
    hipPitchedPtr box;
    OK(hip->hipMallocPitch((void **)&p, &pitch, 100, 7));
    MUST(pitch >= 100 && pitch % 128 == 0);
    OK(hip->hipMemset2D(p, pitch, 3, 100, 7));
    OK(hip->hipFree(p));
    OK(hip->hipMemAllocPitch((hipDeviceptr_t *)&p, &pitch, 1000, 3, 4));
    MUST(pitch >= 1000);
    OK(hip->hipFree(p));
    OK(hip->hipMalloc3D(&box, (hipExtent){ 100, 7, 5 }));
    MUST(box.pitch >= 100 && box.xsize == 100 && box.ysize == 7);
    OK(hip->hipMemset3D(box, 1, (hipExtent){ 100, 7, 5 }));
    OK(hip->hipFree(box.ptr));
    FAILS(hipErrorInvalidValue, hip->hipMallocPitch(NULL, &pitch, 100, 7));
    FAILS(hipErrorInvalidValue, hip->hipMallocPitch((void **)&p, NULL, 100, 7));
    FAILS(hipErrorInvalidValue, hip->hipMalloc3D(NULL, (hipExtent){ 1, 1, 1 }));
    FAILS(hipErrorInvalidValue, hip->hipMemAllocPitch((hipDeviceptr_t *)&p, &pitch, 100, 3, 3));
    /* Products that do not fit. */
    FAILS(hipErrorOutOfMemory, hip->hipMallocPitch((void **)&p, &pitch, SIZE_MAX, 1));
    FAILS(hipErrorOutOfMemory, hip->hipMallocPitch((void **)&p, &pitch, 256, (size_t)1 << 56));
    FAILS(hipErrorOutOfMemory,
          hip->hipMalloc3D(&box, (hipExtent){ 256, (size_t)1 << 28, (size_t)1 << 28 }));
    FAILS(hipErrorOutOfMemory,
          hip->hipMalloc3D(&box, (hipExtent){ 1, (size_t)1 << 32, (size_t)1 << 32 }));
    return true;
}

static void pitched_allocation_checks_its_products(void **state) {
    (void)state;
    soft_expect(pitched, NULL);
}

/* ---- pools --------------------------------------------------------------------------------- */

static uint64_t pool_number(hipMemPool_t pool, hipMemPoolAttr attribute) {
    uint64_t value = 0;
    OK(hip->hipMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static bool pools(void) {
    hipMemPool_t standard, own, found;
    hipMemPoolProps props = { .allocType = hipMemAllocationTypePinned,
                              .location = { .type = hipMemLocationTypeDevice, .id = 0 } };
    char *p, *q;
    hipStream_t s = soft_free_stream();
    OK(hip->hipDeviceGetDefaultMemPool(&standard, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetMemPool(&found, -1));
    FAILS(hipErrorInvalidValue, hip->hipDeviceSetMemPool(99, standard));
    OK(hip->hipDeviceGetMemPool(&found, 0));
    MUST(found == standard);
    OK(hip->hipMemPoolCreate(&own, &props));
    OK(hip->hipMallocFromPoolAsync((void **)&p, 1000, own, s));
    OK(hip->hipMallocAsync((void **)&q, 2000, s));
    MUST(pool_number(own, hipMemPoolAttrUsedMemCurrent) == 1000);
    MUST(pool_number(standard, hipMemPoolAttrUsedMemCurrent) == 2000);
    OK(hip->hipFreeAsync(p, s));
    OK(hip->hipFree(q)); /* hipFree may free it as well */
    OK(hip->hipStreamSynchronize(s));
    MUST(pool_number(own, hipMemPoolAttrUsedMemCurrent) == 0);
    MUST(pool_number(standard, hipMemPoolAttrUsedMemCurrent) == 0);
    MUST(pool_number(own, hipMemPoolAttrUsedMemHigh) == 1000);

    OK(hip->hipDeviceSetMemPool(0, own));
    OK(hip->hipMallocAsync((void **)&p, 500, s));
    MUST(pool_number(own, hipMemPoolAttrUsedMemCurrent) == 500);
    OK(hip->hipMemPoolTrimTo(own, 0));
    OK(hip->hipMemPoolDestroy(own));
    OK(hip->hipDeviceGetMemPool(&found, 0));
    MUST(found == standard);
    OK(hip->hipFreeAsync(p, s));
    OK(hip->hipStreamSynchronize(s));

    MUST(hip->hipMallocFromPoolAsync((void **)&p, 1000, own, s) != hipSuccess);
    MUST(hip->hipMemPoolDestroy(own) != hipSuccess);
    MUST(hip->hipMemPoolDestroy(standard) != hipSuccess);
    MUST(hip->hipMallocFromPoolAsync((void **)&p, 1000, NULL, s) != hipSuccess);
    OK(hip->hipMallocAsync((void **)&p, 0, s));
    MUST(p == NULL);
    FAILS(hipErrorInvalidValue, hip->hipMallocAsync(NULL, 100, s));
    return true;
}

/* After a reset nothing is in use. */
static bool pools_after_a_reset(void) {
    hipMemPool_t pool;
    char *p;
    OK(hip->hipDeviceGetDefaultMemPool(&pool, 0));
    OK(hip->hipMallocAsync((void **)&p, 1000, NULL));
    OK(hip->hipDeviceReset());
    return pool_number(pool, hipMemPoolAttrUsedMemCurrent) == 0;
}

static void pools_count_what_they_gave(void **state) {
    (void)state;
    soft_expect(pools, NULL);
    soft_expect(pools, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(pools_after_a_reset, NULL);
}

/* ---- threads ------------------------------------------------------------------------------- */

static void *allocate_and_free(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    char *p[16] = { 0 };
    for (int i = 0; i < 1000; i++) {
        char **at = &p[rand_r(&seed) % 16];
        if (*at)
            OK(seed % 2 ? hip->hipFree(*at) : hip->hipFreeAsync(*at, NULL));
        OK(hip->hipMalloc((void **)at, 1 + (unsigned)rand_r(&seed) % 10000));
    }
    for (int i = 0; i < 16; i++)
        OK(hip->hipFree(p[i]));
    return NULL;
}

static bool threads_allocate(void) {
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++)
        MUST(pthread_create(&t[i], NULL, allocate_and_free, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(t[i], NULL) == 0);
    OK(hip->hipDeviceSynchronize());
    size_t free_bytes, total;
    OK(hip->hipMemGetInfo(&free_bytes, &total));
    return free_bytes == total;
}

static void threads_may_allocate_at_the_same_time(void **state) {
    (void)state;
    soft_expect(threads_allocate, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_apart_and_aligned),
        cmocka_unit_test(wrong_frees_are_refused),
        cmocka_unit_test(host_and_device_memory_have_one_free),
        cmocka_unit_test(of_several_frees_at_once_one_succeeds),
        cmocka_unit_test(freed_addresses_rest_before_they_are_used_again),
        cmocka_unit_test(used_memory_is_counted_and_limited),
        cmocka_unit_test(freed_memory_goes_back_to_the_system),
        cmocka_unit_test(addresses_can_be_asked_about),
        cmocka_unit_test(registered_ranges_do_not_overlap),
        cmocka_unit_test(host_and_device_see_managed_memory),
        cmocka_unit_test(pitched_allocation_checks_its_products),
        cmocka_unit_test(pools_count_what_they_gave),
        cmocka_unit_test(threads_may_allocate_at_the_same_time),
    };
    return cmocka_run_group_tests_name("soft_memory", tests, soft_fixture_load, NULL);
}
