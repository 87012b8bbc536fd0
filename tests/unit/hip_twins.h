/* hip_twins.h - the GPU code of a kernel against its native twin, on the software device's
 * interpreter. The architecture is GRETA_SOFT_ARCH; every access is checked against buffers of
 * exactly the footprint.
 *
 * A suite is a list of TEST(name) run between open_device() and close_device(). A test begins with
 * SKIP_WITHOUT_CODE, makes arguments with the functions of example.h from `x`, and ends with
 * assert_twins(). */
#ifndef TESTS_UNIT_HIP_TWINS_H
#define TESTS_UNIT_HIP_TWINS_H

#include "unit/test.h"

#include <string.h>

#include <gcore/audit.h>

#include "infer/device.h"
#include "kernels/example.h"
#include "kernels/hip/image.h"
#include "kernels/spec.h"
#include "kernels/twin.h"

/* Float arithmetic in another order (twice that for two norms in a row); sums of many products; the
 * same if the largest activations of F16 products leave few bits for the others; weights rounded to
 * halves (Q6_K). */
#define FLOATS   2e-6
#define SUMS     2e-5
#define OUTLIERS 5e-5
#define ROUNDED  1e-3

static struct device device;
static struct example x;

static inline int open_device(void **state) {
    (void)state;
    struct err e = { 0 };
    if (!strcmp(image_origin(), "none"))
        return 0;
    if (device_open(&device, "soft", "isa", NULL, &e))
        fail_msg("%s", e.msg);
    return 0;
}

static inline int close_device(void **state) {
    (void)state;
    device_close(&device);
    gcore_close();
    return 0;
}

/* Every test draws the same numbers, whichever ran before it. */
static inline int need_code(void **state) {
    (void)state;
    x.seed = 1;
    if (!device.kernels)
        print_message("no clang with the AMDGPU target when this was built\n");
    return 0;
}

static inline int forget(void **state) {
    (void)state;
    example_close(&x);
    return 0;
}

/* Compares, and frees the arguments. */
static inline void assert_twins(enum kern_id id, const void *arguments, double limit,
                                const char *what, uint32_t a, uint32_t b, uint32_t c) {
    double distance = 0;
    struct err e = { 0 };
    assert_false(x.failed);
    if (twin_compare(device.kernels, device.hip, id, arguments, &distance, &e))
        fail_msg("%s %s %u %u %u: %s", kern_name(id), what, a, b, c, e.msg);
    if (!(distance <= limit))
        fail_msg("%s %s %u %u %u: distance %.3g, expected at most %.3g", kern_name(id), what, a, b,
                 c, distance, limit);
    example_close(&x);
}

#define SKIP_WITHOUT_CODE                                                                          \
    (void)state;                                                                                   \
    if (!device.kernels)                                                                           \
    skip()
#define TEST(name) cmocka_unit_test_setup_teardown(name, need_code, forget)

/* The next type that kernels compute with, the first for NULL. */
static inline const struct tensor_type_info *next_type(const struct tensor_type_info *t) {
    do
        t = tensor_type_next(t);
    while (t && t->use != TENSOR_TYPE_COMPUTE);
    return t;
}

#endif
