/* test_soft_module.c - code objects, native kernels by name, symbols, launches by address. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/soft_fixture.h"
#include "test_soft_module_elf.h"

enum { GFX90A = 0x3f, GFX942 = 0x4c, GFX1030 = 0x36 };

/* ---- native kernels by name ---------------------------------------------------------------- */

static hipModule_t native_module(void) {
    hipModule_t m;
    OK(hip->hipModuleLoadData(&m, "GRETASFT"));
    return m;
}

static hipFunction_t function(hipModule_t m, const char *name) {
    hipFunction_t f;
    OK(hip->hipModuleGetFunction(&f, m, name));
    return f;
}

static hipError_t launch(hipFunction_t f, void **args) {
    return hip->hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
}

static bool launches_by_name(void) {
    hipModule_t m = native_module();
    int *a = soft_device_ints(1), times = 0, plus = 7, got = 0;
    hipFunction_t f = function(m, "test_fold"), none;
    MUST(f == function(m, "test_fold"));
    MUST(!strcmp(hip->hipKernelNameRef(f), "test_fold"));
    OK(launch(f, (void *[]){ &a, &times, &plus }));
    OK(hip->hipMemcpy(&got, a, sizeof got, hipMemcpyDeviceToHost));
    MUST(got == 7);
    FAILS(hipErrorNotFound, hip->hipModuleGetFunction(&none, m, "no_such_kernel"));
    FAILS(hipErrorInvalidValue, hip->hipModuleGetFunction(&none, m, ""));
    FAILS(hipErrorInvalidValue, hip->hipModuleGetFunction(NULL, m, "test_fold"));
    OK(hip->hipModuleUnload(m));
    FAILS(hipErrorNotFound, hip->hipModuleGetFunction(&none, m, "test_fold"));
    FAILS(hipErrorNotFound, hip->hipModuleUnload(m));
    FAILS(hipErrorInvalidHandle, hip->hipModuleUnload(NULL));
    return launch(f, (void *[]){ &a, &times, &plus }) == hipSuccess; /* native ones outlive it */
}

static void eight_bytes_are_a_module_of_native_kernels(void **state) {
    (void)state;
    soft_right(launches_by_name);
}

/* ---- code objects -------------------------------------------------------------------------- */

static void check_vadd(hipModule_t m) {
    hipFunction_t f = function(m, "vadd");
    static const struct {
        hipFunction_attribute attribute;
        int value;
    } expected[] = {
        { HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 256 },
        { HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 512 },
        { HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 16 },
        { HIP_FUNC_ATTRIBUTE_NUM_REGS, 64 },
        { HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536 - 512 },
        { HIP_FUNC_ATTRIBUTE_BINARY_VERSION, 90 },
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int value = -1;
        OK(hip->hipFuncGetAttribute(&value, expected[i].attribute, f));
        MUST(value == expected[i].value);
    }
    int unused;
    FAILS(hipErrorInvalidValue, hip->hipFuncGetAttribute(&unused, HIP_FUNC_ATTRIBUTE_MAX, f));
    FAILS(hipErrorInvalidHandle,
          hip->hipFuncGetAttribute(&unused, HIP_FUNC_ATTRIBUTE_NUM_REGS, (hipFunction_t)&unused));
}

static void check_globals(hipModule_t m) {
    hipDeviceptr_t at;
    size_t bytes;
    uint32_t table[4] = { 0 };
    char zeros[300];
    memset(zeros, 1, sizeof zeros);
    OK(hip->hipModuleGetGlobal(&at, &bytes, m, "table"));
    MUST(bytes == sizeof table);
    OK(hip->hipMemcpyDtoH(table, at, bytes));
    MUST(!memcmp(table, ELF_TABLE, sizeof table));
    OK(hip->hipMemsetD32(at, 9, 4));
    OK(hip->hipMemcpyDtoH(table, at, bytes));
    MUST(table[3] == 9);
    OK(hip->hipModuleGetGlobal(&at, &bytes, m, "zeros"));
    MUST(bytes == sizeof zeros);
    OK(hip->hipMemcpyDtoH(zeros, at, bytes));
    for (size_t i = 0; i < sizeof zeros; i++)
        MUST(zeros[i] == 0);
    OK(hip->hipModuleGetGlobal(&at, NULL, m, "zeros"));
    OK(hip->hipModuleGetGlobal(NULL, &bytes, m, "zeros"));
    FAILS(hipErrorInvalidValue, hip->hipModuleGetGlobal(NULL, NULL, m, "zeros"));
    FAILS(hipErrorNotFound, hip->hipModuleGetGlobal(&at, &bytes, m, "vadd.kd"));
    FAILS(hipErrorNotFound, hip->hipModuleGetGlobal(&at, &bytes, m, "nothing"));
    /* A managed variable is reached by the host too. */
    OK(hip->hipModuleGetGlobal(&at, &bytes, m, "shared"));
    MUST(bytes == sizeof(int) && *(int *)at == 5);
}

/* Any variable that is large enough will do for a texture reference. */
static void check_references(hipModule_t m) {
    textureReference *first = NULL, *again = NULL;
    OK(hip->hipModuleGetTexRef(&first, m, "zeros"));
    OK(hip->hipModuleGetTexRef(&again, m, "zeros"));
    MUST(first && first == again);
    FAILS(hipErrorInvalidValue, hip->hipModuleGetTexRef(NULL, m, "zeros"));
    FAILS(hipErrorInvalidValue, hip->hipModuleGetTexRef(&first, m, ""));
    FAILS(hipErrorInvalidValue, hip->hipModuleGetTexRef(&first, m, "table")); /* too small */
    FAILS(hipErrorInvalidHandle, hip->hipModuleGetTexRef(&first, NULL, "zeros"));
    FAILS(hipErrorNotFound, hip->hipModuleGetTexRef(&first, m, "nothing"));
}

static bool loads_a_code_object(void) {
    struct image elf = elf_build(GFX90A);
    hipModule_t m;
    OK(hip->hipModuleLoadData(&m, elf.bytes));
    memset(elf.bytes, 0xff, elf.size); /* the module has its own copy */
    free(elf.bytes);
    check_vadd(m);
    check_globals(m);
    check_references(m);
    hipDeviceptr_t at;
    OK(hip->hipModuleGetGlobal(&at, NULL, m, "table"));
    OK(hip->hipModuleUnload(m));
    uint32_t word;
    FAILS(hipErrorInvalidValue, hip->hipMemcpyDtoH(&word, at, sizeof word));
    return true;
}

static void a_code_object_has_kernels_and_variables(void **state) {
    (void)state;
    soft_right(loads_a_code_object);
}

static void run_vadd(const struct greta_soft_work *work, void *const *args) {
    (void)work;
    **(int **)args[0] += *(int *)args[1];
}
static const struct greta_soft_param vadd_params[] = {
    { "to", sizeof(void *), GRETA_SOFT_POINTER },
    { "n", sizeof(int), GRETA_SOFT_VALUE },
};
static const struct greta_soft_kernel vadd = { "vadd", run_vadd, vadd_params, 2 };

/* What the image has for code ends without s_endpgm. */
static bool code_that_runs_away_is_stopped(void) {
    struct image elf = elf_build(GFX942);
    hipModule_t m;
    int *a = soft_device_ints(1), n = 3;
    OK(hip->hipModuleLoadData(&m, elf.bytes));
    OK(launch(function(m, "vadd"), (void *[]){ &a, &n }));
    FAILS(hipErrorLaunchFailure, hip->hipDeviceSynchronize());
    return true;
}

static bool a_twin_is_preferred(void) {
    struct image elf = elf_build(GFX942);
    hipModule_t m;
    int *a = soft_device_ints(1), n = 3, got = 0;
    void *args[] = { &a, &n };
    OK(hip->hipModuleLoadData(&m, elf.bytes));
    MUST(!soft_kernel_register(&vadd));
    hipFunction_t f = function(m, "vadd");
    OK(launch(f, args));
    OK(hip->hipMemcpy(&got, a, sizeof got, hipMemcpyDeviceToHost));
    MUST(got == 3);
    OK(hip->hipModuleUnload(m));
    FAILS(hipErrorInvalidHandle, launch(f, args));
    return true;
}

static bool graphs_notice_an_unloaded_module(void) {
    struct image elf = elf_build(GFX90A);
    hipModule_t m;
    hipGraph_t g;
    hipGraphNode_t node;
    hipGraphExec_t x;
    int *a = soft_device_ints(1), n = 3;
    MUST(!soft_kernel_register(&vadd));
    OK(hip->hipModuleLoadData(&m, elf.bytes));
    hipKernelNodeParams p = { .func = function(m, "vadd"),
                              .gridDim = { 1, 1, 1 },
                              .blockDim = { 1, 1, 1 },
                              .kernelParams = (void *[]){ &a, &n } };
    OK(hip->hipGraphCreate(&g, 0));
    OK(hip->hipGraphAddKernelNode(&node, g, NULL, 0, &p));
    OK(hip->hipGraphInstantiate(&x, g, NULL, NULL, 0));
    OK(hip->hipGraphLaunch(x, NULL));
    OK(hip->hipModuleUnload(m));
    FAILS(hipErrorInvalidDeviceFunction, hip->hipGraphLaunch(x, NULL));
    FAILS(hipErrorInvalidValue, hip->hipGraphKernelNodeGetParams(node, &p));
    int got = 0;
    OK(hip->hipMemcpy(&got, a, sizeof got, hipMemcpyDeviceToHost));
    return got == 3; /* what was launched before has run */
}

static void a_kernel_runs_as_its_native_twin(void **state) {
    (void)state;
    struct soft_outcome o = soft_run(code_that_runs_away_is_stopped, NULL);
    if (!o.right)
        fail_msg("%s", o.output);
    assert_non_null(strstr(o.output, "vadd"));
    soft_right(a_twin_is_preferred);
    soft_right(graphs_notice_an_unloaded_module);
}

/* A file that only this process sees. */
static void as_file(const struct image *i, char path[64]) {
    int fd = memfd_create("image", 0);
    MUST(fd >= 0 && write(fd, i->bytes, i->size) == (ssize_t)i->size);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
}

static bool loads_files_and_wrappers(void) {
    struct image elf = elf_build(GFX90A);
    char path[64];
    hipModule_t m;
    as_file(&elf, path);
    OK(hip->hipModuleLoad(&m, path));
    check_vadd(m);
    check_globals(m);
    struct bundle_entry one = { "hipv4-amdgcn-amd-amdhsa--gfx90a", elf };
    struct image bundle = bundle_build(&one, 1, 4096);
    struct hip_fatbin_wrapper wrapper = { HIP_FATBIN_MAGIC, HIP_FATBIN_VERSION, bundle.bytes,
                                          NULL };
    OK(hip->hipModuleLoadData(&m, &wrapper));
    check_vadd(m);
    OK(hip->hipModuleLoadDataEx(&m, bundle.bytes, 0, NULL, NULL));
    check_vadd(m);
    wrapper.version = 9;
    FAILS(hipErrorInvalidImage, hip->hipModuleLoadData(&m, &wrapper));
    FAILS(hipErrorFileNotFound, hip->hipModuleLoad(&m, "/nonexistent/kernel.co"));
    FAILS(hipErrorInvalidValue, hip->hipModuleLoad(&m, ""));
    FAILS(hipErrorInvalidValue, hip->hipModuleLoad(&m, NULL));
    FAILS(hipErrorInvalidValue, hip->hipModuleLoad(NULL, path));
    FAILS(hipErrorInvalidImage, hip->hipModuleLoad(&m, "/dev/null"));
    FAILS(hipErrorInvalidValue, hip->hipModuleLoadData(&m, NULL));
    FAILS(hipErrorInvalidValue, hip->hipModuleLoadData(NULL, elf.bytes));
    return true;
}

static void images_come_from_files_bundles_and_wrappers(void **state) {
    (void)state;
    soft_expect(loads_files_and_wrappers, NULL);
}

static int processor_of(const char *entry) {
    return strstr(entry, "gfx942") ? GFX942 : GFX90A;
}

/* Which of two variants the device took shows in the kernels they define. */
static hipError_t load_bundle(const char *first, const char *second, size_t align,
                              bool *second_taken) {
    struct image plain = elf_build(processor_of(first)), other = elf_build(processor_of(second));
    for (size_t i = 0; i + 8 < other.size; i++)
        if (!memcmp(other.bytes + i, "vadd.kd", 7))
            memcpy(other.bytes + i, "wadd.kd", 7);
    struct bundle_entry entries[] = { { "host-x86_64-unknown-linux", { 0 } },
                                      { first, plain },
                                      { second, other } };
    struct image bundle = bundle_build(entries, 3, align);
    hipModule_t m;
    hipFunction_t f;
    hipError_t r = hip->hipModuleLoadData(&m, bundle.bytes);
    *second_taken = r == hipSuccess && hip->hipModuleGetFunction(&f, m, "wadd") == hipSuccess;
    free(bundle.bytes);
    free(plain.bytes);
    free(other.bytes);
    return r;
}

static bool picks_its_own_variant(void) {
    bool second;
    OK(load_bundle("hipv4-amdgcn-amd-amdhsa--gfx1030", "hipv4-amdgcn-amd-amdhsa--gfx90a", 64,
                   &second));
    MUST(second);
    OK(load_bundle("hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx942", 64,
                   &second));
    MUST(!second);
    OK(load_bundle("hipv4-amdgcn-amd-amdhsa--gfx90a", "hip-amdgcn-amd-amdhsa-gfx90a:xnack-", 1,
                   &second));
    MUST(second);
    OK(load_bundle("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", "hip-amdgcn-amd-amdhsa--gfx942", 1,
                   &second));
    MUST(second);
    FAILS(hipErrorNoBinaryForGpu,
          load_bundle("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
                      "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc-", 64, &second));
    FAILS(hipErrorNoBinaryForGpu, load_bundle("hipv4-amdgcn-amd-amdhsa--gfx90",
                                              "openmp-amdgcn-amd-amdhsa--gfx90a", 64, &second));
    struct image elf = elf_build(GFX1030);
    hipModule_t m;
    FAILS(hipErrorNoBinaryForGpu, hip->hipModuleLoadData(&m, elf.bytes));
    return true;
}

static bool is_a_gfx942(void) {
    bool second;
    hipDeviceProp_tR0600 prop;
    OK(load_bundle("hipv4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx942", 64,
                   &second));
    MUST(second);
    OK(hip->hipGetDevicePropertiesR0600(&prop, 0));
    MUST(!strncmp(prop.gcnArchName, "gfx942", 6));
    struct image elf = elf_build(GFX90A);
    hipModule_t m;
    FAILS(hipErrorNoBinaryForGpu, hip->hipModuleLoadData(&m, elf.bytes));
    free(elf.bytes);
    elf = elf_build(GFX942);
    OK(hip->hipModuleLoadData(&m, elf.bytes));
    free(elf.bytes);
    return true;
}

static bool takes_nothing_for_a_gfx942(void) {
    bool second;
    struct image elf = elf_build(GFX942);
    hipModule_t m;
    FAILS(hipErrorNoBinaryForGpu, hip->hipModuleLoadData(&m, elf.bytes));
    free(elf.bytes);
    FAILS(hipErrorNoBinaryForGpu, load_bundle("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
                                              "hip-amdgcn-amd-amdhsa--gfx942", 1, &second));
    return true;
}

static void the_variant_for_the_device_is_taken(void **state) {
    (void)state;
    soft_expect(picks_its_own_variant, NULL);
    soft_expect(is_a_gfx942, "GRETA_SOFT_ARCH=gfx942");
    soft_expect(takes_nothing_for_a_gfx942, "GRETA_SOFT_ARCH=gfx90a");
}

/* ---- hostile images ------------------------------------------------------------------------ */

static bool survives(hipError_t r) {
    return r == hipSuccess || r == hipErrorInvalidImage || r == hipErrorNoBinaryForGpu ||
           r == hipErrorInvalidKernelFile || r == hipErrorOutOfMemory || r == hipErrorNotSupported;
}

static void load_damaged(const unsigned char *bytes, size_t size) {
    struct image copy = { (unsigned char *)(uintptr_t)bytes, size };
    char path[64];
    hipModule_t m;
    as_file(&copy, path);
    hipError_t r = hip->hipModuleLoad(&m, path);
    MUST(survives(r));
    if (r == hipSuccess)
        OK(hip->hipModuleUnload(m));
    close(atoi(path + strlen("/proc/self/fd/")));
}

static bool cut_images_are_refused(void) {
    struct image elf = elf_build(GFX90A);
    struct bundle_entry one = { "hipv4-amdgcn-amd-amdhsa--gfx90a", elf };
    struct image bundle = bundle_build(&one, 1, 64);
    for (size_t n = 0; n < elf.size; n++)
        load_damaged(elf.bytes, n);
    for (size_t n = 0; n < bundle.size; n += 3)
        load_damaged(bundle.bytes, n);
    return true;
}

static bool changed_images_are_survived(void) {
    struct image elf = elf_build(GFX90A);
    unsigned char *damaged = malloc(elf.size);
    srand(1);
    for (int round = 0; round < 4000; round++) {
        memcpy(damaged, elf.bytes, elf.size);
        for (int changes = 1 + rand() % 4; changes; changes--)
            damaged[(size_t)rand() % elf.size] = (unsigned char)rand();
        load_damaged(damaged, elf.size);
    }
    free(damaged);
    return true;
}

/* Images have no size: the last page before one that cannot be read. */
static bool images_at_the_end_of_memory(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *at =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(at != MAP_FAILED && !munmap(at + page, page));
    struct image elf = elf_build(GFX90A);
    hipModule_t m;
    unsigned char *end = at + page;
    memcpy(end - 8, "GRETASFT", 8);
    OK(hip->hipModuleLoadData(&m, end - 8));
    static const size_t kept[] = { 1, 4, 8, 31, 63, 64, 65, 500 };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        memcpy(end - kept[i], elf.bytes, kept[i]);
        FAILS(hipErrorInvalidImage, hip->hipModuleLoadData(&m, end - kept[i]));
    }
    memcpy(end - elf.size, elf.bytes, elf.size);
    OK(hip->hipModuleLoadData(&m, end - elf.size));
    memcpy(end - 28, "__CLANG_OFFLOAD_BUNDLE__\xff\xff\xff", 28);
    FAILS(hipErrorInvalidImage, hip->hipModuleLoadData(&m, end - 28));
    FAILS(hipErrorInvalidImage, hip->hipModuleLoadData(&m, end));
    FAILS(hipErrorInvalidImage, hip->hipModuleLoadData(&m, (void *)8));
    FAILS(hipErrorInvalidImage, hip->hipModuleLoadData(&m, "some text that is no image at all"));
    return true;
}

static void hostile_images_give_errors(void **state) {
    (void)state;
    soft_expect(cut_images_are_refused, NULL);
    soft_expect(changed_images_are_survived, "GRETA_SOFT_MEMORY=64M");
    soft_expect(images_at_the_end_of_memory, NULL);
}

/* ---- what compiled programs register ------------------------------------------------------- */

static char stub_vadd, stub_fold, stub_other; /* addresses that stand for kernels */
static uint32_t shadow_table[4];
static int shadow_counter = 17;

static void **register_program(void) {
    static struct hip_fatbin_wrapper wrapper = { HIP_FATBIN_MAGIC, HIP_FATBIN_VERSION, NULL, NULL };
    static struct image elf, bundle;
    elf = elf_build(GFX90A);
    struct bundle_entry one = { "hipv4-amdgcn-amd-amdhsa--gfx90a", elf };
    bundle = bundle_build(&one, 1, 4096);
    wrapper.binary = bundle.bytes;
    void **handle = hip->__hipRegisterFatBinary(&wrapper);
    MUST(handle);
    hip->__hipRegisterFunction(handle, &stub_vadd, NULL, "vadd", 0, NULL, NULL, NULL, NULL, NULL);
    hip->__hipRegisterFunction(handle, &stub_fold, NULL, "test_fold", 0, NULL, NULL, NULL, NULL,
                               NULL);
    hip->__hipRegisterFunction(handle, &stub_other, NULL, "absent", 0, NULL, NULL, NULL, NULL,
                               NULL);
    hip->__hipRegisterVar(handle, shadow_table, (char[]){ "table" }, (char[]){ "table" }, 0,
                          sizeof shadow_table, 0, 0);
    hip->__hipRegisterVar(handle, &shadow_counter, (char[]){ "counter" }, (char[]){ "counter" }, 0,
                          sizeof shadow_counter, 0, 0);
    return handle;
}

static bool launches_by_address(void) {
    dim3 one = { 1, 1, 1 };
    int *a = soft_device_ints(1), times = 1, plus = 4, n = 2, got = 0;
    void *fold[] = { &a, &times, &plus }, *add[] = { &a, &n };
    MUST(!soft_kernel_register(&vadd));
    void **handle = register_program();
    OK(hip->hipLaunchKernel(&stub_fold, one, one, fold, 0, NULL));
    OK(hip->hipLaunchKernel(&stub_vadd, one, one, add, 0, NULL));
    OK(hip->hipMemcpy(&got, a, sizeof got, hipMemcpyDeviceToHost));
    MUST(got == 6);
    MUST(!strcmp(hip->hipKernelNameRefByPtr(&stub_vadd, NULL), "vadd"));
    hipFunction_t f;
    OK(hip->hipGetFuncBySymbol(&f, &stub_vadd));
    FAILS(hipErrorInvalidDeviceFunction, hip->hipGetFuncBySymbol(&f, &a));
    FAILS(hipErrorInvalidDeviceFunction,
          hip->hipLaunchKernel(&stub_other, one, one, NULL, 0, NULL));
    FAILS(hipErrorInvalidDeviceFunction, hip->hipLaunchKernel(&one, one, one, NULL, 0, NULL));
    FAILS(hipErrorInvalidDeviceFunction, hip->hipLaunchKernel(NULL, one, one, NULL, 0, NULL));
    struct hipFuncAttributes attributes;
    OK(hip->hipFuncGetAttributes(&attributes, &stub_vadd));
    MUST(attributes.maxThreadsPerBlock == 256 && attributes.numRegs == 64);
    FAILS(hipErrorInvalidDeviceFunction, hip->hipFuncGetAttributes(&attributes, NULL));
    FAILS(hipErrorInvalidValue, hip->hipFuncGetAttributes(NULL, &stub_vadd));
    hip->__hipUnregisterFatBinary(handle);
    FAILS(hipErrorInvalidDeviceFunction, hip->hipLaunchKernel(&stub_vadd, one, one, add, 0, NULL));
    hip->__hipUnregisterFatBinary(handle); /* twice: nothing */
    return true;
}

static void kernels_launch_by_their_host_address(void **state) {
    (void)state;
    soft_right(launches_by_address);
}

static bool reaches_symbols(void) {
    register_program();
    void *at = NULL;
    size_t bytes = 0;
    uint32_t got[4] = { 0 }, put[2] = { 5, 6 };
    int counter = 0;
    OK(hip->hipGetSymbolAddress(&at, shadow_table));
    OK(hip->hipGetSymbolSize(&bytes, shadow_table));
    MUST(at && bytes == sizeof shadow_table);
    OK(hip->hipMemcpyFromSymbol(got, shadow_table, sizeof got, 0, hipMemcpyDeviceToHost));
    MUST(!memcmp(got, ELF_TABLE, sizeof got));
    OK(hip->hipMemcpyToSymbol(shadow_table, put, sizeof put, 8, hipMemcpyHostToDevice));
    OK(hip->hipMemcpy(got, at, sizeof got, hipMemcpyDeviceToHost));
    MUST(got[1] == 22 && got[2] == 5 && got[3] == 6);
    hipStream_t s = soft_free_stream();
    OK(hip->hipMemcpyToSymbolAsync(shadow_table, put, 4, 0, hipMemcpyHostToDevice, s));
    OK(hip->hipMemcpyFromSymbolAsync(got, shadow_table, 4, 0, hipMemcpyDeviceToHost, s));
    OK(hip->hipStreamSynchronize(s));
    MUST(got[0] == 5);
    /* No code object defines it: it starts as its shadow. */
    OK(hip->hipMemcpyFromSymbol(&counter, &shadow_counter, 4, 0, hipMemcpyDeviceToHost));
    MUST(counter == 17);

    FAILS(hipErrorInvalidSymbol, hip->hipGetSymbolAddress(&at, &bytes));
    FAILS(hipErrorInvalidSymbol, hip->hipGetSymbolSize(&bytes, NULL));
    FAILS(hipErrorInvalidValue, hip->hipGetSymbolAddress(NULL, shadow_table));
    FAILS(hipErrorInvalidValue,
          hip->hipMemcpyToSymbol(shadow_table, put, 8, 9, hipMemcpyHostToDevice));
    FAILS(hipErrorInvalidValue,
          hip->hipMemcpyFromSymbol(got, shadow_table, 8, SIZE_MAX - 3, hipMemcpyDeviceToHost));
    FAILS(hipErrorInvalidMemcpyDirection,
          hip->hipMemcpyToSymbol(shadow_table, put, 4, 0, hipMemcpyDeviceToHost));
    FAILS(hipErrorInvalidMemcpyDirection,
          hip->hipMemcpyFromSymbol(got, shadow_table, 4, 0, hipMemcpyHostToDevice));
    return true;
}

static void variables_are_reached_by_their_shadow(void **state) {
    (void)state;
    soft_right(reaches_symbols);
}

static bool each_device_has_its_own_variables(void) {
    register_program();
    void *at[2];
    uint32_t put = 99, got = 0;
    for (int d = 0; d < 2; d++) {
        OK(hip->hipSetDevice(d));
        OK(hip->hipGetSymbolAddress(&at[d], shadow_table));
    }
    MUST(at[0] != at[1]);
    OK(hip->hipMemcpyToSymbol(shadow_table, &put, 4, 0, hipMemcpyHostToDevice));
    OK(hip->hipSetDevice(0));
    OK(hip->hipMemcpyFromSymbol(&got, shadow_table, 4, 0, hipMemcpyDeviceToHost));
    return got == 11;
}

static void variables_belong_to_a_device(void **state) {
    (void)state;
    soft_expect(each_device_has_its_own_variables, "GRETA_SOFT_DEVICES=2");
}

static bool managed_variables_are_there_at_once(void) {
    static int *pointer;
    int initial = 5;
    void **handle = register_program();
    hip->__hipRegisterManagedVar(handle, (void **)&pointer, &initial, "shared", sizeof initial, 4);
    MUST(pointer && *pointer == 5);
    soft_store(NULL, pointer, 8, 0);
    OK(hip->hipDeviceSynchronize());
    MUST(*pointer == 8);
    hip->__hipRegisterManagedVar(handle, NULL, &initial, "other", sizeof initial, 4);
    hip->__hipUnregisterFatBinary(handle);
    return true;
}

static bool variables_outlive_a_reset(void) {
    static int *pointer;
    int initial = 5;
    uint32_t got = 0;
    void *at;
    void **handle = register_program();
    hip->__hipRegisterManagedVar(handle, (void **)&pointer, &initial, "shared", sizeof initial, 4);
    OK(hip->hipGetSymbolAddress(&at, shadow_table));
    OK(hip->hipDeviceReset());
    MUST(*pointer == 5);
    OK(hip->hipMemcpyFromSymbol(&got, shadow_table, 4, 0, hipMemcpyDeviceToHost));
    MUST(got == ELF_TABLE[0]);
    /* … and are not the program's to free. */
    FAILS(hipErrorInvalidValue, hip->hipFree(pointer));
    FAILS(hipErrorInvalidValue, hip->hipFree(at));
    hip->__hipUnregisterFatBinary(handle);
    return true;
}

static void managed_variables_need_no_call(void **state) {
    (void)state;
    soft_right(managed_variables_are_there_at_once);
    soft_expect(variables_outlive_a_reset, NULL);
}

static bool survives_bad_registration(void) {
    struct hip_fatbin_wrapper bad = { HIP_FATBIN_MAGIC, 7, NULL, NULL };
    struct hip_fatbin_wrapper empty = { HIP_FATBIN_MAGIC, HIP_FATBIN_VERSION, "garbage", NULL };
    dim3 one = { 1, 1, 1 };
    MUST(!hip->__hipRegisterFatBinary(NULL) && !hip->__hipRegisterFatBinary(&bad));
    void **handle = hip->__hipRegisterFatBinary(&empty);
    MUST(handle);
    hip->__hipRegisterFunction(handle, &stub_other, NULL, "absent", 0, NULL, NULL, NULL, NULL,
                               NULL);
    hip->__hipRegisterFunction(handle, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL);
    FAILS(hipErrorInvalidImage, hip->hipLaunchKernel(&stub_other, one, one, NULL, 0, NULL));
    hip->__hipUnregisterFatBinary(NULL);
    hip->__hipUnregisterFatBinary((void **)&bad);
    return true;
}

static void bad_registrations_are_survived(void **state) {
    (void)state;
    soft_expect(survives_bad_registration, NULL);
}

/* ---- call configurations ------------------------------------------------------------------- */

static bool configurations_nest(void) {
    dim3 grid = { 2, 3, 4 }, block = { 5, 6, 7 }, g, b;
    size_t shared;
    hipStream_t stream;
    FAILS(hipErrorMissingConfiguration, hip->__hipPopCallConfiguration(&g, &b, &shared, &stream));
    OK(hip->__hipPushCallConfiguration(grid, block, 8, NULL));
    OK(hip->__hipPushCallConfiguration(block, grid, 9, hipStreamPerThread));
    OK(hip->__hipPopCallConfiguration(&g, &b, &shared, &stream));
    MUST(g.x == 5 && b.z == 4 && shared == 9 && stream == hipStreamPerThread);
    FAILS(hipErrorInvalidValue, hip->__hipPopCallConfiguration(NULL, &b, &shared, &stream));
    OK(hip->__hipPopCallConfiguration(&g, &b, &shared, &stream));
    MUST(g.y == 3 && b.y == 6 && shared == 8 && !stream);
    FAILS(hipErrorMissingConfiguration, hip->__hipPopCallConfiguration(&g, &b, &shared, &stream));
    return true;
}

static bool old_style_launches_work(void) {
    dim3 one = { 1, 1, 1 };
    int *a = soft_device_ints(1), times = 1, plus = 21, got = 0;
    register_program();
    FAILS(hipErrorMissingConfiguration, hip->hipSetupArgument(&a, sizeof a, 0));
    FAILS(hipErrorMissingConfiguration, hip->hipLaunchByPtr(&stub_fold));
    OK(hip->hipConfigureCall(one, one, 0, NULL));
    OK(hip->hipSetupArgument(&a, sizeof a, 0));
    OK(hip->hipSetupArgument(&times, sizeof times, 8));
    OK(hip->hipSetupArgument(&plus, sizeof plus, 12));
    FAILS(hipErrorInvalidValue, hip->hipSetupArgument(&plus, sizeof plus, SIZE_MAX - 1));
    FAILS(hipErrorInvalidValue, hip->hipSetupArgument(NULL, 4, 0));
    OK(hip->hipLaunchByPtr(&stub_fold));
    OK(hip->hipMemcpy(&got, a, sizeof got, hipMemcpyDeviceToHost));
    MUST(got == 21);
    OK(hip->hipConfigureCall(one, one, 0, NULL));
    FAILS(hipErrorInvalidDeviceFunction, hip->hipLaunchByPtr(&one));
    FAILS(hipErrorMissingConfiguration, hip->hipLaunchByPtr(&stub_fold));
    return true;
}

static void launches_are_configured_call_by_call(void **state) {
    (void)state;
    soft_expect(configurations_nest, NULL);
    soft_right(old_style_launches_work);
}

/* ---- occupancy ----------------------------------------------------------------------------- */

static bool occupancy_is_gfx90as(void) {
    hipModule_t m;
    struct image elf = elf_build(GFX90A);
    OK(hip->hipModuleLoadData(&m, elf.bytes));
    hipFunction_t f = function(m, "vadd"), native = function(native_module(), "test_nothing");
    int blocks = -1, grid = -1, block = -1, cores;
    OK(hip->hipDeviceGetAttribute(&cores, hipDeviceAttributeMultiprocessorCount, 0));
    /* 64 registers: 8 waves per SIMD, 2048 threads per compute unit. */
    OK(hip->hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
    MUST(blocks == 8);
    OK(hip->hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 65, 0));
    MUST(blocks == 16); /* 65 threads are two waves */
    OK(hip->hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 32768 - 512));
    MUST(blocks == 2);
    OK(hip->hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 2000, 0));
    MUST(blocks == 0);
    FAILS(hipErrorInvalidValue,
          hip->hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 0, 0));
    OK(hip->hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 0));
    MUST(block == 256 && grid == 8 * cores);
    OK(hip->hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, native, 0, 0));
    MUST(block == 1024 && grid == 2 * cores);
    register_program();
    OK(hip->hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &stub_vadd, 128, 0));
    MUST(blocks == 16);
    OK(hip->hipOccupancyMaxPotentialBlockSize(&grid, &block, &stub_vadd, 0, 100));
    MUST(block == 128);
    FAILS(hipErrorInvalidDeviceFunction,
          hip->hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &blocks, 128, 0));
    FAILS(hipErrorInvalidValue, hip->hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                                    &blocks, &stub_vadd, 128, 0, 9));
    OK(hip->hipFuncSetAttribute(&stub_vadd, hipFuncAttributeMaxDynamicSharedMemorySize, 1024));
    FAILS(hipErrorInvalidValue,
          hip->hipFuncSetAttribute(&stub_vadd, hipFuncAttributeMaxDynamicSharedMemorySize, 65536));
    FAILS(hipErrorInvalidDeviceFunction,
          hip->hipFuncSetAttribute(NULL, hipFuncAttributeMaxDynamicSharedMemorySize, 1));
    OK(hip->hipFuncSetCacheConfig(&stub_vadd, hipFuncCachePreferL1));
    FAILS(hipErrorInvalidValue, hip->hipFuncSetCacheConfig(&stub_vadd, (hipFuncCache_t)9));
    return true;
}

static void occupancy_counts_registers_and_shared_memory(void **state) {
    (void)state;
    soft_expect(occupancy_is_gfx90as, NULL);
}

/* ---- names and hiprtc ---------------------------------------------------------------------- */

static bool finds_functions_by_name(void) {
    void *f = NULL;
    hipDriverProcAddressQueryResult status;
    OK(hip->hipGetProcAddress("hipMalloc", &f, 600, 0, &status));
    void *expected;
    memcpy(&expected, &hip->hipMalloc, sizeof expected);
    MUST(f == expected && status == HIP_GET_PROC_ADDRESS_SUCCESS);
    FAILS(hipErrorInvalidValue, hip->hipGetProcAddress("hipNothing", &f, 600, 0, &status));
    MUST(!f && status == HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    FAILS(hipErrorInvalidValue, hip->hipGetProcAddress("greta_soft_tag", &f, 600, 0, NULL));
    MUST(!strcmp(hip->hipApiName(HIP_FN_hipMalloc), "hipMalloc"));
    MUST(!strcmp(hip->hipApiName(1 << 30), "unknown"));
    MUST(!hip->hipKernelNameRef(NULL) && !hip->hipKernelNameRefByPtr(NULL, NULL));
    return true;
}

static void functions_are_found_by_name(void **state) {
    (void)state;
    soft_expect(finds_functions_by_name, NULL);
}

/* Without a compiler on the path; with one, tests/cli/isa_host.sh compiles real kernels. */
static bool compiles_nothing(void) {
    hiprtcProgram p = NULL;
    size_t size = 0;
    char log[2048];
    const char *lowered;
    setenv("PATH", "/nonexistent", 1);
    MUST(hip->hiprtcCreateProgram(&p, "kernel", "k.hip", 0, NULL, NULL) == HIPRTC_SUCCESS);
    MUST(hip->hiprtcAddNameExpression(p, "k<int>") == HIPRTC_SUCCESS);
    MUST(hip->hiprtcGetLoweredName(p, "k<int>", &lowered) ==
         HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
    MUST(hip->hiprtcCompileProgram(p, 0, NULL) == HIPRTC_ERROR_COMPILATION);
    MUST(hip->hiprtcGetProgramLogSize(p, &size) == HIPRTC_SUCCESS && size > 1);
    MUST(size < sizeof log && hip->hiprtcGetProgramLog(p, log) == HIPRTC_SUCCESS);
    MUST(strlen(log) + 1 == size && strstr(log, "there is none"));
    hiprtcProgram stale = p;
    MUST(hip->hiprtcDestroyProgram(&p) == HIPRTC_SUCCESS && !p);
    MUST(hip->hiprtcDestroyProgram(&stale) == HIPRTC_ERROR_INVALID_PROGRAM);
    MUST(hip->hiprtcCompileProgram(NULL, 0, NULL) == HIPRTC_ERROR_INVALID_PROGRAM);
    MUST(hip->hiprtcCreateProgram(NULL, "", "", 0, NULL, NULL) == HIPRTC_ERROR_INVALID_PROGRAM);
    MUST(!strcmp(hip->hiprtcGetErrorString(HIPRTC_ERROR_COMPILATION), "HIPRTC_ERROR_COMPILATION"));
    return true;
}

static void compiling_fails_and_says_why(void **state) {
    (void)state;
    soft_expect(compiles_nothing, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_bytes_are_a_module_of_native_kernels),
        cmocka_unit_test(a_code_object_has_kernels_and_variables),
        cmocka_unit_test(a_kernel_runs_as_its_native_twin),
        cmocka_unit_test(images_come_from_files_bundles_and_wrappers),
        cmocka_unit_test(the_variant_for_the_device_is_taken),
        cmocka_unit_test(hostile_images_give_errors),
        cmocka_unit_test(kernels_launch_by_their_host_address),
        cmocka_unit_test(variables_are_reached_by_their_shadow),
        cmocka_unit_test(variables_belong_to_a_device),
        cmocka_unit_test(managed_variables_need_no_call),
        cmocka_unit_test(bad_registrations_are_survived),
        cmocka_unit_test(launches_are_configured_call_by_call),
        cmocka_unit_test(occupancy_counts_registers_and_shared_memory),
        cmocka_unit_test(functions_are_found_by_name),
        cmocka_unit_test(compiling_fails_and_says_why),
    };
    return cmocka_run_group_tests(tests, soft_fixture_load, NULL);
}
