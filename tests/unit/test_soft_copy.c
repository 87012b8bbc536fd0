/* Copies: the right bytes, and nothing else; wrong ones are refused and nothing is copied. */
#include "test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/soft_fixture.h"

enum { KIB = 1024, MIB = 1024 * KIB };

static unsigned char pattern(size_t i, unsigned seed) {
    return (unsigned char)(i * 7 + (i >> 8) * 31 + seed);
}

static unsigned char *patterned(size_t size, unsigned seed) {
    unsigned char *p = malloc(size);
    MUST(p);
    for (size_t i = 0; i < size; i++)
        p[i] = pattern(i, seed);
    return p;
}

static void *device_bytes(size_t size) {
    void *p;
    OK(hip->hipMalloc(&p, size));
    OK(hip->hipMemset(p, 0xee, size));
    OK(hip->hipDeviceSynchronize()); /* before streams that do not wait for the default one */
    return p;
}

static void *pinned_bytes(size_t size) {
    void *p;
    OK(hip->hipHostMalloc(&p, size, 0));
    memset(p, 0xee, size);
    return p;
}

/* ---- right copies -------------------------------------------------------------------------- */

/* Host to device, device to device, device to host: what comes out is what went in. */
static void round_trip(size_t size, size_t offset, bool pinned, hipStream_t s) {
    unsigned char *in = patterned(size, (unsigned)size), *out = calloc(1, size);
    unsigned char *a = device_bytes(size + offset + 1), *b = device_bytes(size + offset + 1);
    void *from = in, *to = out;
    if (pinned) {
        from = pinned_bytes(size);
        to = pinned_bytes(size);
        memcpy(from, in, size);
    }
    OK(hip->hipMemcpyAsync(a + offset, from, size, hipMemcpyHostToDevice, s));
    OK(hip->hipMemcpyAsync(b + offset, a + offset, size, hipMemcpyDeviceToDevice, s));
    OK(hip->hipMemcpyAsync(to, b + offset, size, hipMemcpyDeviceToHost, s));
    OK(hip->hipStreamSynchronize(s));
    MUST(memcmp(to, in, size) == 0);
    unsigned char beside[2];
    OK(hip->hipMemcpy(beside, b + offset + size, 1, hipMemcpyDeviceToHost));
    MUST(beside[0] == 0xee); /* and not a byte more */
    if (offset) {
        OK(hip->hipMemcpy(beside, b + offset - 1, 1, hipMemcpyDeviceToHost));
        MUST(beside[0] == 0xee);
    }
    OK(hip->hipFree(a));
    OK(hip->hipFree(b));
    if (pinned) {
        OK(hip->hipHostFree(from));
        OK(hip->hipHostFree(to));
    }
    free(in);
    free(out);
}

static bool all_sizes(void) {
    static const size_t sizes[] = { 1,      2,       3,   63,      4095,    4096,       4097,
                                    100000, MIB - 1, MIB, MIB + 1, 3 * MIB, 5 * MIB + 7 };
    static const size_t offsets[] = { 0, 13, 2 * MIB - 1 }; /* 2 MiB: one core's piece */
    hipStream_t s = soft_blocking_stream();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof offsets / sizeof *offsets; j++) {
            round_trip(sizes[i], offsets[j], false, j % 2 ? s : NULL);
            round_trip(sizes[i], offsets[j], true, j % 2 ? NULL : s);
        }
    return true;
}

static void bytes_arrive_as_they_left(void **state) {
    (void)state;
    soft_expect(all_sizes, NULL);
    soft_expect(all_sizes, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(all_sizes, "GRETA_SOFT_THREADS=3 GRETA_SOFT_CHECK=off");
}

static bool every_function(void) {
    int in = 7, out = 0, *a = soft_device_ints(1), *b = soft_device_ints(1);
    OK(hip->hipMemcpyHtoD(a, &in, sizeof in));
    OK(hip->hipMemcpyDtoD(b, a, sizeof in));
    OK(hip->hipMemcpyDtoH(&out, b, sizeof in));
    MUST(out == 7);
    in = 8;
    OK(hip->hipMemcpyHtoDAsync(a, &in, sizeof in, NULL));
    OK(hip->hipMemcpyDtoDAsync(b, a, sizeof in, NULL));
    OK(hip->hipMemcpyDtoHAsync(&out, b, sizeof in, NULL));
    MUST(out == 8);
    in = 9;
    OK(hip->hipMemcpy(a, &in, sizeof in, hipMemcpyDefault));
    OK(hip->hipMemcpy(b, a, sizeof in, hipMemcpyDefault));
    OK(hip->hipMemcpy(&out, b, sizeof in, hipMemcpyDefault));
    MUST(out == 9);
    out = 0;
    OK(hip->hipMemcpy(&out, &in, sizeof in, hipMemcpyHostToHost));
    MUST(out == 9);
    OK(hip->hipMemcpy(&out, &out, sizeof in, hipMemcpyDefault));
    /* ROCm goes by the pointers, not by the kind. */
    in = 10;
    OK(hip->hipMemcpy(a, &in, sizeof in, hipMemcpyDeviceToHost));
    OK(hip->hipMemcpy(&out, a, sizeof in, hipMemcpyHostToDevice));
    MUST(out == 10);
    return true;
}

static bool peers(void) {
    int value = 7, out = 0, *a = soft_device_ints(2), *b;
    OK(hip->hipSetDevice(1));
    b = soft_device_ints(2);
    OK(hip->hipMemcpy(a, &value, sizeof value, hipMemcpyHostToDevice));
    OK(hip->hipMemcpyPeer(b, 1, a, 0, sizeof value));
    OK(hip->hipMemcpyPeerAsync(b + 1, 1, b, 1, sizeof value, NULL));
    OK(hip->hipMemcpyAsync(a + 1, b + 1, sizeof value, hipMemcpyDeviceToDevice, NULL));
    OK(hip->hipMemcpy(&out, a + 1, sizeof out, hipMemcpyDeviceToHost));
    MUST(out == 7);
    FAILS(hipErrorInvalidDevice, hip->hipMemcpyPeer(b, 2, a, 0, sizeof value));
    FAILS(hipErrorInvalidDevice, hip->hipMemcpyPeer(b, 1, a, -1, sizeof value));
    FAILS(hipErrorInvalidValue, hip->hipMemcpyPeer(b, 1, a, 0, 3 * sizeof value));
    return true;
}

static void every_copy_function_copies(void **state) {
    (void)state;
    soft_expect(every_function, NULL);
    soft_expect(every_function, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(peers, "GRETA_SOFT_DEVICES=2");
}

/* ---- wrong copies -------------------------------------------------------------------------- */

/* A device block, a pinned one and a pageable one, that nothing may have been copied to. */
static struct { unsigned char *device, *pinned, pageable[200]; } intact;

static void make_intact(void) {
    intact.device = device_bytes(100);
    intact.pinned = pinned_bytes(100);
    memset(intact.pageable, 0xee, sizeof intact.pageable);
    OK(hip->hipDeviceSynchronize());
}

static void expect_intact(void) {
    unsigned char copy[100];
    OK(hip->hipDeviceSynchronize()); /* no fault either: it was refused */
    OK(hip->hipMemcpy(copy, intact.device, 100, hipMemcpyDeviceToHost));
    for (int i = 0; i < 100; i++)
        MUST(copy[i] == 0xee && intact.pinned[i] == 0xee && intact.pageable[i] == 0xee);
}

#define REFUSED(call) FAILS(hipErrorInvalidValue, call)

static bool too_long(void) {
    unsigned char *source;
    make_intact();
    source = device_bytes(300);
    OK(hip->hipMemset(source, 0x11, 300));
    unsigned char *d = intact.device, *p = intact.pinned, *h = intact.pageable;
    static unsigned char ones[200];
    memset(ones, 0x11, sizeof ones);
    static const size_t bad[][2] = { { 0, 101 },      { 1, 100 },  { 99, 2 },           { 50, 51 },
                                     { 0, SIZE_MAX }, { 99, 150 }, { 10, SIZE_MAX - 5 } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t at = bad[i][0], n = bad[i][1];
        REFUSED(hip->hipMemcpy(d + at, ones, n, hipMemcpyHostToDevice));
        REFUSED(hip->hipMemcpy(d + at, source, n, hipMemcpyDeviceToDevice));
        REFUSED(hip->hipMemcpy(p + at, source, n, hipMemcpyDeviceToHost));
        REFUSED(hip->hipMemcpy(h, d + at, n, hipMemcpyDeviceToHost));
        REFUSED(hip->hipMemcpy(h, p + at, n, hipMemcpyHostToHost));
        REFUSED(hip->hipMemcpy(h, d + at, n, hipMemcpyDefault));
        REFUSED(hip->hipMemcpyAsync(d + at, ones, n, hipMemcpyHostToDevice, NULL));
        REFUSED(hip->hipMemcpyAsync(h, d + at, n, hipMemcpyDeviceToHost, NULL));
        REFUSED(hip->hipMemcpyAsync(p + at, source, n, hipMemcpyDeviceToHost, NULL));
        REFUSED(hip->hipMemcpyDtoH(h, d + at, n));
        REFUSED(hip->hipMemcpyHtoD(d + at, ones, n));
        REFUSED(hip->hipMemcpyDtoD(d + at, source, n));
        REFUSED(hip->hipMemcpyWithStream(h, d + at, n, hipMemcpyDeviceToHost, NULL));
        REFUSED(hip->hipMemset(d + at, 0, n));
        REFUSED(hip->hipMemsetAsync(d + at, 0, n, NULL));
        REFUSED(hip->hipMemset(p + at, 0, n));
        REFUSED(hip->hipMemsetD8(d + at, 0, n));
    }
    expect_intact();
    return true;
}

static bool wrong_pointers(void) {
    make_intact();
    unsigned char *d = intact.device, *h = intact.pageable, *gone = device_bytes(100);
    static unsigned char ones[200];
    OK(hip->hipFree(gone));
    REFUSED(hip->hipMemcpy(NULL, d, 4, hipMemcpyDeviceToHost));
    REFUSED(hip->hipMemcpy(d, NULL, 4, hipMemcpyHostToDevice));
    REFUSED(hip->hipMemcpyAsync(NULL, NULL, 4, hipMemcpyDeviceToDevice, NULL));
    REFUSED(hip->hipMemcpy(h, gone, 4, hipMemcpyDeviceToHost));
    REFUSED(hip->hipMemcpy(gone + 50, ones, 4, hipMemcpyHostToDevice));
    REFUSED(hip->hipMemcpy(h, d + 100, 4, hipMemcpyDeviceToHost)); /* the first byte behind */
    REFUSED(hip->hipMemcpy(h, d - 1, 4, hipMemcpyDeviceToHost));
    REFUSED(hip->hipMemcpy(h, d + (1 << 30), 4, hipMemcpyDeviceToHost));
    REFUSED(hip->hipMemcpy(h, ones, 4, hipMemcpyDeviceToHost)); /* no device memory in it */
    REFUSED(hip->hipMemcpy(h, ones, 4, hipMemcpyHostToDevice));
    REFUSED(hip->hipMemcpy(h, ones, 4, hipMemcpyDeviceToDevice));
    FAILS(hipErrorInvalidMemcpyDirection, hip->hipMemcpy(h, d, 4, (hipMemcpyKind)77));
    FAILS(hipErrorInvalidMemcpyDirection, hip->hipMemcpy(h, d, 4, (hipMemcpyKind)-1));
    REFUSED(hip->hipMemset(NULL, 0, 4));
    REFUSED(hip->hipMemset(h, 0, 4)); /* pageable */
    REFUSED(hip->hipMemset(gone, 0, 4));
    OK(hip->hipMemcpy(NULL, NULL, 0, hipMemcpyDefault)); /* nothing to do */
    OK(hip->hipMemset(NULL, 0, 0));
    OK(hip->hipMemcpyAsync(h, d, 0, hipMemcpyDeviceToHost, NULL));
    expect_intact();
    return true;
}

static void a_copy_that_leaves_its_block_is_refused(void **state) {
    (void)state;
    soft_expect(too_long, NULL);
    soft_expect(too_long, "GRETA_SOFT_CHECK=off");
    soft_expect(too_long, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(wrong_pointers, NULL);
}

/* ---- fills --------------------------------------------------------------------------------- */

static bool fills(void) {
    enum { COUNT = 300001 };
    unsigned char *d = device_bytes(COUNT * 4 + 8), *h = malloc(COUNT * 4 + 8);
    OK(hip->hipMemsetD8(d, 0x5a, COUNT));
    OK(hip->hipMemcpy(h, d, COUNT + 1, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < COUNT; i++)
        MUST(h[i] == 0x5a);
    MUST(h[COUNT] == 0xee);
    OK(hip->hipMemsetD16(d, 0x1234, COUNT));
    OK(hip->hipMemcpy(h, d, COUNT * 2 + 1, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < COUNT; i++)
        MUST(h[2 * i] == 0x34 && h[2 * i + 1] == 0x12);
    MUST(h[COUNT * 2] == 0xee);
    OK(hip->hipMemsetD32(d, (int)0x87654321, COUNT));
    OK(hip->hipMemcpy(h, d, COUNT * 4 + 1, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < COUNT; i++)
        MUST(h[4 * i] == 0x21 && h[4 * i + 3] == 0x87);
    MUST(h[COUNT * 4] == 0xee);

    OK(hip->hipMemsetD8Async(d, 1, 1, NULL));
    OK(hip->hipMemsetD16Async(d + 2, 2, 1, NULL));
    OK(hip->hipMemsetD32Async(d + 4, 3, 1, NULL));
    OK(hip->hipMemsetAsync(d + 8, 0x14, 4, NULL));
    OK(hip->hipMemcpy(h, d, 12, hipMemcpyDeviceToHost));
    MUST(h[0] == 1 && h[2] == 2 && h[3] == 0 && h[4] == 3 && h[7] == 0 && h[11] == 0x14);
    OK(hip->hipMemset(d, 0x1ff, 1)); /* the low byte counts */
    OK(hip->hipMemcpy(h, d, 1, hipMemcpyDeviceToHost));
    MUST(h[0] == 0xff);
    free(h);
    return true;
}

/* A fill that several cores share, beginning and ending between their pieces. */
static bool large_fill(void) {
    enum { SIZE = 5 * MIB, FROM = MIB + 4, COUNT = (3 * MIB + 12) / 4 };
    unsigned char *d = device_bytes(SIZE), *h = malloc(SIZE);
    const unsigned value = 0x04030201;
    MUST(h);
    OK(hip->hipMemsetD32(d + FROM, (int)value, COUNT));
    OK(hip->hipMemcpy(h, d, SIZE, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < SIZE; i++) {
        bool in = i >= FROM && i < FROM + 4 * COUNT;
        MUST(h[i] == (in ? i % 4 + 1 : 0xee));
    }
    free(h);
    return true;
}

static bool wrong_fills(void) {
    make_intact();
    unsigned char *d = intact.device;
    REFUSED(hip->hipMemsetD16(d, 0, 51));
    REFUSED(hip->hipMemsetD16(d + 1, 0, 1)); /* not aligned */
    REFUSED(hip->hipMemsetD32(d, 0, 26));
    REFUSED(hip->hipMemsetD32(d + 2, 0, 1));
    REFUSED(hip->hipMemsetD16(d, 0, SIZE_MAX / 2 + 1)); /* twice that is 0 */
    REFUSED(hip->hipMemsetD32(d, 0, SIZE_MAX / 4 + 1));
    REFUSED(hip->hipMemsetD32Async(d, 0, SIZE_MAX / 4 + 2, NULL));
    REFUSED(hip->hipMemset2D(d, 10, 0, 10, 11));
    REFUSED(hip->hipMemset2D(d, 50, 0, 10, SIZE_MAX));
    REFUSED(hip->hipMemset2D(d, SIZE_MAX, 0, 1, 3));
    FAILS(hipErrorInvalidPitchValue, hip->hipMemset2D(d, 9, 0, 10, 2));
    hipPitchedPtr box = { d, 5, 5, 4 };
    REFUSED(hip->hipMemset3D(box, 0, (hipExtent){ 5, 4, 6 }));
    REFUSED(hip->hipMemset3D(box, 0, (hipExtent){ 5, 4, SIZE_MAX }));
    box.ysize = SIZE_MAX / 5 + 1; /* a slice of 2^64 + something bytes */
    REFUSED(hip->hipMemset3D(box, 0, (hipExtent){ 5, 4, 2 }));
    box.ysize = 0;
    MUST(hip->hipMemset3D(box, 0, (hipExtent){ 5, 4, (size_t)1 << 62 }) != hipSuccess);
    expect_intact();
    return true;
}

static void fills_fill_and_no_more(void **state) {
    (void)state;
    soft_expect(fills, NULL);
    soft_expect(large_fill, NULL);
    soft_expect(wrong_fills, NULL);
}

/* ---- many threads -------------------------------------------------------------------------- */

static void *copy_much(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    enum { SIZE = 300000 };
    unsigned char *in = patterned(SIZE, seed), *out = malloc(SIZE);
    unsigned char *d = device_bytes(SIZE);
    hipStream_t s = soft_free_stream();
    for (int i = 0; i < 50; i++) {
        size_t at = (unsigned)rand_r(&seed) % SIZE, n = (unsigned)rand_r(&seed) % (SIZE - at);
        OK(hip->hipMemcpyAsync(d + at, in + at, n, hipMemcpyHostToDevice, s));
        memset(out, 0, SIZE);
        OK(hip->hipMemcpyAsync(out + at, d + at, n, hipMemcpyDeviceToHost, s));
        MUST(memcmp(in + at, out + at, n) == 0);
    }
    OK(hip->hipFree(d));
    free(in);
    free(out);
    return NULL;
}

static bool threads_copy(void) {
    pthread_t t[8];
    for (uintptr_t i = 0; i < 8; i++)
        MUST(pthread_create(&t[i], NULL, copy_much, (void *)i) == 0);
    for (int i = 0; i < 8; i++)
        MUST(pthread_join(t[i], NULL) == 0);
    return true;
}

static void threads_may_copy_at_the_same_time(void **state) {
    (void)state;
    soft_expect(threads_copy, NULL);
    soft_expect(threads_copy, "GRETA_SOFT_SCHEDULE=lazy");
    soft_expect(threads_copy, "GRETA_SOFT_SCHEDULE=random:3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_as_they_left),
        cmocka_unit_test(every_copy_function_copies),
        cmocka_unit_test(a_copy_that_leaves_its_block_is_refused),
        cmocka_unit_test(fills_fill_and_no_more),
        cmocka_unit_test(threads_may_copy_at_the_same_time),
    };
    return cmocka_run_group_tests_name("soft_copy", tests, soft_fixture_load, NULL);
}
