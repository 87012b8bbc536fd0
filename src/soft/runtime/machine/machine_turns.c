/* machine_turns.c - workgroups that take turns, because they wait for each other.
 *
 * The groups of a cooperative launch are all resident; a barrier of the grid opens when all that
 * are left wait at it.
 *
 * Those of an ordinary launch run one after the other, on each core. Some kernels let a group wait
 * for memory that another group writes, in the knowledge that a GPU has room for both. So a group
 * that runs for long is put aside (machine_group_run()), and from then on groups begin only here:
 * all that have begun take turns, first as many as there are threads. While none of them ends, more
 * and more begin, up to what a large GPU holds at a time. A launch whose groups merely run long
 * loses little: a turn takes milliseconds. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "isa/race.h"
#include "soft/runtime/machine/machine.h"
#include "soft/runtime/machine/machine_check.h"

struct turns {
    struct machine_launch *launch;
    struct machine_worker **workers; /* one per group */
    enum machine_turn *results;      /* of the last step, of each; of ordinary launches */
    _Atomic bool any_runs, any_left;
};

/* One step of each group of a piece. */
static void step_groups(void *user, uint64_t first, uint64_t last, unsigned worker,
                        unsigned workers) {
    struct turns *t = user;
    (void)worker, (void)workers;
    for (uint64_t i = first; i < last && !t->launch->stopped; i++) {
        enum machine_turn turn = machine_group_step(t->launch, t->workers[i]);
        if (t->results)
            t->results[i] = turn;
        if (turn == MACHINE_RUNS)
            atomic_store_explicit(&t->any_runs, true, memory_order_relaxed);
        if (turn != MACHINE_ENDED)
            atomic_store_explicit(&t->any_left, true, memory_order_relaxed);
    }
}

/* ---- cooperative launches -------------------------------------------------------------------- */

/* Every group one step, on all cores, until each has ended. When all that are left wait for the
 * grid, its barrier opens. */
static void take_turns(struct turns *t, uint64_t count) {
    struct machine_launch *l = t->launch;
    for (atomic_store(&t->any_left, true); atomic_load(&t->any_left) && !l->stopped;) {
        atomic_store(&t->any_runs, false);
        atomic_store(&t->any_left, false);
        machine_launch_job(l, step_groups, t, count);
        if (atomic_load(&t->any_runs) || l->stopped)
            continue;
        for (uint64_t i = 0; i < count; i++)
            machine_group_release(t->workers[i]);
        if (l->race)
            isa_race_grid_barrier(l->race);
    }
}

void machine_turns_together(struct machine_launch *l, uint64_t count) {
    struct turns t = { .launch = l, .workers = calloc(count, sizeof(struct machine_worker *)) };
    uint64_t ready = 0;
    while (t.workers && ready < count && (t.workers[ready] = machine_worker_take(l))) {
        ready++;
        if (!machine_group_start(l, t.workers[ready - 1], ready - 1))
            break;
    }
    if (ready == count && !l->stopped)
        take_turns(&t, count);
    else
        machine_launch_stop(l, "no memory for all groups of a cooperative launch");
    for (uint64_t i = 0; i < ready; i++) {
        machine_check_end(t.workers[i]);
        machine_worker_give(l, t.workers[i]);
    }
    free(t.workers);
}

/* ---- groups that ran long -------------------------------------------------------------------- */

void machine_turns_put(struct machine_launch *l, struct machine_worker *w) {
    spin_lock(&l->lock);
    w->next = l->aside;
    l->aside = w;
    l->some_aside = true;
    spin_unlock(&l->lock);
}

void machine_turns_leave(struct machine_launch *l, uint64_t first, uint64_t last) {
    spin_lock(&l->lock);
    struct machine_left *more = realloc(l->left, (l->left_count + 1) * sizeof *more);
    if (more) {
        l->left = more;
        l->left[l->left_count++] = (struct machine_left){ first, last };
    }
    spin_unlock(&l->lock);
    if (!more)
        machine_launch_stop(l, "no memory for the groups of the launch");
}

/* The lowest group that is left: most that wait do so for a group before them. */
static bool next_left(struct machine_launch *l, uint64_t *index) {
    struct machine_left *lowest = NULL;
    for (size_t i = 0; i < l->left_count; i++)
        if (l->left[i].first < l->left[i].last && (!lowest || l->left[i].first < lowest->first))
            lowest = &l->left[i];
    if (lowest)
        *index = lowest->first++;
    return lowest;
}

/* Begins groups until there are `wanted`, as far as some are left. */
static void begin_groups(struct turns *t, size_t *count, size_t wanted) {
    uint64_t index;
    while (*count < wanted && !t->launch->stopped && next_left(t->launch, &index)) {
        struct machine_worker *w = machine_worker_take(t->launch);
        if (w) {
            t->workers[(*count)++] = w;
            (void)machine_group_start(t->launch, w, index); /* if not, the launch is stopped */
        }
    }
}

/* Gives back those that have ended, or all of a launch that was stopped. */
static size_t end_groups(struct turns *t, size_t count) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (t->results[i] == MACHINE_RUNS && !t->launch->stopped) {
            t->workers[left++] = t->workers[i];
            continue;
        }
        machine_group_end(t->launch, t->workers[i], t->results[i]);
        machine_worker_give(t->launch, t->workers[i]);
    }
    return left;
}

/* How many groups a large GPU holds: waves of registers, and memory here. */
static size_t most_groups(const struct machine_launch *l) {
    enum { WAVES = 4096 };
    return WAVES / machine_waves(l);
}

static size_t take_aside(struct turns *t, size_t room) {
    size_t count = 0;
    for (; t->launch->aside && count < room; count++) {
        t->workers[count] = t->launch->aside;
        t->launch->aside = t->workers[count]->next;
    }
    return count;
}

void machine_turns_finish(struct machine_launch *l) {
    enum { PATIENCE = 4, THREADS_MAX = 256 };
    size_t most = most_groups(l) + THREADS_MAX, wanted = 0, rounds = 0;
    struct turns t = { .launch = l,
                       .workers = calloc(most, sizeof(struct machine_worker *)),
                       .results = calloc(most, sizeof(enum machine_turn)) };
    if (!t.workers || !t.results)
        machine_launch_stop(l, "no memory for the groups of the launch");
    size_t count = t.workers && t.results ? take_aside(&t, most) : 0;
    for (wanted = count; count && !l->stopped;) {
        memset(t.results, 0, count * sizeof *t.results);
        machine_launch_job(l, step_groups, &t, count);
        size_t before = count;
        count = end_groups(&t, count);
        rounds = count < before ? 0 : rounds + 1;
        if (rounds == PATIENCE) {
            wanted = 2 * wanted < most_groups(l) ? 2 * wanted : most_groups(l);
            rounds = 0;
        }
        begin_groups(&t, &count, wanted);
    }
    if (count)
        (void)end_groups(&t, count);
    free(t.workers);
    free(t.results);
    free(l->left);
    l->left = NULL;
}
