/* Uploads through pinned buffers: what arrives, whatever the host does with its memory afterwards,
 * and how failures are told. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include <gcore/audit.h>

#include "infer/upload.h"

enum { BYTES = 2 * UPLOAD_PIECE + 12345, OFFSET = 77 };

static struct device device;

static int open_device(void **state) {
    (void)state;
    struct err e = { 0 };
    setenv("GRETA_SOFT_SCHEDULE", "lazy", 1); /* nothing is copied before somebody waits for it */
    return device_open(&device, "soft", NULL, NULL, &e) ? -1 : 0;
}

static int close_device(void **state) {
    (void)state;
    device_close(&device);
    gcore_close();
    return 0;
}

static unsigned char byte_at(size_t i) {
    return (unsigned char)(i * 7 + i / 4096);
}

static void check_upload(bool staged) {
    struct upload u;
    struct kern_view to;
    struct err e = { 0 };
    unsigned char *bytes = malloc(BYTES), *back = malloc(OFFSET + BYTES);
    assert_true(bytes && back);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = byte_at(i);
    assert_int_equal(device_alloc(&device, &to, "w", TENSOR_TYPE_I8, OFFSET + BYTES, &e), RC_OK);
    upload_open(&u, &device, staged);
    assert_int_equal(u.buffer[0] != NULL, staged);
    for (int i = 0; i < 2; i++) { /* the second with what the buffers still hold of the first */
        assert_int_equal(upload_add(&u, &to, 0, "0123456", 8, -1, &e), RC_OK);
        assert_int_equal(upload_add(&u, &to, OFFSET, bytes, BYTES, 3, &e), RC_OK);
    }
    memset(bytes, 0xee, BYTES); /* it may be changed at once */
    assert_int_equal(upload_finish(&u, &e), RC_OK);
    assert_int_equal(device_download(&device, back, &to, OFFSET + BYTES, -1, -1, &e), RC_OK);
    assert_memory_equal(back, "0123456", 8);
    for (size_t i = 0; i < BYTES; i++)
        if (back[OFFSET + i] != byte_at(i))
            fail_msg("byte %zu is %u, expected %u", i, back[OFFSET + i], byte_at(i));
    upload_close(&u);
    device_free(&device, &to);
    free(bytes);
    free(back);
}

static void bytes_arrive_through_pinned_buffers(void **state) {
    (void)state;
    check_upload(true);
}

static void bytes_arrive_without_them(void **state) {
    (void)state;
    check_upload(false);
}

static void a_tensor_that_is_too_small_is_named(void **state) {
    (void)state;
    struct upload u;
    struct kern_view to;
    struct err e = { 0 };
    char bytes[64] = { 0 };
    assert_int_equal(device_alloc(&device, &to, "blk.0.w", TENSOR_TYPE_I8, 32, &e), RC_OK);
    upload_open(&u, &device, true);
    assert_int_equal(upload_add(&u, &to, 0, bytes, sizeof bytes, 0, &e), RC_REFUSED);
    assert_non_null(strstr(e.msg, "blk.0.w"));
    upload_close(&u);
    device_free(&device, &to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_through_pinned_buffers),
        cmocka_unit_test(bytes_arrive_without_them),
        cmocka_unit_test(a_tensor_that_is_too_small_is_named),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
