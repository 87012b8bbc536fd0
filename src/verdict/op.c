/* op.c - an event as an operation: which bytes it reads and which it writes. */
#include <string.h>

#include "verdict/replay.h"

uint64_t use_end(const struct use *u) {
    uint64_t rows, slices, end;
    if (__builtin_mul_overflow(u->rows - 1, u->pitch, &rows) ||
        __builtin_mul_overflow(u->slices - 1, u->slice, &slices) ||
        __builtin_add_overflow(rows, slices, &end) || __builtin_add_overflow(end, u->bytes, &end) ||
        __builtin_add_overflow(end, u->start, &end))
        return 0;
    return end;
}

static void add(struct op *op, struct use u) {
    if (op->count == USES_MAX) {
        op->exact = false;
        return;
    }
    op->use[op->count++] = u;
}

static struct use line(uint64_t start, uint64_t bytes, unsigned access, unsigned flags) {
    return (struct use){ .start = start,
                         .bytes = bytes,
                         .rows = 1,
                         .slices = 1,
                         .access = (uint8_t)access,
                         .flags = (uint8_t)flags,
                         .argument = EVENT_NO_ARGUMENT };
}

/* Rows without gaps are one line, slices without gaps are rows. */
static void flatten(struct use *u) {
    uint64_t all;
    if (u->rows > 1 && u->pitch == u->bytes && !__builtin_mul_overflow(u->bytes, u->rows, &all)) {
        u->bytes = all;
        u->rows = 1;
    }
    if (u->rows == 1 && u->slices > 1) {
        u->rows = u->slices;
        u->pitch = u->slice;
        u->slices = 1;
        if (u->pitch == u->bytes && !__builtin_mul_overflow(u->bytes, u->rows, &all)) {
            u->bytes = all;
            u->rows = 1;
        }
    }
}

/* Gives the use the rows and slices of the event; false if there are none left to touch, or if it
 * is not known which. which: 0 destination, 1 source. */
static bool shape(const struct reader_event *e, struct use *u, unsigned which) {
    const struct event_extra *rows = reader_extra(e, EXTRA_ROWS);
    const struct event_extra *slices = reader_extra(e, EXTRA_SLICES);
    if (rows) {
        u->pitch = rows->word[which];
        u->bytes = rows->word[2];
        u->rows = rows->word[3];
    }
    if (slices) {
        u->slice = slices->word[which];
        u->slices = slices->word[2];
    }
    if (!u->bytes || !u->rows || !u->slices)
        return false;
    flatten(u);
    return true;
}

static void side_flags(unsigned kind, unsigned *dst, unsigned *src) {
    static const uint8_t flags[5][2] = {
        [hipMemcpyHostToHost] = { USE_HOST, USE_HOST },
        [hipMemcpyHostToDevice] = { USE_DEVICE, USE_HOST },
        [hipMemcpyDeviceToHost] = { USE_HOST, USE_DEVICE },
        [hipMemcpyDeviceToDevice] = { USE_DEVICE, USE_DEVICE },
    };
    *dst = kind < 5 ? flags[kind][0] : 0;
    *src = kind < 5 ? flags[kind][1] : 0;
}

static void read_copy(const struct reader_event *e, struct op *op) {
    unsigned detail = event_detail(&e->event), dst_flags, src_flags;
    op->what = SHADOW_COPY;
    op->copy_kind = detail & 7;
    op->async = detail & EVENT_DETAIL_ASYNC;
    op->known = op->exact = true;
    side_flags(op->copy_kind, &dst_flags, &src_flags);
    struct use dst = line(e->event.dst, e->event.len, USE_WRITE, dst_flags);
    struct use src = line(e->event.src, e->event.len, USE_READ, src_flags);
    if (!e->event.len)
        return;
    if (e->event.kind == EVENT_COPY2D && (e->extras_lost || !reader_extra(e, EXTRA_ROWS))) {
        op->exact = false; /* where its rows are is lost */
        return;
    }
    if (shape(e, &dst, 0) && shape(e, &src, 1)) {
        add(op, dst);
        add(op, src);
    }
}

static void read_set(const struct reader_event *e, struct op *op) {
    struct use dst = line(e->event.dst, e->event.len, USE_WRITE, USE_DEVICE);
    op->what = SHADOW_SET;
    op->async = event_detail(&e->event) & EVENT_DETAIL_ASYNC;
    op->known = op->exact = !e->extras_lost; /* where its rows are may be lost */
    if (op->exact && e->event.len && shape(e, &dst, 0))
        add(op, dst);
}

static unsigned access_of(unsigned access) {
    switch (access) {
    case DETAIL_ACCESS_READ:
    case DETAIL_ACCESS_EXECUTE:
        return USE_READ;
    case DETAIL_ACCESS_WRITE:
        return USE_WRITE;
    case DETAIL_ACCESS_READ_WRITE:
        return USE_READ | USE_WRITE;
    default:
        return 0;
    }
}

static void read_accesses(const struct event_extra *x, struct op *op) {
    struct event_access a[EVENT_ACCESSES_PER_SLOT];
    unsigned n = event_accesses_of(x, a);
    for (unsigned i = 0; i < n; i++) {
        unsigned flags = (a[i].access & EVENT_ACCESS_SHAPED ? USE_SHAPED : 0) |
                         (a[i].access & EVENT_ACCESS_AT_MOST ? USE_BOUND : 0);
        struct use u = line(a[i].address, a[i].bytes, access_of(a[i].access & 15), flags);
        u.argument = (uint8_t)a[i].argument;
        if (u.bytes)
            add(op, u);
        op->known = op->exact = true;
    }
}

static void read_args(const struct event_extra *x, struct op *op) {
    struct event_arg a[EVENT_ARGS_PER_SLOT];
    unsigned n = event_args_of(x, a);
    op->known = true;
    for (unsigned i = 0; i < n; i++) {
        if (!a[i].value)
            continue;
        if (a[i].flags & EVENT_ARG_NUMBER)
            continue;
        unsigned access = (a[i].flags & EVENT_ARG_READ ? USE_READ : 0) |
                          (a[i].flags & EVENT_ARG_WRITE ? USE_WRITE : 0);
        unsigned flags = USE_VAGUE | (a[i].flags & EVENT_ARG_GUESSED ? USE_GUESSED : 0);
        struct use u = line(a[i].value, 1, access, flags);
        u.argument = (uint8_t)a[i].index;
        add(op, u);
    }
}

static void read_launch(const struct reader_event *e, struct op *op) {
    op->what = SHADOW_LAUNCH;
    op->async = true;
    for (unsigned i = 0; i < e->extras; i++) {
        const struct event_extra *x = &e->extra[i];
        if (event_extra_type(x) == EXTRA_ACCESS)
            read_accesses(x, op);
        else if (event_extra_type(x) == EXTRA_DIMS)
            op->hash = event_dims_of(x).flags >> EVENT_DIMS_HASH_SHIFT;
    }
    if (op->exact) { /* footprints say all that pointers could */
        op->known = op->exact = !e->extras_lost && op->count < USES_MAX;
        return;
    }
    for (unsigned i = 0; i < e->extras; i++)
        if (event_extra_type(&e->extra[i]) == EXTRA_ARGS)
            read_args(&e->extra[i], op);
    op->known = op->known && !e->extras_lost;
}

bool op_read(const struct replay *r, const struct reader_event *e, struct op *op) {
    op->seq = e->seq;
    op->launch = EVENT_NO_SEQ;
    op->t_ns = e->event.t_ns;
    op->hash = 0;
    op->site = e->event.site;
    op->name = e->event.name;
    op->stream = e->event.stream;
    op->thread = e->event.thread;
    op->fn = r->fn[event_fn(&e->event)];
    op->kind = e->event.kind;
    op->status = e->event.status;
    op->copy_kind = hipMemcpyDefault;
    op->async = op->known = op->exact = op->bounded = op->strays = op->wanders = false;
    op->astray_count = 0;
    op->count = 0;
    switch (e->event.kind) {
    case EVENT_COPY:
    case EVENT_COPY2D:
        read_copy(e, op);
        return true;
    case EVENT_SET:
        read_set(e, op);
        return true;
    case EVENT_LAUNCH:
        read_launch(e, op);
        return true;
    default:
        return false;
    }
}
