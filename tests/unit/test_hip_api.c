/* What is known about each HIP function and error code. */
#include "unit/test.h"

#include <string.h>

#include "hip/hip_api.h"

static void functions_know_their_name_class_and_node(void **state) {
    (void)state;
    assert_string_equal(hip_fn_name(HIP_FN_hipMalloc), "hipMalloc");
    assert_int_equal(hip_fn_class(HIP_FN_hipMalloc), HIP_CLASS_ALLOC);
    assert_string_equal(hip_fn_version(HIP_FN_hipMalloc), "hip_4.2");
    assert_int_equal(hip_fn_class(HIP_FN_hipFreeAsync), HIP_CLASS_FREE);
    assert_string_equal(hip_fn_version(HIP_FN_hipFreeAsync), "hip_5.1");
    assert_int_equal(hip_fn_class(HIP_FN___hipRegisterFatBinary), HIP_CLASS_REGISTER);
    assert_string_equal(hip_fn_version(HIP_FN_hipGetDevicePropertiesR0600), "hip_6.0");
    assert_string_equal(hip_fn_version(HIP_FN_hipLaunchKernelExC), "hip_6.5");
}

static void numbers_that_are_no_function_are_survived(void **state) {
    (void)state;
    assert_string_equal(hip_fn_name(HIP_FN_COUNT), "?");
    assert_string_equal(hip_fn_name((enum hip_fn) - 1), "?");
    assert_string_equal(hip_fn_version(HIP_FN_COUNT), "?");
    assert_int_equal(hip_fn_class(HIP_FN_COUNT), HIP_CLASS_COUNT);
    assert_string_equal(hip_class_name(HIP_CLASS_COUNT), "?");
}

static void every_function_is_found_by_its_name(void **state) {
    (void)state;
    for (int i = 0; i < HIP_FN_COUNT; i++)
        assert_int_equal(hip_fn_find(hip_fn_name((enum hip_fn)i)), i);
    assert_int_equal(hip_fn_find("hipMallo"), HIP_FN_COUNT);
    assert_int_equal(hip_fn_find("hipMalloc2"), HIP_FN_COUNT);
    assert_int_equal(hip_fn_find(""), HIP_FN_COUNT);
    assert_int_equal(hip_fn_find("zzz"), HIP_FN_COUNT);
}

static void every_class_has_a_name_and_a_function(void **state) {
    (void)state;
    size_t functions[HIP_CLASS_COUNT] = { 0 };
    for (int i = 0; i < HIP_FN_COUNT; i++)
        functions[hip_fn_class((enum hip_fn)i)]++;
    for (int c = 0; c < HIP_CLASS_COUNT; c++) {
        assert_string_not_equal(hip_class_name((enum hip_class)c), "?");
        assert_true(functions[c] > 0);
    }
    assert_string_equal(hip_class_name(HIP_CLASS_COPY), "COPY");
}

static void errors_and_functions_say_what_they_are(void **state) {
    (void)state;
    assert_int_equal(hip_error_kind(hipErrorIllegalAddress), HIP_ERROR_STICKY);
    assert_int_equal(hip_error_kind(hipErrorNotReady), HIP_ERROR_ANSWER);
    assert_int_equal(hip_error_kind(hipErrorInvalidValue), HIP_ERROR_PLAIN);
    assert_int_equal(hip_error_kind((hipError_t)12345), HIP_ERROR_PLAIN);
    assert_int_equal(hip_fn_trait(HIP_FN_hipMemcpyToSymbol), HIP_TRAIT_SYMBOL);
    assert_int_equal(hip_fn_trait(HIP_FN_hipGraphGetNodes), HIP_TRAIT_INSPECTS);
    assert_int_equal(hip_fn_trait(HIP_FN_hipGraphRemoveDependencies), HIP_TRAIT_NONE);
    assert_int_equal(hip_fn_trait(HIP_FN_hipMemcpy), HIP_TRAIT_NONE);
    assert_int_equal(hip_fn_trait(HIP_FN_COUNT), HIP_TRAIT_NONE);
    for (int i = 0; i < HIP_FN_COUNT; i++)
        if (hip_fn_trait((enum hip_fn)i) == HIP_TRAIT_INSPECTS)
            assert_int_equal(hip_fn_class((enum hip_fn)i), HIP_CLASS_GRAPH);
}

/* The audit must know every function that writes bytes as one. */
static void names_and_classes_agree(void **state) {
    (void)state;
    for (int i = 0; i < HIP_FN_COUNT; i++) {
        const char *name = hip_fn_name((enum hip_fn)i);
        enum hip_class cls = hip_fn_class((enum hip_fn)i);
        if (strncmp(name, "hipMemcpy", 9) == 0)
            assert_int_equal(cls, HIP_CLASS_COPY);
        if (strncmp(name, "hipMemset", 9) == 0)
            assert_int_equal(cls, HIP_CLASS_SET);
        if (strncmp(name, "hipMalloc", 9) == 0)
            assert_int_equal(cls, HIP_CLASS_ALLOC);
        if (strncmp(name, "hipFree", 7) == 0)
            assert_int_equal(cls, HIP_CLASS_FREE);
        if (strncmp(name, "hiprtc", 6) == 0)
            assert_int_equal(cls, HIP_CLASS_RTC);
        if (strncmp(name, "hipGraphAdd", 11) == 0)
            assert_int_equal(cls, HIP_CLASS_GRAPH);
        if (strstr(name, "LaunchKernel") || strstr(name, "LaunchCooperative"))
            assert_int_equal(cls, HIP_CLASS_LAUNCH);
    }
}

/* hip_load() fills the table through this. */
static void the_table_is_an_array_of_pointers(void **state) {
    (void)state;
    assert_int_equal(sizeof(struct hip_api), HIP_FN_COUNT * sizeof(void (*)(void)));
}

static void error_codes_have_the_texts_of_hip(void **state) {
    (void)state;
    assert_string_equal(hip_error_name(hipSuccess), "hipSuccess");
    assert_string_equal(hip_error_string(hipSuccess), "no error");
    assert_string_equal(hip_error_name(hipErrorIllegalAddress), "hipErrorIllegalAddress");
    assert_string_equal(hip_error_string(hipErrorIllegalAddress),
                        "an illegal memory access was encountered");
    assert_string_equal(hip_error_string(hipErrorInvalidValue), "invalid argument");
    assert_string_equal(hip_error_string(hipErrorLaunchFailure), "unspecified launch failure");
    assert_int_equal(hipErrorIllegalAddress, 700);
    assert_int_equal(hipErrorNotSupported, 801);
}

static void old_names_of_an_error_code_give_its_name(void **state) {
    (void)state;
#define HIP_ERR(name, value, kind, message)
#define HIP_ERR6(name, value, kind, message)
#define HIP_ERR_ALIAS(name, value, primary) assert_string_equal(hip_error_name(name), #primary);
#include "hip/hip_error.def"
#undef HIP_ERR
#undef HIP_ERR6
#undef HIP_ERR_ALIAS
}

static void unknown_error_codes_are_unknown(void **state) {
    (void)state;
    assert_string_equal(hip_error_name((hipError_t)12345), "hipErrorUnknown");
    assert_string_equal(hip_error_string((hipError_t)12345), "unknown error");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_know_their_name_class_and_node),
        cmocka_unit_test(numbers_that_are_no_function_are_survived),
        cmocka_unit_test(every_function_is_found_by_its_name),
        cmocka_unit_test(every_class_has_a_name_and_a_function),
        cmocka_unit_test(errors_and_functions_say_what_they_are),
        cmocka_unit_test(names_and_classes_agree),
        cmocka_unit_test(the_table_is_an_array_of_pointers),
        cmocka_unit_test(error_codes_have_the_texts_of_hip),
        cmocka_unit_test(old_names_of_an_error_code_give_its_name),
        cmocka_unit_test(unknown_error_codes_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
