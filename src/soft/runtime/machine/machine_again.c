/* machine_again.c - runs a launch again in other orders, on copies of the memory.
 *
 * Only races between loads and stores get here: stores of different values matter. In the first of
 * two more runs the last group and the last wave go first, so that the two sides of every race
 * change places, and the values of the loads are followed through registers. In the second groups
 * and waves take turns of a few instructions, so that a wave comes between another one's check and
 * its store. */
#include "soft/runtime/machine/machine_again.h"

#include <stdatomic.h>
#include <string.h>

#include "soft/runtime/machine/machine_copies.h"
#include "soft/runtime/machine/machine_count.h"

enum { TOGETHER = 8, STEPS_MAX = 64, SHORT_STEPS_MAX = 1 << 20, PAIRS_MAX = 64 };

/* Accesses that all runs of this kind may make together: some seconds. */
static _Atomic uint64_t accesses_left = 60 * 1000 * 1000;

/* ---- what was found out before --------------------------------------------------------------- */

struct pair {
    uint64_t pc[2];
    bool matters;
};

static struct spin pairs_lock;
static struct pair pairs[PAIRS_MAX];
static unsigned pair_count;

static struct pair *find_pair(const struct isa_race_found *f) {
    for (unsigned i = 0; i < pair_count; i++)
        if (pairs[i].pc[0] == f->side[0].pc && pairs[i].pc[1] == f->side[1].pc)
            return &pairs[i];
    return NULL;
}

static void remember(const struct machine_launch *l, bool matters) {
    spin_lock(&pairs_lock);
    for (unsigned i = 0; i < l->suspect_count; i++) {
        const struct isa_race_found *f = &l->suspects[i];
        struct pair *p = find_pair(f);
        if (p)
            p->matters |= matters;
        else if (pair_count < PAIRS_MAX)
            pairs[pair_count++] = (struct pair){ { f->side[0].pc, f->side[1].pc }, matters };
    }
    spin_unlock(&pairs_lock);
}

/* One of them is known to matter; all are known not to. */
static void recall(const struct machine_launch *l, bool *some_matter, bool *all_harmless) {
    *some_matter = false;
    *all_harmless = true;
    spin_lock(&pairs_lock);
    for (unsigned i = 0; i < l->suspect_count; i++) {
        const struct pair *p = find_pair(&l->suspects[i]);
        *some_matter |= p && p->matters;
        *all_harmless &= p && !p->matters;
    }
    spin_unlock(&pairs_lock);
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_reversed(struct machine_launch *l, uint64_t groups) {
    struct machine_worker *w = machine_worker_take(l);
    for (uint64_t i = groups; w && i-- > 0 && !l->stopped;) {
        enum machine_turn turn = machine_group_start(l, w, i) ? MACHINE_RUNS : MACHINE_ENDED;
        for (unsigned steps = 0; turn == MACHINE_RUNS && !l->stopped; steps++) {
            turn = machine_group_step(l, w);
            if (steps == STEPS_MAX)
                machine_launch_stop(l, "it may be waiting");
        }
        machine_group_end(l, w, turn);
    }
    if (w)
        machine_worker_give(l, w);
}

/* Some groups in turns, to the end of all. */
static void run_together(struct machine_launch *l, uint64_t first, unsigned count) {
    struct machine_worker *w[TOGETHER];
    enum machine_turn turn[TOGETHER];
    unsigned ready = 0;
    for (; ready < count && !l->stopped && (w[ready] = machine_worker_take(l)); ready++)
        turn[ready] =
            machine_group_start(l, w[ready], first + ready) ? MACHINE_RUNS : MACHINE_ENDED;
    bool any = true;
    for (unsigned steps = 0; any && !l->stopped; steps++) {
        any = false;
        for (unsigned i = 0; i < ready && !l->stopped; i++) {
            if (turn[i] == MACHINE_RUNS)
                turn[i] = machine_group_step(l, w[i]);
            any |= turn[i] == MACHINE_RUNS;
        }
        if (steps == SHORT_STEPS_MAX)
            machine_launch_stop(l, "it may be waiting");
    }
    for (unsigned i = 0; i < ready; i++) {
        machine_group_end(l, w[i], turn[i]);
        machine_worker_give(l, w[i]);
    }
}

/* One more run; true if it ended, and left the same bytes as the first. */
static bool runs_alike(const struct machine_launch *first, struct machine_again *a) {
    struct soft_machine_stop stop = { 0 };
    struct machine_launch l = { .machine = first->machine,
                                .lds_bytes = first->lds_bytes,
                                .scratch_bytes = first->scratch_bytes,
                                .kernarg = first->kernarg,
                                .packet = first->packet,
                                .queue = first->queue,
                                .device = first->device,
                                .op = first->op,
                                .again = a,
                                .stop = &stop };
    memcpy(l.grid, first->grid, sizeof l.grid);
    memcpy(l.block, first->block, sizeof l.block);
    uint64_t groups = (uint64_t)l.grid[0] * l.grid[1] * l.grid[2];
    if (!(a->copies = machine_copies_open(a->race)))
        return false;
    if (a->reversed)
        run_reversed(&l, groups);
    for (uint64_t i = 0; a->interleaved && i < groups && !l.stopped; i += TOGETHER)
        run_together(&l, i, groups - i < TOGETHER ? (unsigned)(groups - i) : TOGETHER);
    bool alike = !l.stopped && !a->reached && machine_copies_are_equal(a->copies);
    machine_copies_close(&a->copies);
    return alike;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Collects the loads; false if there is more to a race than a load and a store. */
static bool find_loads(const struct machine_launch *l, struct machine_again *a) {
    for (unsigned i = 0; i < l->suspect_count; i++) {
        const struct isa_race_side *s = l->suspects[i].side;
        bool second = s[1].kind == ISA_LOAD;
        if (s[!second].kind != ISA_STORE || s[second].kind != ISA_LOAD)
            return false;
        a->load[a->loads++] = s[second].pc;
    }
    return true;
}

static bool may_spend(const struct machine_launch *l) {
    uint64_t cost = 2 * isa_race_accesses(l->race), left = atomic_load(&accesses_left);
    while (left >= cost)
        if (atomic_compare_exchange_weak(&accesses_left, &left, left - cost))
            return true;
    return false;
}

enum machine_again_answer machine_again_judge(struct machine_launch *l) {
    struct machine_again a = { .race = l->race, .reversed = true, .follows = true };
    bool some_matter, all_harmless;
    recall(l, &some_matter, &all_harmless);
    if (some_matter || l->stopped || l->cooperative || l->asks_host || machine_count_is_on() ||
        !isa_race_is_restorable(l->race) || !find_loads(l, &a))
        return MACHINE_AGAIN_MATTERS;
    if (!may_spend(l))
        return all_harmless ? MACHINE_AGAIN_UNTRIED : MACHINE_AGAIN_MATTERS;
    bool alike = runs_alike(l, &a);
    a.reversed = a.follows = false;
    a.interleaved = true;
    alike = alike && runs_alike(l, &a);
    remember(l, !alike);
    return alike ? MACHINE_AGAIN_HARMLESS : MACHINE_AGAIN_MATTERS;
}
