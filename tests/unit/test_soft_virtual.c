/* Virtual memory, memory of other processes, hints about managed memory, and streams that wait for
 * values. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/soft_fixture.h"

#define MIB ((size_t)1 << 20)

/* ---- virtual memory -------------------------------------------------------------------------- */

static const hipMemAllocationProp on_device = { .type = hipMemAllocationTypePinned,
                                                .location = { hipMemLocationTypeDevice, 0 } };
static const hipMemAccessDesc read_write = { { hipMemLocationTypeDevice, 0 },
                                             hipMemAccessFlagsProtReadWrite };
static const hipMemAccessDesc no_access = { { hipMemLocationTypeDevice, 0 },
                                            hipMemAccessFlagsProtNone };

static bool two_pieces_of_memory_are_one_range(void) {
    hipMemGenericAllocationHandle_t one, two;
    char *p = NULL, back[64];
    size_t granularity = 0;
    OK(hip->hipMemGetAllocationGranularity(&granularity, &on_device,
                                           hipMemAllocationGranularityRecommended));
    MUST(granularity && MIB * 4 % granularity == 0);
    OK(hip->hipMemAddressReserve((void **)&p, 8 * MIB, 0, NULL, 0));
    OK(hip->hipMemCreate(&one, 2 * MIB, &on_device, 0));
    OK(hip->hipMemCreate(&two, 2 * MIB, &on_device, 0));
    OK(hip->hipMemMap(p, 2 * MIB, 0, one, 0));
    OK(hip->hipMemMap(p + 2 * MIB, 2 * MIB, 0, two, 0));
    FAILS(hipErrorInvalidValue, hip->hipMemMap(p + MIB, 2 * MIB, 0, two, 0)); /* taken */
    FAILS(hipErrorInvalidValue, hip->hipMemset(p, 1, 16));                    /* no access yet */
    OK(hip->hipMemSetAccess(p, 4 * MIB, &read_write, 1));
    OK(hip->hipMemset(p, 7, 4 * MIB)); /* over the border */
    OK(hip->hipMemcpy(back, p + 2 * MIB - 32, sizeof back, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < sizeof back; i++)
        MUST(back[i] == 7);
    FAILS(hipErrorInvalidValue, hip->hipMemset(p + 4 * MIB, 1, 16)); /* reserved only */
    FAILS(hipErrorInvalidValue, hip->hipFree(p));
    FAILS(hipErrorOutOfMemory, hip->hipMemAddressReserve((void **)&p, 0, 0, NULL, 0));
    FAILS(hipErrorOutOfMemory, hip->hipMemAddressReserve((void **)&p, MIB - 1, 0, NULL, 0));
    return true;
}

static bool memory_outlives_its_mapping(void) {
    hipMemGenericAllocationHandle_t memory, again;
    char *p = NULL, *q = NULL;
    int value = 0, seven = 7;
    OK(hip->hipMemAddressReserve((void **)&p, 2 * MIB, 0, NULL, 0));
    OK(hip->hipMemAddressReserve((void **)&q, 2 * MIB, 0, NULL, 0));
    OK(hip->hipMemCreate(&memory, 2 * MIB, &on_device, 0));
    OK(hip->hipMemMap(p, 2 * MIB, 0, memory, 0));
    OK(hip->hipMemSetAccess(p, 2 * MIB, &read_write, 1));
    OK(hip->hipMemcpy(p + 64, &seven, sizeof seven, hipMemcpyHostToDevice));
    OK(hip->hipMemRetainAllocationHandle(&again, p));
    MUST(again == memory);
    OK(hip->hipMemRelease(again));
    FAILS(hipErrorInvalidValue, hip->hipMemAddressFree(p, 2 * MIB)); /* still mapped */
    OK(hip->hipMemUnmap(p, 2 * MIB));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy(&value, p + 64, 4, hipMemcpyDeviceToHost));
    OK(hip->hipMemMap(q, 2 * MIB, 0, memory, 0));
    OK(hip->hipMemSetAccess(q, 2 * MIB, &read_write, 1));
    OK(hip->hipMemRelease(memory)); /* the mapping keeps it */
    OK(hip->hipMemcpy(&value, q + 64, sizeof value, hipMemcpyDeviceToHost));
    MUST(value == 7);
    OK(hip->hipMemSetAccess(q, 2 * MIB, &no_access, 1));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy(&value, q + 64, 4, hipMemcpyDeviceToHost));
    OK(hip->hipMemUnmap(q, 2 * MIB));
    FAILS(hipErrorInvalidValue, hip->hipMemRelease(memory));
    OK(hip->hipMemAddressFree(p, 2 * MIB));
    OK(hip->hipMemAddressFree(q, 2 * MIB));
    return true;
}

static bool kernels_reach_mapped_memory(void) {
    hipMemGenericAllocationHandle_t memory;
    int *p = NULL, value = 0;
    OK(hip->hipMemAddressReserve((void **)&p, 2 * MIB, 0, NULL, 0));
    OK(hip->hipMemCreate(&memory, 2 * MIB, &on_device, 0));
    OK(hip->hipMemMap(p, 2 * MIB, 0, memory, 0));
    OK(hip->hipMemSetAccess(p, 2 * MIB, &read_write, 1));
    soft_store(NULL, p, 41, 0);
    OK(hip->hipMemcpy(&value, p, sizeof value, hipMemcpyDeviceToHost));
    return value == 41;
}

/* ---- other processes ------------------------------------------------------------------------- */

struct message {
    hipIpcMemHandle_t handle;
};

/* Two processes, each with its own device: the child opens what the parent has. */
static bool another_process_reads_and_writes(void) {
    int there[2], back[2], value = 7, status = 1;
    struct message m;
    MUST(!pipe(there) && !pipe(back));
    pid_t pid = fork(); /* before the first HIP call */
    MUST(pid >= 0);
    if (!pid) {
        int *p;
        MUST(read(there[0], &m, sizeof m) == sizeof m);
        OK(hip->hipIpcOpenMemHandle((void **)&p, m.handle, 0));
        OK(hip->hipMemcpy(&value, p + 5, sizeof value, hipMemcpyDeviceToHost));
        MUST(value == 7);
        soft_store(NULL, p + 5, 8, 0);
        OK(hip->hipDeviceSynchronize());
        FAILS(hipErrorInvalidValue, hip->hipFree(p));
        OK(hip->hipIpcCloseMemHandle(p));
        FAILS(hipErrorInvalidValue, hip->hipMemset(p, 0, 4));
        _exit(0);
    }
    int *p = soft_device_ints(100);
    OK(hip->hipMemcpy(p + 5, &value, sizeof value, hipMemcpyHostToDevice));
    OK(hip->hipIpcGetMemHandle(&m.handle, p + 3)); /* the block, wherever in it */
    MUST(write(there[1], &m, sizeof m) == sizeof m);
    MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(hip->hipMemcpy(&value, p + 5, sizeof value, hipMemcpyDeviceToHost));
    FAILS(hipErrorInvalidContext, hip->hipIpcOpenMemHandle((void **)&p, m.handle, 0));
    return value == 8;
}

static bool a_handle_of_freed_memory_opens_nothing(void) {
    int there[2], status = 1;
    struct message m;
    MUST(!pipe(there));
    pid_t pid = fork();
    MUST(pid >= 0);
    if (!pid) {
        void *p;
        MUST(read(there[0], &m, sizeof m) == sizeof m);
        MUST(hip->hipIpcOpenMemHandle(&p, m.handle, 0) != hipSuccess);
        memset(&m, 1, sizeof m);
        FAILS(hipErrorInvalidValue, hip->hipIpcOpenMemHandle(&p, m.handle, 0));
        _exit(0);
    }
    hipIpcMemHandle_t other;
    int *p = soft_device_ints(4), *q = soft_device_ints(4);
    OK(hip->hipIpcGetMemHandle(&m.handle, p));
    OK(hip->hipFree(p));
    OK(hip->hipIpcGetMemHandle(&other, q)); /* closes what is gone */
    FAILS(hipErrorInvalidDevicePointer, hip->hipIpcGetMemHandle(&other, &status));
    MUST(write(there[1], &m, sizeof m) == sizeof m);
    MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return true;
}

struct pool_message {
    pid_t process;
    int file;
    hipMemPoolPtrExportData block;
};

/* The child of a_pool_of_another_process(). */
static void use_imported_pool(const struct pool_message *m) {
    char path[64];
    hipMemPool_t pool;
    uint64_t used = 0;
    int *p = NULL, value = 0;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)m->process, m->file);
    int file = open(path, O_RDWR);
    MUST(file > 0);
    OK(hip->hipMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)file,
                                                hipMemHandleTypePosixFileDescriptor, 0));
    hipMemPoolPtrExportData block = m->block;
    OK(hip->hipMemPoolImportPointer((void **)&p, pool, &block));
    OK(hip->hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
    MUST(used == 100 * sizeof *p);
    OK(hip->hipMemcpy(&value, p + 5, sizeof value, hipMemcpyDeviceToHost));
    MUST(value == 7);
    soft_store(NULL, p + 5, 8, 0);
    OK(hip->hipDeviceSynchronize());
    FAILS(hipErrorInvalidValue, hip->hipIpcCloseMemHandle(p));
    OK(hip->hipFreeAsync(p, NULL));
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
    MUST(!used);
    FAILS(hipErrorInvalidValue, hip->hipMemset(p, 0, 4));
    OK(hip->hipMemPoolDestroy(pool));
}

static bool a_pool_of_another_process(void) {
    int there[2], value = 7, status = 1, *p = NULL;
    struct pool_message m = { .process = getpid() };
    hipMemPool_t pool;
    hipMemPoolProps props = { .allocType = hipMemAllocationTypePinned,
                              .handleTypes = hipMemHandleTypePosixFileDescriptor,
                              .location = { hipMemLocationTypeDevice, 0 } };
    MUST(!pipe(there));
    pid_t pid = fork(); /* before the first HIP call */
    MUST(pid >= 0);
    if (!pid) {
        MUST(read(there[0], &m, sizeof m) == sizeof m);
        use_imported_pool(&m);
        _exit(0);
    }
    OK(hip->hipMemPoolCreate(&pool, &props));
    OK(hip->hipMallocFromPoolAsync((void **)&p, 100 * sizeof *p, pool, NULL));
    OK(hip->hipMemcpy(p + 5, &value, sizeof value, hipMemcpyHostToDevice));
    OK(hip->hipMemPoolExportToShareableHandle(&m.file, pool, hipMemHandleTypePosixFileDescriptor,
                                              0));
    OK(hip->hipMemPoolExportPointer(&m.block, p));
    MUST(write(there[1], &m, sizeof m) == sizeof m);
    MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(hip->hipMemcpy(&value, p + 5, sizeof value, hipMemcpyDeviceToHost));
    return value == 8;
}

/* Also a process that has the pool already may import it. */
static bool only_pools_that_ask_for_it_are_shared(void) {
    hipMemPool_t pool, plain, again;
    hipMemPoolPtrExportData block;
    int file = -1, value = 7, *p = NULL, *q = NULL, *r = NULL;
    hipMemPoolProps props = { .allocType = hipMemAllocationTypePinned,
                              .location = { hipMemLocationTypeDevice, 0 } };
    const hipMemAllocationHandleType posix = hipMemHandleTypePosixFileDescriptor;
    OK(hip->hipMemPoolCreate(&plain, &props));
    props.handleTypes = posix;
    OK(hip->hipMemPoolCreate(&pool, &props));
    FAILS(hipErrorInvalidValue, hip->hipMemPoolExportToShareableHandle(&file, plain, posix, 0));
    FAILS(hipErrorInvalidValue, hip->hipMemPoolExportToShareableHandle(NULL, pool, posix, 0));
    FAILS(hipErrorInvalidValue,
          hip->hipMemPoolExportToShareableHandle(&file, pool, hipMemHandleTypeNone, 0));
    OK(hip->hipMemPoolExportToShareableHandle(&file, pool, posix, 0));
    FAILS(hipErrorInvalidValue,
          hip->hipMemPoolImportFromShareableHandle(&again, (void *)(uintptr_t)1, posix, 0));
    /* As of a variable that is as wide as a pointer and half unset. */
    uintptr_t wide = (uintptr_t)0x5555 << 32 | (unsigned)file;
    OK(hip->hipMemPoolImportFromShareableHandle(&again, (void *)wide, posix, 0));
    OK(hip->hipMallocFromPoolAsync((void **)&q, 64, plain, NULL));
    FAILS(hipErrorInvalidValue, hip->hipMemPoolExportPointer(&block, q));
    OK(hip->hipMallocFromPoolAsync((void **)&p, 64, pool, NULL));
    OK(hip->hipMemcpy(p, &value, sizeof value, hipMemcpyHostToDevice));
    OK(hip->hipMemPoolExportPointer(&block, p));
    FAILS(hipErrorInvalidValue, hip->hipMemPoolImportPointer((void **)&r, NULL, &block));
    OK(hip->hipMemPoolImportPointer((void **)&r, again, &block));
    value = 0;
    OK(hip->hipMemcpy(&value, r, sizeof value, hipMemcpyDeviceToHost));
    OK(hip->hipFree(r));
    return value == 7;
}

/* The child waits for a place in a stream of the parent, and a stream of its own does. */
static bool another_process_waits_for_an_event(void) {
    int there[2], back[2], status = 1;
    hipIpcEventHandle_t handle;
    hipEvent_t event, plain;
    char word = 0;
    MUST(!pipe(there) && !pipe(back));
    pid_t pid = fork();
    MUST(pid >= 0);
    if (!pid) {
        int *p, value = 0;
        MUST(read(there[0], &handle, sizeof handle) == sizeof handle);
        OK(hip->hipIpcOpenEventHandle(&event, handle));
        FAILS(hipErrorNotReady, hip->hipEventQuery(event));
        p = soft_device_ints(1);
        OK(hip->hipStreamWaitEvent(NULL, event, 0));
        soft_store(NULL, p, 3, 0);
        MUST(write(back[1], &word, 1) == 1);
        OK(hip->hipEventSynchronize(event));
        OK(hip->hipEventQuery(event));
        OK(hip->hipMemcpy(&value, p, sizeof value, hipMemcpyDeviceToHost));
        MUST(value == 3);
        OK(hip->hipEventDestroy(event));
        _exit(0);
    }
    uint64_t *signal;
    OK(hip->hipEventCreate(&plain));
    FAILS(hipErrorInvalidConfiguration, hip->hipIpcGetEventHandle(&handle, plain));
    OK(hip->hipEventCreateWithFlags(&event, hipEventInterprocess | hipEventDisableTiming));
    OK(hip->hipExtMallocWithFlags((void **)&signal, 8, hipMallocSignalMemory));
    atomic_store((_Atomic uint64_t *)signal, 0);
    OK(hip->hipStreamWaitValue64(NULL, signal, 1, hipStreamWaitValueGte, UINT64_MAX));
    OK(hip->hipEventRecord(event, NULL));
    OK(hip->hipIpcGetEventHandle(&handle, event));
    FAILS(hipErrorInvalidContext, hip->hipIpcOpenEventHandle(&plain, handle));
    MUST(write(there[1], &handle, sizeof handle) == sizeof handle);
    MUST(read(back[0], &word, 1) == 1);
    atomic_store((_Atomic uint64_t *)signal, 1);
    OK(hip->hipEventSynchronize(event));
    OK(hip->hipEventQuery(event));
    MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* One stream waits for what another writes; then for what the host writes. */
static bool a_stream_waits_for_a_value(void) {
    hipStream_t waits, writes;
    uint64_t *signal;
    int *p = soft_device_ints(1), value = 0;
    OK(hip->hipStreamCreateWithFlags(&waits, hipStreamNonBlocking));
    OK(hip->hipStreamCreateWithFlags(&writes, hipStreamNonBlocking));
    OK(hip->hipExtMallocWithFlags((void **)&signal, 8, hipMallocSignalMemory));
    atomic_store((_Atomic uint64_t *)signal, 0);
    OK(hip->hipMemset(p, 0, 4));
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipStreamWaitValue64(waits, signal, 5, hipStreamWaitValueGte, UINT64_MAX));
    soft_store(waits, p, 1, 0);
    OK(hip->hipStreamWriteValue64(writes, signal, 6, 0));
    OK(hip->hipStreamSynchronize(waits));
    OK(hip->hipMemcpy(&value, p, 4, hipMemcpyDeviceToHost));
    MUST(value == 1);
    OK(hip->hipStreamWaitValue32(waits, signal, 0x100, hipStreamWaitValueAnd, 0xf00));
    OK(hip->hipStreamWaitValue32(waits, signal, 0x300, hipStreamWaitValueEq, 0xf00));
    soft_store(waits, p, 2, 0);
    OK(hip->hipMemcpy(&value, p, 4, hipMemcpyDeviceToHost)); /* waits is not blocking */
    MUST(value == 1);
    atomic_store((_Atomic uint64_t *)signal, 0x322);
    OK(hip->hipStreamSynchronize(waits));
    OK(hip->hipMemcpy(&value, p, 4, hipMemcpyDeviceToHost));
    return value == 2;
}

static bool bad_values_are_refused(void) {
    uint64_t *signal, on_the_host = 0;
    OK(hip->hipExtMallocWithFlags((void **)&signal, 8, hipMallocSignalMemory));
    FAILS(hipErrorInvalidValue, hip->hipStreamWaitValue32(NULL, NULL, 0, 0, 1));
    FAILS(hipErrorInvalidValue, hip->hipStreamWaitValue32(NULL, signal, 0, 9, 1));
    FAILS(hipErrorInvalidValue, hip->hipStreamWaitValue64(NULL, &on_the_host, 0, 0, 1));
    FAILS(hipErrorInvalidValue, hip->hipStreamWriteValue64(NULL, (char *)signal + 4, 0, 0));
    FAILS(hipErrorInvalidValue, hip->hipExtMallocWithFlags((void **)&signal, 4, 2));
    return true;
}

/* ---- managed memory -------------------------------------------------------------------------- */

static int attribute_of(const void *p, hipMemRangeAttribute attribute) {
    int value = -100;
    OK(hip->hipMemRangeGetAttribute(&value, sizeof value, attribute, p, 64));
    return value;
}

static bool hints_can_be_asked_for(void) {
    char *p;
    int number = 0;
    OK(hip->hipMallocManaged((void **)&p, 4096, hipMemAttachGlobal));
    MUST(attribute_of(p, hipMemRangeAttributeLastPrefetchLocation) == hipInvalidDeviceId);
    MUST(attribute_of(p, hipMemRangeAttributeReadMostly) == 0);
    OK(hip->hipMemAdvise(p, 4096, hipMemAdviseSetReadMostly, 0));
    OK(hip->hipMemAdvise(p, 4096, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
    OK(hip->hipMemPrefetchAsync(p, 4096, 0, NULL));
    MUST(attribute_of(p, hipMemRangeAttributeReadMostly) == 1);
    MUST(attribute_of(p, hipMemRangeAttributePreferredLocation) == hipCpuDeviceId);
    MUST(attribute_of(p, hipMemRangeAttributeLastPrefetchLocation) == 0);
    OK(hip->hipMemAdvise(p, 4096, hipMemAdviseUnsetReadMostly, 0));
    MUST(attribute_of(p, hipMemRangeAttributeReadMostly) == 0);
    FAILS(hipErrorInvalidValue,
          hip->hipMemRangeGetAttribute(&number, 2, hipMemRangeAttributeReadMostly, p, 64));
    FAILS(hipErrorInvalidValue,
          hip->hipMemRangeGetAttribute(&number, 4, hipMemRangeAttributeReadMostly, p, 4097));
    return true;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void mapped_pieces_are_one_range(void **state) {
    (void)state;
    soft_expect(two_pieces_of_memory_are_one_range, NULL);
    soft_expect(kernels_reach_mapped_memory, NULL);
}

static void memory_lives_as_long_as_a_handle_or_a_mapping(void **state) {
    (void)state;
    soft_expect(memory_outlives_its_mapping, NULL);
}

static void processes_share_memory(void **state) {
    (void)state;
    soft_expect(another_process_reads_and_writes, NULL);
    soft_expect(another_process_reads_and_writes, "GRETA_SOFT_CHECK=off");
    soft_expect(a_handle_of_freed_memory_opens_nothing, NULL);
    soft_expect(another_process_waits_for_an_event, NULL);
}

static void processes_share_pools(void **state) {
    (void)state;
    soft_expect(a_pool_of_another_process, NULL);
    soft_expect(a_pool_of_another_process, "GRETA_SOFT_CHECK=off");
    soft_expect(only_pools_that_ask_for_it_are_shared, NULL);
}

static void hints_about_managed_memory_are_remembered(void **state) {
    (void)state;
    soft_expect(hints_can_be_asked_for, NULL);
}

static void streams_wait_for_values(void **state) {
    (void)state;
    soft_right_waiting(a_stream_waits_for_a_value);
    soft_expect(bad_values_are_refused, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mapped_pieces_are_one_range),
        cmocka_unit_test(memory_lives_as_long_as_a_handle_or_a_mapping),
        cmocka_unit_test(processes_share_memory),
        cmocka_unit_test(processes_share_pools),
        cmocka_unit_test(hints_about_managed_memory_are_remembered),
        cmocka_unit_test(streams_wait_for_values),
    };
    return cmocka_run_group_tests_name("soft_virtual", tests, soft_fixture_load, NULL);
}
