/* The device's settings: what they change, and that nonsense is refused with a clear message. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/soft_fixture.h"

/* ---- nonsense ------------------------------------------------------------------------------ */

static size_t called;

static void expect_not_initialized(const char *name, hipError_t found) {
    if (found != hipErrorNotInitialized)
        soft_fail(__FILE__, __LINE__, "%s: found %s", name, hip_error_name(found));
    called++;
}

static bool nothing_works(void) {
    int count = 99;
    FAILS(hipErrorNotInitialized, hip->hipGetDeviceCount(&count));
    FAILS(hipErrorNotInitialized, hip->hipPeekAtLastError());
    FAILS(hipErrorNotInitialized, hip->hipGetLastError());
    FAILS(hipErrorNotInitialized, hip->hipDeviceReset());
    soft_call_everything(NULL, expect_not_initialized);
    MUST(called > 400);
    MUST(!strcmp(hip->hipGetErrorName(hipErrorNotInitialized), "hipErrorNotInitialized"));
    return true;
}

static void nonsense_is_refused_by_name(void **state) {
    (void)state;
    static const char *const nonsense[] = {
        "GRETA_SOFT_SCHEDULE=slow",      "GRETA_SOFT_SCHEDULE=random",
        "GRETA_SOFT_SCHEDULE=random:",   "GRETA_SOFT_SCHEDULE=random:x",
        "GRETA_SOFT_SCHEDULE=random:-1", "GRETA_SOFT_SCHEDULE=FAST",
        "GRETA_SOFT_SCHEDULE=lazy,fast", "GRETA_SOFT_FAULT=maybe",
        "GRETA_SOFT_DEVICES=0",          "GRETA_SOFT_DEVICES=17",
        "GRETA_SOFT_DEVICES=two",        "GRETA_SOFT_DEVICES=-1",
        "GRETA_SOFT_DEVICES=2x",         "GRETA_SOFT_MEMORY=1",
        "GRETA_SOFT_MEMORY=much",        "GRETA_SOFT_MEMORY=5Q",
        "GRETA_SOFT_MEMORY=8192G",       "GRETA_SOFT_MEMORY=99999999999999999999",
        "GRETA_SOFT_CHECK=perhaps",      "GRETA_SOFT_CHECK=init,",
        "GRETA_SOFT_CHECKED=0",          "GRETA_SOFT_THREADS=all",
        "AMD_SERIALIZE_KERNEL=yes",      "AMD_SERIALIZE_COPY=-3",
        "HIP_LAUNCH_BLOCKING=sometimes", "GRETA_SOFT_PIN=where",
        "GRETA_SOFT_ARCH=gfx1100",
    };
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        struct soft_outcome o = soft_run(nothing_works, nonsense[i]);
        char name[40] = "", value[40] = "";
        sscanf(nonsense[i], "%39[^=]=%39s", name, value);
        const char *said = strstr(o.output, "greta: the software device cannot start: ");
        if (!o.right || !said || !strstr(said, name) || !strstr(said, value))
            fail_msg("%s: %s", nonsense[i], o.output);
        if (strstr(said + 1, "greta: the software device"))
            fail_msg("%s: said more than once:\n%s", nonsense[i], o.output);
    }
}

/* ---- devices ------------------------------------------------------------------------------- */

static int device_count(void) {
    int count = -1;
    OK(hip->hipGetDeviceCount(&count));
    return count;
}

static bool one_device(void) {
    MUST(device_count() == 1);
    FAILS(hipErrorInvalidDevice, hip->hipSetDevice(1));
    FAILS(hipErrorInvalidDevice, hip->hipSetDevice(-1));
    return true;
}

static bool sixteen_devices(void) {
    int *p[16];
    MUST(device_count() == 16);
    for (int i = 0; i < 16; i++) {
        OK(hip->hipSetDevice(i));
        p[i] = soft_device_ints(1);
        soft_store(NULL, p[i], i + 1, 0);
        OK(hip->hipDeviceSynchronize());
    }
    for (int i = 0; i < 16; i++) {
        int value, device;
        OK(hip->hipGetDevice(&device));
        MUST(device == 15);
        OK(hip->hipMemcpy(&value, p[i], sizeof value, hipMemcpyDeviceToHost));
        MUST(value == i + 1);
    }
    FAILS(hipErrorInvalidDevice, hip->hipSetDevice(16));
    return true;
}

static void the_number_of_devices_is_a_setting(void **state) {
    (void)state;
    soft_expect(one_device, NULL);
    soft_expect(sixteen_devices, "GRETA_SOFT_DEVICES=16 GRETA_SOFT_MEMORY=64M");
}

/* The bus addresses of all devices, in the program's order. */
static bool print_devices(void) {
    for (int i = 0, count = device_count(); i < count; i++) {
        char id[32];
        OK(hip->hipDeviceGetPCIBusId(id, sizeof id, i));
        printf("[%s]", id);
    }
    return true;
}

static bool no_device(void) {
    int count = 99;
    FAILS(hipErrorNoDevice, hip->hipGetDeviceCount(&count));
    void *p;
    FAILS(hipErrorNoDevice, hip->hipMalloc(&p, 4));
    return true;
}

static void visible_devices_are_chosen_and_ordered(void **state) {
    (void)state;
    static const struct {
        const char *visible;
        int device[5]; /* -1: end */
    } cases[] = {
        { "0,1,2,3", { 0, 1, 2, 3, -1 } },
        { "2,0", { 2, 0, -1 } },
        { "3", { 3, -1 } },
        { "1,1", { 1, -1 } },
        { "1,9,2", { 1, -1 } },
        { "2,-1,0", { 2, -1 } },
        { "0,x", { 0, -1 } },
        { "3,2,1,0", { 3, 2, 1, 0, -1 } },
    };
    struct soft_outcome all = soft_run(print_devices, "GRETA_SOFT_DEVICES=4");
    assert_true(all.right);
    char id[4][40];
    assert_int_equal(
        sscanf(all.output, "[%39[^]]][%39[^]]][%39[^]]][%39[^]]]", id[0], id[1], id[2], id[3]), 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char settings[80], expected[200] = "";
        snprintf(settings, sizeof settings, "GRETA_SOFT_DEVICES=4 HIP_VISIBLE_DEVICES=%s",
                 cases[i].visible);
        for (const int *d = cases[i].device; *d >= 0; d++) {
            strcat(expected, "[");
            strcat(expected, id[*d]);
            strcat(expected, "]");
        }
        struct soft_outcome o = soft_run(print_devices, settings);
        assert_true(o.right);
        assert_string_equal(o.output, expected);
    }
    soft_expect(no_device, "HIP_VISIBLE_DEVICES=-1");
    soft_expect(no_device, "HIP_VISIBLE_DEVICES=7");
    soft_expect(no_device, "HIP_VISIBLE_DEVICES=x");
}

/* ---- memory -------------------------------------------------------------------------------- */

static bool print_memory(void) {
    size_t free_bytes, total;
    OK(hip->hipMemGetInfo(&free_bytes, &total));
    printf("%zu", total);
    return free_bytes == total;
}

static void the_size_of_memory_is_a_setting(void **state) {
    (void)state;
    static const struct {
        const char *setting, *bytes;
    } cases[] = {
        { "GRETA_SOFT_MEMORY=1048576", "1048576" },
        { "GRETA_SOFT_MEMORY=64M", "67108864" },
        { "GRETA_SOFT_MEMORY=2G", "2147483648" },
        { "GRETA_SOFT_MEMORY=192G", "206158430208" }, /* a reservation costs nothing */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (SOFT_TSAN && i == 3)
            continue; /* its address space is fixed */
        struct soft_outcome o = soft_run(print_memory, cases[i].setting);
        assert_true(o.right);
        assert_string_equal(o.output, cases[i].bytes);
    }
    soft_expect(print_memory, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonsense_is_refused_by_name),
        cmocka_unit_test(the_number_of_devices_is_a_setting),
        cmocka_unit_test(visible_devices_are_chosen_and_ordered),
        cmocka_unit_test(the_size_of_memory_is_a_setting),
    };
    return cmocka_run_group_tests_name("soft_memory_settings", tests, soft_fixture_load, NULL);
}
