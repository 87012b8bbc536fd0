/* Arrays: what can be made, what they say of themselves, copies in and out, and what is refused. */
#include "test.h"

#include <string.h>

#include "support/soft_fixture.h"

enum { W = 7, H = 5, D = 3 };

static const hipChannelFormatDesc floats = { .x = 32, .f = hipChannelFormatKindFloat };

static bool tells_its_shape(void) {
    hipArray_t a;
    hipChannelFormatDesc d;
    HIP_ARRAY3D_DESCRIPTOR driver;
    OK(hip->hipMalloc3DArray(&a, &floats, (hipExtent){ W, H, D }, hipArrayDefault));
    OK(hip->hipGetChannelDesc(&d, a));
    MUST(d.x == 32 && d.y == 0 && d.f == hipChannelFormatKindFloat);
    OK(hip->hipArray3DGetDescriptor(&driver, a));
    MUST(driver.Width == W && driver.Height == H && driver.Depth == D);
    MUST(driver.Format == HIP_AD_FORMAT_FLOAT && driver.NumChannels == 1);
    OK(hip->hipFreeArray(a));
    FAILS(hipErrorContextIsDestroyed, hip->hipFreeArray(a));
    FAILS(hipErrorInvalidValue, hip->hipFreeArray(NULL));
    return true;
}

static void an_array_tells_its_shape_until_it_is_freed(void **state) {
    (void)state;
    soft_expect(tells_its_shape, NULL);
}

static bool refuses_bad_shapes(void) {
    hipArray_t a;
    hipChannelFormatDesc three = { 8, 8, 8, 0, hipChannelFormatKindUnsigned };
    hipChannelFormatDesc mixed = { 8, 16, 0, 0, hipChannelFormatKindUnsigned };
    FAILS(hipErrorInvalidValue, hip->hipMallocArray(NULL, &floats, W, H, 0));
    FAILS(hipErrorInvalidValue, hip->hipMallocArray(&a, NULL, W, H, 0));
    FAILS(hipErrorInvalidValue, hip->hipMallocArray(&a, &floats, 0, H, 0));
    FAILS(hipErrorInvalidValue, hip->hipMallocArray(&a, &floats, 16385, H, 0));
    FAILS(hipErrorInvalidValue, hip->hipMallocArray(&a, &three, W, H, 0));
    FAILS(hipErrorInvalidValue, hip->hipMallocArray(&a, &mixed, W, H, 0));
    return true;
}

static void shapes_that_no_image_has_are_refused(void **state) {
    (void)state;
    soft_expect(refuses_bad_shapes, NULL);
}

static bool has_no_images(void) {
    hipArray_t a;
    FAILS(hipErrorNotSupported, hip->hipMallocArray(&a, &floats, W, H, 0));
    return true;
}

static void a_gpu_without_images_has_no_arrays(void **state) {
    (void)state;
    soft_expect(has_no_images, "GRETA_SOFT_ARCH=gfx942");
}

static bool copies_rectangles(void) {
    hipArray_t a, b;
    float in[H][W], out[H][W], part[2][3];
    for (int i = 0; i < W * H; i++)
        in[i / W][i % W] = (float)i;
    OK(hip->hipMallocArray(&a, &floats, W, H, 0));
    OK(hip->hipMallocArray(&b, &floats, W, H, 0));
    OK(hip->hipMemcpy2DToArray(a, 0, 0, in, sizeof *in, sizeof *in, H, hipMemcpyHostToDevice));
    OK(hip->hipMemcpy2DFromArray(part, sizeof *part, a, 2 * sizeof(float), 1, sizeof *part, 2,
                                 hipMemcpyDeviceToHost));
    MUST(part[0][0] == in[1][2] && part[1][2] == in[2][4]);
    OK(hip->hipMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, sizeof *in, H, hipMemcpyDeviceToDevice));
    memset(out, 0, sizeof out);
    OK(hip->hipMemcpyFromArray(out, b, 0, 0, sizeof out, hipMemcpyDeviceToHost));
    MUST(!memcmp(in, out, sizeof in));
    OK(hip->hipMemcpyAtoH(out, b, sizeof *in, sizeof *in));
    MUST(!memcmp(in[1], out[0], sizeof *in));
    FAILS(hipErrorInvalidValue,
          hip->hipMemcpy2DToArray(a, 4, 0, in, sizeof *in, sizeof *in, H, hipMemcpyHostToDevice));
    FAILS(hipErrorInvalidValue,
          hip->hipMemcpy2DToArray(a, 0, 1, in, sizeof *in, sizeof *in, H, hipMemcpyHostToDevice));
    FAILS(hipErrorInvalidValue,
          hip->hipMemcpyFromArray(out, b, 0, 0, sizeof out + 1, hipMemcpyDeviceToHost));
    FAILS(hipErrorInvalidHandle, hip->hipMemcpy2DFromArray(part, sizeof *part, NULL, 0, 0,
                                                           sizeof *part, 2, hipMemcpyDeviceToHost));
    FAILS(hipErrorInvalidHandle, hip->hipMemcpy2DToArray(NULL, 0, 0, in, sizeof *in, sizeof *in, H,
                                                         hipMemcpyHostToDevice));
    FAILS(hipErrorInvalidValue, hip->hipFreeMipmappedArray(NULL));
    hipChannelFormatDesc told;
    FAILS(hipErrorInvalidHandle, hip->hipGetChannelDesc(&told, NULL));
    OK(hip->hipFreeArray(a));
    OK(hip->hipFreeArray(b));
    return true;
}

static void rectangles_are_copied_and_those_that_leave_are_refused(void **state) {
    (void)state;
    soft_expect(copies_rectangles, NULL);
}

static bool copies_boxes(void) {
    hipArray_t a;
    float in[D][H][W], out[2][2][3];
    for (int i = 0; i < W * H * D; i++)
        ((float *)in)[i] = (float)i;
    OK(hip->hipMalloc3DArray(&a, &floats, (hipExtent){ W, H, D }, 0));
    hipMemcpy3DParms p = { .srcPtr = { in, sizeof in[0][0], W, H },
                           .dstArray = a,
                           .extent = { W, H, D },
                           .kind = hipMemcpyHostToDevice };
    OK(hip->hipMemcpy3D(&p));
    p = (hipMemcpy3DParms){ .srcArray = a,
                            .srcPos = { 4, 3, 1 },
                            .dstPtr = { out, sizeof out[0][0], 3, 2 },
                            .extent = { 3, 2, 2 },
                            .kind = hipMemcpyDeviceToHost };
    OK(hip->hipMemcpy3D(&p));
    MUST(out[0][0][0] == in[1][3][4] && out[1][1][2] == in[2][4][6]);
    p.srcPos.x = 5; /* one element too far */
    FAILS(hipErrorInvalidValue, hip->hipMemcpy3D(&p));
    HIP_MEMCPY3D d = { .srcMemoryType = hipMemoryTypeArray,
                       .srcArray = a,
                       .srcY = 1,
                       .dstMemoryType = hipMemoryTypeHost,
                       .dstHost = out,
                       .WidthInBytes = sizeof out[0][0],
                       .Height = 2,
                       .Depth = 2 };
    OK(hip->hipDrvMemcpy3D(&d));
    MUST(out[1][0][1] == in[1][1][1]);
    d.dstPitch = d.WidthInBytes - 1;
    FAILS(hipErrorInvalidValue, hip->hipDrvMemcpy3D(&d));
    p.srcPos.x = 4;
    p.srcPtr = p.dstPtr; /* an array and a pointer */
    FAILS(hipErrorInvalidValue, hip->hipMemcpy3D(&p));
    return hip->hipFreeArray(a) == hipSuccess;
}

static void boxes_are_copied_by_elements_of_the_array(void **state) {
    (void)state;
    soft_expect(copies_boxes, NULL);
}

static bool refuses_bad_textures(void) {
    hipArray_t a;
    hipTextureObject_t t;
    hipResourceDesc r = { .resType = hipResourceTypeArray };
    hipTextureDesc d = { .filterMode = hipFilterModePoint };
    hipChannelFormatDesc integers = { .x = 32, .f = hipChannelFormatKindSigned };
    OK(hip->hipMallocArray(&a, &integers, W, H, 0));
    r.res.array.array = a;
    d.filterMode = hipFilterModeLinear; /* of integers */
    FAILS(hipErrorInvalidValue, hip->hipCreateTextureObject(&t, &r, &d, NULL));
    d.filterMode = hipFilterModePoint;
    FAILS(hipErrorInvalidValue, hip->hipCreateTextureObject(NULL, &r, &d, NULL));
    OK(hip->hipCreateTextureObject(&t, &r, &d, NULL));
    memset(&r, 0, sizeof r);
    OK(hip->hipGetTextureObjectResourceDesc(&r, t));
    MUST(r.resType == hipResourceTypeArray && r.res.array.array == a);
    OK(hip->hipDestroyTextureObject(t));
    FAILS(hipErrorInvalidValue, hip->hipDestroyTextureObject(t));
    OK(hip->hipFreeArray(a));
    FAILS(hipErrorInvalidValue, hip->hipCreateTextureObject(&t, &r, &d, NULL));
    return true;
}

static void textures_of_what_is_no_image_are_refused(void **state) {
    (void)state;
    soft_expect(refuses_bad_textures, NULL);
}

/* The driver's names for what a texture is made of. */
static bool tells_driver_descriptions(void) {
    hipArray_t a;
    hipTextureObject_t t;
    HIP_RESOURCE_DESC r, told;
    HIP_TEXTURE_DESC d, told_texture;
    HIP_RESOURCE_VIEW_DESC v, told_view;
    memset(&r, 0, sizeof r);
    memset(&d, 0, sizeof d);
    memset(&v, 0, sizeof v);
    OK(hip->hipMallocArray(&a, &floats, W, H, 0));
    r.resType = HIP_RESOURCE_TYPE_ARRAY;
    r.res.array.hArray = a;
    d.filterMode = HIP_TR_FILTER_MODE_LINEAR;
    d.addressMode[1] = HIP_TR_ADDRESS_MODE_CLAMP;
    d.flags = HIP_TRSF_NORMALIZED_COORDINATES;
    v.format = HIP_RES_VIEW_FORMAT_UINT_1X32; /* not that of the array */
    v.width = W;
    FAILS(hipErrorNotSupported, hip->hipTexObjectCreate(&t, &r, &d, &v));
    v.format = HIP_RES_VIEW_FORMAT_FLOAT_1X32;
    OK(hip->hipTexObjectCreate(&t, &r, &d, &v));
    OK(hip->hipTexObjectGetResourceDesc(&told, t));
    MUST(told.resType == HIP_RESOURCE_TYPE_ARRAY && told.res.array.hArray == a);
    OK(hip->hipTexObjectGetTextureDesc(&told_texture, t));
    MUST(told_texture.filterMode == d.filterMode && told_texture.flags == d.flags);
    MUST(told_texture.addressMode[1] == HIP_TR_ADDRESS_MODE_CLAMP);
    OK(hip->hipTexObjectGetResourceViewDesc(&told_view, t));
    MUST(told_view.format == v.format && told_view.width == W);
    FAILS(hipErrorInvalidValue, hip->hipTexObjectGetResourceDesc(NULL, t));
    FAILS(hipErrorInvalidValue, hip->hipTexObjectGetTextureDesc(&told_texture, NULL));
    OK(hip->hipTexObjectDestroy(t));
    FAILS(hipErrorInvalidValue, hip->hipTexObjectGetResourceViewDesc(&told_view, t));
    return true;
}

static bool tells_driver_description_of_memory(void) {
    hipTextureObject_t t;
    HIP_RESOURCE_DESC r, told;
    HIP_TEXTURE_DESC d;
    int *p = soft_device_ints(64);
    memset(&r, 0, sizeof r);
    memset(&d, 0, sizeof d);
    r.resType = HIP_RESOURCE_TYPE_LINEAR;
    r.res.linear.devPtr = p;
    r.res.linear.format = HIP_AD_FORMAT_UNSIGNED_INT8;
    r.res.linear.numChannels = 4;
    r.res.linear.sizeInBytes = 64;
    d.flags = HIP_TRSF_READ_AS_INTEGER;
    OK(hip->hipTexObjectCreate(&t, &r, &d, NULL));
    OK(hip->hipTexObjectGetResourceDesc(&told, t));
    MUST(told.res.linear.devPtr == p && told.res.linear.sizeInBytes == 64);
    MUST(told.res.linear.numChannels == 4);
    MUST(told.res.linear.format == HIP_AD_FORMAT_UNSIGNED_INT8);
    const HIP_RESOURCE_VIEW_DESC view = { .format = HIP_RES_VIEW_FORMAT_UINT_4X8, .width = 16 };
    FAILS(hipErrorInvalidValue, hip->hipTexObjectCreate(&t, &r, &d, &view)); /* no array */
    hipResourceDesc flat = { .resType = hipResourceTypePitch2D };
    hipTextureDesc plain = { .filterMode = hipFilterModePoint };
    flat.res.pitch2D.devPtr = p;
    flat.res.pitch2D.desc = floats;
    flat.res.pitch2D.width = 4;
    flat.res.pitch2D.pitchInBytes = 256;
    FAILS(hipErrorInvalidValue, hip->hipCreateTextureObject(&t, &flat, &plain, NULL));
    flat.res.pitch2D.height = 2;
    OK(hip->hipCreateTextureObject(&t, &flat, &plain, NULL));
    return true;
}

/* The device's textureAlignment and texturePitchAlignment are 256. */
static bool refuses_unaligned_textures(void) {
    hipTextureObject_t t;
    char *p;
    hipTextureDesc plain = { .filterMode = hipFilterModePoint };
    hipResourceDesc line = { .resType = hipResourceTypeLinear };
    hipResourceDesc flat = { .resType = hipResourceTypePitch2D };
    OK(hip->hipMalloc((void **)&p, 4096));
    line.res.linear.devPtr = p + 4;
    line.res.linear.desc = floats;
    line.res.linear.sizeInBytes = 64;
    FAILS(hipErrorInvalidValue, hip->hipCreateTextureObject(&t, &line, &plain, NULL));
    line.res.linear.devPtr = p + 256;
    OK(hip->hipCreateTextureObject(&t, &line, &plain, NULL));
    flat.res.pitch2D.devPtr = p;
    flat.res.pitch2D.desc = floats;
    flat.res.pitch2D.width = 4;
    flat.res.pitch2D.height = 2;
    flat.res.pitch2D.pitchInBytes = 128;
    FAILS(hipErrorInvalidValue, hip->hipCreateTextureObject(&t, &flat, &plain, NULL));
    flat.res.pitch2D.pitchInBytes = 512;
    OK(hip->hipCreateTextureObject(&t, &flat, &plain, NULL));
    return true;
}

static void textures_of_memory_are_aligned_as_the_device_says(void **state) {
    (void)state;
    soft_expect(refuses_unaligned_textures, NULL);
}

static void textures_tell_the_driver_what_they_are(void **state) {
    (void)state;
    soft_expect(tells_driver_descriptions, NULL);
    soft_expect(tells_driver_description_of_memory, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_tells_its_shape_until_it_is_freed),
        cmocka_unit_test(shapes_that_no_image_has_are_refused),
        cmocka_unit_test(a_gpu_without_images_has_no_arrays),
        cmocka_unit_test(rectangles_are_copied_and_those_that_leave_are_refused),
        cmocka_unit_test(boxes_are_copied_by_elements_of_the_array),
        cmocka_unit_test(textures_of_what_is_no_image_are_refused),
        cmocka_unit_test(textures_tell_the_driver_what_they_are),
        cmocka_unit_test(textures_of_memory_are_aligned_as_the_device_says),
    };
    return cmocka_run_group_tests_name("soft_array", tests, soft_fixture_load, NULL);
}
