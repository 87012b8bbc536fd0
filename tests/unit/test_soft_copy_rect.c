/* Copies and fills of two and three dimensions: right ones byte by byte against a plain loop, and
 * wrong pitches, positions and sizes, those whose products wrap included. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "support/soft_fixture.h"

enum { BYTES = 20000 };

/* A device block with known bytes, and the host's idea of what is in it. */
static unsigned char *device, *expected, *found, *source;

static void make_blocks(void) {
    expected = malloc(BYTES);
    found = malloc(BYTES);
    source = malloc(BYTES);
    OK(hip->hipMalloc((void **)&device, BYTES));
    for (int i = 0; i < BYTES; i++) {
        expected[i] = (unsigned char)(i * 13);
        source[i] = (unsigned char)(i * 7 + 1);
    }
    OK(hip->hipMemcpy(device, expected, BYTES, hipMemcpyHostToDevice));
}

static void expect_device(void) {
    OK(hip->hipDeviceSynchronize());
    OK(hip->hipMemcpy(found, device, BYTES, hipMemcpyDeviceToHost));
    for (int i = 0; i < BYTES; i++)
        if (found[i] != expected[i])
            soft_fail(__FILE__, __LINE__, "byte %d: expected %d, found %d", i, expected[i],
                      found[i]);
}

/* The plain loop. Slices and pitches in bytes. */
static void copy_box(unsigned char *to, size_t to_pitch, size_t to_slice, const unsigned char *from,
                     size_t from_pitch, size_t from_slice, const size_t n[3]) {
    for (size_t z = 0; z < n[2]; z++)
        for (size_t y = 0; y < n[1]; y++)
            memcpy(to + z * to_slice + y * to_pitch, from + z * from_slice + y * from_pitch, n[0]);
}

/* ---- two dimensions ------------------------------------------------------------------------ */

static bool rectangles(void) {
    static const size_t cases[][4] = { /* width, height, pitch here, pitch there */
                                       { 10, 5, 10, 10 },    { 10, 5, 16, 32 },  { 1, 100, 7, 3 },
                                       { 100, 1, 100, 200 }, { 63, 31, 64, 65 }, { 3, 3, 900, 5 }
    };
    make_blocks();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t w = cases[i][0], h = cases[i][1], dp = cases[i][2], sp = cases[i][3];
        const size_t n[3] = { w, h, 1 };
        OK(hip->hipMemcpy2D(device + 17, dp, source, sp, w, h, hipMemcpyHostToDevice));
        copy_box(expected + 17, dp, 0, source, sp, 0, n);
        expect_device();
        /* Over the device, and back. */
        OK(hip->hipMemcpy2DAsync(device + 9000, sp, device + 17, dp, w, h, hipMemcpyDeviceToDevice,
                                 NULL));
        copy_box(expected + 9000, sp, 0, expected + 17, dp, 0, n);
        expect_device();
        unsigned char *back = calloc(1, BYTES), *wanted = calloc(1, BYTES);
        OK(hip->hipMemcpy2D(back, dp, device + 9000, sp, w, h, hipMemcpyDeviceToHost));
        copy_box(wanted, dp, 0, expected + 9000, sp, 0, n);
        MUST(memcmp(back, wanted, BYTES) == 0);
        free(back);
        free(wanted);
        OK(hip->hipMemset2D(device + 100, dp, (int)i, w, h));
        for (size_t y = 0; y < h; y++)
            memset(expected + 100 + y * dp, (int)i, w);
        expect_device();
    }
    return true;
}

static hip_Memcpy2D to_device_2d(size_t x, size_t y, size_t pitch, size_t width, size_t height) {
    hip_Memcpy2D p;
    memset(&p, 0, sizeof p);
    p.srcHost = source;
    p.srcPitch = pitch;
    p.dstDevice = device;
    p.dstXInBytes = x;
    p.dstY = y;
    p.dstPitch = pitch;
    p.WidthInBytes = width;
    p.Height = height;
    p.srcMemoryType = soft_abi < 6 ? (hipMemoryType)HIP5_MEMORY_TYPE_HOST : hipMemoryTypeHost;
    p.dstMemoryType = soft_abi < 6 ? (hipMemoryType)HIP5_MEMORY_TYPE_DEVICE : hipMemoryTypeDevice;
    return p;
}

static bool described_rectangles(void) {
    make_blocks();
    hip_Memcpy2D p = to_device_2d(3, 4, 100, 20, 10);
    OK(hip->hipMemcpyParam2D(&p));
    copy_box(expected + 403, 100, 0, source, 100, 0, (const size_t[]){ 20, 10, 1 });
    expect_device();
    p = to_device_2d(50, 20, 100, 50, 100);
    p.srcXInBytes = 5;
    p.srcY = 6;
    OK(hip->hipMemcpyParam2DAsync(&p, NULL));
    copy_box(expected + 2050, 100, 0, source + 605, 100, 0, (const size_t[]){ 50, 100, 1 });
    expect_device();
    return true;
}

static void rectangles_are_copied_and_filled(void **state) {
    (void)state;
    soft_expect(rectangles, NULL);
    soft_expect(rectangles, "GRETA_SOFT_SCHEDULE=lazy GRETA_SOFT_THREADS=3");
    soft_expect(described_rectangles, NULL);
}

#define H2D hipMemcpyHostToDevice
#define D2H hipMemcpyDeviceToHost

static bool wrong_rectangles(void) {
    make_blocks();
    unsigned char *d = device, *s = source;
    FAILS(hipErrorInvalidPitchValue, hip->hipMemcpy2D(d, 9, s, 10, 10, 2, H2D));
    FAILS(hipErrorInvalidPitchValue, hip->hipMemcpy2D(d, 10, s, 9, 10, 2, H2D));
    FAILS(hipErrorInvalidPitchValue, hip->hipMemcpy2D(d, 9, s, 10, 10, 1, H2D));
    FAILS(hipErrorInvalidPitchValue, hip->hipMemcpy2DAsync(d, 0, s, 10, 10, 2, H2D, NULL));
    OK(hip->hipMemcpy2D(d, 10, s, 10, 0, 10, H2D));
    OK(hip->hipMemcpy2D(d, 10, s, 10, 10, 0, H2D));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(d, 100, s, 100, 100, 201, H2D));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(d, 101, s, 100, 100, 200, H2D));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(d + 1, 100, s, 100, 100, 200, H2D));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(found, 100, d, 100, 100, 201, D2H));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(NULL, 10, s, 10, 10, 2, H2D));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(d, 10, NULL, 10, 10, 2, H2D));
    FAILS(hipErrorInvalidMemcpyDirection, hip->hipMemcpy2D(d, 10, s, 10, 10, 2, (hipMemcpyKind)99));
    /* pitch * height is a little more than 2^64. */
    FAILS(hipErrorInvalidValue,
          hip->hipMemcpy2D(d, (size_t)1 << 32, s, 10, 10, ((size_t)1 << 32) + 1, H2D));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(d, 10, s, (size_t)1 << 63, 10, 3, H2D));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(d, SIZE_MAX, s, SIZE_MAX, 10, 2, H2D));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy2D(d, 10, s, 10, 10, SIZE_MAX, H2D));
    expect_device();
    return true;
}

static bool wrong_described_rectangles(void) {
    make_blocks();
    hip_Memcpy2D p;
    FAILS(hipErrorInvalidValue, hip->hipMemcpyParam2D(NULL));
    static const size_t bad[][5] = {
        /* x, y, pitch, width, height */
        { 0, 0, 100, 100, 201 },          { 1, 0, 100, 100, 200 },
        { 0, 1, 100, 100, 200 },          { 0, 200, 100, 1, 1 },
        { BYTES, 0, 100, 1, 1 },          { 0, (size_t)1 << 63, 2, 1, 1 },
        { SIZE_MAX, 0, 100, 1, 1 },       { 0, (size_t)1 << 32, (size_t)1 << 32, 1, 1 },
        { SIZE_MAX - 99, 1, 100, 10, 1 }, { (size_t)1 << 62, (size_t)3 << 62, 1, 1, 1 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p = to_device_2d(bad[i][0], bad[i][1], bad[i][2], bad[i][3], bad[i][4]);
        if (hip->hipMemcpyParam2D(&p) == hipSuccess)
            soft_fail(__FILE__, __LINE__, "case %zu was copied", i);
    }
    p = to_device_2d(0, 0, 5, 10, 2);
    FAILS(hipErrorInvalidPitchValue, hip->hipMemcpyParam2D(&p));
    p = to_device_2d(0, 0, 10, 10, 2);
    p.dstDevice = NULL;
    FAILS(hipErrorInvalidValue, hip->hipMemcpyParam2D(&p));
    expect_device();
    return true;
}

/* A position that leads out of one block and into another is no way to reach it. */
static bool into_another_block(void) {
    unsigned char *other, *low, *high;
    make_blocks();
    OK(hip->hipMalloc((void **)&other, BYTES));
    low = device < other ? device : other;
    high = device < other ? other : device;
    hip_Memcpy2D p = to_device_2d((size_t)(high - low), 0, 100, 10, 2);
    p.dstDevice = low;
    MUST(hip->hipMemcpyParam2D(&p) != hipSuccess);
    hipMemcpy3DParms q = { .srcPtr = { source, 100, 100, 10 },
                           .dstPtr = { low, 100, 100, 10 },
                           .dstPos = { 0, (size_t)(high - low) / 100 + 1, 0 },
                           .extent = { 10, 2, 1 },
                           .kind = H2D };
    MUST(hip->hipMemcpy3D(&q) != hipSuccess);
    expect_device();
    return true;
}

static void wrong_rectangles_are_refused(void **state) {
    (void)state;
    soft_expect(wrong_rectangles, NULL);
    soft_expect(wrong_described_rectangles, NULL);
    soft_expect(into_another_block, NULL);
}

/* ---- three dimensions ---------------------------------------------------------------------- */

static hipMemcpy3DParms box(size_t pitch, size_t rows, const size_t at[3], const size_t n[3]) {
    return (hipMemcpy3DParms){ .srcPtr = { source, pitch, pitch, rows },
                               .dstPtr = { device, pitch, pitch, rows },
                               .dstPos = { at[0], at[1], at[2] },
                               .extent = { n[0], n[1], n[2] },
                               .kind = hipMemcpyHostToDevice };
}

static bool boxes(void) {
    static const size_t cases[][8] = { /* pitch, rows, at, extent */
                                       { 20, 10, 0, 0, 0, 20, 10, 5 },
                                       { 20, 10, 3, 4, 5, 7, 2, 3 },
                                       { 50, 4, 0, 0, 0, 1, 4, 100 },
                                       { 64, 30, 1, 1, 1, 63, 29, 9 },
                                       { 5, 1, 2, 0, 7, 3, 1, 1 }
    };
    make_blocks();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t *c = cases[i], pitch = c[0], slice = c[0] * c[1];
        const size_t *at = c + 2, *n = c + 5;
        size_t start = at[2] * slice + at[1] * pitch + at[0];
        hipMemcpy3DParms p = box(pitch, c[1], at, n);
        p.srcPos = (hipPos){ at[0], 0, 0 };
        if (i % 2)
            OK(hip->hipMemcpy3D(&p));
        else
            OK(hip->hipMemcpy3DAsync(&p, NULL));
        copy_box(expected + start, pitch, slice, source + at[0], pitch, slice, n);
        expect_device();
        /* Back to the host. */
        unsigned char *back = calloc(1, BYTES), *wanted = calloc(1, BYTES);
        hipMemcpy3DParms q = { .srcPtr = p.dstPtr,
                               .srcPos = p.dstPos,
                               .dstPtr = { back, pitch, pitch, c[1] },
                               .extent = p.extent,
                               .kind = hipMemcpyDeviceToHost };
        OK(hip->hipMemcpy3D(&q));
        copy_box(wanted, pitch, slice, expected + start, pitch, slice, n);
        MUST(memcmp(back, wanted, BYTES) == 0);
        free(back);
        free(wanted);
        /* And a fill of the same shape. */
        hipPitchedPtr whole = { device, pitch, pitch, c[1] };
        OK(hip->hipMemset3D(whole, (int)i + 1, p.extent));
        for (size_t z = 0; z < n[2]; z++)
            for (size_t y = 0; y < n[1]; y++)
                memset(expected + z * slice + y * pitch, (int)i + 1, n[0]);
        expect_device();
    }
    return true;
}

static bool wrong_boxes(void) {
    make_blocks();
    static const size_t bad[][8] = {
        { 100, 10, 0, 0, 0, 100, 10, 21 }, /* one slice too many */
        { 100, 10, 0, 0, 1, 100, 10, 20 },
        { 100, 10, 0, 1, 0, 100, 10, 20 },
        { 100, 10, 1, 0, 0, 100, 10, 20 }, /* a row leaves its pitch */
        { 10, 10, 0, 0, 0, 11, 2, 2 },
        { 100, 10, 0, 0, SIZE_MAX, 1, 1, 1 },
        { 100, 10, 0, SIZE_MAX, 0, 1, 1, 1 },
        { 100, 10, SIZE_MAX, 0, 0, 1, 1, 1 },
        { 100, 10, 0, 0, 0, SIZE_MAX, 1, 1 },
        { 100, 10, 0, 0, 0, 1, SIZE_MAX, 1 },
        { 100, 10, 0, 0, 0, 1, 1, SIZE_MAX },
        { (size_t)1 << 32, (size_t)1 << 32, 0, 0, 0, 1, 1, 2 }, /* a slice of 2^64 bytes */
        { (size_t)1 << 32, (size_t)1 << 32, 0, 0, 1, 1, 1, 1 },
        { 2, 1, 0, (size_t)1 << 63, 0, 1, 1, 1 }, /* 2^64 bytes down: the first again */
        { 1, 2, 0, 0, (size_t)1 << 63, 1, 1, 1 },
        { 10, 0, 0, 0, 0, 10, 2, (size_t)1 << 62 }, /* all slices on top of each other */
        { 10, 2, 0, 0, 0, 10, 4, 3 },               /* more rows than a slice has */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const size_t *c = bad[i];
        hipMemcpy3DParms p = box(c[0], c[1], c + 2, c + 5);
        if (hip->hipMemcpy3D(&p) == hipSuccess)
            soft_fail(__FILE__, __LINE__, "case %zu was copied", i);
    }
    const size_t origin[3] = { 0, 0, 0 }, one[3] = { 1, 1, 1 };
    hipMemcpy3DParms p = box(10, 10, origin, one);
    p.dstPtr.xsize = 11;
    FAILS(hipErrorInvalidPitchValue, hip->hipMemcpy3D(&p));
    p = box(10, 10, origin, one);
    p.srcPtr.ptr = NULL;
    FAILS(hipErrorInvalidValue, hip->hipMemcpy3D(&p));
    FAILS(hipErrorInvalidValue, hip->hipMemcpy3D(NULL));
    p = box(10, 10, origin, one);
    p.kind = (hipMemcpyKind)99;
    FAILS(hipErrorInvalidMemcpyDirection, hip->hipMemcpy3D(&p));
    p = box(10, 10, origin, (const size_t[3]){ 1, 0, 1 });
    OK(hip->hipMemcpy3D(&p)); /* nothing to do */
    expect_device();
    return true;
}

static void boxes_are_copied_and_filled(void **state) {
    (void)state;
    soft_expect(boxes, NULL);
    soft_expect(boxes, "GRETA_SOFT_SCHEDULE=lazy");
}

static void wrong_boxes_are_refused(void **state) {
    (void)state;
    soft_expect(wrong_boxes, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rectangles_are_copied_and_filled),
        cmocka_unit_test(wrong_rectangles_are_refused),
        cmocka_unit_test(boxes_are_copied_and_filled),
        cmocka_unit_test(wrong_boxes_are_refused),
    };
    return cmocka_run_group_tests_name("soft_copy_rect", tests, soft_fixture_load, NULL);
}
