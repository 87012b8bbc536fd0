/* slack.c - what the device states about launches: which it did not run, and which bytes beside
 * blocks were written.
 *
 * A block seldom fills its pages. The rest, its slack, is accessible to native kernels, and a write
 * there does not fault: in checked mode, where a block ends at the end of a page, up to a page in
 * front of it, else up to a page past it. So slack is filled with a pattern, and the pattern is
 * looked at: after each launch that has the block among its arguments, when the block is freed, and
 * at the end. Reads leave no trace. Neither do writes that happen to store the pattern, so the
 * pattern is not constant: a byte depends on its place in the page.
 *
 * Nothing is filled or looked at unless there is an observer. Kernels whose arguments say
 * which bytes they touch (GRETA_SOFT_FOOTPRINT) are not looked at launch by launch: that is for
 * kernels whose accesses are unknown. A block that keeps being damaged is reported DAMAGES_MAX
 * times. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <greta/soft.h>

#include "soft/runtime/error.h"
#include "soft/runtime/fault_signal.h"
#include "soft/runtime/heap.h"
#include "soft/runtime/launch.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/memory_table.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/op.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/slack.h"
#include "soft/runtime/start.h"

enum { PAGE = 4096, DAMAGES_MAX = 16 };

static _Atomic(const struct greta_soft_launch_observer *) observer;
static _Atomic(void *) observer_user;
static _Atomic uint64_t runs; /* launches that ran to their end, of all streams */
static unsigned char pattern[PAGE];

static bool is_observed(void) {
    return atomic_load_explicit(&observer, memory_order_acquire) != NULL && !soft_is_forked();
}

static bool is_in_pages(const struct range *r, uint64_t addr) {
    const struct soft_block *b = r ? r->value : NULL;
    return b && addr - b->map < b->map_size;
}

/* Looks at the block whose pages contain addr, after the launch with that tag. */
static void look_at(uint64_t addr, uint64_t tag) {
    struct soft_slacks found = { 0 };
    spin_lock(&soft_memory_lock);
    struct range *r = rangemap_find_first_at_or_after(&soft_memory_table, addr);
    if (!is_in_pages(r, addr))
        r = rangemap_find_last_before(&soft_memory_table, addr);
    struct soft_block *b = is_in_pages(r, addr) ? r->value : NULL;
    if (b && b->state == SOFT_LIVE)
        soft_slack_look(b, tag, &found);
    spin_unlock(&soft_memory_lock);
    soft_slack_tell(&found);
}

/* The same for all blocks (tag 0), or gives them a pattern if fill. */
static void look_at_all(bool fill) {
    struct soft_slacks found = { 0 };
    uint64_t at = 0;
    for (bool more = true; more;) {
        spin_lock(&soft_memory_lock);
        struct range *r = rangemap_find_first_at_or_after(&soft_memory_table, at);
        struct soft_block *b = r ? r->value : NULL;
        found.count = 0;
        if (b && b->state == SOFT_LIVE && fill)
            soft_slack_fill(b);
        else if (b && b->state == SOFT_LIVE)
            soft_slack_look(b, 0, &found);
        more = b && b->addr + b->size > at;
        at = b ? b->addr + b->size : at;
        spin_unlock(&soft_memory_lock);
        soft_slack_tell(&found);
    }
}

void greta_soft_observe_launches(const struct greta_soft_launch_observer *o, void *user) {
    if (o && !is_observed()) {
        uint32_t x = 0x9E3779B9u;
        for (int i = 0; i < PAGE; i++) {
            x = x * 1664525u + 1013904223u;
            pattern[i] = (unsigned char)(x >> 24);
        }
    }
    atomic_store(&observer_user, user);
    atomic_store(&observer, o);
    if (o && !soft_is_forked())
        look_at_all(true); /* blocks from before */
}

/* Blocks that are alive on a device that failed are not necessarily leaks. */
static void tell_leak(const struct soft_heap_site *site) {
    const struct greta_soft_launch_observer *o = atomic_load(&observer);
    if (!o || !o->caught || soft_error_raised(site->device))
        return;
    struct greta_soft_caught c = {
        .kind = GRETA_SOFT_CAUGHT_LEAK,
        .tag = site->tag,
        .node = site->node,
        .kernel = site->kernel,
        .bytes = site->bytes,
        .count = site->blocks < UINT32_MAX ? (uint32_t)site->blocks : UINT32_MAX,
        .at = { { .pc = site->pc, .place = site->place } },
    };
    o->caught(&c, atomic_load(&observer_user));
}

void greta_soft_look_at_slack(void) {
    if (!is_observed())
        return;
    look_at_all(false);
    soft_heap_each_leak(tell_leak);
}

void soft_slack_limits(struct greta_soft_check *out) {
    bool right = soft_memory_is_right_aligned();
    out->before =
        soft_settings()->checks & SOFT_CHECK_BOUNDS ? PAGE - 1 : 0; /* also older blocks */
    out->after = right ? 0 : PAGE - 1;
    out->pattern = is_observed();
}

/* ---- one block ------------------------------------------------------------------------------ */

/* Program addresses; before comes first. */
struct side {
    uint64_t from, bytes;
};

static void find_sides(const struct soft_block *b, struct side side[2]) {
    bool has = b->kind != SOFT_REGISTERED && b->kind != SOFT_VIRTUAL && b->kind != SOFT_IMPORTED;
    side[0] = (struct side){ b->map, has ? b->addr - b->map : 0 };
    side[1] =
        (struct side){ b->addr + b->size, has ? b->map + b->map_size - (b->addr + b->size) : 0 };
}

static void fill(const struct side *s) {
    if (s->bytes)
        memcpy(soft_reach(s->from), pattern + s->from % PAGE, s->bytes);
}

void soft_slack_fill(struct soft_block *b) {
    struct side side[2];
    if (!is_observed())
        return;
    find_sides(b, side);
    fill(&side[0]);
    fill(&side[1]);
    b->has_pattern = side[0].bytes || side[1].bytes;
    b->good_tag = 0;
    b->good_runs = atomic_load(&runs);
}

/* From the first byte that differs to the last; false if none does. */
static bool compare(const struct side *s, struct greta_soft_slack *out) {
    const unsigned char *is = soft_reach(s->from), *was = pattern + s->from % PAGE;
    uint64_t first = 0, end = s->bytes;
    if (!s->bytes || !memcmp(is, was, s->bytes))
        return false;
    while (is[first] == was[first])
        first++;
    while (is[end - 1] == was[end - 1])
        end--;
    out->address = s->from + first;
    out->bytes = end - first;
    return true;
}

struct look {
    struct soft_block *block;
    uint64_t tag;
    struct soft_slacks *out;
};

static void look(void *user) {
    const struct look *l = user;
    struct soft_block *b = l->block;
    struct soft_slacks *out = l->out;
    uint64_t tag = l->tag;
    struct side side[2];
    find_sides(b, side);
    uint64_t now = atomic_load(&runs);
    for (int i = 0; i < 2; i++) {
        struct greta_soft_slack d = { .base = b->addr,
                                      .size = b->size,
                                      .good = b->good_tag,
                                      .bad = tag,
                                      .launches = now - b->good_runs };
        if (!compare(&side[i], &d))
            continue;
        fill(&side[i]);
        if (b->damages < DAMAGES_MAX) {
            b->damages++;
            out->at[out->count++] = d;
        }
    }
    if (tag)
        b->good_tag = tag; /* what was damaged is whole again */
    b->good_runs = now;
}

/* Pinned memory is the program's, too, and it may have closed the pages: then there is nothing to
 * see, now or later. */
void soft_slack_look(struct soft_block *b, uint64_t tag, struct soft_slacks *out) {
    struct look l = { b, tag, out };
    uint64_t address;
    int kind;
    out->count = 0;
    if (!b->has_pattern)
        return;
    if (soft_memory_is_device_address(b->addr))
        look(&l);
    else if (!soft_fault_guard(look, &l, &address, &kind))
        b->has_pattern = false;
}

/* ---- telling -------------------------------------------------------------------------------- */

void soft_slack_tell(const struct soft_slacks *found) {
    const struct greta_soft_launch_observer *o = atomic_load(&observer);
    for (unsigned i = 0; o && o->slack && i < found->count; i++)
        o->slack(&found->at[i], atomic_load(&observer_user));
}

static void look_at_arguments(const struct soft_op *op) {
    const struct greta_soft_kernel *k = op->u.launch.function->native;
    for (uint32_t i = 0, at = 0; k && i < k->param_count; i++) {
        uint64_t pointer;
        uint32_t from = soft_param_offset(at, k->params[i].size);
        at = from + k->params[i].size;
        if (!soft_slack_is_looked_at(&k->params[i]))
            continue;
        memcpy(&pointer, op->data + from, sizeof pointer);
        look_at(pointer, op->tag);
    }
}

void soft_launch_done(const struct soft_op *op) {
    if (op->kind != SOFT_OP_LAUNCH || !is_observed())
        return;
    atomic_fetch_add(&runs, 1);
    if (op->u.launch.function->looks)
        look_at_arguments(op);
}

bool soft_touches_wanted(void) {
    const struct greta_soft_launch_observer *o = atomic_load(&observer);
    return o && o->touched && !soft_is_forked();
}

void soft_touches_tell(const struct soft_op *op, const struct greta_soft_touch *touched,
                       size_t count) {
    const struct greta_soft_launch_observer *o = atomic_load(&observer);
    if (o && o->touched)
        o->touched(op->tag, op->node, op->what, touched, count, atomic_load(&observer_user));
}

bool soft_executed_wanted(void) {
    const struct greta_soft_launch_observer *o = atomic_load(&observer);
    return o && o->executed;
}

void soft_executed_tell(const struct soft_op *op, struct greta_soft_executed *executed) {
    const struct greta_soft_launch_observer *o = atomic_load(&observer);
    executed->tag = op->tag;
    executed->kernel = op->what;
    if (o && o->executed)
        o->executed(executed, atomic_load(&observer_user));
}

void soft_value_tell(const struct soft_op *wait, uint64_t write) {
    const struct greta_soft_launch_observer *o = atomic_load(&observer);
    if (o && o->value_met)
        o->value_met(wait->tag, write, atomic_load(&observer_user));
}

/* For a user without a report: one line. */
static void print_caught(const struct soft_op *op, const struct greta_soft_caught *c) {
    static const char *const what[] = {
        [GRETA_SOFT_CAUGHT_RACE] = "data race",
        [GRETA_SOFT_CAUGHT_BARRIER_PARTIAL] = "barrier that not all threads of a wave reach",
        [GRETA_SOFT_CAUGHT_BARRIER_DIFFERENT] = "waves wait at different barriers",
        [GRETA_SOFT_CAUGHT_UNDEFINED_ADDRESS] = "undefined value used as an address",
        [GRETA_SOFT_CAUGHT_UNDEFINED_BRANCH] = "undefined value decides a branch",
        [GRETA_SOFT_CAUGHT_UNDEFINED_STORE] = "undefined value stored to device memory",
        [GRETA_SOFT_CAUGHT_RACES_UNFOLLOWED] = "too many accesses to look for races to the end",
        [GRETA_SOFT_CAUGHT_ASTRAY] = "access through an argument into other memory",
        [GRETA_SOFT_CAUGHT_ARRAYS] = "one instruction reaches two private variables",
    };
    const struct greta_soft_caught_at *a = &c->at[0], *b = &c->at[1];
    if (c->kind == GRETA_SOFT_CAUGHT_RACE_HARMLESS)
        return;
    if (!a->pc) {
        fprintf(stderr, "greta: kernel %s: %s\n", op->what,
                what[c->kind] ? what[c->kind] : "finding");
        return;
    }
    fprintf(stderr, "greta: kernel %s: %s: block %u,%u,%u thread %u,%u,%u%s%s", op->what,
            what[c->kind] ? what[c->kind] : "finding", a->block[0], a->block[1], a->block[2],
            a->thread[0], a->thread[1], a->thread[2], a->place ? ", " : "",
            a->place ? a->place : "");
    if (b->pc)
        fprintf(stderr, "; block %u,%u,%u thread %u,%u,%u%s%s", b->block[0], b->block[1],
                b->block[2], b->thread[0], b->thread[1], b->thread[2], b->place ? ", " : "",
                b->place ? b->place : "");
    else if (b->place)
        fprintf(stderr, ": %s", b->place);
    fputc('\n', stderr);
}

void soft_caught_tell(const struct soft_op *op, struct greta_soft_caught *caught) {
    enum { PLACE_BYTES = 1024 };
    const struct greta_soft_launch_observer *o = atomic_load(&observer);
    char place[2][PLACE_BYTES];
    caught->tag = op->tag;
    caught->node = op->node;
    caught->kernel = op->what;
    for (int i = 0; i < 2; i++)
        if (caught->at[i].pc &&
            soft_module_place(op->u.launch.function, caught->at[i].pc, place[i], sizeof place[i]))
            caught->at[i].place = place[i];
    if (o && o->caught)
        o->caught(caught, atomic_load(&observer_user));
    else
        print_caught(op, caught);
}

void soft_launch_skipped(const struct soft_op *op) {
    const struct greta_soft_launch_observer *o =
        op->kind == SOFT_OP_LAUNCH ? atomic_load(&observer) : NULL;
    if (o && o->not_run)
        o->not_run(op->tag, op->what, GRETA_SOFT_NOT_RUN_DEVICE_FAILED, 1,
                   atomic_load(&observer_user));
}
