/* fault_cause.c - the device's own word on where it failed, and what that says about the cause.
 *
 * The software device names the operation, the address, and the argument that led there. The cause
 * follows from what lay at the address when the operation ran: freed memory, memory past the end of
 * a block, memory whose allocation in its stream had not run yet, or nothing.
 *
 * The device names the argument nearest to the address. Whether the access really went through it
 * is decided here: an index can be wrong by gigabytes, but an address that is further away comes
 * from a pointer that the kernel found in memory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "verdict/replay.h"

enum { NEAR_FAULT = 64 << 10, AT_EDGE = 256, NUMBERS_MAX = 16, SIZES_MAX = 4, NULL_REGION = 65536 };
#define REACH_OF_INDEX (UINT64_C(64) << 30) /* 32 bits of elements of 16 bytes */

struct fault_facts {
    uint64_t address, launch;
    uint64_t width;  /* bytes that one work-item was to access; 0: not known */
    uint64_t queued; /* like launch, but of a graph's kernel it is when the graph was launched */
    unsigned access;
    struct event_fault extra;
    bool has_extra;
    uint32_t argument_name;
    uint32_t source, instruction; /* strings: where in the kernel, and what; 0: unknown */
    bool has_value;
    uint64_t value; /* of the argument */
    uint64_t need;  /* bytes its footprint has; 0: unknown */
    bool shaped;
    bool one_block; /* the launch's grid: one thread block, so that loops run in order */
    uint64_t numbers[NUMBERS_MAX]; /* arguments that may be sizes */
    unsigned number_count;
    uint64_t sizes[SIZES_MAX]; /* of them: those that, multiplied, are more than it has; or 0 */
    unsigned space; /* EVENT_SPACE_LDS, EVENT_SPACE_SCRATCH: address is an offset in it; HEAP */
    uint64_t space_bytes; /* that there are of it; of a misaligned access, its size */
    bool is_host, is_misaligned;
    const struct block *meant; /* block that the argument points into, or the nearest */
    const struct block *at;    /* live block at the address */
    const struct block *freed; /* freed one */
};

/* Floating-point numbers look like very large ones, and are left out. */
static void add_number(struct fault_facts *x, uint64_t value) {
    const uint64_t most = UINT64_C(1) << 27;
    if (value > 1 && value <= most && x->number_count < NUMBERS_MAX)
        x->numbers[x->number_count++] = value;
}

static void read_extras(struct fault_facts *x, const struct reader_event *e) {
    for (unsigned i = 0; i < e->extras; i++) {
        const struct event_extra *extra = &e->extra[i];
        struct event_arg a[EVENT_ARGS_PER_SLOT];
        if (event_extra_type(extra) == EXTRA_DIMS) {
            struct event_dims d = event_dims_of(extra);
            x->one_block = d.grid[0] == 1 && d.grid[1] == 1 && d.grid[2] == 1;
        } else if (event_extra_type(extra) == EXTRA_ARGS) {
            for (unsigned k = 0, n = event_args_of(extra, a); k < n; k++)
                if (a[k].flags & EVENT_ARG_NUMBER)
                    add_number(x, a[k].value);
        }
    }
}

static void read_launch_facts(struct replay *r, struct fault_facts *x, uint64_t seq) {
    struct reader_event *e = r->other;
    if (seq == EVENT_NO_SEQ || !reader_event(r->r, seq, e) || !op_read(r, e, r->op))
        return;
    read_extras(x, e);
    for (unsigned i = 0; x->has_extra && i < r->op->count; i++) {
        const struct use *u = &r->op->use[i];
        if (u->argument != x->extra.argument || u->argument == EVENT_NO_ARGUMENT)
            continue;
        x->has_value = true;
        x->value = u->start;
        x->need = u->flags & USE_VAGUE ? 0 : u->bytes;
        x->shaped = u->flags & USE_SHAPED;
    }
}

static uint64_t near_of(const struct block *b) {
    uint64_t near = b->bytes < UINT64_MAX / 16 ? 15 * b->bytes : UINT64_MAX;
    return near < NEAR_FAULT ? NEAR_FAULT : near;
}

static uint64_t apart(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

/* The block that is meant by an address: what it points into, or what it just misses. */
static const struct block *block_for(struct space *s, uint64_t address) {
    uint64_t distance;
    const struct block *b = space_at(s, address);
    if (!b)
        b = space_freed_at(s, address);
    if (!b && (b = space_near(s, address, &distance)) && distance >= near_of(b))
        b = NULL;
    return b;
}

static void forget_argument(struct fault_facts *x) {
    x->has_value = x->shaped = false;
    x->need = 0;
    x->argument_name = 0;
    x->extra.argument = EVENT_NO_ARGUMENT;
    x->number_count = 0;
}

/* Did the access go through the argument that the device names? A freed block elsewhere, or a place
 * that no index reaches from there, was reached by a pointer of the kernel's own. */
static bool is_through_argument(const struct fault_facts *x, struct space *s) {
    uint64_t distance;
    if (!x->has_value || x->need)
        return true;
    /* Right at the edge of another block, and far from the argument's own. */
    const struct block *edge = x->at || x->freed ? NULL : space_near(s, x->address, &distance);
    if (edge && x->meant && edge != x->meant && distance < AT_EDGE &&
        apart(x->address, x->value) >= NEAR_FAULT + x->meant->bytes)
        return false;
    if (apart(x->address, x->value) > REACH_OF_INDEX)
        return false;
    return !x->freed || !x->meant || x->freed == x->meant ||
           apart(x->address, x->value) < near_of(x->meant);
}

static struct fault_facts read_facts(struct replay *r, const struct reader_event *e,
                                     struct space *s) {
    struct fault_facts x = { .address = e->event.dst,
                             .width = e->event.len,
                             .launch = e->event.src,
                             .queued = e->event.src,
                             .access = event_detail(&e->event) };
    const struct event_extra *f = reader_extra(e, EXTRA_FAULT);
    const struct event_extra *a = reader_extra(e, EXTRA_ARGUMENT);
    const struct event_extra *source = reader_extra(e, EXTRA_SOURCE);
    x.has_extra = f != NULL;
    if (f)
        x.extra = event_fault_of(f);
    if (a)
        x.argument_name = (uint32_t)a->word[1];
    if (source)
        x.source = (uint32_t)source->word[0];
    if (source && event_extra_words(source) > 1)
        x.instruction = (uint32_t)source->word[1];
    const struct event_extra *inner = reader_extra(e, EXTRA_CAUGHT);
    if (inner) {
        x.space = event_caught_of(inner).space;
        x.space_bytes = event_caught_of(inner).all;
        x.is_host = x.space == EVENT_SPACE_HOST;
        x.is_misaligned = x.space == EVENT_SPACE_MISALIGNED;
        if (x.is_host || x.is_misaligned) /* of device memory nevertheless */
            x.space = EVENT_SPACE_UNKNOWN;
    }
    struct reader_event *launch = r->other;
    if (x.launch != EVENT_NO_SEQ && reader_event(r->r, x.launch, launch) &&
        launch->event.kind == EVENT_GRAPH_LAUNCH) {
        uint64_t node = graph_find_op(r, s, e, x.launch, x.address);
        if (node != EVENT_NO_SEQ)
            x.launch = node;
    }
    read_launch_facts(r, &x, x.launch);
    x.at = space_at(s, x.address);
    x.freed = x.at ? NULL : space_freed_at(s, x.address);
    x.meant = x.has_value ? block_for(s, x.value) : NULL;
    if (!is_through_argument(&x, s)) {
        forget_argument(&x);
        x.meant = NULL;
    }
    if (!x.has_value)
        x.meant = block_for(s, x.address);
    return x;
}

/* Do some of the launch's numbers, multiplied, say what the kernel wanted, while none of them does
 * so alone? Then it took the memory for a matrix of another shape. Not if so many elements, of the
 * width of the access, fit: then the kernel went past the sizes that it was told. */
static bool find_shape(struct fault_facts *x, uint64_t room) {
    enum { ELEMENT_MOST = 8 };
    uint64_t need = x->address - x->value + 1, all = ELEMENT_MOST;
    uint64_t fits = x->width ? room / x->width : 0;
    unsigned n = x->number_count, factors = 0;
    for (unsigned i = 0; i < n; i++)
        if (x->numbers[i] * ELEMENT_MOST > room)
            return false;
    /* Two of them if that is enough, else the largest that go together. */
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < i; k++)
            if (x->numbers[i] * x->numbers[k] > fits &&
                x->numbers[i] * x->numbers[k] * ELEMENT_MOST >= need) {
                x->sizes[0] = x->numbers[k];
                x->sizes[1] = x->numbers[i];
                return true;
            }
    for (unsigned i = 0; i < n && all < need; i++, factors++) {
        x->sizes[factors] = x->numbers[i];
        if (factors == SIZES_MAX - 1 || __builtin_mul_overflow(all, x->numbers[i], &all))
            break;
    }
    bool found = all >= need && all / ELEMENT_MOST > fits;
    if (!found)
        memset(x->sizes, 0, sizeof x->sizes);
    return found;
}

/* What an access outside of all blocks was: past the end, before the start, or nowhere. */
static enum verdict_hypothesis_id outside(struct fault_facts *x) {
    const struct block *b = x->meant;
    if (!b)
        return HYPOTHESIS_INVALID_POINTER;
    if (x->has_value && !(x->value - b->base < b->bytes))
        return HYPOTHESIS_BAD_OFFSET; /* the argument itself misses its block */
    if (x->need && x->value + x->need > block_end(b))
        return x->shaped ? HYPOTHESIS_SHAPE_MISMATCH : HYPOTHESIS_SIZE_MISMATCH;
    if (x->address < b->base)
        return HYPOTHESIS_BAD_OFFSET;
    /* A loop that runs too far faults near the end; several cores may start further out. */
    uint64_t past = x->address - block_end(b);
    uint64_t page = 4096, near = x->one_block ? (b->bytes < page ? page : b->bytes) : near_of(b);
    if (past >= near)
        return HYPOTHESIS_BAD_OFFSET;
    return x->has_value && find_shape(x, block_end(b) - x->value) ? HYPOTHESIS_SHAPE_MISMATCH
                                                                  : HYPOTHESIS_SIZE_MISMATCH;
}

/* The cause of a fault in LDS, scratch, or a block that a kernel allocated. */
static enum verdict_hypothesis_id inner_cause(const struct fault_facts *x) {
    switch (x->space) {
    case EVENT_SPACE_HEAP:
        return x->address < x->extra.alloc_base ? HYPOTHESIS_BAD_OFFSET : HYPOTHESIS_SIZE_MISMATCH;
    case EVENT_SPACE_HEAP_FREED:
        return HYPOTHESIS_USE_AFTER_FREE;
    case EVENT_SPACE_HEAP_TWICE:
        return HYPOTHESIS_DOUBLE_FREE;
    default:
        return HYPOTHESIS_SIZE_MISMATCH;
    }
}

static enum verdict_hypothesis_id classify(struct fault_facts *x) {
    if (x->access == DETAIL_ACCESS_EXECUTE)
        return HYPOTHESIS_UPSTREAM_KERNEL_FAULT; /* it is the kernel's own doing */
    if (x->space)
        return inner_cause(x);
    if (x->is_host)
        return HYPOTHESIS_INVALID_POINTER;
    if (x->address < NULL_REGION || (x->has_value && x->value < NULL_REGION))
        return HYPOTHESIS_INVALID_POINTER;
    if (x->freed)
        return HYPOTHESIS_USE_AFTER_FREE;
    /* A free that was queued after the operation has nothing to do with it. */
    if (x->meant && x->has_value && x->meant->free != EVENT_NO_SEQ &&
        (x->queued == EVENT_NO_SEQ || x->meant->free < x->queued) &&
        x->value - x->meant->base < x->meant->bytes)
        return HYPOTHESIS_USE_AFTER_FREE;
    if (x->at && x->at->family == DETAIL_FAMILY_ASYNC)
        return HYPOTHESIS_STREAM_UNSYNCED; /* its allocation had not run yet in its stream */
    if (x->at)
        return HYPOTHESIS_UPSTREAM_KERNEL_FAULT;
    return outside(x);
}

/* " through its argument pos"; nothing where none is known. */
static struct sentence_value through_words(struct replay *r, const struct fault_facts *x,
                                           const struct found *f) {
    if (x->argument_name)
        return A_SENTENCE(
            SAY(&r->words, THROUGH_ARGUMENT, A_NAME(reader_string(r->r, x->argument_name))));
    const char *name =
        f->argument >= 0 ? actors_argument(r, &r->words, f->kernel, f->argument) : NULL;
    if (name)
        return A_SENTENCE(SAY(&r->words, THROUGH_ARGUMENT, A_NAME(name)));
    if (f->argument >= 0)
        return A_SENTENCE(SAY(&r->words, THROUGH_NUMBER, A_NUMBER(f->argument)));
    return A_SENTENCE(sentence_plain(SENTENCE_NOTHING));
}

/* What a kernel's sizes say about the bytes it needs. */
static struct sentence_value need_words(struct replay *r, const struct fault_facts *x) {
    const struct sentence *said = sentence_plain(SENTENCE_NOTHING), *sizes = NULL;
    if (x->need)
        said = SAY(&r->words, FAULT_NEEDS, A_BYTES(x->need));
    for (unsigned i = 0; i < SIZES_MAX && x->sizes[i]; i++)
        sizes = sizes ? SAY(&r->words, SIZE_TIMES, A_SENTENCE(sizes), A_NUMBER(x->sizes[i]))
                      : SAY(&r->words, SIZE_FIRST, A_NUMBER(x->sizes[i]));
    if (sizes)
        said = SAY(&r->words, FAULT_SIZES, A_SENTENCE(said), A_SENTENCE(sizes));
    return A_SENTENCE(said);
}

static const struct sentence *heap_words(struct replay *r, const struct fault_facts *x,
                                         struct sentence_value who, struct sentence_value did) {
    const uint64_t base = x->extra.alloc_base, bytes = x->extra.alloc_bytes, end = base + bytes;
    const bool front = x->address < base;
    const uint64_t distance = front ? base - x->address : x->address - end;
    switch (x->space) {
    case EVENT_SPACE_HEAP_FREED:
        return SAY(&r->words, FAULT_HEAP_FREED, who, did, A_BYTES(bytes));
    case EVENT_SPACE_HEAP_TWICE:
        return SAY(&r->words, FAULT_HEAP_TWICE, who, A_BYTES(bytes));
    default:
        return SAY(&r->words, FAULT_HEAP, who, did,
                   distance ? A_BYTES(distance) : A_SENTENCE(sentence_plain(SENTENCE_JUST)),
                   A_NUMBER(front), A_BYTES(bytes));
    }
}

static const struct sentence *fault_words(struct replay *r, const struct fault_facts *x,
                                          const struct found *f, struct sentence_value who) {
    struct arena *a = &r->words;
    const struct block *b = f->has_block ? &f->block : NULL;
    const uint64_t start = b ? b->base : x->address, end = b ? block_end(b) : x->address;
    const struct sentence_value
        through = through_words(r, x, f),
        did = A_SENTENCE(sentence_plain(x->access == DETAIL_ACCESS_READ    ? SENTENCE_READ
                                        : x->access == DETAIL_ACCESS_WRITE ? SENTENCE_WROTE
                                                                           : SENTENCE_TOUCHED)),
        where = A_SENTENCE(
            b ? findings_memory(r, f->name.bytes ? reader_string(r->r, f->name.text) : NULL,
                                b->bytes)
              : sentence_plain(SENTENCE_MEMORY_ADDRESS)),
        past = x->address == end ? A_SENTENCE(sentence_plain(SENTENCE_JUST))
                                 : A_BYTES(x->address - end);
    if (x->space >= EVENT_SPACE_HEAP)
        return heap_words(r, x, who, did);
    if (x->space)
        return SAY(a, FAULT_PAST_SPACE, who, did, A_NUMBER(x->address),
                   A_NUMBER(x->space == EVENT_SPACE_LDS), A_BYTES(x->space_bytes));
    if (x->is_misaligned && b)
        return SAY(a, FAULT_MISALIGNED, who, A_BYTES(x->space_bytes), A_NUMBER(x->address - start),
                   where, through);
    switch (f->hypothesis) {
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_SHAPE_MISMATCH:
        return SAY(a, FAULT_PAST_END, who, did, past, where, through, need_words(r, x));
    case HYPOTHESIS_BAD_OFFSET:
        if (x->address < start)
            return SAY(a, FAULT_BEFORE, who, did, A_BYTES(start - x->address), where, through);
        return SAY(a, FAULT_PAST_END, who, did, past, where, through,
                   A_SENTENCE(sentence_plain(SENTENCE_NOTHING)));
    case HYPOTHESIS_USE_AFTER_FREE: {
        const struct sentence_value freed =
            A_SENTENCE(findings_event(r, b ? b->free : EVENT_NO_SEQ));
        if (b && f->culprit == b->free && f->other != EVENT_NO_SEQ)
            return SAY(a, FAULT_FREED_UNDER, who, did, where, freed);
        return SAY(a, FAULT_FREED, who, did, where, freed, through);
    }
    case HYPOTHESIS_STREAM_UNSYNCED:
        return SAY(a, FAULT_TOO_EARLY, who, did, where, through);
    case HYPOTHESIS_INVALID_POINTER:
        if (x->is_host)
            return SAY(a, FAULT_HOST, who, did, AN_ADDRESS(x->address), through);
        if (x->address < NULL_REGION)
            return SAY(a, FAULT_NULL, who, did, AN_ADDRESS(x->address), through);
        return SAY(a, FAULT_NOWHERE, who, did, AN_ADDRESS(x->address), through);
    default:
        return x->access == DETAIL_ACCESS_EXECUTE
                   ? SAY(a, FAULT_TRAP, who)
                   : SAY(a, FAULT_AT, who, AN_ADDRESS(x->address), through);
    }
}

/* "file:line (thread 1,0,0 of block 2,0,0)", in words of the report's language. */
static struct sentence_value place_words(struct replay *r, const char *text) {
    char thread[40], block[40];
    const char *open = strrchr(text, '(');
    if (!open || sscanf(open, "(thread %39[0-9,] of block %39[0-9,])", thread, block) != 2)
        return A_NAME(actors_text(r, &r->words, "%s", text));
    return A_SENTENCE(SAY(&r->words, FAULT_THREAD,
                          A_NAME(actors_text(r, &r->words, "%.*s", (int)(open - text - 1), text)),
                          A_NAME(actors_text(r, &r->words, "%s", thread)),
                          A_NAME(actors_text(r, &r->words, "%s", block))));
}

/* Adds where in the kernel's code: the device says "function at file:line (thread …)", and
 * compilers name kernels there by their symbols, too. */
static const struct sentence *with_source(struct replay *r, const struct reader_event *e,
                                          uint32_t source, const struct sentence *said) {
    const char *text = reader_string(r->r, source), *at = strstr(text, " at ");
    const char *symbol = reader_string(r->r, e->event.name);
    if (!at)
        return said;
    size_t length = (size_t)(at - text);
    bool same = length == strlen(symbol) && !strncmp(text, symbol, length);
    const char *function = same ? reader_kernel(r->r, e->event.name)
                                : actors_text(r, &r->words, "%.*s", (int)length, text);
    return SAY(&r->words, FAULT_SOURCE, A_SENTENCE(said), A_NAME(function),
               place_words(r, at + strlen(" at ")));
}

/* Line and instruction of the kernel, as far as the device has said them. */
static const struct sentence *with_code(struct replay *r, const struct reader_event *e,
                                        const struct fault_facts *x, const struct sentence *said) {
    if (x->source)
        said = with_source(r, e, x->source, said);
    if (x->instruction)
        said = SAY(&r->words, FAULT_INSTRUCTION, A_SENTENCE(said),
                   A_NAME(actors_text(r, &r->words, "%s", reader_string(r->r, x->instruction))));
    return said;
}

/* The operation that faulted, by its event, or by its kernel's name. */
static void describe_fault(struct replay *r, const struct reader_event *e,
                           const struct fault_facts *x, struct found *f) {
    uint64_t seq = f->other != EVENT_NO_SEQ ? f->other : f->culprit;
    const struct sentence *who =
        seq == EVENT_NO_SEQ
            ? SAY(&r->words, KERNEL_NAMED, A_NAME(reader_kernel(r->r, e->event.name)))
            : findings_replayed(r, seq, f->replay);
    f->said = fault_words(r, x, f, A_SENTENCE(who));
    f->said = with_code(r, e, x, f->said);
}

/* A race found earlier whose operation now faults at the same place, so that both are one case:
 * host memory that was freed during a copy, or memory that another stream had not allocated yet. */
static struct found *find_race(struct replay *r, const struct fault_facts *x) {
    for (size_t i = 0; i < r->found.count && x->launch != EVENT_NO_SEQ; i++) {
        struct found *f = &r->found.at[i];
        bool given_back = f->hypothesis == HYPOTHESIS_HOST_BUFFER_LIFETIME;
        bool too_early = f->hypothesis == HYPOTHESIS_STREAM_UNSYNCED && f->has_block &&
                         f->other == f->block.alloc && x->address - f->block.base < f->block.bytes;
        if (f->culprit == x->launch && (given_back || too_early))
            return f;
    }
    return NULL;
}

void fault_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    struct space *s = t->space;
    r->faults_seen++;
    if (s->fault != EVENT_NO_SEQ || r->fault_count == FAULTS_MAX)
        return; /* what the device does after its first fault is no news */
    s->fault = e->seq;
    struct fault_facts x = read_facts(r, e, s);
    launches_on_fault(r, x.launch);
    struct found f = {
        .hypothesis = classify(&x),
        .also = 1u << HYPOTHESIS_UPSTREAM_KERNEL_FAULT,
        .culprit = x.launch,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = x.queued != EVENT_NO_SEQ ? x.queued : e->seq,
        .replay = x.queued != x.launch && x.queued != EVENT_NO_SEQ ? x.queued : 0,
        .argument =
            x.has_extra && x.extra.argument != EVENT_NO_ARGUMENT ? (int)x.extra.argument : -1,
        .argument_name = x.argument_name,
        .kernel = e->event.name,
        .fault = true,
        .failed = true,
        .culprit_writes = x.access == DETAIL_ACCESS_WRITE,
        .address = x.address,
    };
    if (x.sizes[0]) /* as it follows from the numbers alone, it may be a plain count, too */
        f.also |= 1u << HYPOTHESIS_SIZE_MISMATCH;
    const struct block *b = x.freed ? x.freed : x.at ? x.at : x.meant;
    bool nowhere =
        f.hypothesis == HYPOTHESIS_INVALID_POINTER || x.access == DETAIL_ACCESS_EXECUTE || x.space;
    findings_set_block(r, &f, s, nowhere ? NULL : b, b ? b->base : x.address);
    /* Freed in the order of a stream while this was queued in another: the free came too early. */
    if (f.hypothesis == HYPOTHESIS_USE_AFTER_FREE && b && b->free_async && b->free > x.queued) {
        f.other = f.culprit;
        f.culprit = b->free;
        f.argument = -1;
    }
    if (x.is_host)
        f.advised = sentence_plain(SENTENCE_ADVICE_HOST_MEMORY);
    else if (x.access == DETAIL_ACCESS_EXECUTE)
        f.advised = sentence_plain(SENTENCE_ADVICE_TRAP);
    findings_evidence(&f, e->seq);
    if (b)
        findings_evidence(&f, b->free);
    describe_fault(r, e, &x, &f);
    const size_t known = r->found.count;
    struct found *race = find_race(r, &x), *entered = race ? race : findings_add(r, &f);
    if (race) {
        race->fault = race->failed = true;
        race->also |= f.also;
        findings_evidence(race, e->seq);
    } else if (entered) {
        entered->fault = true;
        /* Suspected before from its sizes alone: now the device has said it, and where. */
        if (entered->argument == f.argument)
            entered->argument_name = f.argument_name;
        if ((size_t)(entered - r->found.at) < known)
            entered->said = findings_keep(r, with_code(r, e, &x, entered->said));
    }
    r->faults[r->fault_count++] = (struct fault){
        .space = s,
        .seq = e->seq,
        .t_ns = e->event.t_ns,
        .found = entered ? (size_t)(entered - r->found.at) + 1 : 0,
    };
}
