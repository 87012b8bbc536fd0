#include "diff/diff_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "hip/hip_types.h"

/* What is counted by thread. */
struct diff_lane_state {
    uint32_t blocks;       /* allocated so far */
    uint32_t streams_used; /* streams used so far */
};

enum rc diff_state_open(struct diff_state *s, const reader *r, struct err *e) {
    *s = (struct diff_state){ .r = r,
                              .lane_count = reader_count(r, DEFINITION_THREAD) + 1,
                              .stream_count = reader_count(r, DEFINITION_STREAM) + 1 };
    s->lanes = calloc(s->lane_count, sizeof *s->lanes);
    return s->lanes ? RC_OK : err_set(e, RC_MEMORY, "no memory to compare recordings");
}

void diff_state_close(struct diff_state *s) {
    table_clear(&s->stream_ordinals);
    free(s->lanes);
    free(s->ordinals);
    report_memory_clear(&s->memory);
    *s = (struct diff_state){ 0 };
}

/* ---- words --------------------------------------------------------------------------------- */

static void add(struct diff_words *w, const char *label, uint64_t value) {
    if (w->count < DIFF_WORDS_MAX)
        w->word[w->count++] = (struct diff_word){ label, NULL, value };
}

static void add_text(struct diff_words *w, const char *label, const char *text) {
    if (w->count < DIFF_WORDS_MAX)
        w->word[w->count++] = (struct diff_word){ label, text, hash_bytes(text, strlen(text), 0) };
}

uint64_t diff_words_hash(const struct diff_words *w) {
    uint64_t values[DIFF_WORDS_MAX];
    for (unsigned i = 0; i < w->count; i++)
        values[i] = w->word[i].value;
    return hash_bytes(values, w->count * sizeof *values, w->count);
}

/* The stream in the order of its first use by the thread. */
static uint32_t stream_ordinal(struct diff_state *s, const struct event *e) {
    struct diff_lane_state *lane = &s->lanes[e->thread];
    if (!e->stream || e->stream >= s->stream_count)
        return 0;
    uint64_t key = (uint64_t)e->thread << 32 | e->stream;
    uintptr_t ordinal = (uintptr_t)table_find(&s->stream_ordinals, key);
    if (ordinal)
        return (uint32_t)ordinal;
    if (!table_set(&s->stream_ordinals, key, (void *)(uintptr_t)(lane->streams_used + 1))) {
        s->out_of_memory = true;
        return 0;
    }
    return ++lane->streams_used;
}

/* Which memory an address is in, and how far; nothing of memory that HIP did not give. */
static void add_address(struct diff_state *s, struct diff_words *w, uint32_t thread,
                        const char *block_label, const char *offset_label, uint64_t address) {
    size_t n = report_memory_find(&s->memory, s->r, thread, address);
    if (n == SIZE_MAX) {
        add(w, block_label, 0);
        return;
    }
    const struct report_block *b = &s->memory.blocks[n];
    if (b->name)
        add_text(w, block_label, reader_string(s->r, b->name));
    else
        add(w, block_label, n < s->ordinals_room ? s->ordinals[n] : 0);
    add(w, offset_label, address - b->base);
}

/* ---- fields -------------------------------------------------------------------------------- */

/* Kinds whose addresses are of code, or new. */
static bool has_plain_address(unsigned kind) {
    return kind == EVENT_ALLOC || kind == EVENT_LAUNCH || kind == EVENT_HOST_FN ||
           kind == EVENT_HOST_FN_BEGIN || kind == EVENT_HOST_FN_END || kind == EVENT_MODULE_LOAD ||
           kind == EVENT_FUNCTION || kind == EVENT_SYMBOL;
}

static void add_field(struct diff_state *s, struct diff_words *w, const struct event *e,
                      const struct event_field *f, uint64_t value, const char *block_label,
                      const char *offset_label) {
    switch (f->format) {
    case EVENT_FORMAT_ADDRESS:
        if (!has_plain_address(e->kind))
            add_address(s, w, e->thread, block_label, offset_label, value);
        return;
    case EVENT_FORMAT_BYTES:
    case EVENT_FORMAT_NUMBER:
    case EVENT_FORMAT_SIGNED:
        add(w, f->label, value);
        return;
    case EVENT_FORMAT_HEX: /* handles differ from run to run, flags do not */
        if (!strcmp(f->label, "flags") || !strcmp(f->label, "value") || !strcmp(f->label, "mode"))
            add(w, f->label, value);
        return;
    case EVENT_FORMAT_DEFINITION: /* its extras are compared */
    case EVENT_FORMAT_SEQ:
    case EVENT_FORMAT_NONE:
        return;
    }
}

static void add_dims(struct diff_words *w, const struct event_extra *x) {
    static const char *const labels[6] = { "grid x",  "grid y",  "grid z",
                                           "block x", "block y", "block z" };
    struct event_dims d = event_dims_of(x);
    for (int i = 0; i < 6; i++)
        add(w, labels[i], i < 3 ? d.grid[i] : d.block[i - 3]);
    add(w, "shared bytes", d.shared);
    add(w, "launch flags", (uint32_t)d.flags); /* above: a hash over addresses */
}

static void add_extra(struct diff_state *s, struct diff_words *w, const struct event *e,
                      const struct event_extra *x) {
    struct event_arg args[EVENT_ARGS_PER_SLOT];
    struct event_access touched[EVENT_ACCESSES_PER_SLOT];
    switch (event_extra_type(x)) {
    case EXTRA_DIMS:
        add_dims(w, x);
        return;
    case EXTRA_ARGS:
        for (unsigned i = 0, n = event_args_of(x, args); i < n; i++) {
            add(w, "argument", args[i].index);
            if (args[i].flags & EVENT_ARG_NUMBER) {
                add(w, "argument's value", args[i].value);
                continue;
            }
            add_address(s, w, e->thread, "argument's memory", "argument's offset", args[i].value);
        }
        return;
    case EXTRA_ACCESS:
        for (unsigned i = 0, n = event_accesses_of(x, touched); i < n; i++) {
            add(w, "access", touched[i].access);
            add(w, "access bytes", touched[i].bytes);
            add_address(s, w, e->thread, "access memory", "access offset", touched[i].address);
        }
        return;
    case EXTRA_PATTERN: {
        struct event_pattern p = event_pattern_of(x);
        add(w, "access", p.access.access);
        add(w, "access bytes", p.access.bytes);
        add(w, "access pitch", p.pitch);
        add(w, "access rows", p.rows);
        add(w, "access slice", p.slice);
        add(w, "access slices", p.slices);
        add_address(s, w, e->thread, "access memory", "access offset", p.access.address);
        return;
    }
    case EXTRA_SAFE: {
        struct event_safe safe = event_safe_of(x);
        add(w, "step", (uint64_t)safe.step);
        add(w, "layer", (uint64_t)safe.layer);
        add(w, "offset", safe.offset);
        add(w, "alloc", safe.alloc);
        return;
    }
    case EXTRA_ROWS:
    case EXTRA_SLICES:
        for (unsigned i = 0; i < event_extra_words(x); i++)
            add(w, event_extra_type(x) == EXTRA_ROWS ? "rows" : "slices", x->word[i]);
        return;
    default:
        return;
    }
}

/* ---- events -------------------------------------------------------------------------------- */

static bool is_comparable(const struct event *e) {
    switch (e->kind) {
    case EVENT_LOST:
    case EVENT_FORK:
    case EVENT_JOIN:
    case EVENT_END:
    case EVENT_THREAD_START:
    case EVENT_HOST_RELEASE:
    case EVENT_HOST_ACQUIRE:
        return false;
    default:
        return e->status != hipErrorNotReady;
    }
}

static void number_block(struct diff_state *s, uint32_t thread) {
    size_t n = s->memory.count;
    if (n > s->ordinals_room) {
        size_t room = 2 * n;
        uint32_t *all = realloc(s->ordinals, room * sizeof *all);
        if (!all) {
            s->out_of_memory = true;
            return;
        }
        memset(all + s->ordinals_room, 0, (room - s->ordinals_room) * sizeof *all);
        s->ordinals = all;
        s->ordinals_room = room;
    }
    s->ordinals[n - 1] = ++s->lanes[thread].blocks;
}

static void add_words(struct diff_state *s, const struct reader_event *full, struct diff_words *w) {
    const struct event *e = &full->event;
    const struct event_info *info = event_info(e->kind);
    const char *detail = event_detail_text(e);
    add_text(w, "kind", event_kind_text(e->kind));
    if (event_fn(e) != EVENT_NO_FN)
        add_text(w, "call", reader_function(s->r, event_fn(e)));
    if (e->name && e->kind != EVENT_MODULE_LOAD)
        add_text(w, *info->name ? info->name : "name", reader_string(s->r, e->name));
    if (detail)
        add_text(w, "detail", detail);
    add(w, "captured", event_is_captured(e));
    add(w, "result", e->status);
    add(w, "stream", stream_ordinal(s, e));
    add_field(s, w, e, &info->dst, e->dst, "dst memory", "dst offset");
    add_field(s, w, e, &info->src, e->src, "src memory", "src offset");
    add_field(s, w, e, &info->len, e->len, "len memory", "len offset");
    for (unsigned i = 0; i < full->extras; i++)
        add_extra(s, w, e, &full->extra[i]);
}

bool diff_state_see(struct diff_state *s, const struct reader_event *full, struct diff_words *out) {
    const struct event *e = &full->event;
    bool known = e->thread < s->lane_count, comparable = known && is_comparable(e);
    size_t before = s->memory.count;
    out->count = 0;
    if (comparable)
        add_words(s, full, out); /* before a free takes effect */
    report_memory_see(&s->memory, s->r, full);
    if (known && s->memory.count > before)
        number_block(s, e->thread);
    s->out_of_memory |= s->memory.out_of_memory;
    return comparable;
}
