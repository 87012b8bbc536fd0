/* copy.c - copies and fills as operations: what is checked when one is queued, and how it runs.
 *
 * Checked at the call, as ROCm does: null pointers, the direction, and that a range which starts in
 * a known block ends in it. An address of the device's range that is in no block is refused; any
 * other unknown address is the program's own pageable memory. */
#include <stdatomic.h>
#include <string.h>

#include <greta/soft.h>

#include "soft/runtime/copy.h"
#include "soft/runtime/defined.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/pool.h"

/* Bytes from the first to the last of a rectangle; false if that wraps or slices overlap. */
static bool extent_of(size_t width, size_t height, size_t depth, size_t pitch, size_t slice,
                      size_t *extent) {
    size_t rows, slices;
    return !__builtin_mul_overflow(height - 1, pitch, &rows) &&
           !__builtin_add_overflow(rows, width, &rows) && (depth == 1 || slice >= rows) &&
           !__builtin_mul_overflow(depth - 1, slice, &slices) &&
           !__builtin_add_overflow(rows, slices, extent);
}

enum side { SIDE_PAGEABLE, SIDE_HOST, SIDE_MANAGED, SIDE_DEVICE };

static hipError_t classify(uint64_t addr, size_t extent, enum side *side) {
    struct soft_block b;
    *side = SIDE_PAGEABLE;
    if (!soft_memory_find(addr, &b))
        return soft_memory_is_device_address(addr) ? hipErrorInvalidValue : hipSuccess;
    *side = b.kind == SOFT_PINNED || b.kind == SOFT_REGISTERED ? SIDE_HOST
            : b.kind == SOFT_MANAGED                           ? SIDE_MANAGED
                                                               : SIDE_DEVICE;
    return extent <= b.size - (addr - b.addr) ? hipSuccess : hipErrorInvalidValue;
}

static bool is_kind(hipMemcpyKind kind) {
    return (unsigned)kind <= hipMemcpyDefault || kind == hipMemcpyDeviceToDeviceNoCU;
}

static hipError_t check_copy(const struct soft_copy *c, hipMemcpyKind kind, enum side *dst,
                             enum side *src) {
    size_t dst_extent, src_extent;
    if (!c->dst || !c->src)
        return hipErrorInvalidValue;
    if (!is_kind(kind))
        return hipErrorInvalidMemcpyDirection;
    if ((c->height > 1 || c->depth > 1) && (c->width > c->dst_pitch || c->width > c->src_pitch))
        return hipErrorInvalidPitchValue;
    if (!extent_of(c->width, c->height, c->depth, c->dst_pitch, c->dst_slice, &dst_extent) ||
        !extent_of(c->width, c->height, c->depth, c->src_pitch, c->src_slice, &src_extent))
        return hipErrorInvalidValue;
    hipError_t r = classify(c->dst, dst_extent, dst);
    if (r == hipSuccess)
        r = classify(c->src, src_extent, src);
    if (r == hipSuccess && *dst == SIDE_PAGEABLE && *src == SIDE_PAGEABLE &&
        kind != hipMemcpyHostToHost && kind != hipMemcpyDefault)
        r = hipErrorInvalidValue;
    return r;
}

/* Managed memory is the device's, unless the call says that it copies from or to the host. */
static bool is_device_only(enum side dst, enum side src, hipMemcpyKind kind) {
    bool names_host = kind == hipMemcpyHostToHost || kind == hipMemcpyHostToDevice ||
                      kind == hipMemcpyDeviceToHost;
    enum side least = names_host ? SIDE_DEVICE : SIDE_MANAGED;
    return dst >= least && src >= least;
}

hipError_t soft_op_copy(struct soft_op **out, const char *what, const struct soft_copy *copy,
                        hipMemcpyKind kind) {
    enum side dst, src;
    hipError_t r = check_copy(copy, kind, &dst, &src);
    if (r != hipSuccess)
        return r;
    struct soft_op *op = soft_op_new(SOFT_OP_COPY, what);
    if (!op)
        return hipErrorOutOfMemory;
    op->u.copy = *copy;
    op->pageable = dst == SIDE_PAGEABLE || src == SIDE_PAGEABLE;
    op->device_only = is_device_only(dst, src, kind);
    *out = op;
    return hipSuccess;
}

hipError_t soft_op_fill(struct soft_op **out, const char *what, const struct soft_fill *fill) {
    size_t width, extent;
    enum side side;
    if (!fill->dst || fill->dst % fill->element)
        return hipErrorInvalidValue;
    if (__builtin_mul_overflow(fill->width, fill->element, &width) ||
        !extent_of(width, fill->height, fill->depth, fill->pitch, fill->slice, &extent))
        return hipErrorInvalidValue;
    if ((fill->height > 1 || fill->depth > 1) && width > fill->pitch)
        return hipErrorInvalidPitchValue;
    hipError_t r = classify(fill->dst, extent, &side);
    if (r == hipSuccess && side == SIDE_PAGEABLE)
        r = hipErrorInvalidValue;
    if (r != hipSuccess)
        return r;
    struct soft_op *op = soft_op_new(SOFT_OP_FILL, what);
    if (!op)
        return hipErrorOutOfMemory;
    op->u.fill = *fill;
    /* A call that is not asynchronous waits for a fill of what the host reaches. */
    op->device_only = side == SIDE_DEVICE;
    *out = op;
    return hipSuccess;
}

/* ---- running: on all cores in pieces -------------------------------------------------------- */

/* Bytes of a plain copy or fill one core does at a time. Pieces end where huge pages of the target
 * end: two cores in a huge page that is not there yet would both clear one. */
static const size_t PIECE = 2 << 20;

static uint64_t pieces_of(uint64_t dst, size_t bytes) {
    return (dst % PIECE + bytes + PIECE - 1) / PIECE;
}

struct span {
    size_t at, bytes;
};

/* What pieces first to last - 1 of `bytes` bytes at dst cover. */
static struct span span_of(uint64_t dst, size_t bytes, uint64_t first, uint64_t last) {
    size_t lead = dst % PIECE, from = first * PIECE, to = last * PIECE;
    from = from > lead ? from - lead : 0;
    to = to - lead < bytes ? to - lead : bytes;
    return (struct span){ from, to - from };
}

static _Atomic(greta_soft_host_mover) host_mover;
static _Atomic(void *) mover_user;

void greta_soft_move_host_by(greta_soft_host_mover mover, void *user) {
    atomic_store(&mover_user, user);
    atomic_store(&host_mover, mover);
}

/* Lets the mover, if there is one, copy between `memory` and host memory that has no alias on the
 * device. False if it did not: the device then accesses that memory itself. */
static bool moved(uint64_t host, void *memory, size_t bytes, int writes) {
    greta_soft_host_mover mover = atomic_load_explicit(&host_mover, memory_order_acquire);
    return mover && !soft_memory_is_device_address(host) &&
           mover(host, memory, bytes, writes, atomic_load(&mover_user));
}

enum { BOUNCE = 4096 };

/* Copies between two ranges of host memory, one of which the mover may have to reach. What a
 * piece overwrites has been read before, also if the ranges overlap. */
static void move_by_bounce(uint64_t dst, uint64_t src, size_t bytes) {
    char piece[BOUNCE];
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < BOUNCE ? bytes - done : BOUNCE;
        size_t at = dst <= src ? done : bytes - done - n;
        if (!moved(src + at, piece, n, 0))
            memcpy(piece, soft_reach(src + at), n);
        if (!moved(dst + at, piece, n, 1))
            memcpy(soft_reach(dst + at), piece, n);
        done += n;
    }
}

static void move(uint64_t dst, uint64_t src, size_t bytes) {
    bool watched = atomic_load_explicit(&host_mover, memory_order_relaxed);
    if (watched && !soft_memory_is_device_address(dst) && !soft_memory_is_device_address(src))
        move_by_bounce(dst, src, bytes);
    else if (!watched ||
             (!moved(dst, soft_reach(src), bytes, 1) && !moved(src, soft_reach(dst), bytes, 0)))
        memmove(soft_reach(dst), soft_reach(src), bytes);
}

static void copy_piece(void *user, uint64_t first, uint64_t last, unsigned worker,
                       unsigned workers) {
    const struct soft_copy *c = user;
    (void)worker, (void)workers;
    struct span s = span_of(c->dst, c->width, first, last);
    move(c->dst + s.at, c->src + s.at, s.bytes);
}

static void copy_rows(void *user, uint64_t first, uint64_t last, unsigned worker,
                      unsigned workers) {
    const struct soft_copy *c = user;
    (void)worker, (void)workers;
    for (uint64_t i = first; i < last; i++) {
        size_t row = i % c->height, slice = i / c->height;
        move(c->dst + slice * c->dst_slice + row * c->dst_pitch,
             c->src + slice * c->src_slice + row * c->src_pitch, c->width);
    }
}

bool soft_copy_run(const struct soft_copy *c, uint64_t *address, int *kind) {
    bool plain = c->height == 1 && c->depth == 1;
    soft_defined_write(c->dst,
                       (c->depth - 1) * c->dst_slice + (c->height - 1) * c->dst_pitch + c->width);
    return soft_pool_run_guarded(plain ? copy_piece : copy_rows, (void *)c,
                                 plain ? pieces_of(c->dst, c->width) : c->height * c->depth,
                                 address, kind);
}

static void fill_elements(void *at, uint32_t value, uint32_t element, size_t count) {
    switch (element) {
    case 1:
        memset(at, (int)(value & 0xff), count);
        break;
    case 2:
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)at)[i] = (uint16_t)value;
        break;
    default:
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)at)[i] = value;
    }
}

/* The same at an address of the program's. */
static void fill(uint64_t dst, uint32_t value, uint32_t element, size_t count) {
    _Alignas(uint32_t) char piece[BOUNCE];
    size_t bytes = count * element, n = bytes < BOUNCE ? bytes : BOUNCE;
    if (!atomic_load_explicit(&host_mover, memory_order_relaxed) ||
        soft_memory_is_device_address(dst)) {
        fill_elements(soft_reach(dst), value, element, count);
        return;
    }
    fill_elements(piece, value, element, n / element);
    for (size_t done = 0; done < bytes; done += n) {
        n = bytes - done < BOUNCE ? bytes - done : BOUNCE;
        if (!moved(dst + done, piece, n, 1))
            memcpy(soft_reach(dst + done), piece, n);
    }
}

static void fill_piece(void *user, uint64_t first, uint64_t last, unsigned worker,
                       unsigned workers) {
    const struct soft_fill *f = user;
    (void)worker, (void)workers;
    struct span s = span_of(f->dst, f->width * f->element, first, last);
    fill(f->dst + s.at, f->value, f->element, s.bytes / f->element);
}

static void fill_rows(void *user, uint64_t first, uint64_t last, unsigned worker,
                      unsigned workers) {
    const struct soft_fill *f = user;
    (void)worker, (void)workers;
    for (uint64_t i = first; i < last; i++) {
        size_t row = i % f->height, slice = i / f->height;
        fill(f->dst + slice * f->slice + row * f->pitch, f->value, f->element, f->width);
    }
}

bool soft_fill_run(const struct soft_fill *f, uint64_t *address, int *kind) {
    bool plain = f->height == 1 && f->depth == 1;
    soft_defined_write(f->dst, (f->depth - 1) * f->slice + (f->height - 1) * f->pitch +
                                   f->width * f->element);
    return soft_pool_run_guarded(
        plain ? fill_piece : fill_rows, (void *)f,
        plain ? pieces_of(f->dst, f->width * f->element) : f->height * f->depth, address, kind);
}
