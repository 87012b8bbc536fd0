/* The decorated table: every function reaches the runtime once with its result and errno as they
 * were, whatever its arguments; and the ledger follows what allocations and frees do. */
#include "unit/audit_fake.h"

#include "audit/kernel.h"
#include "audit/order.h"

static const struct ledger_entry *entry_at(const void *address) {
    static struct ledger_entry copy;
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, (uint64_t)(uintptr_t)address);
    if (entry)
        copy = *entry;
    ledger_read_end(t);
    return entry ? &copy : NULL;
}

static const struct ledger_entry *freed_at(const void *address) {
    static struct ledger_entry copy;
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_freed_at(audit.ledger, (uint64_t)(uintptr_t)address);
    if (entry)
        copy = *entry;
    ledger_read_end(t);
    return entry ? &copy : NULL;
}

/* ---- passing through ------------------------------------------------------------------------- */

static void every_entry_is_decorated_and_put_back(void **state) {
    (void)state;
    struct hip_api plain = fake_table();
    void (*const *before)(void) = (void (*const *)(void))(const void *)&plain;
    void (*const *now)(void) = (void (*const *)(void))(const void *)&api;
    for (int i = 0; i < HIP_FN_COUNT; i++)
        assert_true(before[i] != now[i]);
    audit_detach();
    assert_memory_equal(&plain, &api, sizeof api);
}

static void there_is_one_attachment(void **state) {
    (void)state;
    struct hip_api other = fake_table();
    struct err e = { 0 };
    assert_int_equal(audit_attach(&other, NULL, &e), RC_BUSY);
    assert_true(strlen(e.msg) > 0);
}

static void results_and_errno_pass_through(void **state) {
    (void)state;
    int count = 0;
    fake.result = hipErrorOutOfMemory;
    fake.set_errno = 42;
    errno = 7;
    assert_int_equal(api.hipGetDeviceCount(&count), hipErrorOutOfMemory);
    assert_int_equal(errno, 42);
    assert_int_equal(count, 2);
    fake.result = hipSuccess;
    errno = 7;
    void *p;
    assert_int_equal(api.hipMalloc(&p, 16), hipSuccess);
    assert_int_equal(api.hipFree(p), hipSuccess);
    assert_int_equal(errno, 7);
}

#if defined(__x86_64__)
/* Calls a function with 24 zero words, whatever it takes: in this ABI they fill all argument
 * registers and more stack than any HIP function reads. */
typedef long (*any_function)(long, long, long, long, long, long, long, long, long, long, long, long,
                             long, long, long, long, long, long, long, long, long, long, long,
                             long);

__attribute__((no_sanitize("undefined"))) static void call_with_nothing(void (*fn)(void)) {
    any_function call = (any_function)fn;
    (void)call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* Null pointers are the program's mistake and the runtime's to refuse; the hooks must live. */
static void every_function_survives_null_arguments(void **state) {
    (void)state;
    void (*const *entry)(void) = (void (*const *)(void))(const void *)&api;
    for (int result = 0; result < 2; result++) {
        for (int fn = 0; fn < HIP_FN_COUNT; fn++) {
            /* Those that the fake gives a behaviour would follow the null pointers themselves; and
             * one returns a struct through a pointer that is not there. */
            struct hip_api plain = fake_table(), counting;
#define HIP_FN(ret, name, params, args, cls, since) counting.name = fake_##name;
#define HIP_VOID_FN(name, params, args, cls, since) counting.name = fake_##name;
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
            if (fn == HIP_FN_hipCreateChannelDesc)
                continue;
            audit.raw = counting;
            fake.result = result ? hipErrorInvalidValue : hipSuccess;
            unsigned long before = atomic_load(&fake.calls[fn]);
            call_with_nothing(entry[fn]);
            if (atomic_load(&fake.calls[fn]) < before + 1)
                fail_msg("%s did not reach the runtime", hip_fn_name((enum hip_fn)fn));
            audit.raw = plain;
        }
    }
}

static void and_while_recording(void **state) {
    char path[] = "/tmp/greta-test-XXXXXX";
    close(mkstemp(path));
    audit_detach();
    unlink(fake_log_path);
    fake_attach_with((struct audit_config){ .record = { .path = path, .events = 65536 } }, false);
    every_function_survives_null_arguments(state);
    unlink(path);
}
#endif

/* ---- allocations of every family ------------------------------------------------------------- */

static void expect_entry(const void *p, uint64_t size, enum ledger_family family, int device,
                         const char *call) {
    const struct ledger_entry *entry = entry_at(p);
    assert_non_null(entry);
    assert_int_equal(entry->size, size);
    assert_int_equal(entry->family, family);
    assert_int_equal(entry->device, device);
    assert_string_equal(entry->made.api, call);
    assert_int_equal(entry->made.thread, gettid());
    char place[256];
    audit_describe_caller(entry->made.caller, place, sizeof place);
    assert_non_null(strstr(place, "test_audit_decorate"));
}

static void every_family_is_entered(void **state) {
    (void)state;
    void *p;
    size_t pitch, bytes;
    hipPitchedPtr box;
    hipArray_t array;
    hipIpcMemHandle_t ipc = { 0 };
    static char mine[256];
    assert_int_equal(api.hipMalloc(&p, 100), hipSuccess);
    expect_entry(p, 100, LEDGER_DEVICE, 0, "hipMalloc");
    assert_int_equal(api.hipHostMalloc(&p, 100, 0), hipSuccess);
    expect_entry(p, 100, LEDGER_PINNED, 0, "hipHostMalloc");
    assert_int_equal(api.hipMallocManaged(&p, 100, 1), hipSuccess);
    expect_entry(p, 100, LEDGER_MANAGED, 0, "hipMallocManaged");
    assert_int_equal(api.hipMallocAsync(&p, 100, NULL), hipSuccess);
    expect_entry(p, 100, LEDGER_ASYNC, 0, "hipMallocAsync");
    assert_int_equal(api.hipMallocFromPoolAsync(&p, 100, (hipMemPool_t)0x5, NULL), hipSuccess);
    expect_entry(p, 100, LEDGER_POOL, 0, "hipMallocFromPoolAsync");
    assert_int_equal(api.hipMemPoolDestroy((hipMemPool_t)0x5), hipSuccess);
    assert_non_null(freed_at(p));
    assert_int_equal(api.hipMallocPitch(&p, &pitch, 100, 3), hipSuccess);
    expect_entry(p, 3 * pitch, LEDGER_PITCHED, 0, "hipMallocPitch");
    assert_int_equal(api.hipMalloc3D(&box, (hipExtent){ 100, 3, 2 }), hipSuccess);
    expect_entry(box.ptr, 256 * 3 * 2, LEDGER_PITCHED, 0, "hipMalloc3D");
    assert_int_equal(api.hipHostRegister(mine, sizeof mine, 0), hipSuccess);
    expect_entry(mine, sizeof mine, LEDGER_REGISTERED, 0, "hipHostRegister");
    assert_int_equal(api.hipMallocArray(&array, NULL, 8, 8, 0), hipSuccess);
    expect_entry(array, 1, LEDGER_ARRAY, 0, "hipMallocArray");
    assert_int_equal(api.hipModuleGetGlobal(&p, &bytes, (hipModule_t)0x9, "g"), hipSuccess);
    expect_entry(p, 128, LEDGER_GLOBAL, 0, "hipModuleGetGlobal");
    assert_int_equal(api.hipModuleUnload((hipModule_t)0x9), hipSuccess);
    assert_null(entry_at(p));
    fake.attributes_base = fake.next_pointer = fake_memory + FAKE_MEMORY - 4096;
    fake.attributes_size = 64;
    assert_int_equal(api.hipIpcOpenMemHandle(&p, ipc, 0), hipSuccess);
    expect_entry(p, 64, LEDGER_IMPORTED, 0, "hipIpcOpenMemHandle");
    assert_int_equal(api.hipMemMap(fake_memory + FAKE_MEMORY - 8192, 64, 0, NULL, 0), hipSuccess);
    expect_entry(fake_memory + FAKE_MEMORY - 8192, 64, LEDGER_VIRTUAL, 0, "hipMemMap");
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    assert_int_equal(api.hipMalloc(&p, 100), hipSuccess);
    expect_entry(p, 100, LEDGER_DEVICE, 1, "hipMalloc");
}

static void empty_and_failed_allocations_are_none(void **state) {
    (void)state;
    void *p = (void *)0x1234;
    assert_int_equal(api.hipMalloc(&p, 0), hipSuccess);
    fake.next_result = hipErrorOutOfMemory;
    p = fake_memory;
    assert_int_equal(api.hipMalloc(&p, 64), hipErrorOutOfMemory);
    assert_int_equal(ledger_count(audit.ledger).made, 0);
}

/* ---- frees ----------------------------------------------------------------------------------- */

static void frees_of_every_kind(void **state) {
    (void)state;
    void *a, *b, *c;
    assert_int_equal(api.hipMalloc(&a, 64), hipSuccess);
    assert_int_equal(api.hipMalloc(&b, 64), hipSuccess);
    assert_int_equal(api.hipMallocAsync(&c, 64, NULL), hipSuccess);
    assert_int_equal(api.hipFree(NULL), hipSuccess);
    assert_int_equal(ledger_count(audit.ledger).unknown_frees, 0);

    fake.next_result = hipErrorInvalidValue;
    assert_int_equal(api.hipFree(a), hipErrorInvalidValue);
    assert_int_equal(entry_at(a)->state, LEDGER_LIVE);
    assert_int_equal(api.hipFree(a), hipSuccess);
    assert_null(entry_at(a));
    assert_string_equal(freed_at(a)->freed.api, "hipFree");

    fake.next_result = hipErrorInvalidValue;
    assert_int_equal(api.hipFree(a), hipErrorInvalidValue);
    assert_int_equal(ledger_count(audit.ledger).double_frees, 1);
    fake.next_result = hipErrorInvalidValue;
    assert_int_equal(api.hipFree((char *)b + 8), hipErrorInvalidValue);
    assert_int_equal(entry_at(b)->state, LEDGER_LIVE);
    assert_int_equal(api.hipFree((void *)0x123), hipSuccess);
    assert_int_equal(ledger_count(audit.ledger).unknown_frees, 1);

    assert_int_equal(api.hipFreeAsync(c, NULL), hipSuccess);
    assert_string_equal(freed_at(c)->freed.api, "hipFreeAsync");
}

static void device_reset_ends_what_the_device_had(void **state) {
    (void)state;
    void *a, *b;
    assert_int_equal(api.hipMalloc(&a, 64), hipSuccess);
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    assert_int_equal(api.hipMalloc(&b, 64), hipSuccess);
    assert_int_equal(api.hipDeviceReset(), hipSuccess);
    assert_non_null(entry_at(a));
    assert_null(entry_at(b));
    fake.result = hipErrorInvalidValue;
    assert_int_equal(api.hipSetDevice(0), hipSuccess);
    assert_int_equal(api.hipDeviceReset(), hipErrorInvalidValue);
    assert_non_null(entry_at(a)); /* a reset that failed resets nothing */
}

static void the_current_device_is_followed(void **state) {
    (void)state;
    assert_int_equal(audit_current_device(), 0);
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    unsigned long asked = fake_calls(hipGetDevice);
    assert_int_equal(audit_current_device(), 1);
    assert_int_equal(fake_calls(hipGetDevice), asked); /* known without asking */
    assert_int_equal(api.hipSetDevice(9), hipErrorInvalidDevice);
    assert_int_equal(audit_current_device(), 1);
    fake_device = 0; /* a context switch says nothing of devices */
    assert_int_equal(api.hipCtxSetCurrent(NULL), hipSuccess);
    assert_int_equal(audit_current_device(), 0);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static bool layout(const char *name, struct kernel_layout *out, void *user) {
    (*(int *)user)++;
    if (strcmp(name, "rope") != 0)
        return false;
    out->count = 3;
    out->param[0].size = 8;
    out->param[0].access = EVENT_ARG_WRITE;
    out->param[1].size = 4;
    out->param[2].size = 8;
    out->param[2].access = EVENT_ARG_READ;
    return true;
}

static void kernels_are_known_by_name_and_arguments(void **state) {
    (void)state;
    hipFunction_t rope = NULL, other = NULL;
    int asked = 0;
    kernel_set_source(layout, &asked);
    assert_int_equal(api.hipModuleGetFunction(&rope, NULL, "rope"), hipSuccess);
    assert_int_equal(api.hipModuleGetFunction(&other, NULL, "other"), hipSuccess);
    api.__hipRegisterFunction(NULL, (void *)0x4444, NULL, "hosted", 0, NULL, NULL, NULL, NULL,
                              NULL);
    assert_string_equal(kernel_find(rope).name, "rope");
    assert_string_equal(kernel_find((void *)0x4444).name, "hosted");
    assert_string_equal(kernel_find((void *)0x5555).name, "?");
    (void)kernel_find(rope);
    assert_int_equal(asked, 2); /* once per function */

    uint64_t x = 0x1000, pos = 0x2000, bytes;
    uint32_t n = 5;
    void *params[] = { &x, &n, &pos };
    struct event_arg args[8];
    struct kernel k = kernel_find(rope);
    assert_int_equal(kernel_pointers(&k, params, NULL, args, 8, &bytes), 3);
    assert_int_equal(args[0].value, 0x1000);
    assert_int_equal(args[0].flags, EVENT_ARG_WRITE);
    assert_int_equal(args[1].value, 5);
    assert_int_equal(args[1].flags, EVENT_ARG_NUMBER);
    assert_int_equal(args[2].index, 2);
    assert_int_equal(args[2].value, 0x2000);
    k = kernel_find(other);
    assert_int_equal(kernel_pointers(&k, params, NULL, args, 8, &bytes), 0);
    assert_int_equal(kernel_pointers(&k, NULL, NULL, args, 8, &bytes), 0);
    kernel_set_source(NULL, NULL);
}

static void pointers_in_an_extra_buffer_are_found_by_the_ledger(void **state) {
    (void)state;
    void *live, *freed;
    assert_int_equal(api.hipMalloc(&live, 64), hipSuccess);
    assert_int_equal(api.hipMalloc(&freed, 64), hipSuccess);
    assert_int_equal(api.hipFree(freed), hipSuccess);
    uint64_t buffer[4] = { 17, (uint64_t)(uintptr_t)live + 8, 0, (uint64_t)(uintptr_t)freed };
    size_t size = sizeof buffer;
    void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      HIP_LAUNCH_PARAM_END };
    struct event_arg args[8];
    struct kernel k = kernel_find(NULL);
    uint64_t bytes;
    assert_int_equal(kernel_pointers(&k, NULL, extra, args, 8, &bytes), 2);
    assert_int_equal(bytes, sizeof buffer);
    assert_int_equal(args[0].index, 1);
    assert_int_equal(args[0].value, buffer[1]);
    assert_int_equal(args[0].flags, EVENT_ARG_GUESSED);
    assert_int_equal(args[1].index, 3);
    assert_int_equal(kernel_pointers(&k, NULL, extra, args, 1, &bytes), 1); /* no room for more */
    size = 15;                                                              /* one whole word */
    assert_int_equal(kernel_pointers(&k, NULL, extra, args, 8, &bytes), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fake_attach, fake_detach)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(every_entry_is_decorated_and_put_back),
        T(there_is_one_attachment),
        T(results_and_errno_pass_through),
#if defined(__x86_64__)
        T(every_function_survives_null_arguments),
        T(and_while_recording),
#endif
        T(every_family_is_entered),
        T(empty_and_failed_allocations_are_none),
        T(frees_of_every_kind),
        T(device_reset_ends_what_the_device_had),
        T(the_current_device_is_followed),
        T(kernels_are_known_by_name_and_arguments),
        T(pointers_in_an_extra_buffer_are_found_by_the_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
