/* caught.c - what checks of the device found in kernels: races within a launch, barriers that not
 * all reach, values that nothing has defined. The device says it, so it is a finding. */
#include <stdio.h>
#include <string.h>

#include "verdict/replay.h"

struct caught {
    struct replay *r;
    const struct reader_event *e;
    struct event_caught at;
    struct space *space;
    const struct block *block; /* of the bytes; NULL: none */
    struct space_name thing;   /* the tensor they lie in, or that block; bytes 0: none */
    const struct sentence *call;
};

/* "3,0,0" of a string that lives as long as the words of this event. */
static struct sentence_value triple(struct replay *r, const uint32_t at[3]) {
    char *text = arena_alloc(&r->words, 48);
    if (!text) {
        r->no_memory = true;
        return A_NAME("?");
    }
    snprintf(text, 48, "%u,%u,%u", at[0], at[1], at[2]);
    return A_NAME(text);
}

/* The device says "function at file:line"; kernels stand there by their symbols. */
static struct sentence_value place(const struct caught *c, int i) {
    struct replay *r = c->r;
    const char *text = c->at.place[i] ? reader_string(r->r, c->at.place[i]) : NULL;
    const char *at = text ? strstr(text, " at ") : NULL;
    if (!at)
        return A_SENTENCE(text ? SAY(&r->words, CAUGHT_PLACE, A_NAME(text))
                               : sentence_plain(SENTENCE_NOTHING));
    const char *symbol = reader_string(r->r, c->e->event.name);
    size_t length = (size_t)(at - text);
    bool same = length == strlen(symbol) && !strncmp(text, symbol, length);
    return A_SENTENCE(SAY(&r->words, CAUGHT_PLACE_LINE,
                          A_NAME(same ? reader_kernel(r->r, c->e->event.name)
                                      : actors_text(r, &r->words, "%.*s", (int)length, text)),
                          A_NAME(at + strlen(" at "))));
}

static struct sentence_value side(const struct caught *c, int i) {
    enum sentence_id did = c->at.access[i] == DETAIL_ACCESS_READ         ? SENTENCE_CAUGHT_READS
                           : c->at.access[i] == DETAIL_ACCESS_READ_WRITE ? SENTENCE_CAUGHT_UPDATES
                                                                         : SENTENCE_CAUGHT_WRITES;
    return A_SENTENCE(SAY(&c->r->words, CAUGHT_SIDE, triple(c->r, c->at.thread[i]),
                          triple(c->r, c->at.block[i]), A_SENTENCE(sentence_plain(did)),
                          place(c, i)));
}

/* The tensor that an address of device memory lies in, or its block. */
static struct space_name thing_at(struct space *s, uint64_t address) {
    const struct space_name *n = space_name_at(s, address);
    const struct block *b = n ? NULL : space_at(s, address);
    return n ? *n : b ? (struct space_name){ b->base, b->bytes, 0 } : (struct space_name){ 0 };
}

static struct sentence_value call_it(const struct caught *c, const struct space_name *thing) {
    const struct block *b = thing->text ? NULL : space_at(c->space, thing->at);
    const char *name = thing->text ? reader_string(c->r->r, thing->text) : NULL;
    return A_SENTENCE(b ? findings_block(c->r, b) : findings_memory(c->r, name, thing->bytes));
}

static uint64_t offset_of(const struct caught *c) {
    return c->e->event.dst - c->thing.at;
}

static struct sentence_value memory(const struct caught *c) {
    return call_it(c, &c->thing);
}

static struct sentence_value origin(const struct caught *c) {
    struct arena *words = &c->r->words;
    const struct sentence_value at = A_NUMBER(c->e->event.dst);
    switch (c->at.space) {
    case EVENT_SPACE_LDS:
        return A_SENTENCE(SAY(words, ORIGIN_LDS, at));
    case EVENT_SPACE_SCRATCH:
        return A_SENTENCE(SAY(words, ORIGIN_SCRATCH, at));
    case EVENT_SPACE_VGPR:
        return A_SENTENCE(SAY(words, ORIGIN_VGPR, at));
    case EVENT_SPACE_SGPR:
        return A_SENTENCE(SAY(words, ORIGIN_SGPR, at));
    default:
        return A_SENTENCE(SAY(words, ORIGIN_GLOBAL, A_NUMBER(offset_of(c)), memory(c)));
    }
}

static const struct sentence *undefined(const struct caught *c, enum sentence_id how) {
    return SAY(&c->r->words, CAUGHT_UNDEFINED, A_SENTENCE(c->call), origin(c),
               A_SENTENCE(sentence_plain(how)), triple(c->r, c->at.thread[0]),
               triple(c->r, c->at.block[0]), place(c, 0));
}

/* " through its argument pos", or its number. */
static struct sentence_value through(const struct caught *c) {
    struct replay *r = c->r;
    const char *name = actors_argument(r, &r->words, c->e->event.name, (int)c->at.count);
    return A_SENTENCE(name ? SAY(&r->words, THROUGH_ARGUMENT, A_NAME(name))
                           : SAY(&r->words, THROUGH_NUMBER, A_NUMBER(c->at.count)));
}

static struct sentence_value did(const struct caught *c) {
    return A_SENTENCE(
        sentence_plain(c->at.access[0] == DETAIL_ACCESS_READ ? SENTENCE_READS : SENTENCE_WRITES));
}

/* "a[40] = b[0]", as the device says it. */
static struct sentence_value elements(const struct caught *c) {
    return A_NAME(c->at.place[1] ? reader_string(c->r->r, c->at.place[1]) : "?");
}

/* An access that left the block or the tensor of its argument and came into another one. */
static const struct sentence *astray(const struct caught *c, enum verdict_hypothesis_id *id) {
    const struct event *e = &c->e->event;
    const bool before = c->at.all;
    const struct space_name meant =
        thing_at(c->space, before ? e->dst + e->len : e->dst - e->len - 1);
    *id = before ? HYPOTHESIS_BAD_OFFSET : HYPOTHESIS_SIZE_MISMATCH;
    return SAY(&c->r->words, CAUGHT_ASTRAY, A_SENTENCE(c->call), did(c),
               e->len ? A_BYTES(e->len) : A_SENTENCE(sentence_plain(SENTENCE_JUST)),
               A_NUMBER(before), call_it(c, &meant), through(c), memory(c), A_NUMBER(offset_of(c)),
               triple(c->r, c->at.thread[0]), triple(c->r, c->at.block[0]), place(c, 0));
}

/* Code that compilers merge or move has no line; nothing is said about such a barrier. */
static const struct sentence *different(const struct caught *c) {
    struct arena *words = &c->r->words;
    const struct sentence_value call = A_SENTENCE(c->call), block = triple(c->r, c->at.block[0]);
    bool first = c->at.place[0] != 0, second = c->at.place[1] != 0;
    if (first && second)
        return SAY(words, CAUGHT_DIFFERENT, call, block, place(c, 0), place(c, 1));
    return first || second ? SAY(words, CAUGHT_DIFFERENT_ONE, call, block, place(c, second))
                           : SAY(words, CAUGHT_DIFFERENT_UNKNOWN, call, block);
}

static const struct sentence *say(const struct caught *c, enum verdict_hypothesis_id *id) {
    struct arena *words = &c->r->words;
    const struct sentence_value call = A_SENTENCE(c->call), count = A_NUMBER(c->at.count),
                                all = A_NUMBER(c->at.all), block = triple(c->r, c->at.block[0]);
    *id = HYPOTHESIS_BARRIER_DIVERGENCE;
    switch (event_detail(&c->e->event)) {
    case DETAIL_CAUGHT_RACE:
        *id = HYPOTHESIS_KERNEL_RACE;
        return SAY(words, CAUGHT_RACE, call, A_NUMBER(c->at.space == EVENT_SPACE_LDS), memory(c),
                   A_NUMBER(offset_of(c)), side(c, 0), side(c, 1));
    case DETAIL_CAUGHT_BARRIER_PARTIAL:
        return SAY(words, CAUGHT_PARTIAL, call, count, all, block, place(c, 0));
    case DETAIL_CAUGHT_BARRIER_DIFFERENT:
        return different(c);
    case DETAIL_CAUGHT_ASTRAY:
        return astray(c, id);
    case DETAIL_CAUGHT_ARRAYS:
        *id = c->at.all ? HYPOTHESIS_BAD_OFFSET : HYPOTHESIS_SIZE_MISMATCH;
        return SAY(words, CAUGHT_ARRAYS, call, did(c), elements(c), place(c, 0),
                   triple(c->r, c->at.thread[0]), block);
    case DETAIL_CAUGHT_LEAK:
        *id = HYPOTHESIS_LEAK;
        return SAY(words, CAUGHT_LEAK, call, count, A_BYTES(c->e->event.len), place(c, 0));
    default:
        *id = HYPOTHESIS_UNINITIALISED_READ;
        return undefined(c, event_detail(&c->e->event) == DETAIL_CAUGHT_UNDEFINED_ADDRESS
                                ? SENTENCE_USED_ADDRESS
                            : event_detail(&c->e->event) == DETAIL_CAUGHT_UNDEFINED_BRANCH
                                ? SENTENCE_USED_BRANCH
                                : SENTENCE_USED_STORE);
    }
}

void caught_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    const struct event_extra *x = reader_extra(e, EXTRA_CAUGHT);
    if (event_detail(&e->event) == DETAIL_CAUGHT_RACES_UNFOLLOWED) {
        launches_on_unfollowed(r, e);
        return;
    }
    if (event_detail(&e->event) == DETAIL_CAUGHT_RACE_HARMLESS) {
        launches_on_harmless(r, e);
        return;
    }
    struct caught c = { .r = r, .e = e, .space = t->space };
    if (x)
        c.at = event_caught_of(x);
    if (c.at.space == EVENT_SPACE_GLOBAL) {
        c.block = space_at(t->space, e->event.dst);
        c.thing = thing_at(t->space, e->event.dst);
    }
    uint64_t node = graph_find_op(r, t->space, e, e->event.src, e->event.dst);
    bool replayed = node != EVENT_NO_SEQ;
    c.call = replayed ? findings_replayed(r, node, e->event.src) : findings_event(r, e->event.src);
    struct found f = {
        .culprit = replayed ? node : e->event.src,
        .replay = replayed ? e->event.src : 0,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = e->event.src != EVENT_NO_SEQ ? e->event.src : e->seq,
        .argument = -1,
        .kernel = e->event.name,
        .culprit_writes = c.at.access[0] != DETAIL_ACCESS_READ,
        .address = e->event.dst,
        .len = e->event.len,
        .process = t->space->process,
    };
    if (event_detail(&e->event) == DETAIL_CAUGHT_ASTRAY) {
        f.argument = (int)c.at.count;
        f.len = 1;
    }
    if (event_detail(&e->event) == DETAIL_CAUGHT_LEAK)
        f.order = UINT64_MAX - 1; /* a leak is known at the end only */
    f.said = say(&c, &f.hypothesis);
    findings_set_block(r, &f, t->space, c.block, e->event.dst);
    findings_evidence(&f, e->event.src);
    findings_evidence(&f, e->seq);
    findings_add(r, &f);
}
