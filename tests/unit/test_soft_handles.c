/* test_soft_handles.c - arguments that are no handles: every function of the API answers with an
 * error or ignores them, and none crashes. */
#include "test.h"

#include <string.h>

#include "support/soft_fixture.h"

static size_t called, refused;

static void count(const char *name, hipError_t found) {
    (void)name;
    called++;
    refused += found != hipSuccess;
}

static bool survives(void *argument) {
    called = refused = 0;
    soft_call_everything(argument, count);
    MUST(called > 400 && refused > 300);
    /* hipStreamBeginCapture_spt(NULL) is a right call: it captures the thread's default stream. */
    hipGraph_t graph = NULL;
    (void)hip->hipStreamEndCapture(hipStreamPerThread, &graph);
    OK(hip->hipSetDevice(0)); /* and the device still works */
    int value = 0, *p = soft_device_ints(1);
    OK(hip->hipMemset(p, 1, sizeof *p));
    OK(hip->hipMemcpy(&value, p, sizeof value, hipMemcpyDeviceToHost));
    return value == 0x01010101;
}

/* Large, because functions write their results there and read structures. */
static unsigned char memory[1 << 20];

static bool memory_that_is_no_handle(void) {
    memset(memory, 0, sizeof memory);
    return survives(memory + sizeof memory / 2);
}

static bool nothing(void) {
    return survives(NULL);
}

static bool memory_full_of_rubbish(void) {
    memset(memory, 0xA5, sizeof memory);
    return survives(memory + sizeof memory / 2);
}

static void null_and_zero_crash_no_function(void **state) {
    (void)state;
    soft_expect(nothing, NULL);
}

static void memory_that_is_no_handle_crashes_no_function(void **state) {
    (void)state;
    soft_expect(memory_that_is_no_handle, NULL);
    soft_expect(memory_full_of_rubbish, NULL);
}

/* hip_Memcpy2D: the memory types say which fields count. */
static bool unused_fields_may_hold_anything(void) {
    int host[4] = { 1, 2, 3, 4 }, *device = soft_device_ints(4);
    hip_Memcpy2D p;
    memset(&p, 0xA5, sizeof p);
    p.srcXInBytes = p.srcY = p.dstXInBytes = p.dstY = 0;
    p.srcMemoryType = soft_abi < 6 ? (hipMemoryType)HIP5_MEMORY_TYPE_HOST : hipMemoryTypeHost;
    p.dstMemoryType = soft_abi < 6 ? (hipMemoryType)HIP5_MEMORY_TYPE_DEVICE : hipMemoryTypeDevice;
    p.srcHost = host;
    p.dstDevice = device;
    p.srcPitch = p.dstPitch = p.WidthInBytes = sizeof host;
    p.Height = 1;
    OK(hip->hipMemcpyParam2D(&p));
    OK(hip->hipDrvMemcpy2DUnaligned(&p));
    p.srcHost = NULL;
    FAILS(hipErrorInvalidValue, hip->hipDrvMemcpy2DUnaligned(&p));
    p.srcMemoryType = soft_abi < 6 ? (hipMemoryType)HIP5_MEMORY_TYPE_ARRAY : hipMemoryTypeArray;
    FAILS(hipErrorInvalidValue, hip->hipDrvMemcpy2DUnaligned(&p));
    p.srcArray = NULL;
    FAILS(hipErrorInvalidValue, hip->hipDrvMemcpy2DUnaligned(&p));
    HIP_MEMCPY3D q = { .WidthInBytes = 4, .Height = 1, .Depth = 1 };
    q.dstDevice = device;
    FAILS(hipErrorInvalidValue, hip->hipDrvMemcpy3D(&q));
    return soft_peek(device + 3) == 4;
}

static void fields_of_other_memory_types_are_not_read(void **state) {
    (void)state;
    soft_expect(unused_fields_may_hold_anything, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_and_zero_crash_no_function),
        cmocka_unit_test(memory_that_is_no_handle_crashes_no_function),
        cmocka_unit_test(fields_of_other_memory_types_are_not_read),
    };
    return cmocka_run_group_tests(tests, soft_fixture_load, NULL);
}
