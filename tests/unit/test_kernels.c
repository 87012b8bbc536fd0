/* Kernels: footprints are checked before a launch. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>

#include "audit/audit.h"
#include "infer/device.h"
#include "kernels/spec.h"

static struct device device;

static int open_device(void **state) {
    (void)state;
    struct err e = { 0 };
    return device_open(&device, "soft", NULL, NULL, &e) ? -1 : 0;
}

static int close_device(void **state) {
    (void)state;
    device_close(&device);
    gcore_close();
    return 0;
}

static struct kern_view buffer(const char *name, enum tensor_type type, uint64_t bytes) {
    struct kern_view v;
    assert_int_equal(device_alloc(&device, &v, name, type, bytes, NULL), RC_OK);
    return v;
}

/* ---- footprints ------------------------------------------------------------------------------ */

static void a_position_buffer_of_two_bytes_is_refused_by_name(void **state) {
    (void)state;
    struct err e = { 0 };
    struct kern_rope a = { .q = buffer("q", TENSOR_TYPE_F32, 4 * 64 * 4),
                           .k = buffer("k", TENSOR_TYPE_F32, 2 * 64 * 4),
                           .pos = buffer("d_pos", TENSOR_TYPE_I32, 2),
                           .freqs = buffer("freqs", TENSOR_TYPE_F32, 32 * 4),
                           .tokens = 1,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_size = 64,
                           .rope_dims = 64,
                           .magnitude = 1 };
    assert_int_equal(kern_rope(device.kernels, device.stream, &a, &e), RC_REFUSED);
    assert_string_equal(e.msg,
                        "kernel rope, argument pos: tensor d_pos has 2 bytes, the launch needs 4; "
                        "nothing was launched (GCORE_ENFORCE=0 lets it through)");
    assert_int_equal(device_wait(&device, "wait", &e), RC_OK);
    device_free(&device, &a.q);
    device_free(&device, &a.k);
    device_free(&device, &a.pos);
    device_free(&device, &a.freqs);
}

static void a_view_of_the_wrong_type_is_refused_by_name(void **state) {
    (void)state;
    struct err e = { 0 };
    struct kern_view x = buffer("x", TENSOR_TYPE_F32, 256), w = buffer("w", TENSOR_TYPE_F16, 256);
    struct kern_rmsnorm a = { .out = x, .x = x, .weight = w, .rows = 1, .dim = 64, .eps = 1e-5f };
    assert_int_equal(kern_rmsnorm(device.kernels, device.stream, &a, &e), RC_REFUSED);
    assert_string_equal(e.msg, "kernel rmsnorm, argument weight: tensor w is F16, expected F32 "
                               "(256 bytes there, the launch needs 256); nothing was launched "
                               "(GCORE_ENFORCE=0 lets it through)");
    device_free(&device, &x);
    device_free(&device, &w);
}

/* The largest sizes an argument can have must saturate, never wrap to something small. */
static void footprints_of_absurd_sizes_do_not_wrap(void **state) {
    (void)state;
    for (int k = 0; k < KERN_COUNT; k++) {
        const struct spec *s = &spec_table[k];
        _Alignas(16) char arguments[1024];
        assert_true(s->argument_bytes <= sizeof arguments);
        memset(arguments, 0, sizeof arguments);
        for (uint32_t p = 0; p < s->param_count; p++)
            if (s->params[p].access == SPEC_VALUE && !strstr(s->params[p].name, " type"))
                memset(arguments + s->params[p].offset, 0xff, s->params[p].size);
        if (k == KERN_matmul_gate_up) /* what has no gate needs neither up nor counts */
            ((struct kern_matmul_gate_up *)(void *)arguments)->ungated = 0;
        for (uint32_t v = 0; v < s->view_count; v++) {
            /* floats (type 0 here) are not multiplied with levels; so many logits come in lists */
            if (!strcmp(s->views[v].name, "freqs") ||
                (k == KERN_sample && !strcmp(s->views[v].name, "logits")) ||
                (k != KERN_quantize && !strcmp(s->views[v].name, "levels")))
                continue;
            assert_true(s->views[v].bytes(arguments) >= UINT32_MAX);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_position_buffer_of_two_bytes_is_refused_by_name),
        cmocka_unit_test(a_view_of_the_wrong_type_is_refused_by_name),
        cmocka_unit_test(footprints_of_absurd_sizes_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
