/* copy_api.c - hipMemcpy* and hipMemset* without arrays. */
#include "soft/runtime/copy.h"
#include "soft/runtime/error.h"
#include "soft/runtime/graph/capture.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/start.h"
#include "soft/runtime/stream.h"

/* Does the call wait for its operation? */
enum wait { WAIT_AS_SYNC, WAIT_AS_ASYNC };

static hipError_t copy(const char *what, const struct soft_copy *c, hipMemcpyKind kind,
                       hipStream_t stream, enum wait wait) {
    return soft_copy_queue(what, c, kind, stream, wait == WAIT_AS_ASYNC);
}

static struct soft_copy plain(const void *dst, const void *src, size_t bytes) {
    return (struct soft_copy){ .dst = (uint64_t)(uintptr_t)dst,
                               .src = (uint64_t)(uintptr_t)src,
                               .width = bytes,
                               .height = 1,
                               .depth = 1 };
}

static struct soft_copy rows(const void *dst, size_t dpitch, const void *src, size_t spitch,
                             size_t width, size_t height) {
    struct soft_copy c = plain(dst, src, width);
    c.height = height;
    c.dst_pitch = dpitch;
    c.src_pitch = spitch;
    return c;
}

#define OWN(stream) ((stream) ? (stream) : hipStreamPerThread) /* the _spt variants' default */

/* ---- one dimension -------------------------------------------------------------------------- */

hipError_t soft_hipMemcpy(void *dst, const void *src, size_t bytes, hipMemcpyKind kind) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpy", &c, kind, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpy_spt(void *dst, const void *src, size_t bytes, hipMemcpyKind kind) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpy", &c, kind, hipStreamPerThread, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpyWithStream(void *dst, const void *src, size_t bytes, hipMemcpyKind kind,
                                    hipStream_t stream) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpyWithStream", &c, kind, stream, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpyAsync(void *dst, const void *src, size_t bytes, hipMemcpyKind kind,
                               hipStream_t stream) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpyAsync", &c, kind, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemcpyAsync_spt(void *dst, const void *src, size_t bytes, hipMemcpyKind kind,
                                   hipStream_t stream) {
    return soft_hipMemcpyAsync(dst, src, bytes, kind, OWN(stream));
}

hipError_t soft_hipMemcpyHtoD(hipDeviceptr_t dst, void *src, size_t bytes) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpyHtoD", &c, hipMemcpyHostToDevice, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t bytes) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpyDtoH", &c, hipMemcpyDeviceToHost, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t bytes) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpyDtoD", &c, hipMemcpyDeviceToDevice, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpyHtoDAsync(hipDeviceptr_t dst, void *src, size_t bytes,
                                   hipStream_t stream) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpyHtoDAsync", &c, hipMemcpyHostToDevice, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t bytes,
                                   hipStream_t stream) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpyDtoHAsync", &c, hipMemcpyDeviceToHost, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t bytes,
                                   hipStream_t stream) {
    struct soft_copy c = plain(dst, src, bytes);
    return copy("hipMemcpyDtoDAsync", &c, hipMemcpyDeviceToDevice, stream, WAIT_AS_ASYNC);
}

static hipError_t check_peers(int dst, int src) {
    hipError_t r = soft_check_device(dst);
    return r == hipSuccess ? soft_check_device(src) : r;
}

/* In order with all work of both devices. */
hipError_t soft_hipMemcpyPeer(void *dst, int dst_device, const void *src, int src_device,
                              size_t bytes) {
    struct soft_copy c = plain(dst, src, bytes);
    hipError_t r = check_peers(dst_device, src_device);
    if (r == hipSuccess)
        r = soft_capture_refuse_unsafe();
    if (r != hipSuccess)
        return r;
    soft_schedule_drain(dst_device);
    soft_schedule_drain(src_device);
    r = copy("hipMemcpyPeer", &c, hipMemcpyDeviceToDevice, NULL, WAIT_AS_SYNC);
    if (r != hipSuccess)
        return r;
    soft_schedule_drain(soft_current_device());
    return soft_error_observe();
}

hipError_t soft_hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                   size_t bytes, hipStream_t stream) {
    struct soft_copy c = plain(dst, src, bytes);
    hipError_t r = check_peers(dst_device, src_device);
    return r == hipSuccess
               ? copy("hipMemcpyPeerAsync", &c, hipMemcpyDeviceToDevice, stream, WAIT_AS_ASYNC)
               : r;
}

/* ---- two and three dimensions --------------------------------------------------------------- */

/* Where a position in a pitched block lies. False if that wraps, or leaves the block of base. */
static bool locate(const void *base, size_t x, size_t y, size_t pitch, size_t z, size_t slice,
                   uint64_t *at) {
    uint64_t start = (uint64_t)(uintptr_t)base;
    size_t rows, slices, offset;
    struct soft_block b;
    if (__builtin_mul_overflow(y, pitch, &rows) || __builtin_mul_overflow(z, slice, &slices) ||
        __builtin_add_overflow(rows, slices, &offset) ||
        __builtin_add_overflow(offset, x, &offset) || __builtin_add_overflow(start, offset, at))
        return false;
    return !soft_memory_find(start, &b) || offset < b.size - (start - b.addr);
}

static hipError_t copy_2d(const char *what, const struct soft_copy *c, hipMemcpyKind kind,
                          hipStream_t stream, enum wait wait) {
    if (c->width && c->height && (c->width > c->dst_pitch || c->width > c->src_pitch))
        return hipErrorInvalidPitchValue;
    return copy(what, c, kind, stream, wait);
}

hipError_t soft_hipMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, hipMemcpyKind kind) {
    struct soft_copy c = rows(dst, dpitch, src, spitch, width, height);
    return copy_2d("hipMemcpy2D", &c, kind, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpy2D_spt(void *dst, size_t dpitch, const void *src, size_t spitch,
                                size_t width, size_t height, hipMemcpyKind kind) {
    struct soft_copy c = rows(dst, dpitch, src, spitch, width, height);
    return copy_2d("hipMemcpy2D", &c, kind, hipStreamPerThread, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                                 size_t width, size_t height, hipMemcpyKind kind,
                                 hipStream_t stream) {
    struct soft_copy c = rows(dst, dpitch, src, spitch, width, height);
    return copy_2d("hipMemcpy2DAsync", &c, kind, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemcpy2DAsync_spt(void *dst, size_t dpitch, const void *src, size_t spitch,
                                     size_t width, size_t height, hipMemcpyKind kind,
                                     hipStream_t stream) {
    return soft_hipMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind, OWN(stream));
}

static const char *base_of(int type, const void *host, hipDeviceptr_t device) {
    bool is_host =
        soft_hip_major() < 6 ? type == (int)HIP5_MEMORY_TYPE_HOST : type == (int)hipMemoryTypeHost;
    return is_host ? host : device;
}

/* The type decides which fields count: programs leave the others as they are. */
static bool is_array(int type) {
    return type == (soft_hip_major() < 6 ? (int)HIP5_MEMORY_TYPE_ARRAY : (int)hipMemoryTypeArray);
}

static hipError_t copy_param_2d(const char *what, const hip_Memcpy2D *p, hipStream_t stream,
                                enum wait wait) {
    if (!p)
        return hipErrorInvalidValue;
    if (is_array((int)p->srcMemoryType) || is_array((int)p->dstMemoryType))
        return soft_copy_param_2d(what, p, stream, wait == WAIT_AS_ASYNC);
    const char *src = base_of((int)p->srcMemoryType, p->srcHost, p->srcDevice);
    const char *dst = base_of((int)p->dstMemoryType, p->dstHost, p->dstDevice);
    struct soft_copy c = rows(dst, p->dstPitch, src, p->srcPitch, p->WidthInBytes, p->Height);
    if (!src || !dst || !locate(dst, p->dstXInBytes, p->dstY, p->dstPitch, 0, 0, &c.dst) ||
        !locate(src, p->srcXInBytes, p->srcY, p->srcPitch, 0, 0, &c.src))
        return hipErrorInvalidValue;
    return copy(what, &c, hipMemcpyDefault, stream, wait);
}

hipError_t soft_hipMemcpyParam2D(const hip_Memcpy2D *p) {
    return copy_param_2d("hipMemcpyParam2D", p, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipDrvMemcpy2DUnaligned(const hip_Memcpy2D *p) {
    return copy_param_2d("hipDrvMemcpy2DUnaligned", p, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpyParam2DAsync(const hip_Memcpy2D *p, hipStream_t stream) {
    return copy_param_2d("hipMemcpyParam2DAsync", p, stream, WAIT_AS_ASYNC);
}

static bool fits_row(size_t x, size_t width, size_t pitch) {
    return width <= pitch && x <= pitch - width;
}

hipError_t soft_copy_from_3d(const hipMemcpy3DParms *p, struct soft_copy *out) {
    if (!p)
        return hipErrorInvalidValue;
    if (p->srcArray || p->dstArray)
        return soft_copy_from_3d_arrays(p, out);
    const hipPitchedPtr *src = &p->srcPtr, *dst = &p->dstPtr;
    if (!src->ptr || !dst->ptr)
        return hipErrorInvalidValue;
    if (src->pitch < src->xsize || dst->pitch < dst->xsize)
        return hipErrorInvalidPitchValue;
    *out = rows(dst->ptr, dst->pitch, src->ptr, src->pitch, p->extent.width, p->extent.height);
    out->depth = p->extent.depth;
    if (!fits_row(p->srcPos.x, out->width, src->pitch) ||
        !fits_row(p->dstPos.x, out->width, dst->pitch) ||
        __builtin_mul_overflow(src->pitch, src->ysize, &out->src_slice) ||
        __builtin_mul_overflow(dst->pitch, dst->ysize, &out->dst_slice) ||
        !locate(src->ptr, p->srcPos.x, p->srcPos.y, src->pitch, p->srcPos.z, out->src_slice,
                &out->src) ||
        !locate(dst->ptr, p->dstPos.x, p->dstPos.y, dst->pitch, p->dstPos.z, out->dst_slice,
                &out->dst))
        return hipErrorInvalidValue;
    return hipSuccess;
}

static hipError_t copy_3d(const char *what, const hipMemcpy3DParms *p, hipStream_t stream,
                          enum wait wait) {
    struct soft_copy c;
    hipError_t r = soft_copy_from_3d(p, &c);
    return r == hipSuccess ? copy(what, &c, p->kind, stream, wait) : r;
}

hipError_t soft_hipMemcpy3D(const hipMemcpy3DParms *p) {
    return copy_3d("hipMemcpy3D", p, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpy3D_spt(const hipMemcpy3DParms *p) {
    return copy_3d("hipMemcpy3D", p, hipStreamPerThread, WAIT_AS_SYNC);
}

hipError_t soft_hipMemcpy3DAsync(const hipMemcpy3DParms *p, hipStream_t stream) {
    return copy_3d("hipMemcpy3DAsync", p, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemcpy3DAsync_spt(const hipMemcpy3DParms *p, hipStream_t stream) {
    return soft_hipMemcpy3DAsync(p, OWN(stream));
}

/* ---- fills ---------------------------------------------------------------------------------- */

static hipError_t fill(const char *what, const struct soft_fill *f, hipStream_t stream,
                       enum wait wait) {
    struct soft_stream *st;
    struct soft_op *op;
    hipError_t r = soft_stream_resolve(stream, &st);
    if (r != hipSuccess || !f->width || !f->height || !f->depth)
        return r;
    r = soft_op_fill(&op, what, f);
    return r == hipSuccess ? soft_copy_finish(st, op, wait == WAIT_AS_ASYNC) : r;
}

static struct soft_fill fill_line(const void *dst, uint32_t value, uint32_t element, size_t count) {
    return (struct soft_fill){ .dst = (uint64_t)(uintptr_t)dst,
                               .width = count,
                               .height = 1,
                               .depth = 1,
                               .value = value,
                               .element = element };
}

static struct soft_fill fill_rect(void *dst, size_t pitch, int value, size_t width, size_t height) {
    struct soft_fill f = fill_line(dst, (uint32_t)value, 1, width);
    f.height = height;
    f.pitch = pitch;
    return f;
}

static struct soft_fill fill_box(hipPitchedPtr to, int value, hipExtent extent) {
    struct soft_fill f = fill_rect(to.ptr, to.pitch, value, extent.width, extent.height);
    f.depth = extent.depth;
    if (__builtin_mul_overflow(to.pitch, to.ysize, &f.slice))
        f.slice = 0; /* refused where there are more slices than one */
    return f;
}

hipError_t soft_hipMemset(void *dst, int value, size_t bytes) {
    struct soft_fill f = fill_line(dst, (uint32_t)value, 1, bytes);
    return fill("hipMemset", &f, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemset_spt(void *dst, int value, size_t bytes) {
    struct soft_fill f = fill_line(dst, (uint32_t)value, 1, bytes);
    return fill("hipMemset", &f, hipStreamPerThread, WAIT_AS_SYNC);
}

hipError_t soft_hipMemsetAsync(void *dst, int value, size_t bytes, hipStream_t stream) {
    struct soft_fill f = fill_line(dst, (uint32_t)value, 1, bytes);
    return fill("hipMemsetAsync", &f, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemsetAsync_spt(void *dst, int value, size_t bytes, hipStream_t stream) {
    return soft_hipMemsetAsync(dst, value, bytes, OWN(stream));
}

hipError_t soft_hipMemsetD8(hipDeviceptr_t dst, unsigned char value, size_t count) {
    struct soft_fill f = fill_line(dst, value, 1, count);
    return fill("hipMemsetD8", &f, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemsetD8Async(hipDeviceptr_t dst, unsigned char value, size_t count,
                                 hipStream_t stream) {
    struct soft_fill f = fill_line(dst, value, 1, count);
    return fill("hipMemsetD8Async", &f, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemsetD16(hipDeviceptr_t dst, unsigned short value, size_t count) {
    struct soft_fill f = fill_line(dst, value, 2, count);
    return fill("hipMemsetD16", &f, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemsetD16Async(hipDeviceptr_t dst, unsigned short value, size_t count,
                                  hipStream_t stream) {
    struct soft_fill f = fill_line(dst, value, 2, count);
    return fill("hipMemsetD16Async", &f, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemsetD32(hipDeviceptr_t dst, int value, size_t count) {
    struct soft_fill f = fill_line(dst, (uint32_t)value, 4, count);
    return fill("hipMemsetD32", &f, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream) {
    struct soft_fill f = fill_line(dst, (uint32_t)value, 4, count);
    return fill("hipMemsetD32Async", &f, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height) {
    struct soft_fill f = fill_rect(dst, pitch, value, width, height);
    return fill("hipMemset2D", &f, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemset2D_spt(void *dst, size_t pitch, int value, size_t width, size_t height) {
    struct soft_fill f = fill_rect(dst, pitch, value, width, height);
    return fill("hipMemset2D", &f, hipStreamPerThread, WAIT_AS_SYNC);
}

hipError_t soft_hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height,
                                 hipStream_t stream) {
    struct soft_fill f = fill_rect(dst, pitch, value, width, height);
    return fill("hipMemset2DAsync", &f, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemset2DAsync_spt(void *dst, size_t pitch, int value, size_t width,
                                     size_t height, hipStream_t stream) {
    return soft_hipMemset2DAsync(dst, pitch, value, width, height, OWN(stream));
}

hipError_t soft_hipMemset3D(hipPitchedPtr to, int value, hipExtent extent) {
    struct soft_fill f = fill_box(to, value, extent);
    return fill("hipMemset3D", &f, NULL, WAIT_AS_SYNC);
}

hipError_t soft_hipMemset3D_spt(hipPitchedPtr to, int value, hipExtent extent) {
    struct soft_fill f = fill_box(to, value, extent);
    return fill("hipMemset3D", &f, hipStreamPerThread, WAIT_AS_SYNC);
}

hipError_t soft_hipMemset3DAsync(hipPitchedPtr to, int value, hipExtent extent,
                                 hipStream_t stream) {
    struct soft_fill f = fill_box(to, value, extent);
    return fill("hipMemset3DAsync", &f, stream, WAIT_AS_ASYNC);
}

hipError_t soft_hipMemset3DAsync_spt(hipPitchedPtr to, int value, hipExtent extent,
                                     hipStream_t stream) {
    return soft_hipMemset3DAsync(to, value, extent, OWN(stream));
}
