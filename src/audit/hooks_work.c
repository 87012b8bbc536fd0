/* Hooks of copies, sets, launches and host functions: what is queued on streams. */
#include "audit/graph_uses.h"
#include "audit/hooks.h"

#include <stdlib.h>

#include "audit/descriptor.h"
#include "audit/kernel.h"
#include "audit/statements.h"

/* The recording's number of the tensor that lies at address, 0 if it has no name. */
static uint32_t tensor_at(const void *address) {
    if (!ledger_has_names(audit.ledger))
        return 0;
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_name *name = ledger_name_at(audit.ledger, (uint64_t)(uintptr_t)address);
    uint32_t tag = name ? name->tag : 0;
    ledger_read_end(t);
    return tag;
}

static uint32_t tensor_of_copy(const void *dst, const void *src) {
    uint32_t tensor = tensor_at(src);
    return tensor ? tensor : tensor_at(dst);
}

/* ---- memory that the host reaches too -------------------------------------------------------- */

enum { HOST_USES_MAX = 64 };

/* What the thread's present operation uses of it: from the first half of a hook to the second. */
static __thread struct audit_host_use host_use[HOST_USES_MAX]
    __attribute__((tls_model("initial-exec")));

void hook_note_host_use(struct hook_work *w, const struct audit_host_use *use) {
    if (use->bytes && w->host_uses < HOST_USES_MAX)
        host_use[w->host_uses++] = *use;
    else if (use->bytes)
        w->host_left_out = use->address;
}

/* Records that the host's accesses to this memory are not watched, because more memory is in use
 * than can be tracked. */
static void leave_unwatched(uint64_t address, uint64_t bytes, uint64_t event) {
    struct event ev = {
        .kind = EVENT_UNWATCHED,
        .dst = address,
        .src = event,
        .len = bytes,
        .aux = event_aux(EVENT_NO_FN, DETAIL_UNWATCHED_ROOM),
    };
    record_event(audit.writer, &ev);
}

/* The bytes from address to the end of the block they lie in; 0 if the host does not reach it. */
static uint64_t shared_bytes(uint64_t address) {
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, address);
    enum ledger_side side = entry ? ledger_family_side(entry->family) : LEDGER_SIDE_DEVICE;
    bool shared = side == LEDGER_SIDE_HOST || side == LEDGER_SIDE_BOTH;
    uint64_t bytes = shared ? entry->addr + entry->size - address : 0;
    ledger_read_end(t);
    return bytes;
}

static void tell_host_uses(const struct call *c, const struct hook_work *w) {
    for (unsigned i = 0; i < w->host_uses; i++) {
        struct audit_host_use use = host_use[i];
        use.stream = w->stream;
        use.mark = order_mark(w->stream);
        use.event = c->seq;
        audit.host->queued(&use);
    }
    if (w->host_left_out)
        leave_unwatched(w->host_left_out, 0, c->seq);
}

/* Captured work uses its memory with every launch of the graph it becomes part of. */
static void keep_captured_uses(const struct call *c, const struct hook_work *w) {
    uint32_t capture = atomic_load(&w->stream->capture);
    for (unsigned i = 0; i < w->host_uses; i++) {
        struct audit_host_use use = host_use[i];
        use.event = c->seq;
        graph_uses_captured(capture, &use);
        if (audit.host->captured)
            audit.host->captured(&use);
    }
}

static void note_queued(struct order_stream *s) {
    order_submitted(s);
    if (audit.host)
        order_note_queued();
}

void hook_worked(struct call *c, hipError_t r, const struct hook_work *w) {
    if (w->leaves_nothing)
        order_note_ran(w->stream);
    if (r != hipSuccess && w->function)
        statement_refused(c, w->function, r);
    if (r == hipSuccess && !w->leaves_nothing && !order_is_capturing(w->stream)) {
        note_queued(w->stream);
        if (w->host_uses)
            tell_host_uses(c, w);
    } else if (r == hipSuccess && w->host_uses && order_is_capturing(w->stream)) {
        keep_captured_uses(c, w);
    }
    call_end(c, (unsigned)r);
    if (w->op)
        d2h_watch_end(w->op, r);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A blocking copy to the host is over when it returns; the others may leave a transfer behind. */
static bool copy_leaves_nothing(hipMemcpyKind kind, unsigned async) {
    return async == HOOK_SYNC && kind == hipMemcpyDeviceToHost;
}

/* Is the first byte the program's own memory, pinned or not? */
static bool is_host(const void *address) {
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, (uint64_t)(uintptr_t)address);
    enum ledger_side side = entry ? ledger_family_side(entry->family) : LEDGER_SIDE_HOST;
    ledger_read_end(t);
    bool host = side == LEDGER_SIDE_HOST || side == LEDGER_SIDE_BOTH;
    return host;
}

/* Notes one side of an asynchronous copy if it is host memory. host: the call says that it is. ask:
 * otherwise look in the ledger, which takes time and is only needed if the process has managed
 * memory or the call does not say. */
static void note_side(struct hook_work *w, const void *at, size_t bytes, bool written, bool host,
                      bool ask) {
    if (host || (ask && is_host(at)))
        hook_note_host_use(w, &(struct audit_host_use){
                                  .address = (uint64_t)(uintptr_t)at,
                                  .bytes = bytes,
                                  .written = written,
                              });
}

static void note_copy(struct hook_work *w, const void *dst, size_t dst_bytes, const void *src,
                      size_t src_bytes, hipMemcpyKind kind) {
    bool ask = kind == hipMemcpyDefault || hook_has_managed();
    note_side(w, dst, dst_bytes, true, kind == hipMemcpyDeviceToHost || kind == hipMemcpyHostToHost,
              ask);
    note_side(w, src, src_bytes, false,
              kind == hipMemcpyHostToDevice || kind == hipMemcpyHostToHost, ask);
}

unsigned hook_copy_uses(struct audit_host_use out[2], const void *dst, size_t dst_bytes,
                        const void *src, size_t src_bytes, hipMemcpyKind kind) {
    struct hook_work w = { 0 };
    note_copy(&w, dst, dst_bytes, src, src_bytes, kind);
    for (unsigned i = 0; i < w.host_uses; i++)
        out[i] = host_use[i];
    return w.host_uses;
}

void hook_record_copy(struct call *c, const void *dst, const void *src, size_t bytes,
                      hipMemcpyKind kind, struct order_stream *stream, unsigned async,
                      uint32_t tensor) {
    struct event ev = call_event(c, EVENT_COPY, ((unsigned)kind & 7) | async, stream);
    ev.dst = (uint64_t)(uintptr_t)dst;
    ev.src = (uint64_t)(uintptr_t)src;
    ev.len = bytes;
    ev.name = tensor ? tensor : tensor_of_copy(dst, src);
    call_begin(c, &ev);
    statement_tag(c);
}

/* Blocking calls wait for the work before them, and perhaps for other work. */
static void note_blocking(unsigned async) {
    if (async == HOOK_SYNC)
        order_note_wait();
}

struct hook_work hook_copy(struct call *c, const void *dst, const void *src, size_t bytes,
                           hipMemcpyKind kind, struct order_stream *stream, unsigned async) {
    struct hook_work w = { .stream = stream, .leaves_nothing = copy_leaves_nothing(kind, async) };
    note_blocking(async);
    if (audit.config.d2h_audit && kind == hipMemcpyDeviceToHost)
        w.op = d2h_watch_begin(c, dst, src, bytes, stream, async != HOOK_SYNC);
    if (call_is_recorded())
        hook_record_copy(c, dst, src, bytes, kind, stream, async, 0);
    if (audit.host && async != HOOK_SYNC)
        note_copy(&w, dst, bytes, src, bytes, kind);
    return w;
}

static unsigned rows_slots(union event_slot *slot, const struct hook_rows *rows) {
    event_extra_rows(&slot[0], rows->dst_pitch, rows->src_pitch, rows->width, rows->height);
    if (rows->depth <= 1)
        return 1;
    event_extra_slices(&slot[1], rows->dst_slice, rows->src_slice, rows->depth);
    return 2;
}

/* From the first byte to the last, the gaps between rows included. */
static size_t rows_extent(const struct hook_rows *rows, size_t pitch, size_t slice) {
    return (rows->depth - 1) * slice + (rows->height - 1) * pitch + rows->width;
}

struct hook_work hook_copy_rows(struct call *c, const struct hook_rows *rows, hipMemcpyKind kind,
                                struct order_stream *stream, unsigned async) {
    struct hook_work w = { .stream = stream, .leaves_nothing = copy_leaves_nothing(kind, async) };
    note_blocking(async);
    if (call_is_recorded()) {
        union event_slot slot[3];
        struct event ev = call_event(c, EVENT_COPY2D, ((unsigned)kind & 7) | async, stream);
        ev.dst = (uint64_t)(uintptr_t)rows->dst;
        ev.src = (uint64_t)(uintptr_t)rows->src;
        ev.len = (uint64_t)rows->width * rows->height * rows->depth;
        ev.name = tensor_of_copy(rows->dst, rows->src);
        slot[0].event = ev;
        call_begin_slots(c, slot, 1 + rows_slots(&slot[1], rows));
        statement_tag(c);
    }
    if (audit.host && async != HOOK_SYNC && rows->width && rows->height && rows->depth)
        note_copy(&w, rows->dst, rows_extent(rows, rows->dst_pitch, rows->dst_slice), rows->src,
                  rows_extent(rows, rows->src_pitch, rows->src_slice), kind);
    return w;
}

/* One side of a 3D copy: an array (by handle) or pitched memory, with its start in it. */
static const void *side_3d(hipArray_t array, struct hipPitchedPtr p, struct hipPos pos) {
    if (array)
        return array;
    /* In numbers: a wrong program's pointer may be null, and only its address is wanted. */
    return (const void *)((uintptr_t)p.ptr + pos.x + pos.y * p.pitch + pos.z * p.pitch * p.ysize);
}

struct hook_rows hook_rows_3d(const hipMemcpy3DParms *p) {
    if (!p)
        return (struct hook_rows){ 0 };
    return (struct hook_rows){
        .dst = side_3d(p->dstArray, p->dstPtr, p->dstPos),
        .src = side_3d(p->srcArray, p->srcPtr, p->srcPos),
        .dst_pitch = p->dstPtr.pitch,
        .src_pitch = p->srcPtr.pitch,
        .width = p->extent.width,
        .height = p->extent.height,
        .dst_slice = p->dstPtr.pitch * p->dstPtr.ysize,
        .src_slice = p->srcPtr.pitch * p->srcPtr.ysize,
        .depth = p->extent.depth,
    };
}

hipMemcpyKind hook_kind_3d(const hipMemcpy3DParms *p) {
    return p ? p->kind : hipMemcpyDefault;
}

/* One side of a driver-API copy. The meaning of the type field differs between ROCm 5 and 6, but of
 * the three pointers only one is set in any program that works. */
static const void *side_driver(const void *host, const void *device, const void *array, size_t x,
                               size_t offset) {
    if (array)
        return array;
    return (const void *)((uintptr_t)(device ? device : host) + x + offset);
}

struct hook_rows hook_rows_param2d(const hip_Memcpy2D *p) {
    if (!p)
        return (struct hook_rows){ 0 };
    return (struct hook_rows){
        .dst = side_driver(p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes,
                           p->dstY * p->dstPitch),
        .src = side_driver(p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes,
                           p->srcY * p->srcPitch),
        .dst_pitch = p->dstPitch,
        .src_pitch = p->srcPitch,
        .width = p->WidthInBytes,
        .height = p->Height,
        .depth = 1,
    };
}

struct hook_rows hook_rows_drv3d(const HIP_MEMCPY3D *p) {
    if (!p)
        return (struct hook_rows){ 0 };
    size_t dst_slice = p->dstPitch * p->dstHeight, src_slice = p->srcPitch * p->srcHeight;
    return (struct hook_rows){
        .dst = side_driver(p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes,
                           p->dstY * p->dstPitch + p->dstZ * dst_slice),
        .src = side_driver(p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes,
                           p->srcY * p->srcPitch + p->srcZ * src_slice),
        .dst_pitch = p->dstPitch,
        .src_pitch = p->srcPitch,
        .width = p->WidthInBytes,
        .height = p->Height,
        .dst_slice = dst_slice,
        .src_slice = src_slice,
        .depth = p->Depth,
    };
}

const void *hook_symbol(const void *symbol, size_t offset) {
    void *address = NULL;
    if (!call_is_recorded() || audit.raw.hipGetSymbolAddress(&address, symbol) != hipSuccess)
        return NULL;
    hook_symbol_found(address, symbol);
    return (const void *)((uintptr_t)address + offset);
}

/* ---- sets ------------------------------------------------------------------------------------ */

static struct hook_work set_work(const void *dst, size_t bytes, struct order_stream *stream,
                                 unsigned async) {
    struct hook_work w = { .stream = stream };
    uint64_t at = (uint64_t)(uintptr_t)dst;
    note_blocking(async);
    if (audit.host && async != HOOK_SYNC && shared_bytes(at))
        hook_note_host_use(
            &w, &(struct audit_host_use){ .address = at, .bytes = bytes, .written = true });
    return w;
}

struct hook_work hook_set(struct call *c, const void *dst, uint64_t value, unsigned width,
                          size_t count, struct order_stream *stream, unsigned async) {
    if (call_is_recorded()) {
        /* The recording counts bytes: an element of 8 bytes counts as two of 4. */
        unsigned element = width > 4 ? 4 : width;
        struct event ev = call_event(c, EVENT_SET, element | async, stream);
        ev.dst = (uint64_t)(uintptr_t)dst;
        ev.src = value;
        ev.len = (uint64_t)count * width;
        ev.name = tensor_at(dst);
        call_begin(c, &ev);
        statement_tag(c);
    }
    return set_work(dst, count * width, stream, async);
}

struct hook_work hook_set_rows(struct call *c, const struct hook_rows *rows, uint64_t value,
                               struct order_stream *stream, unsigned async) {
    if (call_is_recorded()) {
        union event_slot slot[3];
        struct event ev = call_event(c, EVENT_SET, DETAIL_WIDTH_8 | async, stream);
        ev.dst = (uint64_t)(uintptr_t)rows->dst;
        ev.src = value;
        ev.len = (uint64_t)rows->width * rows->height * rows->depth;
        ev.name = tensor_at(rows->dst);
        slot[0].event = ev;
        call_begin_slots(c, slot, 1 + rows_slots(&slot[1], rows));
        statement_tag(c);
    }
    bool some = rows->width && rows->height && rows->depth;
    size_t bytes = some ? rows_extent(rows, rows->dst_pitch, rows->dst_slice) : 0;
    return set_work(rows->dst, bytes, stream, async);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* One slot of event, one of dimensions, one of what is checked, the rest of ranges or, where those
 * are unknown, pointers. */
enum {
    LAUNCH_ARGS_MAX = 100,
    LAUNCH_ACCESSES_MAX = 40,
    LAUNCH_SLOTS = 3 + LAUNCH_ARGS_MAX / EVENT_ARGS_PER_SLOT,
};
_Static_assert(LAUNCH_ACCESSES_MAX / EVENT_ACCESSES_PER_SLOT <= LAUNCH_SLOTS - 3, "room");

/* Notes the buffers of a launch that the host reaches too. */
static void note_accesses(struct hook_work *w, const struct event_access *a, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        unsigned access = a[i].access & 15;
        bool reads = access == DETAIL_ACCESS_READ || access == DETAIL_ACCESS_EXECUTE;
        if (shared_bytes(a[i].address))
            hook_note_host_use(w, &(struct audit_host_use){ .address = a[i].address,
                                                            .bytes = a[i].bytes,
                                                            .written = !reads });
    }
}

static void note_pointers(struct hook_work *w, const struct event_arg *a, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (!(a[i].flags & EVENT_ARG_NUMBER))
            hook_note_host_use(w, &(struct audit_host_use){ .address = a[i].value,
                                                            .bytes = shared_bytes(a[i].value),
                                                            .written = a[i].flags & EVENT_ARG_WRITE,
                                                            .vague = true });
}

/* Fills slots with the bytes the launch touches, or the pointers it gets; returns how many. */
static unsigned launch_buffers(union event_slot *slot, const struct kernel *kernel,
                               const struct hook_launch *q, uint64_t *bytes, struct hook_work *w) {
    struct event_access accesses[LAUNCH_ACCESSES_MAX];
    struct event_arg args[LAUNCH_ARGS_MAX];
    unsigned slots = 0, done = 0;
    unsigned count = kernel_accesses(kernel, q->params, accesses, LAUNCH_ACCESSES_MAX);
    for (*bytes = 0; done < count; slots++)
        done += event_extra_accesses(&slot[slots], &accesses[done], count - done);
    if (w)
        note_accesses(w, accesses, count);
    if (count)
        return slots;
    count = kernel_pointers(kernel, q->params, q->extra, args, LAUNCH_ARGS_MAX, bytes);
    for (done = 0; done < count; slots++)
        done += event_extra_args(&slot[slots], &args[done], count - done);
    if (w)
        note_pointers(w, args, count);
    return slots;
}

/* Fills slots with what the launch says besides its event; returns how many. */
static unsigned launch_extras(union event_slot *slot, const struct kernel *kernel,
                              const struct hook_launch *q, uint64_t *bytes, struct hook_work *w) {
    uint64_t hash = kernel_hash(kernel, q->params, q->extra);
    struct event_dims dims = {
        .grid = { q->grid[0], q->grid[1], q->grid[2] },
        .block = { q->block[0], q->block[1], q->block[2] },
        .shared = q->shared,
        .flags = (q->cooperative ? EVENT_DIMS_COOPERATIVE : 0) |
                 (kernel->layout && kernel->layout->reaches ? EVENT_DIMS_REACHES : 0) |
                 hash << EVENT_DIMS_HASH_SHIFT,
    };
    event_extra_dims(&slot[0], &dims);
    unsigned slots = 1 + launch_buffers(&slot[1], kernel, q, bytes, w);
    bool footprint = slots > 1 && event_extra_type(&slot[1].extra) == EXTRA_ACCESS;
    statement_checked(&slot[slots++], q->function, footprint, q->cooperative);
    return slots;
}

/* Fills slots with the launch's event and, unless a definition has them, its extras; returns how
 * many. w: takes what the host reaches too; may be NULL. */
static unsigned launch_slots(union event_slot slot[LAUNCH_SLOTS], const struct hook_launch *q,
                             struct event ev, struct hook_work *w) {
    struct kernel kernel = kernel_find(q->function);
    struct hash_pair key;
    unsigned slots = 1;
    bool keyed = !w && descriptor_key_of_launch(&kernel, q, &key);
    ev.dst = (uint64_t)(uintptr_t)q->function;
    ev.src = keyed ? descriptor_find(key) : 0;
    ev.name = kernel.record_name;
    if (!ev.src) {
        slots += launch_extras(&slot[1], &kernel, q, &ev.len, w);
        if (!keyed)
            key = descriptor_key_of_extras(&slot[1], slots - 1);
        ev.src = descriptor_meet(key, &slot[1], slots - 1);
    }
    slot[0].event = ev;
    return ev.src ? 1 : slots;
}

void hook_record_captured_launch(struct call *c, hipError_t r, const struct hook_launch *q) {
    union event_slot slot[LAUNCH_SLOTS];
    struct event ev = call_event(c, EVENT_LAUNCH, EVENT_CAPTURED, NULL);
    ev.status = (uint16_t)r;
    struct call node = *c;
    node.seq = record_events(audit.writer, slot, launch_slots(slot, q, ev, NULL));
    if (r != hipSuccess)
        statement_refused(&node, q->function, r);
}

struct hook_work hook_launch(struct call *c, const struct hook_launch *launch,
                             struct order_stream *stream) {
    struct hook_work w = { .stream = stream, .function = launch->function };
    if (call_is_recorded()) {
        union event_slot slot[LAUNCH_SLOTS];
        struct event ev = call_event(c, EVENT_LAUNCH, 0, stream);
        call_begin_slots(c, slot, launch_slots(slot, launch, ev, audit.host ? &w : NULL));
        statement_tag(c);
    }
    return w;
}

/* Several launches in one call: events of their own follow the call's, finished with its result. */
static void launched(const struct call *c, hipError_t r, const struct hook_launch *q,
                     hipStream_t handle) {
    struct order_stream *stream = order_stream(handle);
    struct call one = CALL_INIT(c->fn, c->caller);
    struct hook_work w = hook_launch(&one, q, stream);
    hook_worked(&one, r, &w);
}

void hook_launch_each(struct call *c, hipError_t r, hipLaunchParams *list, int count) {
    call_end(c, (unsigned)r);
    for (int i = 0; list && i < count; i++) {
        struct hook_launch q = {
            .function = list[i].func,
            .grid = { list[i].gridDim.x, list[i].gridDim.y, list[i].gridDim.z },
            .block = { list[i].blockDim.x, list[i].blockDim.y, list[i].blockDim.z },
            .shared = list[i].sharedMem,
            .params = list[i].args,
            .cooperative = true,
        };
        launched(c, r, &q, list[i].stream);
    }
}

void hook_launch_functions(struct call *c, hipError_t r, hipFunctionLaunchParams *list,
                           unsigned count) {
    call_end(c, (unsigned)r);
    for (unsigned i = 0; list && i < count; i++) {
        struct hook_launch q = {
            .function = list[i].function,
            .grid = { list[i].gridDimX, list[i].gridDimY, list[i].gridDimZ },
            .block = { list[i].blockDimX, list[i].blockDimY, list[i].blockDimZ },
            .shared = list[i].sharedMemBytes,
            .params = list[i].kernelParams,
            .cooperative = true,
        };
        launched(c, r, &q, list[i].hStream);
    }
}

static __thread hipStream_t configured __attribute__((tls_model("initial-exec")));

void hook_configure(hipStream_t stream) {
    configured = stream;
}

struct hook_work hook_launch_configured(struct call *c, const void *function) {
    struct hook_launch q = { .function = function };
    return hook_launch(c, &q, order_stream(configured));
}

struct hook_work hook_queue(struct call *c, const void *a, uint64_t b,
                            struct order_stream *stream) {
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_CALL, 0, stream);
        ev.dst = (uint64_t)(uintptr_t)a;
        ev.src = b;
        call_begin(c, &ev);
        statement_tag(c);
    }
    return (struct hook_work){ .stream = stream };
}

/* ---- host functions -------------------------------------------------------------------------- */

/* Stands in for the program's function, to record when it runs. */
struct host_call {
    hipHostFn_t fn;
    hipStreamCallback_t callback;
    void *data;
    uint64_t queued; /* seq */
    bool once;       /* not captured: the queue runs it once, then it is gone */
};

static uint64_t host_function(const struct host_call *h) {
    return h->fn ? (uint64_t)(uintptr_t)h->fn : (uint64_t)(uintptr_t)h->callback;
}

static void record_host(const struct host_call *h, enum event_kind kind) {
    struct event ev = {
        .kind = (uint16_t)kind,
        .dst = host_function(h),
        .src = h->queued,
        .aux = event_aux(EVENT_NO_FN, 0),
    };
    record_event(audit.writer, &ev);
}

static void tell_host_fn(bool begins) {
    if (audit.host && audit.host->host_fn)
        audit.host->host_fn(begins);
}

/* While a host function runs, all memory is watched that host and device share and that the device
 * can access despite page protection: accesses of the function count like those of an operation. A
 * watcher's stream only tells the observer when the function is over; watchers are reused and never
 * freed, so that it outlives all uses. Blocks beyond the limit are recorded as unwatched. */
enum { WATCHED_BLOCKS = 200 };
struct watcher {
    atomic_bool busy;
    struct order_stream stream;
    struct watcher *next;
};
static _Atomic(struct watcher *) watchers;

struct watching {
    struct audit_host_use use;
    unsigned count;
};

static void watch_block(const struct ledger_entry *e, void *user) {
    struct watching *w = user;
    bool shared = e->family == LEDGER_PINNED || e->family == LEDGER_MANAGED;
    if (!shared || !e->size)
        return;
    w->use.address = e->addr;
    w->use.bytes = e->size;
    if (w->count < WATCHED_BLOCKS)
        audit.host->queued(&w->use);
    else if (w->count == WATCHED_BLOCKS) /* recorded once, for this block and all further ones */
        leave_unwatched(e->addr, e->size, w->use.event);
    w->count++;
}

static struct watcher *take_watcher(void) {
    struct watcher *w = atomic_load(&watchers);
    while (w && atomic_exchange(&w->busy, true))
        w = w->next;
    if (w || !(w = calloc(1, sizeof *w)))
        return w;
    atomic_store(&w->busy, true);
    w->next = atomic_load(&watchers);
    while (!atomic_compare_exchange_weak(&watchers, &w->next, w))
        ;
    return w;
}

static struct watcher *watch_begin(const struct host_call *h) {
    if (!audit.host || !audit.host->waited || h->queued == EVENT_NO_SEQ)
        return NULL;
    struct watcher *w = take_watcher();
    struct watching all = { .use = { .written = true,
                                     .stream = w ? &w->stream : NULL,
                                     .mark = w ? atomic_load(&w->stream.done) + 1 : 0,
                                     .event = h->queued },
                            .count = w ? 0 : WATCHED_BLOCKS };
    ledger_each(audit.ledger, watch_block, &all);
    return w;
}

static void watch_end(struct watcher *w) {
    if (!w)
        return;
    atomic_fetch_add(&w->stream.done, 1);
    audit.host->waited();
    atomic_store(&w->busy, false);
}

static struct watcher *host_fn_begins(const struct host_call *h) {
    record_host(h, EVENT_HOST_FN_BEGIN);
    order_note_wait();
    struct watcher *w = watch_begin(h);
    tell_host_fn(true);
    return w;
}

static void host_fn_ends(const struct host_call *h, struct watcher *w) {
    tell_host_fn(false);
    watch_end(w);
    record_host(h, EVENT_HOST_FN_END);
}

static void run_host_fn(void *data) {
    struct host_call h = *(struct host_call *)data;
    if (h.once)
        free(data);
    struct watcher *w = host_fn_begins(&h);
    h.fn(h.data);
    host_fn_ends(&h, w);
}

static void run_callback(hipStream_t stream, hipError_t status, void *data) {
    struct host_call h = *(struct host_call *)data;
    if (h.once)
        free(data);
    struct watcher *w = host_fn_begins(&h);
    h.callback(stream, status, h.data);
    host_fn_ends(&h, w);
}

static struct host_call *host_queue(struct call *c, const struct host_call *what,
                                    struct order_stream *stream) {
    struct host_call *h = malloc(sizeof *h);
    if (!h)
        return NULL; /* the program's function runs unobserved */
    *h = *what;
    h->once = !order_is_capturing(stream);
    struct event ev = call_event(c, EVENT_HOST_FN, 0, stream);
    ev.dst = host_function(h);
    ev.src = (uint64_t)(uintptr_t)h->data;
    call_begin(c, &ev);
    h->queued = c->seq;
    return h;
}

struct hook_work hook_host_fn(struct call *c, hipHostFn_t *fn, void **data,
                              struct order_stream *stream) {
    struct host_call what = { .fn = *fn, .data = *data }, *h;
    if (call_is_recorded() && *fn && (h = host_queue(c, &what, stream))) {
        *fn = run_host_fn;
        *data = h;
    }
    return (struct hook_work){ .stream = stream };
}

struct hook_work hook_callback(struct call *c, hipStreamCallback_t *fn, void **data,
                               struct order_stream *stream) {
    struct host_call what = { .callback = *fn, .data = *data }, *h;
    if (call_is_recorded() && *fn && (h = host_queue(c, &what, stream))) {
        *fn = run_callback;
        *data = h;
    }
    return (struct hook_work){ .stream = stream };
}

void hook_host_node(struct hook_host_node *w, const hipHostNodeParams **params) {
    *w = (struct hook_host_node){ .asked = *params };
    struct host_call *h = call_is_recorded() && *params && (*params)->fn ? malloc(sizeof *h) : NULL;
    if (!h)
        return;
    *h = (struct host_call){ .fn = (*params)->fn,
                             .data = (*params)->userData,
                             .queued = EVENT_NO_SEQ };
    w->given = (hipHostNodeParams){ .fn = run_host_fn, .userData = h };
    *params = &w->given;
}

void hook_host_node_added(hipError_t r, struct hook_host_node *w, uint64_t seq) {
    struct host_call *h = w->given.userData;
    if (h && r == hipSuccess)
        h->queued = seq; /* before a graph with it can run */
    else
        free(h);
}

void hook_host_node_read(hipError_t r, hipHostNodeParams *params) {
    if (r != hipSuccess || !params || params->fn != run_host_fn)
        return;
    const struct host_call *h = params->userData;
    *params = (hipHostNodeParams){ .fn = h->fn, .userData = h->data };
}

void hook_host_queued(struct call *c, hipError_t r, const struct hook_work *w, void *data) {
    if (r != hipSuccess && c->seq != RECORD_NONE)
        free(data); /* never to run */
    hook_worked(c, r, w);
}
