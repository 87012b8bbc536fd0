/* test_soft_device.c - what the software device says it is, and what can be set on it. */
#include "test.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/soft_fixture.h"

static int attribute(hipDeviceAttribute_t attr, int device) {
    int value = -1;
    OK(hip->hipDeviceGetAttribute(&value, attr, device));
    return value;
}

/* ---- which devices ------------------------------------------------------------------------- */

static bool counts_three(void) {
    int n = 0;
    OK(hip->hipGetDeviceCount(&n));
    return n == 3;
}

static void the_number_of_devices_is_a_setting(void **state) {
    (void)state;
    soft_expect(counts_three, "GRETA_SOFT_DEVICES=3");
    soft_expect(counts_three, "GRETA_SOFT_DEVICES=8 HIP_VISIBLE_DEVICES=1,5,3");
    soft_expect(counts_three, "GRETA_SOFT_DEVICES=8 HIP_VISIBLE_DEVICES=1,5,3,9,2");
}

static bool sees_devices_in_the_order_asked_for(void) {
    char id[16];
    const char *const expected[] = { "0000:03:00.0", "0000:01:00.0" };
    for (int i = 0; i < 2; i++) {
        int found = -1;
        OK(hip->hipDeviceGetPCIBusId(id, sizeof id, i));
        MUST(!strcmp(id, expected[i]));
        OK(hip->hipDeviceGetByPCIBusId(&found, id));
        MUST(found == i);
        MUST(attribute(hipDeviceAttributePciBusId, i) == (i ? 1 : 3));
    }
    int absent;
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetByPCIBusId(&absent, "0000:02:00.0"));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetByPCIBusId(&absent, "nonsense"));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetPCIBusId(id, 12, 0));
    hipUUID a, b;
    OK(hip->hipDeviceGetUuid(&a, 0));
    OK(hip->hipDeviceGetUuid(&b, 1));
    return memcmp(&a, &b, sizeof a) != 0;
}

static void visible_devices_keep_their_bus_ids(void **state) {
    (void)state;
    soft_expect(sees_devices_in_the_order_asked_for,
                "GRETA_SOFT_DEVICES=4 HIP_VISIBLE_DEVICES=2,0");
}

static bool has_no_device(void) {
    int n;
    FAILS(hipErrorNoDevice, hip->hipGetDeviceCount(&n));
    FAILS(hipErrorNoDevice, hip->hipSetDevice(0));
    return true;
}

static void no_visible_device_is_an_error(void **state) {
    (void)state;
    soft_expect(has_no_device, "HIP_VISIBLE_DEVICES=-1");
}

static bool cannot_start(void) {
    int n;
    FAILS(hipErrorNotInitialized, hip->hipGetDeviceCount(&n));
    FAILS(hipErrorNotInitialized, hip->hipInit(0));
    return true;
}

static void a_setting_that_makes_no_sense_is_named(void **state) {
    (void)state;
    struct soft_outcome o = soft_run(cannot_start, "GRETA_SOFT_SCHEDULE=sometimes");
    assert_true(o.right);
    assert_non_null(strstr(o.output, "GRETA_SOFT_SCHEDULE"));
    assert_non_null(strstr(o.output, "sometimes"));
    assert_null(strstr(strstr(o.output, "sometimes") + 1, "sometimes"));
}

static void *use_device_one(void *unused) {
    int device = -1;
    OK(hip->hipGetDevice(&device));
    MUST(device == 0);
    OK(hip->hipSetDevice(1));
    OK(hip->hipGetDevice(&device));
    MUST(device == 1);
    return unused;
}

static bool chooses_a_device_per_thread(void) {
    pthread_t other;
    int device = -1;
    MUST(!pthread_create(&other, NULL, use_device_one, NULL));
    MUST(!pthread_join(other, NULL));
    OK(hip->hipGetDevice(&device));
    return device == 0;
}

static void the_current_device_is_the_threads_own(void **state) {
    (void)state;
    soft_expect(chooses_a_device_per_thread, "GRETA_SOFT_DEVICES=2");
}

static bool refuses_wrong_ordinals(void) {
    static const int wrong[] = { -1, 2, INT_MAX, INT_MIN };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int d = wrong[i], value;
        char text[32];
        size_t bytes;
        hipDeviceProp_t p;
        hipDeviceProp_tR0600 p6;
        hipDevice_t handle;
        hipUUID uuid;
        hipCtx_t ctx;
        FAILS(hipErrorInvalidDevice, hip->hipSetDevice(d));
        FAILS(hipErrorInvalidDevice, hip->hipDeviceGet(&handle, d));
        FAILS(hipErrorInvalidDevice, hip->hipGetDeviceProperties(&p, d));
        FAILS(hipErrorInvalidDevice, hip->hipGetDevicePropertiesR0600(&p6, d));
        FAILS(hipErrorInvalidDevice,
              hip->hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, d));
        FAILS(hipErrorInvalidDevice, hip->hipDeviceGetName(text, sizeof text, d));
        FAILS(hipErrorInvalidDevice, hip->hipDeviceGetUuid(&uuid, d));
        FAILS(hipErrorInvalidDevice, hip->hipDeviceTotalMem(&bytes, d));
        FAILS(hipErrorInvalidDevice, hip->hipDeviceGetPCIBusId(text, sizeof text, d));
        FAILS(hipErrorInvalidDevice, hip->hipDeviceCanAccessPeer(&value, 0, d));
        FAILS(hipErrorInvalidDevice, hip->hipDeviceEnablePeerAccess(d, 0));
        FAILS(hipErrorInvalidDevice, hip->hipDevicePrimaryCtxRetain(&ctx, d));
    }
    return true;
}

static void ordinals_are_checked_everywhere(void **state) {
    (void)state;
    soft_expect(refuses_wrong_ordinals, "GRETA_SOFT_DEVICES=2");
}

static bool refuses_null_everywhere(void) {
    FAILS(hipErrorInvalidValue, hip->hipInit(1));
    FAILS(hipErrorInvalidValue, hip->hipGetDeviceCount(NULL));
    FAILS(hipErrorInvalidValue, hip->hipGetDevice(NULL));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGet(NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipGetDeviceProperties(NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipGetDevicePropertiesR0600(NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetAttribute(NULL, hipDeviceAttributeWarpSize, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetName(NULL, 8, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetUuid(NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceTotalMem(NULL, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetPCIBusId(NULL, 16, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetByPCIBusId(NULL, "0000:01:00.0"));
    FAILS(hipErrorInvalidValue, hip->hipDriverGetVersion(NULL));
    FAILS(hipErrorInvalidValue, hip->hipRuntimeGetVersion(NULL));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetLimit(NULL, hipLimitStackSize));
    FAILS(hipErrorInvalidValue, hip->hipGetDeviceFlags(NULL));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetCacheConfig(NULL));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetSharedMemConfig(NULL));
    FAILS(hipErrorInvalidValue, hip->hipChooseDevice(NULL, NULL));
    FAILS(hipErrorInvalidValue, hip->hipDeviceCanAccessPeer(NULL, 0, 0));
    FAILS(hipErrorInvalidValue, hip->hipCtxCreate(NULL, 0, 0));
    FAILS(hipErrorInvalidValue, hip->hipCtxDestroy(NULL));
    FAILS(hipErrorInvalidValue, hip->hipCtxGetCurrent(NULL));
    FAILS(hipErrorInvalidContext, hip->hipCtxPushCurrent(NULL));
    FAILS(hipErrorInvalidContext, hip->hipCtxPushCurrent((hipCtx_t)&hip));
    return true;
}

static void null_is_an_invalid_value(void **state) {
    (void)state;
    soft_expect(refuses_null_everywhere, NULL);
}

/* ---- properties ---------------------------------------------------------------------------- */

static bool describes_a_gfx90a(void) {
    hipDeviceProp_t p5;
    hipDeviceProp_tR0600 p6;
    memset(&p5, 0xff, sizeof p5);
    memset(&p6, 0xff, sizeof p6);
    OK(hip->hipGetDeviceProperties(&p5, 0));
    OK(hip->hipGetDevicePropertiesR0600(&p6, 0));
    MUST(!strcmp(p6.name, "greta software device (AMD Instinct MI210)") &&
         !strcmp(p5.name, p6.name));
    MUST(!strcmp(p6.gcnArchName, "gfx90a:sramecc+:xnack-"));
    MUST(!strcmp(p5.gcnArchName, p6.gcnArchName) && p5.gcnArch == 910);
    MUST(p6.warpSize == 64 && p5.warpSize == 64);
    MUST(p6.sharedMemPerBlock == 64 << 10 && p5.sharedMemPerBlock == 64 << 10);
    MUST(p6.maxThreadsPerBlock == 1024 && p5.maxThreadsPerBlock == 1024);
    MUST(p6.totalGlobalMem == 256 << 20 && p5.totalGlobalMem == p6.totalGlobalMem);
    MUST(p6.major == 9 && p6.minor == 0 && p5.major == 9 && p5.minor == 0);
    MUST(p6.maxGridSize[0] == INT_MAX && p5.maxThreadsDim[2] == 1024);
    MUST(p6.multiProcessorCount == 104 && p5.multiProcessorCount == p6.multiProcessorCount);
    MUST(p6.arch.hasDoubles && !p6.arch.hasDynamicParallelism && p5.arch.hasWarpShuffle);
    MUST(!p6.pageableMemoryAccess && !p6.isLargeBar && p6.managedMemory);
    MUST(p6.reserved[0] == 0 && p6.maxTexture2D[0] == 16384 && p6.maxTextureCubemap == 0);
    size_t bytes;
    OK(hip->hipDeviceTotalMem(&bytes, 0));
    return bytes == 256 << 20;
}

static void both_layouts_say_the_same(void **state) {
    (void)state;
    soft_expect(describes_a_gfx90a, "GRETA_SOFT_MEMORY=256M");
}

static bool describes_a_gfx942(void) {
    hipDeviceProp_t p5;
    hipDeviceProp_tR0600 p6;
    OK(hip->hipGetDeviceProperties(&p5, 0));
    OK(hip->hipGetDevicePropertiesR0600(&p6, 0));
    MUST(!strcmp(p6.name, "greta software device (AMD Instinct MI300X)"));
    MUST(!strcmp(p5.gcnArchName, "gfx942:sramecc+:xnack-") && p5.gcnArch == 942);
    MUST(p6.multiProcessorCount == 304 && p5.multiProcessorCount == 304);
    MUST(p6.major == 9 && p6.minor == 4 && p5.minor == 4);
    MUST(p6.maxTexture2D[0] == 0 && attribute(hipDeviceAttributeImageSupport, 0) == 0);
    return p6.memoryBusWidth == 8192 && p6.clockRate == 2100000;
}

static void another_gpu_has_other_figures(void **state) {
    (void)state;
    soft_expect(describes_a_gfx942, "GRETA_SOFT_ARCH=gfx942");
}

static bool attributes_follow_properties(void) {
    hipDeviceProp_tR0600 p;
    OK(hip->hipGetDevicePropertiesR0600(&p, 0));
    MUST(attribute(hipDeviceAttributeWarpSize, 0) == p.warpSize);
    MUST(attribute(hipDeviceAttributeMaxSharedMemoryPerBlock, 0) == (int)p.sharedMemPerBlock);
    MUST(attribute(hipDeviceAttributeMaxThreadsPerBlock, 0) == p.maxThreadsPerBlock);
    MUST(attribute(hipDeviceAttributeMaxGridDimY, 0) == p.maxGridSize[1]);
    MUST(attribute(hipDeviceAttributeMultiprocessorCount, 0) == p.multiProcessorCount);
    MUST(attribute(hipDeviceAttributeComputeCapabilityMajor, 0) == p.major);
    MUST(attribute(hipDeviceAttributeManagedMemory, 0) == 1);
    MUST(attribute(hipDeviceAttributeHostRegisterSupported, 0) == 1);
    MUST(attribute(hipDeviceAttributeTotalGlobalMem, 0) == INT_MAX); /* 4 GiB does not fit */
    int value = 77;
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)9998, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)-1, 0));
    FAILS(hipErrorInvalidValue,
          hip->hipDeviceGetAttribute(&value, hipDeviceAttributeHdpMemFlushCntl, 0));
    /* Retired in 6.x. */
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetAttribute(&value, hipDeviceAttributeGcnArch, 0));
    return value == 77;
}

static void attributes_are_the_properties(void **state) {
    (void)state;
    soft_expect(attributes_follow_properties, "GRETA_SOFT_MEMORY=4G");
}

static bool cuts_names(void) {
    char name[64];
    memset(name, 'x', sizeof name);
    OK(hip->hipDeviceGetName(name, 6, 0));
    MUST(!strcmp(name, "greta"));
    OK(hip->hipDeviceGetName(name, sizeof name, 0));
    MUST(!strcmp(name, "greta software device (AMD Instinct MI210)"));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetName(name, 0, 0));
    return true;
}

static void names_are_cut_to_what_fits(void **state) {
    (void)state;
    soft_expect(cuts_names, NULL);
}

/* The folder of the loaded library; the three majors lie side by side. */
static void *open_major(int major) {
    Dl_info info;
    char path[PATH_MAX];
    void *symbol = dlsym(soft_library, "hipGetDevice");
    MUST(symbol && dladdr(symbol, &info));
    const char *slash = strrchr(info.dli_fname, '/');
    MUST(slash);
    snprintf(path, sizeof path, "%.*s/libamdhip64.so.%d", (int)(slash - info.dli_fname),
             info.dli_fname, major);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        soft_fail(__FILE__, __LINE__, "%s", dlerror());
    return library;
}

#define IN(library, name) (*(__typeof__(hip->name) *)(void *)(void *[]){ dlsym(library, #name) })

/* The properties of memory lie differently in ROCm 5. */
static void take_memory(void *library, int major) {
    hipMemLocation place = { hipMemLocationTypeDevice, 0 };
    hipMemAllocationProp now = { .type = hipMemAllocationTypePinned, .location = place };
    HIP5_hipMemAllocationProp old = { .type = hipMemAllocationTypePinned, .location = place };
    union {
        hipMemAllocationProp now;
        HIP5_hipMemAllocationProp old;
    } told;
    const hipMemAllocationProp *wish =
        major == 5 ? (const hipMemAllocationProp *)(const void *)&old : &now;
    hipMemGenericAllocationHandle_t memory;
    size_t unit = 0;
    OK(IN(library, hipMemGetAllocationGranularity)(&unit, wish,
                                                   hipMemAllocationGranularityMinimum));
    OK(IN(library, hipMemCreate)(&memory, unit, wish, 0));
    memset(&told, 0, sizeof told);
    OK(IN(library, hipMemGetAllocationPropertiesFromHandle)(&told.now, memory));
    MUST((major == 5 ? told.old.type : told.now.type) == hipMemAllocationTypePinned);
    OK(IN(library, hipMemRelease)(memory));
}

static bool majors_differ_where_hip_does(void) {
    for (int major = 5; major <= 7; major++) {
        void *library = open_major(major);
        int version = 0, value = 0;
        OK(IN(library, hipRuntimeGetVersion)(&version));
        MUST(version / 10000000 == major);
        if (library != soft_library) { /* no kernels are known there: blocks lie as on a GPU */
            void *block = NULL;
            OK(IN(library, hipMalloc)(&block, 10));
            MUST((uintptr_t)block % 256 == 0);
        }
        hipError_t r = IN(library, hipDeviceGetAttribute)(&value, hipDeviceAttributeGcnArch, 0);
        MUST(major == 5 ? r == hipSuccess && value == 910 : r == hipErrorInvalidValue);
        take_memory(library, major);
        hipGraph_t graph;
        hipGraphNode_t node;
        hipGraphNodeType type;
        OK(IN(library, hipGraphCreate)(&graph, 0));
        OK(IN(library, hipGraphAddEmptyNode)(&node, graph, NULL, 0));
        OK(IN(library, hipGraphNodeGetType)(node, &type));
        MUST((int)type == (major == 5 ? HIP5_GRAPH_NODE_TYPE_EMPTY : (int)hipGraphNodeTypeEmpty));
    }
    return true;
}

static void each_library_speaks_its_own_abi(void **state) {
    (void)state;
    soft_expect(majors_differ_where_hip_does, NULL);
}

/* ---- configuration ------------------------------------------------------------------------- */

static bool keeps_limits(void) {
    size_t value = 0;
    OK(hip->hipDeviceGetLimit(&value, hipLimitStackSize));
    MUST(value == 1024);
    OK(hip->hipDeviceSetLimit(hipLimitStackSize, 4096));
    OK(hip->hipDeviceSetLimit(hipLimitMallocHeapSize, 1 << 20));
    OK(hip->hipDeviceGetLimit(&value, hipLimitStackSize));
    MUST(value == 4096);
    OK(hip->hipDeviceGetLimit(&value, hipLimitMallocHeapSize));
    MUST(value == 1 << 20);
    FAILS(hipErrorInvalidValue, hip->hipDeviceSetLimit(hipLimitStackSize, (size_t)1 << 40));
    FAILS(hipErrorUnsupportedLimit, hip->hipDeviceGetLimit(&value, hipLimitPrintfFifoSize));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetLimit(&value, (enum hipLimit_t)3));
    FAILS(hipErrorInvalidValue, hip->hipDeviceSetLimit((enum hipLimit_t)99, 1));
    OK(hip->hipSetDevice(1)); /* limits belong to a device */
    OK(hip->hipDeviceGetLimit(&value, hipLimitStackSize));
    return value == 1024;
}

static bool keeps_flags(void) {
    unsigned flags = 99;
    OK(hip->hipGetDeviceFlags(&flags));
    MUST(flags == hipDeviceScheduleAuto);
    OK(hip->hipSetDeviceFlags(hipDeviceScheduleYield | hipDeviceMapHost));
    OK(hip->hipGetDeviceFlags(&flags));
    MUST(flags == hipDeviceScheduleYield);
    FAILS(hipErrorInvalidValue,
          hip->hipSetDeviceFlags(hipDeviceScheduleYield | hipDeviceScheduleSpin));
    FAILS(hipErrorInvalidValue, hip->hipSetDeviceFlags(0x1000));
    OK(hip->hipDeviceSetCacheConfig(hipFuncCachePreferL1));
    FAILS(hipErrorInvalidValue, hip->hipDeviceSetCacheConfig((hipFuncCache_t)7));
    FAILS(hipErrorInvalidValue, hip->hipDeviceSetSharedMemConfig((hipSharedMemConfig)7));
    int least = 0, greatest = 0;
    OK(hip->hipDeviceGetStreamPriorityRange(&least, &greatest));
    return least == 1 && greatest == -1;
}

static void what_is_set_can_be_read_back(void **state) {
    (void)state;
    soft_expect(keeps_limits, "GRETA_SOFT_DEVICES=2");
    soft_expect(keeps_flags, NULL);
}

static bool peers_follow_hips_rules(void) {
    int can = -1;
    uint32_t link, hops;
    OK(hip->hipDeviceCanAccessPeer(&can, 0, 1));
    MUST(can == 1);
    OK(hip->hipDeviceCanAccessPeer(&can, 1, 1));
    MUST(can == 0);
    FAILS(hipErrorInvalidDevice, hip->hipDeviceEnablePeerAccess(0, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceEnablePeerAccess(1, 1));
    FAILS(hipErrorPeerAccessNotEnabled, hip->hipDeviceDisablePeerAccess(1));
    OK(hip->hipDeviceEnablePeerAccess(1, 0));
    FAILS(hipErrorPeerAccessAlreadyEnabled, hip->hipDeviceEnablePeerAccess(1, 0));
    OK(hip->hipDeviceDisablePeerAccess(1));
    OK(hip->hipDeviceGetP2PAttribute(&can, hipDevP2PAttrAccessSupported, 0, 1));
    MUST(can == 1);
    FAILS(hipErrorInvalidDevice,
          hip->hipDeviceGetP2PAttribute(&can, hipDevP2PAttrAccessSupported, 0, 0));
    FAILS(hipErrorInvalidValue, hip->hipDeviceGetP2PAttribute(&can, (hipDeviceP2PAttr)77, 0, 1));
    OK(hip->hipExtGetLinkTypeAndHopCount(0, 1, &link, &hops));
    FAILS(hipErrorInvalidValue, hip->hipExtGetLinkTypeAndHopCount(0, 0, &link, &hops));
    return true;
}

static void peer_access_is_enabled_once(void **state) {
    (void)state;
    soft_expect(peers_follow_hips_rules, "GRETA_SOFT_DEVICES=2");
}

static bool contexts_stack(void) {
    hipCtx_t first, second, top;
    int device = -1, active = -1;
    FAILS(hipErrorInvalidContext, hip->hipCtxPopCurrent(&top));
    OK(hip->hipDevicePrimaryCtxGetState(1, NULL, &active));
    MUST(active == 0);
    OK(hip->hipDevicePrimaryCtxRetain(&first, 0));
    OK(hip->hipCtxCreate(&second, 0, 1));
    OK(hip->hipGetDevice(&device));
    MUST(device == 1 && first != second);
    OK(hip->hipDevicePrimaryCtxGetState(1, NULL, &active));
    MUST(active == 1);
    OK(hip->hipCtxPushCurrent(first));
    OK(hip->hipCtxGetDevice(&device));
    MUST(device == 0);
    OK(hip->hipCtxPopCurrent(&top));
    MUST(top == first);
    OK(hip->hipCtxGetCurrent(&top));
    MUST(top == second);
    OK(hip->hipCtxDestroy(second));
    OK(hip->hipGetDevice(&device));
    MUST(device == 0);
    OK(hip->hipCtxSetCurrent(second));
    OK(hip->hipGetDevice(&device));
    MUST(device == 1);
    OK(hip->hipCtxSetCurrent(NULL));
    OK(hip->hipGetDevice(&device));
    MUST(device == 0);
    OK(hip->hipCtxSynchronize());
    FAILS(hipErrorContextAlreadyInUse, hip->hipDevicePrimaryCtxSetFlags(0, 0));
    return true;
}

static void contexts_change_the_device_and_back(void **state) {
    (void)state;
    soft_expect(contexts_stack, "GRETA_SOFT_DEVICES=2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_of_devices_is_a_setting),
        cmocka_unit_test(visible_devices_keep_their_bus_ids),
        cmocka_unit_test(no_visible_device_is_an_error),
        cmocka_unit_test(a_setting_that_makes_no_sense_is_named),
        cmocka_unit_test(the_current_device_is_the_threads_own),
        cmocka_unit_test(ordinals_are_checked_everywhere),
        cmocka_unit_test(null_is_an_invalid_value),
        cmocka_unit_test(both_layouts_say_the_same),
        cmocka_unit_test(another_gpu_has_other_figures),
        cmocka_unit_test(attributes_are_the_properties),
        cmocka_unit_test(names_are_cut_to_what_fits),
        cmocka_unit_test(each_library_speaks_its_own_abi),
        cmocka_unit_test(what_is_set_can_be_read_back),
        cmocka_unit_test(peer_access_is_enabled_once),
        cmocka_unit_test(contexts_change_the_device_and_back),
    };
    return cmocka_run_group_tests(tests, soft_fixture_load, NULL);
}
