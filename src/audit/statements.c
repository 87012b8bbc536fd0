#include "audit/statements.h"

#include <greta/soft.h>

#include <stdio.h>
#include <string.h>

#include "audit/kernel.h"

/* The event that made the block at base, live or freed; EVENT_NO_SEQ if none is known. */
static uint64_t made_by(uint64_t base) {
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, base);
    if (!entry)
        entry = ledger_freed_at(audit.ledger, base);
    uint64_t seq = entry ? entry->made.event : EVENT_NO_SEQ;
    ledger_read_end(t);
    return seq;
}

/* Of a graph's operation, the event of the call that was captured, or the handle of the node. */
static unsigned add_node(union event_slot *slot, uint64_t node) {
    if (!node)
        return 0;
    bool added = node & GRETA_SOFT_NODE_ADDED;
    uint64_t *word = event_extra_init(slot, EXTRA_NODE, added ? 2 : 1);
    word[0] = added ? EVENT_NO_SEQ : node - 1;
    if (added)
        word[1] = node & ~GRETA_SOFT_NODE_ADDED;
    return 1;
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Where in the kernel: the line, of code compiled with -g, and the instruction. */
static void add_source(union event_slot *slot, const struct greta_soft_fault *fault) {
    uint64_t *word = event_extra_init(slot, EXTRA_SOURCE, 2);
    char place[1200];
    word[0] = word[1] = 0;
    if (fault->place) {
        snprintf(place, sizeof place, "%s (thread %u,%u,%u of block %u,%u,%u)", fault->place,
                 fault->thread[0], fault->thread[1], fault->thread[2], fault->block[0],
                 fault->block[1], fault->block[2]);
        word[0] = record_string(audit.writer, place);
    }
    if (fault->instruction)
        word[1] = record_string(audit.writer, fault->instruction);
}

static void observe_fault(const struct greta_soft_fault *fault, void *user) {
    (void)user;
    static const unsigned access[] = {
        [GRETA_SOFT_FAULT_READ] = DETAIL_ACCESS_READ,
        [GRETA_SOFT_FAULT_WRITE] = DETAIL_ACCESS_WRITE,
        [GRETA_SOFT_FAULT_UNKNOWN] = DETAIL_ACCESS_UNKNOWN,
        [GRETA_SOFT_FAULT_TRAP] = DETAIL_ACCESS_EXECUTE,
    };
    bool known = fault->kind > 0 && (size_t)fault->kind < sizeof access / sizeof *access;
    union event_slot slot[6];
    unsigned slots = 2;
    slot[0].event = (struct event){
        .kind = EVENT_FAULT,
        .dst = fault->address,
        .src = fault->tag ? fault->tag - 1 : EVENT_NO_SEQ,
        .len = fault->bytes,
        .name = record_string(audit.writer, fault->operation),
        .status =
            fault->kind == GRETA_SOFT_FAULT_TRAP ? hipErrorLaunchFailure : hipErrorIllegalAddress,
        .aux = event_aux(EVENT_NO_FN, known ? access[fault->kind] : DETAIL_ACCESS_UNKNOWN),
    };
    struct event_fault extra = {
        .argument = fault->argument >= 0 ? (uint64_t)fault->argument : EVENT_NO_ARGUMENT,
        .alloc_base = fault->allocation_base,
        .alloc_bytes = fault->allocation_size,
        .alloc_seq = made_by(fault->allocation_base),
        .pc = fault->pc,
    };
    event_extra_fault(&slot[1], &extra);
    if (fault->argument >= 0 && fault->argument_name)
        event_extra_argument(&slot[slots++], (uint64_t)fault->argument,
                             record_string(audit.writer, fault->argument_name));
    if (fault->place || fault->instruction)
        add_source(&slot[slots++], fault);
    if (fault->space)
        event_extra_caught(&slot[slots++], &(struct event_caught){ .space = (unsigned)fault->space,
                                                                   .all = fault->space_bytes });
    slots += add_node(&slot[slots], fault->node);
    record_events(audit.writer, slot, slots);
}

/* A recording knows arguments by their numbers; the names are recorded once per kernel. */
static void tell_names(const struct greta_soft_kernel *k) {
    char key[512], names[1024];
    size_t used = 0;
    for (uint32_t i = 0; i < k->param_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? "," : "",
                                 k->params[i].name);
    snprintf(key, sizeof key, "kernel.%s.arguments", k->name);
    if (audit.writer && used && used < sizeof names)
        record_provenance(audit.writer, key, names);
}

/* What the software device knows about a kernel in host code. */
static bool describe_native(const char *name, struct kernel_layout *out, void *user) {
    (void)user;
    const struct greta_soft_kernel *k = audit.soft.kernel_find(name);
    if (!k || k->param_count > KERNEL_PARAMS_MAX)
        return false;
    out->count = k->param_count;
    tell_names(k);
    for (uint32_t i = 0; i < k->param_count; i++) {
        bool pointer = k->params[i].flags & GRETA_SOFT_POINTER;
        bool reads = k->params[i].flags & GRETA_SOFT_READS;
        out->param[i].size = k->params[i].size;
        out->param[i].opaque = !pointer && k->params[i].size > sizeof(uint64_t);
        out->param[i].access = !pointer ? 0
                               : reads  ? EVENT_ARG_READ
                                        : EVENT_ARG_READ | EVENT_ARG_WRITE;
    }
    return true;
}

/* ---- launches -------------------------------------------------------------------------------- */

void statement_checked(union event_slot *slot, const void *function, bool footprint,
                       bool cooperative) {
    struct greta_soft_check check = { 0 };
    if (audit.soft.check_of && audit.soft.check_of(function, &check) != 0)
        check = (struct greta_soft_check){ 0 };
    check.races &= !cooperative;
    bool guards = check.how == GRETA_SOFT_CHECKED_GUARDS;
    struct event_checked checked = {
        .how = guards && footprint                            ? DETAIL_CHECKED_FOOTPRINTS
               : guards                                       ? DETAIL_CHECKED_GUARDS
               : check.how == GRETA_SOFT_CHECKED_EVERY_ACCESS ? DETAIL_CHECKED_EVERY_ACCESS
                                                              : DETAIL_CHECKED_NOTHING,
        .before = check.before,
        .after = check.after,
        .flags = (check.pattern ? EVENT_CHECKED_PATTERN : 0u) |
                 (check.init ? EVENT_CHECKED_INIT : 0u) | (check.races ? EVENT_CHECKED_RACES : 0u) |
                 (check.barriers ? EVENT_CHECKED_BARRIERS : 0u) |
                 (check.could ? EVENT_CHECKED_COULD : 0u),
    };
    event_extra_checked(slot, &checked);
}

static void record_not_run(const void *function, uint64_t launch, uint64_t launches,
                           unsigned reason, uint32_t kernel) {
    struct event ev = {
        .kind = EVENT_NOT_RUN,
        .dst = (uint64_t)(uintptr_t)function,
        .src = launch,
        .len = launches,
        .name = kernel,
        .aux = event_aux(EVENT_NO_FN, reason),
    };
    record_event(audit.writer, &ev);
}

static bool is_machine_code(const void *function) {
    struct greta_soft_check check;
    return audit.soft.check_of && audit.soft.check_of(function, &check) == 0 &&
           check.how == GRETA_SOFT_CHECKED_NOTHING;
}

void statement_refused(const struct call *c, const void *function, hipError_t r) {
    if (c->seq == RECORD_NONE)
        return;
    unsigned reason = hip_error_is_sticky(r) ? DETAIL_REASON_DEVICE_FAILED
                      : r == hipErrorNotSupported && is_machine_code(function)
                          ? DETAIL_REASON_NO_NATIVE_TWIN
                          : DETAIL_REASON_REFUSED;
    record_not_run(function, c->seq, 1, reason, kernel_find(function).record_name);
}

static void observe_not_run(uint64_t tag, const char *kernel, int reason, uint64_t launches,
                            void *user) {
    (void)user;
    static const unsigned reasons[] = {
        [GRETA_SOFT_NOT_RUN_NO_NATIVE_TWIN] = DETAIL_REASON_NO_NATIVE_TWIN,
        [GRETA_SOFT_NOT_RUN_DEVICE_FAILED] = DETAIL_REASON_DEVICE_FAILED,
        [GRETA_SOFT_NOT_RUN_STOPPED] = DETAIL_REASON_STOPPED,
    };
    bool known = reason > 0 && (size_t)reason < sizeof reasons / sizeof *reasons;
    record_not_run(NULL, tag ? tag - 1 : EVENT_NO_SEQ, launches,
                   known ? reasons[reason] : DETAIL_REASON_UNKNOWN,
                   record_string(audit.writer, kernel));
}

static void observe_slack(const struct greta_soft_slack *d, void *user) {
    (void)user;
    union event_slot slot[2];
    bool before = d->address < d->base;
    slot[0].event = (struct event){
        .kind = EVENT_SLACK,
        .dst = d->address,
        .src = made_by(d->base),
        .len = d->bytes,
        .aux = event_aux(EVENT_NO_FN, before ? DETAIL_SIDE_BEFORE : DETAIL_SIDE_AFTER),
    };
    event_extra_looks(&slot[1], d->good ? d->good - 1 : EVENT_NO_SEQ,
                      d->bad ? d->bad - 1 : EVENT_NO_SEQ, d->launches);
    record_events(audit.writer, slot, 2);
}

static struct event_pattern pattern_of(const struct greta_soft_touch *t) {
    unsigned access = t->kind == GRETA_SOFT_TOUCH_READ    ? DETAIL_ACCESS_READ
                      : t->kind == GRETA_SOFT_TOUCH_WRITE ? DETAIL_ACCESS_WRITE
                                                          : DETAIL_ACCESS_READ_WRITE;
    return (struct event_pattern){
        .access = { .address = t->address,
                    .bytes = t->bytes,
                    .access = access | (t->at_most ? (unsigned)EVENT_ACCESS_AT_MOST : 0),
                    .argument = EVENT_NO_ARGUMENT },
        .pitch = t->pitch,
        .rows = t->rows,
        .slice = t->slice,
        .slices = t->slices,
    };
}

/* Adds as many of the ranges to the extras of one event as there is room for, after those that are
 * there already; returns how many slots are taken. */
static unsigned put_touched(union event_slot slot[EVENT_EXTRA_MAX], unsigned slots,
                            const struct greta_soft_touch *touched, size_t count, size_t *done) {
    struct event_access plain[EVENT_ACCESSES_PER_SLOT];
    unsigned waiting = 0;
    for (*done = 0; *done < count && slots + (waiting > 0) < EVENT_EXTRA_MAX; ++*done) {
        struct event_pattern p = pattern_of(&touched[*done]);
        bool rows = p.rows * p.slices > 1;
        if (waiting && (rows || waiting == EVENT_ACCESSES_PER_SLOT)) {
            event_extra_accesses(&slot[slots++], plain, waiting);
            waiting = 0;
        }
        if (rows)
            event_extra_pattern(&slot[slots++], &p);
        else
            plain[waiting++] = p.access;
    }
    if (waiting)
        event_extra_accesses(&slot[slots++], plain, waiting);
    return slots;
}

static void observe_touched(uint64_t tag, uint64_t node, const char *kernel,
                            const struct greta_soft_touch *touched, size_t count, void *user) {
    (void)user;
    union event_slot slot[1 + EVENT_EXTRA_MAX];
    uint64_t before = 0;
    size_t done = 0;
    if (!tag)
        return;
    do {
        size_t n;
        unsigned slots =
            put_touched(slot + 1, add_node(slot + 1, node), touched + done, count - done, &n);
        done += n;
        slot[0].event = (struct event){
            .kind = EVENT_TOUCHED,
            .dst = count,
            .src = tag - 1,
            .len = before,
            .name = record_string(audit.writer, kernel),
            .aux = event_aux(EVENT_NO_FN, 0),
        };
        before = record_events(audit.writer, slot, 1 + slots);
    } while (done < count && before != RECORD_NONE);
}

static void observe_caught(const struct greta_soft_caught *caught, void *user) {
    (void)user;
    static const unsigned access[] = { [GRETA_SOFT_TOUCH_READ] = DETAIL_ACCESS_READ,
                                       [GRETA_SOFT_TOUCH_WRITE] = DETAIL_ACCESS_WRITE,
                                       [GRETA_SOFT_TOUCH_ATOMIC] = DETAIL_ACCESS_READ_WRITE };
    union event_slot slot[3];
    struct event_caught extra = { .space = (unsigned)caught->space,
                                  .count = caught->count,
                                  .all = caught->all };
    for (int i = 0; i < 2; i++) {
        const struct greta_soft_caught_at *at = &caught->at[i];
        memcpy(extra.block[i], at->block, sizeof at->block);
        memcpy(extra.thread[i], at->thread, sizeof at->thread);
        extra.place[i] = at->place ? record_string(audit.writer, at->place) : 0;
        extra.access[i] = access[at->kind & 3];
    }
    slot[0].event = (struct event){
        .kind = EVENT_CAUGHT,
        .dst = caught->address,
        .src = caught->tag ? caught->tag - 1 : EVENT_NO_SEQ,
        .len = caught->bytes,
        .name = record_string(audit.writer, caught->kernel),
        .aux = event_aux(EVENT_NO_FN, (unsigned)caught->kind),
    };
    event_extra_caught(&slot[1], &extra);
    record_events(audit.writer, slot, 2 + add_node(&slot[2], caught->node));
}

static void observe_executed(const struct greta_soft_executed *e, void *user) {
    (void)user;
    union event_slot slot[2];
    unsigned reached = !e->followed              ? DETAIL_REACHED_UNKNOWN
                       : e->address && e->branch ? DETAIL_REACHED_BOTH
                       : e->address              ? DETAIL_REACHED_ADDRESS
                       : e->branch               ? DETAIL_REACHED_BRANCH
                                                 : DETAIL_REACHED_NOTHING;
    struct event_executed extra = {
        .precise = e->precise,
        .approximate = e->approximate,
        .exact_names = record_string(audit.writer, e->exact_names),
        .precise_names = record_string(audit.writer, e->precise_names),
        .approximate_names = record_string(audit.writer, e->approximate_names),
    };
    slot[0].event = (struct event){
        .kind = EVENT_EXECUTED,
        .dst = e->exact,
        .src = e->tag ? e->tag - 1 : EVENT_NO_SEQ,
        .len = e->precise + e->approximate,
        .name = record_string(audit.writer, e->kernel),
        .aux = event_aux(EVENT_NO_FN, reached),
    };
    event_extra_executed(&slot[1], &extra);
    record_events(audit.writer, slot, 2);
}

static void observe_value_met(uint64_t wait, uint64_t write, void *user) {
    (void)user;
    if (!wait || !write)
        return;
    struct event ev = {
        .kind = EVENT_VALUE_MET,
        .dst = wait - 1,
        .src = write - 1,
        .aux = event_aux(EVENT_NO_FN, 0),
    };
    record_event(audit.writer, &ev);
}

/* ---- attaching ------------------------------------------------------------------------------- */

void statements_attach(void) {
    static const struct greta_soft_launch_observer launches = {
        observe_not_run, observe_slack,    observe_touched,
        observe_caught,  observe_executed, observe_value_met
    };
    kernel_set_device_source(NULL, NULL);
    if (!audit.writer)
        return;
    if (audit.soft.kernel_find)
        kernel_set_device_source(describe_native, NULL);
    if (audit.soft.observe_faults)
        audit.soft.observe_faults(observe_fault, NULL);
    if (audit.soft.observe_launches)
        audit.soft.observe_launches(&launches, NULL);
}

void statements_end(void) {
    if (!audit.writer)
        return;
    if (audit.soft.look_at_slack)
        audit.soft.look_at_slack();
    for (struct order_stream *s = order_first(); s; s = s->next)
        order_note_ran(s);
}

void statements_detach(void) {
    statements_end();
    if (audit.soft.observe_faults)
        audit.soft.observe_faults(NULL, NULL);
    if (audit.soft.observe_launches)
        audit.soft.observe_launches(NULL, NULL);
}
