/* touched.c - which bytes the device saw a launch touch.
 *
 * The device states this when the launch has run, but the launch is judged where it was queued,
 * which is earlier in the recording. So the first launch whose accesses the device sees makes the
 * replay look ahead, once, for all statements up to the end. A graph launch has one statement per
 * kernel of the graph, with the event of the call that was captured. */
#include <string.h>

#include "verdict/effort.h"
#include "verdict/race.h"

/* A node is known by its captured call, or by its handle, which never equals an event's number. */
static uint64_t by_handle(uint64_t handle) {
    return handle ? handle | UINT64_C(1) << 63 : EVENT_NO_SEQ;
}

static uint64_t node_of(const struct reader_event *said) {
    const struct event_extra *x = reader_extra(said, EXTRA_NODE);
    return !x                           ? EVENT_NO_SEQ
           : x->word[0] != EVENT_NO_SEQ ? x->word[0]
           : event_extra_words(x) > 1   ? by_handle(x->word[1])
                                        : EVENT_NO_SEQ;
}

/* The key of a launch is its number; that of a graph's operation is made of both numbers. Where two
 * keys are equal, the statement itself tells which of them it is about. */
static uint64_t key_of(uint64_t launch, uint64_t node) {
    return node == EVENT_NO_SEQ ? launch : launch ^ (node + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* A graph may hold an operation more than once, as a child that was added twice: which statement is
 * about which of them is then unknown, and matters unless they say the same. */
static const uintptr_t AMBIGUOUS = UINTPTR_MAX;

static bool says_the_same(struct replay *r, uintptr_t had) {
    struct reader_event before;
    const struct reader_event *now = r->said;
    if (had == AMBIGUOUS || !reader_event(r->r, had - 1, &before) || before.extras_lost ||
        now->extras_lost || before.event.len || now->event.len ||
        before.event.src != now->event.src || before.event.dst != now->event.dst ||
        before.extras != now->extras)
        return false;
    for (unsigned i = 0; i < now->extras; i++)
        if (before.extra[i].aux != now->extra[i].aux ||
            memcmp(before.extra[i].word, now->extra[i].word, sizeof now->extra[i].word) != 0)
            return false;
    return true;
}

/* The program asks for the address of a registered variable when it first needs it, which may be
 * after launches that touch it; the variable was there all the time. */
static void note_variable(struct replay *r, const struct reader_event *e) {
    const uint32_t id = e->event.thread;
    if (!e->event.src && id < r->thread_count && r->threads[id].seen)
        replay_symbol(r, e, &r->threads[id]);
}

static void find_all(struct replay *r, uint64_t from) {
    struct reader_cursor c = reader_events(r->r, from, UINT64_MAX);
    r->touched_is_known = true;
    while (!r->no_memory && reader_next(&c, r->said)) {
        const struct event *e = &r->said->event;
        if (e->kind == EVENT_SYMBOL)
            note_variable(r, r->said);
        if (e->kind != EVENT_TOUCHED)
            continue;
        uint64_t node = node_of(r->said), key = key_of(e->src, node);
        uintptr_t had = (uintptr_t)table_find(&r->touched, key);
        bool again = had && node != EVENT_NO_SEQ && e->len != had - 1 && !says_the_same(r, had);
        if (!table_set(&r->touched, key, (void *)(again ? AMBIGUOUS : (uintptr_t)r->said->seq + 1)))
            r->no_memory = true;
    }
}

static bool sees_every_access(const struct reader_event *e) {
    const struct event_extra *x = reader_extra(e, EXTRA_CHECKED);
    return x && event_checked_of(x).how == DETAIL_CHECKED_EVERY_ACCESS;
}

/* The argument whose pointer the range begins at, or that lies nearest below it. */
static uint8_t argument_of(const struct op *op, uint64_t address, struct space *s) {
    uint64_t best = 0;
    uint8_t argument = EVENT_NO_ARGUMENT;
    const struct block *b = space_at(s, address);
    for (unsigned i = 0; b && i < op->count; i++) {
        const struct use *u = &op->use[i];
        if (u->start <= address && u->start >= best && u->start >= b->base) {
            best = u->start;
            argument = u->argument;
        }
    }
    return argument;
}

/* Rows of all uses, and what one takes in the shadow: more than these are not compared one by one.
 */
enum { ROWS_ALL = 1 << 22, ROW_BYTES = 96 };

static struct use use_of(const struct event_pattern *p) {
    return (struct use){
        .start = p->access.address,
        .bytes = p->access.bytes,
        .pitch = p->pitch,
        .rows = p->rows,
        .slice = p->slice,
        .slices = p->slices,
        .access = (p->access.access & 15) == DETAIL_ACCESS_READ ? USE_READ : USE_WRITE,
        .flags = USE_SEEN,
    };
}

/* Can the rows be compared one by one? Not if they are too many, or lie in several blocks. */
static bool has_few_rows(struct replay *r, const struct use *u, struct space *s) {
    const struct block *b = space_at(s, u->start);
    uint64_t rows;
    if (__builtin_mul_overflow(u->rows, u->slices, &rows))
        return false;
    if (rows == 1)
        return true;
    uint64_t bytes = effort.bytes + rows * ROW_BYTES; /* the rest of the replay needs some, too */
    if (!b || use_end(u) > block_end(b) || rows > RACE_SEEN_ROWS_MAX ||
        r->touched_rows + rows > ROWS_ALL || bytes > effort.bytes_max / 4 * 3)
        return false;
    r->touched_rows += rows;
    return true;
}

/* Bytes from u->start to end that lie in no block: a module's. */
static void add_astray(struct op *seen, const struct use *u, uint64_t end) {
    seen->strays = true;
    if (u->flags & USE_VAGUE || u->rows * u->slices != 1 || seen->astray_count == ASTRAY_MAX) {
        seen->wanders = true;
        return;
    }
    seen->astray[seen->astray_count++] =
        (struct astray){ u->start, end - u->start, u->access != USE_READ };
}

/* Bytes that were touched, cut where blocks end: what lies in none of them is a module's. */
static void add(struct replay *r, struct op *seen, const struct op *op,
                const struct event_pattern *p, struct space *s) {
    struct use u = use_of(p);
    uint64_t at = u.start, end = use_end(&u);
    if (!u.bytes || !u.rows || !u.slices || !end) {
        seen->strays = seen->wanders = true;
        return;
    }
    bool at_most = p->access.access & EVENT_ACCESS_AT_MOST || !has_few_rows(r, &u, s);
    seen->exact &= !at_most;
    /* Atomics of two kernels may meet; what they meet is not known byte by byte. */
    if (at_most || (p->access.access & 15) == DETAIL_ACCESS_READ_WRITE) {
        u.flags |= USE_VAGUE | USE_BOUND;
        u.rows = u.slices = 1;
    }
    while (at < end) {
        const struct block *b = space_at(s, at);
        u.start = at;
        if (!b) {
            add_astray(seen, &u, end);
            return;
        }
        if (seen->count == USES_MAX) {
            seen->strays = seen->wanders = true;
            return;
        }
        uint64_t stop = block_end(b) < end ? block_end(b) : end;
        if (u.rows * u.slices == 1)
            u.bytes = stop - at;
        u.argument = argument_of(op, at, s);
        seen->use[seen->count++] = u;
        at = stop;
    }
}

/* The events that say it, the last one first; 0 if one of them is missing. */
enum { PARTS_MAX = 16 };

static unsigned find_parts(struct replay *r, uint64_t last, uint64_t launch, uint64_t node,
                           uint64_t part[PARTS_MAX]) {
    struct event_access a[EVENT_ACCESSES_PER_SLOT];
    uint64_t ranges = 0, seq = last, all = 0;
    for (unsigned n = 0; n < PARTS_MAX; n++) {
        if (!reader_event(r->r, seq, r->said) || r->said->extras_lost ||
            r->said->event.kind != EVENT_TOUCHED || r->said->event.src != launch ||
            node_of(r->said) != node)
            return 0;
        all = n ? all : r->said->event.dst;
        for (unsigned i = 0; i < r->said->extras; i++) {
            const struct event_extra *x = &r->said->extra[i];
            ranges += event_extra_type(x) == EXTRA_ACCESS    ? event_accesses_of(x, a)
                      : event_extra_type(x) == EXTRA_PATTERN ? 1
                                                             : 0;
        }
        part[n] = seq;
        if (ranges >= all)
            return n + 1;
        seq = r->said->event.len;
    }
    return 0;
}

static void add_part(struct replay *r, struct op *seen, const struct op *op, struct space *s) {
    struct event_access a[EVENT_ACCESSES_PER_SLOT];
    for (unsigned i = 0; i < r->said->extras; i++) {
        const struct event_extra *x = &r->said->extra[i];
        if (event_extra_type(x) == EXTRA_PATTERN) {
            struct event_pattern p = event_pattern_of(x);
            add(r, seen, op, &p, s);
        }
        unsigned n = event_extra_type(x) == EXTRA_ACCESS ? event_accesses_of(x, a) : 0;
        for (unsigned k = 0; k < n; k++)
            add(r, seen, op, &(struct event_pattern){ a[k], 0, 1, 0, 1 }, s);
    }
}

/* The events of the statement about a launch, or about a node of a graph launch; returns how many.
 */
static unsigned find_said(struct replay *r, uint64_t launch, uint64_t node,
                          uint64_t part[PARTS_MAX]) {
    uintptr_t at = (uintptr_t)table_find(&r->touched, key_of(launch, node));
    return at && at != AMBIGUOUS ? find_parts(r, at - 1, launch, node, part) : 0;
}

void touched_apply(struct replay *r, const struct reader_event *e, struct op *op, uint64_t handle) {
    uint64_t part[PARTS_MAX];
    struct thread *t = replay_thread(r, op->thread);
    if (!t || op->what != SHADOW_LAUNCH || !sees_every_access(e))
        return;
    if (!r->touched_is_known)
        find_all(r, e->seq);
    bool replayed = op->launch != EVENT_NO_SEQ;
    unsigned parts = replayed ? find_said(r, op->launch, e->seq, part)
                              : find_said(r, e->seq, EVENT_NO_SEQ, part);
    if (!parts && replayed && handle)
        parts = find_said(r, op->launch, by_handle(handle), part);
    if (!parts)
        return;
    struct op seen = *op;
    seen.count = 0;
    seen.known = seen.exact = seen.bounded = true;
    while (parts--)
        if (reader_event(r->r, part[parts], r->said))
            add_part(r, &seen, op, t->space);
    *op = seen;
}
