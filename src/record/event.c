#include "record/event.h"

#include <string.h>

/* ---- durations ----------------------------------------------------------------------------- */

/* exponent 0: the mantissa itself; exponent x: (1024 + mantissa) << (x - 1). */
enum { MANTISSA_BITS = 10, MANTISSA_ONE = 1 << MANTISSA_BITS };

uint16_t event_duration_encode(uint64_t ns) {
    if (ns < MANTISSA_ONE)
        return (uint16_t)ns;
    unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - MANTISSA_BITS;
    return (uint16_t)((shift + 1) << MANTISSA_BITS | ((ns >> shift) & (MANTISSA_ONE - 1)));
}

uint64_t event_duration_decode(uint16_t code) {
    uint64_t mantissa = code & (MANTISSA_ONE - 1);
    unsigned exponent = code >> MANTISSA_BITS;
    if (!exponent)
        return mantissa;
    /* Exponents that no 64-bit number has can only come from a damaged file. */
    return exponent > 54 ? UINT64_MAX : (MANTISSA_ONE + mantissa) << (exponent - 1);
}

uint64_t event_latest_end_ns(const struct event *e) {
    const uint16_t code = (uint16_t)(e->aux >> 16);
    const uint64_t more =
        code < UINT16_MAX ? event_duration_decode((uint16_t)(code + 1)) : UINT64_MAX;
    return more - 1 > UINT64_MAX - e->t_ns ? UINT64_MAX : e->t_ns + more - 1;
}

/* ---- extras -------------------------------------------------------------------------------- */

static uint64_t pack32(uint32_t low, uint32_t high) {
    return low | (uint64_t)high << 32;
}

void event_extra_dims(union event_slot *s, const struct event_dims *d) {
    uint64_t *w = event_extra_init(s, EXTRA_DIMS, 5);
    w[0] = pack32(d->grid[0], d->grid[1]);
    w[1] = pack32(d->grid[2], d->block[0]);
    w[2] = pack32(d->block[1], d->block[2]);
    w[3] = d->shared;
    w[4] = d->flags;
}

struct event_dims event_dims_of(const struct event_extra *x) {
    const uint64_t *w = x->word;
    return (struct event_dims){
        .grid = { (uint32_t)w[0], (uint32_t)(w[0] >> 32), (uint32_t)w[1] },
        .block = { (uint32_t)(w[1] >> 32), (uint32_t)w[2], (uint32_t)(w[2] >> 32) },
        .shared = w[3],
        .flags = w[4],
    };
}

/* Word 0 of ARGS: 12 bits per argument, 8 of position and 4 of flags. */
unsigned event_extra_args(union event_slot *s, const struct event_arg *args, unsigned count) {
    unsigned n = count < EVENT_ARGS_PER_SLOT ? count : EVENT_ARGS_PER_SLOT;
    uint64_t *w = event_extra_init(s, EXTRA_ARGS, n + 1);
    for (unsigned i = 0; i < n; i++) {
        uint64_t which = (args[i].index & 0xffu) | (args[i].flags & 0xfu) << 8;
        w[0] |= which << (12 * i);
        w[1 + i] = args[i].value;
    }
    return n;
}

unsigned event_args_of(const struct event_extra *x, struct event_arg *out) {
    unsigned words = event_extra_words(x);
    unsigned n = words ? words - 1 : 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned which = (unsigned)(x->word[0] >> (12 * i));
        out[i] = (struct event_arg){ .value = x->word[1 + i],
                                     .index = which & 0xffu,
                                     .flags = which >> 8 & 0xfu };
    }
    return n;
}

unsigned event_extra_accesses(union event_slot *s, const struct event_access *a, unsigned count) {
    unsigned n = count < EVENT_ACCESSES_PER_SLOT ? count : EVENT_ACCESSES_PER_SLOT;
    uint64_t *w = event_extra_init(s, EXTRA_ACCESS, 3 * n);
    for (unsigned i = 0; i < n; i++) {
        w[3 * i] = (a[i].argument & 0xffu) | (uint64_t)(a[i].access & 0xffu) << 8;
        w[3 * i + 1] = a[i].address;
        w[3 * i + 2] = a[i].bytes;
    }
    return n;
}

unsigned event_accesses_of(const struct event_extra *x, struct event_access *out) {
    unsigned n = event_extra_words(x) / 3;
    for (unsigned i = 0; i < n; i++)
        out[i] = (struct event_access){ .argument = (unsigned)(x->word[3 * i] & 0xffu),
                                        .access = (unsigned)(x->word[3 * i] >> 8 & 0xffu),
                                        .address = x->word[3 * i + 1],
                                        .bytes = x->word[3 * i + 2] };
    return n;
}

void event_extra_pattern(union event_slot *s, const struct event_pattern *p) {
    uint64_t *w = event_extra_init(s, EXTRA_PATTERN, 6);
    w[0] =
        (p->access.argument & 0xffu) | (uint64_t)(p->access.access & 0xffu) << 8 | p->slices << 16;
    w[1] = p->access.address;
    w[2] = p->access.bytes;
    w[3] = p->pitch;
    w[4] = p->rows;
    w[5] = p->slice;
}

struct event_pattern event_pattern_of(const struct event_extra *x) {
    return (struct event_pattern){ .access = { .argument = (unsigned)(x->word[0] & 0xffu),
                                               .access = (unsigned)(x->word[0] >> 8 & 0xffu),
                                               .address = x->word[1],
                                               .bytes = x->word[2] },
                                   .pitch = x->word[3],
                                   .rows = x->word[4],
                                   .slice = x->word[5],
                                   .slices = x->word[0] >> 16 };
}

void event_extra_safe(union event_slot *s, const struct event_safe *safe) {
    uint64_t *w = event_extra_init(s, EXTRA_SAFE, 5);
    w[0] = safe->op_id;
    w[1] = (uint64_t)safe->step;
    w[2] = (uint64_t)safe->layer;
    w[3] = safe->offset;
    w[4] = safe->alloc;
}

struct event_safe event_safe_of(const struct event_extra *x) {
    return (struct event_safe){ .op_id = x->word[0],
                                .step = (int64_t)x->word[1],
                                .layer = (int64_t)x->word[2],
                                .offset = x->word[3],
                                .alloc = x->word[4] };
}

void event_extra_fault(union event_slot *s, const struct event_fault *f) {
    uint64_t *w = event_extra_init(s, EXTRA_FAULT, 6);
    w[0] = f->argument;
    w[1] = f->value;
    w[2] = f->alloc_base;
    w[3] = f->alloc_bytes;
    w[4] = f->alloc_seq;
    w[5] = f->pc;
}

struct event_fault event_fault_of(const struct event_extra *x) {
    return (struct event_fault){ .argument = x->word[0],
                                 .value = x->word[1],
                                 .alloc_base = x->word[2],
                                 .alloc_bytes = x->word[3],
                                 .alloc_seq = x->word[4],
                                 .pc = x->word[5] };
}

/* ---- tables -------------------------------------------------------------------------------- */

enum detail_list {
    LIST_NONE,
    LIST_LOSS,
    LIST_MARK,
    LIST_RELEASE,
    LIST_UNWATCHED,
    LIST_PLACE,
    LIST_FAMILY,
    LIST_COPY_KIND,
    LIST_WIDTH,
    LIST_SCOPE,
    LIST_WAIT,
    LIST_ACCESS,
    LIST_DECISION,
    LIST_REASON,
    LIST_SIDE,
    LIST_CAUGHT,
    LIST_REACHED,
    LIST_CHECKED,
    LIST_COUNT
};

/* A value given twice in one list, or a kind given twice below, is a build error
 * (-Woverride-init). */
static const char *const details[LIST_COUNT][16] = {
#define EVENT_VALUE(list, number, value, text) [LIST_##list][number] = text,
#include "record/event.def"
};

#define FIELD(format, label)                                                                       \
    { EVENT_FORMAT_##format, label }

static const struct event_info infos[EVENT_KIND_LIMIT] = {
#define EVENT(number, kind, text, dst, src, len, detail, name, doc)                                \
    [number] = {                                                                                   \
        text, FIELD dst, FIELD src, FIELD len, details[LIST_##detail], #detail, name, doc          \
    },
#include "record/event.def"
};

static const struct {
    const char *text, *labels;
} extras[] = {
#define EVENT_EXTRA(number, type, text, labels) [number] = { text, labels },
#include "record/event.def"
};

static const struct {
    const char *text, *doc;
} definitions[] = {
#define DEFINITION(number, kind, text, doc) [number] = { text, doc },
#include "record/event.def"
};

static const struct event_info unknown = {
    .dst = { EVENT_FORMAT_HEX, "dst" },
    .src = { EVENT_FORMAT_HEX, "src" },
    .len = { EVENT_FORMAT_HEX, "len" },
    .details = details[LIST_NONE],
    .detail_list = "NONE",
    .name = "name",
    .doc = "",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

const struct event_info *event_info(unsigned kind) {
    return kind < COUNT(infos) && infos[kind].text ? &infos[kind] : &unknown;
}

const char *event_kind_text(unsigned kind) {
    const char *text = event_info(kind)->text;
    return text ? text : "?";
}

bool event_names_kernel(unsigned kind) {
    return !strcmp(event_info(kind)->name, "kernel");
}

unsigned event_kind_parse(const char *text) {
    for (unsigned kind = 1; kind < COUNT(infos); kind++)
        if (infos[kind].text && !strcmp(infos[kind].text, text))
            return kind;
    return 0;
}

const char *event_detail_text(const struct event *e) {
    return event_info(e->kind)->details[event_detail(e)];
}

const char *event_extra_text(unsigned type) {
    return type < COUNT(extras) && extras[type].text ? extras[type].text : "?";
}

const char *event_extra_labels(unsigned type) {
    return type < COUNT(extras) && extras[type].labels ? extras[type].labels : "";
}

const char *definition_text(unsigned kind) {
    return kind < COUNT(definitions) && definitions[kind].text ? definitions[kind].text : "?";
}

const char *definition_doc(unsigned kind) {
    return kind < COUNT(definitions) && definitions[kind].doc ? definitions[kind].doc : "";
}

static uint64_t pack_block(const uint32_t b[3]) {
    return b[0] | (uint64_t)(b[1] & 0xffff) << 32 | (uint64_t)(b[2] & 0xffff) << 48;
}
static uint64_t pack_thread(const uint32_t t[3]) {
    return (t[0] & 1023) | (uint64_t)(t[1] & 1023) << 10 | (uint64_t)(t[2] & 1023) << 20;
}

void event_extra_caught(union event_slot *s, const struct event_caught *c) {
    uint64_t *w = event_extra_init(s, EXTRA_CAUGHT, 6);
    w[0] = c->place[0] | (uint64_t)c->place[1] << 32;
    w[1] = pack_block(c->block[0]);
    w[2] = pack_block(c->block[1]);
    w[3] = pack_thread(c->thread[0]) | pack_thread(c->thread[1]) << 32;
    w[4] = (c->space & 255) | (c->access[0] & 255) << 8 | (c->access[1] & 255) << 16;
    w[5] = c->count | (uint64_t)c->all << 32;
}

struct event_caught event_caught_of(const struct event_extra *x) {
    const uint64_t *w = x->word;
    struct event_caught c = { .place = { (uint32_t)w[0], (uint32_t)(w[0] >> 32) },
                              .access = { w[4] >> 8 & 255, w[4] >> 16 & 255 },
                              .space = w[4] & 255,
                              .count = (uint32_t)w[5],
                              .all = (uint32_t)(w[5] >> 32) };
    for (int i = 0; i < 2; i++) {
        c.block[i][0] = (uint32_t)w[1 + i];
        c.block[i][1] = w[1 + i] >> 32 & 0xffff;
        c.block[i][2] = (uint32_t)(w[1 + i] >> 48);
        for (int k = 0; k < 3; k++)
            c.thread[i][k] = w[3] >> (32 * i + 10 * k) & 1023;
    }
    return c;
}
