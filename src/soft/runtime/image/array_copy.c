/* array_copy.c - copies from and to arrays: hipMemcpy2DToArray and relatives, hipMemcpy3D with
 * arrays, and the driver's copies.
 *
 * Every copy becomes one between rectangles in linear memory. */
#include "soft/runtime/copy.h"
#include "soft/runtime/image/array.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/start.h"

/* ---- a rectangle on one side ---- */

struct side {
    uint64_t at;
    size_t pitch, slice;
};

/* Bytes x, row y, slice z of an array, from where width bytes, height rows and depth slices have to
 * fit in. */
static bool in_array(hipArray_const_t handle, size_t x, size_t y, size_t z,
                     const struct soft_copy *c, struct side *out) {
    const struct soft_array *a = soft_array_of(handle);
    if (!a || x > a->pitch || c->width > a->pitch - x || y > a->rows || c->height > a->rows - y ||
        z > a->slices || c->depth > a->slices - z)
        return false;
    *out = (struct side){ a->addr + z * a->slice + y * a->pitch + x, a->pitch, a->slice };
    return true;
}

/* The same in linear memory; what it is part of is checked with the copy. */
static bool in_memory(const void *base, size_t x, size_t y, size_t z, size_t pitch, size_t height,
                      struct side *out) {
    size_t slice, rows, slices, offset;
    if (!base || __builtin_mul_overflow(pitch, height, &slice) ||
        __builtin_mul_overflow(y, pitch, &rows) || __builtin_mul_overflow(z, slice, &slices) ||
        __builtin_add_overflow(rows, slices, &offset) || __builtin_add_overflow(offset, x, &offset))
        return false;
    *out = (struct side){ (uint64_t)(uintptr_t)base + offset, pitch, slice };
    return true;
}

static void join(struct soft_copy *c, const struct side *dst, const struct side *src) {
    c->dst = dst->at;
    c->dst_pitch = dst->pitch;
    c->dst_slice = dst->slice;
    c->src = src->at;
    c->src_pitch = src->pitch;
    c->src_slice = src->slice;
}

/* ---- hipMemcpy2DToArray and relatives ---- */

static hipError_t to_array(const char *what, hipArray_t dst, size_t x, size_t y, const void *src,
                           size_t spitch, size_t width, size_t height, hipMemcpyKind kind,
                           hipStream_t stream, bool async) {
    struct soft_copy c = { .width = width, .height = height, .depth = 1 };
    struct side to, from;
    if (!src)
        return hipErrorInvalidValue;
    if (width > spitch && height > 1)
        return hipErrorInvalidPitchValue;
    if (!soft_array_of(dst))
        return hipErrorInvalidHandle;
    if (!in_array(dst, x, y, 0, &c, &to) || !in_memory(src, 0, 0, 0, spitch, height, &from))
        return hipErrorInvalidValue;
    join(&c, &to, &from);
    return soft_copy_queue(what, &c, kind, stream, async);
}

static hipError_t from_array(const char *what, void *dst, size_t dpitch, hipArray_const_t src,
                             size_t x, size_t y, size_t width, size_t height, hipMemcpyKind kind,
                             hipStream_t stream, bool async) {
    struct soft_copy c = { .width = width, .height = height, .depth = 1 };
    struct side to, from;
    if (!dst)
        return hipErrorInvalidValue;
    if (width > dpitch && height > 1)
        return hipErrorInvalidPitchValue;
    if (!soft_array_of(src))
        return hipErrorInvalidHandle;
    if (!in_array(src, x, y, 0, &c, &from) || !in_memory(dst, 0, 0, 0, dpitch, height, &to))
        return hipErrorInvalidValue;
    join(&c, &to, &from);
    return soft_copy_queue(what, &c, kind, stream, async);
}

hipError_t soft_hipMemcpy2DToArray(hipArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                   size_t spitch, size_t width, size_t height, hipMemcpyKind kind) {
    return to_array("hipMemcpy2DToArray", dst, wOffset, hOffset, src, spitch, width, height, kind,
                    NULL, false);
}

hipError_t soft_hipMemcpy2DToArray_spt(hipArray_t dst, size_t wOffset, size_t hOffset,
                                       const void *src, size_t spitch, size_t width, size_t height,
                                       hipMemcpyKind kind) {
    return to_array("hipMemcpy2DToArray", dst, wOffset, hOffset, src, spitch, width, height, kind,
                    hipStreamPerThread, false);
}

hipError_t soft_hipMemcpy2DToArrayAsync(hipArray_t dst, size_t wOffset, size_t hOffset,
                                        const void *src, size_t spitch, size_t width, size_t height,
                                        hipMemcpyKind kind, hipStream_t stream) {
    return to_array("hipMemcpy2DToArrayAsync", dst, wOffset, hOffset, src, spitch, width, height,
                    kind, stream, true);
}

hipError_t soft_hipMemcpy2DToArrayAsync_spt(hipArray_t dst, size_t wOffset, size_t hOffset,
                                            const void *src, size_t spitch, size_t width,
                                            size_t height, hipMemcpyKind kind, hipStream_t stream) {
    return soft_hipMemcpy2DToArrayAsync(dst, wOffset, hOffset, src, spitch, width, height, kind,
                                        stream ? stream : hipStreamPerThread);
}

hipError_t soft_hipMemcpy2DFromArray(void *dst, size_t dpitch, hipArray_const_t src, size_t wOffset,
                                     size_t hOffset, size_t width, size_t height,
                                     hipMemcpyKind kind) {
    return from_array("hipMemcpy2DFromArray", dst, dpitch, src, wOffset, hOffset, width, height,
                      kind, NULL, false);
}

hipError_t soft_hipMemcpy2DFromArray_spt(void *dst, size_t dpitch, hipArray_const_t src,
                                         size_t wOffset, size_t hOffset, size_t width,
                                         size_t height, hipMemcpyKind kind) {
    return from_array("hipMemcpy2DFromArray", dst, dpitch, src, wOffset, hOffset, width, height,
                      kind, hipStreamPerThread, false);
}

hipError_t soft_hipMemcpy2DFromArrayAsync(void *dst, size_t dpitch, hipArray_const_t src,
                                          size_t wOffset, size_t hOffset, size_t width,
                                          size_t height, hipMemcpyKind kind, hipStream_t stream) {
    return from_array("hipMemcpy2DFromArrayAsync", dst, dpitch, src, wOffset, hOffset, width,
                      height, kind, stream, true);
}

hipError_t soft_hipMemcpy2DFromArrayAsync_spt(void *dst, size_t dpitch, hipArray_const_t src,
                                              size_t wOffsetSrc, size_t hOffsetSrc, size_t width,
                                              size_t height, hipMemcpyKind kind,
                                              hipStream_t stream) {
    return soft_hipMemcpy2DFromArrayAsync(dst, dpitch, src, wOffsetSrc, hOffsetSrc, width, height,
                                          kind, stream ? stream : hipStreamPerThread);
}

hipError_t soft_hipMemcpy2DArrayToArray(hipArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                        hipArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                        size_t width, size_t height, hipMemcpyKind kind) {
    struct soft_copy c = { .width = width, .height = height, .depth = 1 };
    struct side to, from;
    if (!in_array(dst, wOffsetDst, hOffsetDst, 0, &c, &to) ||
        !in_array(src, wOffsetSrc, hOffsetSrc, 0, &c, &from))
        return hipErrorInvalidValue;
    join(&c, &to, &from);
    return soft_copy_queue("hipMemcpy2DArrayToArray", &c, kind, NULL, false);
}

/* ---- in one dimension: on through the rows ---- */

static bool in_bytes(hipArray_const_t handle, size_t offset, size_t count, uint64_t *at) {
    const struct soft_array *a = soft_array_of(handle);
    size_t size = a ? a->slice * a->slices : 0;
    if (!a || offset > size || count > size - offset)
        return false;
    *at = a->addr + offset;
    return true;
}

static hipError_t copy_bytes(const char *what, hipArray_const_t array, size_t offset,
                             const void *memory, size_t count, bool into, hipMemcpyKind kind,
                             hipStream_t stream, bool async) {
    struct soft_copy c = { .width = count, .height = 1, .depth = 1 };
    if (!memory || !in_bytes(array, offset, count, into ? &c.dst : &c.src))
        return hipErrorInvalidValue;
    *(into ? &c.src : &c.dst) = (uint64_t)(uintptr_t)memory;
    return soft_copy_queue(what, &c, kind, stream, async);
}

static size_t offset_of(hipArray_const_t array, size_t x, size_t y) {
    const struct soft_array *a = soft_array_of(array);
    size_t rows;
    return !a || __builtin_mul_overflow(y, a->pitch, &rows) || __builtin_add_overflow(rows, x, &x)
               ? SIZE_MAX
               : x;
}

hipError_t soft_hipMemcpyToArray(hipArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                 size_t count, hipMemcpyKind kind) {
    return copy_bytes("hipMemcpyToArray", dst, offset_of(dst, wOffset, hOffset), src, count, true,
                      kind, NULL, false);
}

hipError_t soft_hipMemcpyFromArray(void *dst, hipArray_const_t srcArray, size_t wOffset,
                                   size_t hOffset, size_t count, hipMemcpyKind kind) {
    return copy_bytes("hipMemcpyFromArray", srcArray, offset_of(srcArray, wOffset, hOffset), dst,
                      count, false, kind, NULL, false);
}

hipError_t soft_hipMemcpyFromArray_spt(void *dst, hipArray_const_t src, size_t wOffsetSrc,
                                       size_t hOffset, size_t count, hipMemcpyKind kind) {
    return copy_bytes("hipMemcpyFromArray", src, offset_of(src, wOffsetSrc, hOffset), dst, count,
                      false, kind, hipStreamPerThread, false);
}

hipError_t soft_hipMemcpyHtoA(hipArray_t dstArray, size_t dstOffset, const void *srcHost,
                              size_t count) {
    return copy_bytes("hipMemcpyHtoA", dstArray, dstOffset, srcHost, count, true,
                      hipMemcpyHostToDevice, NULL, false);
}

hipError_t soft_hipMemcpyAtoH(void *dst, hipArray_t srcArray, size_t srcOffset, size_t count) {
    return copy_bytes("hipMemcpyAtoH", srcArray, srcOffset, dst, count, false,
                      hipMemcpyDeviceToHost, NULL, false);
}

hipError_t soft_hipMemcpyHtoAAsync(hipArray_t dstArray, size_t dstOffset, const void *srcHost,
                                   size_t ByteCount, hipStream_t stream) {
    return copy_bytes("hipMemcpyHtoAAsync", dstArray, dstOffset, srcHost, ByteCount, true,
                      hipMemcpyHostToDevice, stream, true);
}

hipError_t soft_hipMemcpyAtoHAsync(void *dstHost, hipArray_t srcArray, size_t srcOffset,
                                   size_t ByteCount, hipStream_t stream) {
    return copy_bytes("hipMemcpyAtoHAsync", srcArray, srcOffset, dstHost, ByteCount, false,
                      hipMemcpyDeviceToHost, stream, true);
}

hipError_t soft_hipMemcpyDtoA(hipArray_t dstArray, size_t dstOffset, hipDeviceptr_t srcDevice,
                              size_t ByteCount) {
    return copy_bytes("hipMemcpyDtoA", dstArray, dstOffset, srcDevice, ByteCount, true,
                      hipMemcpyDeviceToDevice, NULL, false);
}

hipError_t soft_hipMemcpyAtoD(hipDeviceptr_t dstDevice, hipArray_t srcArray, size_t srcOffset,
                              size_t ByteCount) {
    return copy_bytes("hipMemcpyAtoD", srcArray, srcOffset, dstDevice, ByteCount, false,
                      hipMemcpyDeviceToDevice, NULL, false);
}

hipError_t soft_hipMemcpyAtoA(hipArray_t dstArray, size_t dstOffset, hipArray_t srcArray,
                              size_t srcOffset, size_t ByteCount) {
    struct soft_copy c = { .width = ByteCount, .height = 1, .depth = 1 };
    if (!in_bytes(dstArray, dstOffset, ByteCount, &c.dst) ||
        !in_bytes(srcArray, srcOffset, ByteCount, &c.src))
        return hipErrorInvalidValue;
    return soft_copy_queue("hipMemcpyAtoA", &c, hipMemcpyDeviceToDevice, NULL, false);
}

/* ---- hipMemcpy3D with arrays ---- */

/* Widths and positions are elements of the array that takes part, bytes without one; positions in
 * linear memory are bytes always. */
hipError_t soft_copy_from_3d_arrays(const hipMemcpy3DParms *p, struct soft_copy *out) {
    const struct soft_array *src = soft_array_of(p->srcArray), *dst = soft_array_of(p->dstArray);
    struct side from, to;
    if ((p->srcArray && !src) || (p->dstArray && !dst) ||
        (src && dst && src->element != dst->element))
        return hipErrorInvalidValue;
    if ((p->srcArray && p->srcPtr.ptr) || (p->dstArray && p->dstPtr.ptr)) /* one or the other */
        return hipErrorInvalidValue;
    size_t element = src ? src->element : dst->element;
    *out = (struct soft_copy){ .height = p->extent.height, .depth = p->extent.depth };
    size_t sx = p->srcPos.x, dx = p->dstPos.x;
    if (__builtin_mul_overflow(p->extent.width, element, &out->width) ||
        (src && __builtin_mul_overflow(sx, element, &sx)) ||
        (dst && __builtin_mul_overflow(dx, element, &dx)))
        return hipErrorInvalidValue;
    bool ok = src ? in_array(p->srcArray, sx, p->srcPos.y, p->srcPos.z, out, &from)
                  : in_memory(p->srcPtr.ptr, sx, p->srcPos.y, p->srcPos.z, p->srcPtr.pitch,
                              p->srcPtr.ysize, &from);
    ok = ok && (dst ? in_array(p->dstArray, dx, p->dstPos.y, p->dstPos.z, out, &to)
                    : in_memory(p->dstPtr.ptr, dx, p->dstPos.y, p->dstPos.z, p->dstPtr.pitch,
                                p->dstPtr.ysize, &to));
    if (!ok)
        return hipErrorInvalidValue;
    join(out, &to, &from);
    return hipSuccess;
}

/* ---- the driver's copies ---- */

/* Both layouts of HIP_MEMCPY3D as one. */

static void widen(const HIP_MEMCPY3D *given, HIP_MEMCPY3D *out) {
    if (soft_hip_major() >= 6) {
        *out = *given;
        return;
    }
    const HIP5_MEMCPY3D *old = (const HIP5_MEMCPY3D *)(const void *)given;
#define FIELD(name) out->name = old->name;
    FIELD(srcXInBytes)
    FIELD(srcY)
    FIELD(srcZ)
    FIELD(srcLOD)
    FIELD(srcMemoryType)
    FIELD(srcHost)
    FIELD(srcDevice)
    FIELD(srcArray)
    FIELD(srcPitch)
    FIELD(srcHeight)
    FIELD(dstXInBytes)
    FIELD(dstY)
    FIELD(dstZ)
    FIELD(dstLOD)
    FIELD(dstMemoryType)
    FIELD(dstHost)
    FIELD(dstDevice)
    FIELD(dstArray)
    FIELD(dstPitch)
    FIELD(dstHeight)
    FIELD(WidthInBytes)
    FIELD(Height)
    FIELD(Depth)
#undef FIELD
}

static bool is_type(int given, int in5, int in6) {
    return given == (soft_hip_major() < 6 ? in5 : in6);
}

static bool driver_side(int type, const void *host, hipDeviceptr_t device, hipArray_t array,
                        size_t x, size_t y, size_t z, size_t pitch, size_t height,
                        const struct soft_copy *c, struct side *out) {
    if (is_type(type, (int)HIP5_MEMORY_TYPE_ARRAY, (int)hipMemoryTypeArray))
        return in_array(array, x, y, z, c, out);
    const void *base = is_type(type, (int)HIP5_MEMORY_TYPE_HOST, (int)hipMemoryTypeHost)
                           ? host
                           : (const void *)device;
    if (!base || (pitch && (pitch < c->width || x > pitch - c->width)))
        return false;
    return in_memory(base, x, y, z, pitch ? pitch : c->width, height ? height : c->height, out);
}

static hipError_t driver_copy(const char *what, const HIP_MEMCPY3D *given, hipStream_t stream,
                              bool async) {
    HIP_MEMCPY3D p;
    struct side from, to;
    if (!given)
        return hipErrorInvalidValue;
    widen(given, &p);
    struct soft_copy c = { .width = p.WidthInBytes, .height = p.Height, .depth = p.Depth };
    if (!driver_side((int)p.srcMemoryType, p.srcHost, p.srcDevice, p.srcArray, p.srcXInBytes,
                     p.srcY, p.srcZ, p.srcPitch, p.srcHeight, &c, &from) ||
        !driver_side((int)p.dstMemoryType, p.dstHost, p.dstDevice, p.dstArray, p.dstXInBytes,
                     p.dstY, p.dstZ, p.dstPitch, p.dstHeight, &c, &to))
        return hipErrorInvalidValue;
    join(&c, &to, &from);
    return soft_copy_queue(what, &c, hipMemcpyDefault, stream, async);
}

hipError_t soft_hipDrvMemcpy3D(const HIP_MEMCPY3D *pCopy) {
    return driver_copy("hipDrvMemcpy3D", pCopy, NULL, false);
}

hipError_t soft_hipDrvMemcpy3DAsync(const HIP_MEMCPY3D *pCopy, hipStream_t stream) {
    return driver_copy("hipDrvMemcpy3DAsync", pCopy, stream, true);
}

hipError_t soft_copy_param_2d(const char *what, const hip_Memcpy2D *p, hipStream_t stream,
                              bool async) {
    struct side from, to;
    if (!p)
        return hipErrorInvalidValue;
    struct soft_copy c = { .width = p->WidthInBytes, .height = p->Height, .depth = 1 };
    if (!driver_side((int)p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes,
                     p->srcY, 0, p->srcPitch, 0, &c, &from) ||
        !driver_side((int)p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes,
                     p->dstY, 0, p->dstPitch, 0, &c, &to))
        return hipErrorInvalidValue;
    join(&c, &to, &from);
    return soft_copy_queue(what, &c, hipMemcpyDefault, stream, async);
}
