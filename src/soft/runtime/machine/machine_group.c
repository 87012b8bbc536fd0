/* machine_group.c - one workgroup: what its waves start with, and whose turn it is.
 *
 * The waves of a group take turns on one thread. A wave runs until it ends, waits at a barrier, or
 * has used its budget; a barrier opens when every wave that has not ended has reached it. Groups of
 * a cooperative launch take turns too: see machine_turns.c. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "soft/runtime/heap.h"
#include "soft/runtime/hostcall/hostcall.h"
#include "soft/runtime/machine/machine.h"
#include "soft/runtime/machine/machine_check.h"
#include "soft/runtime/machine/machine_heap.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/settings.h"

/* Instructions of a turn: waves may wait for each other in a loop. */
enum { BUDGET = 1 << 16, SHORT_BUDGET = 3 };

/* ---- clocks ---------------------------------------------------------------------------------- */

/* s_memrealtime counts at 100 MHz, s_memtime with the core: nanoseconds stand for both. */
static uint64_t read_clock(void *context, bool real) {
    (void)context;
    return real ? clock_now_ns() / 10 : clock_now_ns();
}

/* The number of the call of malloc() that the wave has come to. */
static uint32_t find_heap_site(const struct machine_launch *l, const struct isa_wave *w) {
    enum { PLACE_BYTES = 1024 };
    const struct soft_op *op = l->op;
    uint64_t pc = machine_heap_caller(w);
    uint32_t known = soft_heap_find_site(pc, op->what);
    if (known)
        return known;
    char place[PLACE_BYTES];
    bool has = soft_module_place(op->u.launch.function, pc, place, sizeof place);
    return soft_heap_add_site(&(struct soft_heap_site){ .kernel = op->what,
                                                        .place = has ? place : NULL,
                                                        .pc = pc,
                                                        .tag = op->tag,
                                                        .node = op->node,
                                                        .device = l->device });
}

/* The only message of compute kernels that asks for something is an interrupt, by which a wave says
 * that it waits for the host. Other messages stand for functions that were replaced. */
static enum isa_result take_message(void *context, struct isa_wave *w, uint32_t message,
                                    uint32_t m0) {
    enum { MESSAGE_MASK = 15, MESSAGE_INTERRUPT = 1 };
    const struct machine_worker *worker = w->memory->context;
    struct machine_launch *l = worker->launch;
    (void)context, (void)m0;
    if (l->again) {
        w->stop.why = "a message of a launch that is run again";
        return ISA_UNSUPPORTED;
    }
    l->asks_host = true;
    if ((message & MESSAGE_MASK) == MESSAGE_INTERRUPT)
        soft_hostcall_serve();
    uint32_t site = machine_heap_asks(message) ? find_heap_site(l, w) : 0;
    return machine_heap_message(l->device, w, message, site);
}
static const struct isa_host host = { .message = take_message, .clock = read_clock };

/* ---- registers ------------------------------------------------------------------------------- */

static void set_pair(struct isa_wave *w, int at, uint64_t value) {
    if (at >= 0)
        memcpy(&w->sgpr[at], &value, sizeof value);
}

static void set_one(struct isa_wave *w, int at, uint32_t value) {
    if (at >= 0)
        w->sgpr[at] = value;
}

static void preload(const struct machine_launch *l, struct isa_wave *w) {
    const struct soft_machine *m = l->machine;
    if (m->start.preload < 0)
        return;
    const unsigned char *from = soft_reach(l->kernarg + 4u * m->descriptor.preload_offset);
    memcpy(&w->sgpr[m->start.preload], from, 4u * m->descriptor.preload_count);
}

static void set_scalars(const struct machine_launch *l, struct isa_wave *w, uint64_t scratch,
                        uint64_t wave_bytes) {
    const struct soft_machine *m = l->machine;
    const struct codeobj_start *s = &m->start;
    if (s->private_buffer >= 0)
        codeobj_private_buffer(&w->sgpr[s->private_buffer], scratch,
                               wave_bytes * MACHINE_WAVES_MAX);
    set_pair(w, s->dispatch_ptr, l->packet);
    set_pair(w, s->queue_ptr, l->queue);
    set_pair(w, s->kernarg_ptr, l->kernarg);
    set_pair(w, s->dispatch_id, 1);
    set_pair(w, s->flat_scratch_init, scratch);
    set_one(w, s->private_size, l->scratch_bytes);
    preload(l, w);
    for (int i = 0; i < 3; i++)
        set_one(w, s->group_id[i], w->group->id[i]);
    set_one(w, s->group_info, w->index == 0);
    set_one(w, s->scratch_offset, (uint32_t)(wave_bytes * w->index));
    w->scratch_base = scratch + wave_bytes * w->index;
    w->scratch_bytes = l->scratch_bytes;
    set_pair(w, ISA_FLAT_SCRATCH, w->scratch_base);
}

/* Work-item ids, ten bits each, in v0: row by row of the block, so that compilers can vectorise the
 * inner loop. For short kernels this is a good part of the work. */
static void set_ids(const struct machine_launch *l, struct isa_wave *w) {
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];
    uint32_t first = w->index * ISA_LANES, left = threads - first;
    uint32_t count = left < ISA_LANES ? left : ISA_LANES;
    uint32_t x = first % l->block[0], y = first / l->block[0] % l->block[1];
    uint32_t z = first / l->block[0] / l->block[1];
    unsigned ids = l->machine->descriptor.work_item_ids;
    for (uint32_t lane = 0; lane < count;) {
        uint32_t row = l->block[0] - x < count - lane ? l->block[0] - x : count - lane;
        uint32_t other = (ids >= 1 ? y << 10 : 0) | (ids >= 2 ? z << 20 : 0);
        for (uint32_t n = 0; n < row; n++)
            w->vgpr[0][lane + n] = (x + n) | other;
        lane += row;
        x = 0;
        if (++y == l->block[1]) {
            y = 0;
            z++;
        }
    }
    ISA_WAVE_EXEC(w) = left < ISA_LANES ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);
}

static enum isa_result start_wave(struct machine_launch *l, struct machine_worker *worker,
                                  unsigned index) {
    struct isa_wave *w = worker->waves[index];
    const struct soft_machine *m = l->machine;
    unsigned vgprs = m->descriptor.accum_offset, all = m->descriptor.vgprs;
    isa_wave_restart(w, m->code, &worker->group, &worker->memory, &host, vgprs,
                     all > vgprs ? all - vgprs : 0);
    w->index = index;
    w->used = worker->used;
    w->mode = m->descriptor.mode;
    w->shared_base = MACHINE_SHARED_BASE;
    w->private_base = MACHINE_PRIVATE_BASE;
    set_scalars(l, w, worker->scratch ? worker->scratch->addr : 0,
                (uint64_t)l->scratch_bytes * ISA_LANES);
    set_ids(l, w);
    return isa_wave_jump(w, m->entry + m->start.entry_skip);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void stop_launch(struct machine_launch *l, const struct isa_wave *w,
                        enum isa_result result) {
    spin_lock(&l->lock);
    if (!l->stopped) {
        struct soft_machine_stop *s = l->stop;
        uint32_t n = w->index * ISA_LANES + (result == ISA_FAULT ? w->stop.lane : 0);
        s->result = result;
        s->where = w->stop;
        s->lds_bytes = l->lds_bytes;
        s->scratch_bytes = l->scratch_bytes;
        memcpy(s->group, w->group->id, sizeof s->group);
        s->thread[0] = n % l->block[0];
        s->thread[1] = n / l->block[0] % l->block[1];
        s->thread[2] = n / l->block[0] / l->block[1];
        isa_stop_print(w, result, s->text, sizeof s->text);
        isa_stop_instruction(w, result, s->instruction, sizeof s->instruction);
        if (result == ISA_FAULT && w->stop.op == ISA_OP_s_sendmsg) { /* of malloc() and free() */
            s->where.pc = machine_heap_caller(w);
            s->instruction[0] = 0; /* ours, not the program's */
            snprintf(s->text, sizeof s->text, "%s: 0x%llx", w->stop.why,
                     (unsigned long long)w->stop.address);
        }
        l->stopped = true;
    }
    spin_unlock(&l->lock);
}

/* One turn of a wave; false if it stopped the launch. */
static bool take_turn(struct machine_launch *l, struct machine_worker *worker, struct isa_wave *w,
                      enum machine_turn *turn) {
    bool is_short = l->again && l->again->interleaved;
    enum isa_result r = machine_check_run(worker, w, is_short ? SHORT_BUDGET : BUDGET);
    switch (r) {
    case ISA_END:
        *turn = MACHINE_ENDED;
        return true;
    case ISA_BARRIER:
        machine_check_wait(worker, w);
        *turn = MACHINE_WAITS;
        return true;
    case ISA_GRID_BARRIER:
        *turn = MACHINE_WAITS_FOR_GRID;
        return true;
    case ISA_SLEEP:
        return true;
    default:
        stop_launch(l, w, r);
        return false;
    }
}

static bool has(const struct machine_worker *worker, enum machine_turn turn) {
    for (unsigned i = 0; i < worker->wave_count; i++)
        if (worker->turns[i] == turn)
            return true;
    return false;
}

static void change(struct machine_worker *worker, enum machine_turn from, enum machine_turn to) {
    for (unsigned i = 0; i < worker->wave_count; i++)
        if (worker->turns[i] == from)
            worker->turns[i] = to;
}

static void set_group(struct machine_launch *l, struct machine_worker *worker, uint64_t index) {
    worker->group = (struct isa_group){ .lds = worker->lds,
                                        .lds_bytes = l->lds_bytes,
                                        .semaphores = l->cooperative ? &l->semaphores : NULL };
    worker->group.id[0] = (uint32_t)(index % l->grid[0]);
    worker->group.id[1] = (uint32_t)(index / l->grid[0] % l->grid[1]);
    worker->group.id[2] = (uint32_t)(index / l->grid[0] / l->grid[1]);
    /* When undefined values are looked for, LDS starts with a pattern, so that their use shows. */
    memset(worker->lds, soft_settings()->checks & SOFT_CHECK_INIT ? 0xa5 : 0, l->lds_bytes);
}

bool machine_group_start(struct machine_launch *l, struct machine_worker *worker, uint64_t index) {
    worker->wave_count = machine_waves(l);
    worker->used_up = 0;
    set_group(l, worker, index);
    machine_check_begin(worker, index);
    for (unsigned i = 0; i < worker->wave_count; i++) {
        enum isa_result r = start_wave(l, worker, i);
        worker->turns[i] = MACHINE_RUNS;
        if (r != ISA_CONTINUE) {
            stop_launch(l, worker->waves[i], r);
            return false;
        }
    }
    return true;
}

/* The watchdog: where the first wave that still runs is. */
static void stop_late(struct machine_launch *l, struct machine_worker *worker) {
    unsigned i = 0;
    while (i + 1 < worker->wave_count && worker->turns[i] != MACHINE_RUNS)
        i++;
    struct isa_wave *w = worker->waves[i];
    w->stop = (struct isa_stop){ .pc = isa_wave_pc(w),
                                 .op = w->ip->op,
                                 .raw = { w->ip->raw[0], w->ip->words > 1 ? w->ip->raw[1] : 0 } };
    stop_launch(l, w, ISA_SLEEP);
    spin_lock(&l->lock);
    if (l->stop->result == ISA_SLEEP) {
        char at[sizeof l->stop->text - 64]; /* what is said before it has room */
        memcpy(at, l->stop->text, sizeof at - 1);
        at[sizeof at - 1] = '\0';
        snprintf(l->stop->text, sizeof l->stop->text,
                 "still running after %u s (GRETA_SOFT_WATCHDOG) %s", soft_settings()->watchdog_s,
                 at);
        l->stop->result = ISA_TRAP;
    }
    spin_unlock(&l->lock);
}

static bool is_late(const struct machine_launch *l) {
    return l->deadline_ns && clock_now_ns() > l->deadline_ns;
}

enum machine_turn machine_group_step(struct machine_launch *l, struct machine_worker *worker) {
    const bool reversed = l->again && l->again->reversed;
    for (unsigned n = 0; n < worker->wave_count; n++) {
        unsigned i = reversed ? worker->wave_count - 1 - n : n;
        if (worker->turns[i] == MACHINE_RUNS &&
            (l->stopped || !take_turn(l, worker, worker->waves[i], &worker->turns[i])))
            return MACHINE_ENDED;
    }
    if (has(worker, MACHINE_RUNS)) {
        worker->used_up++;
        if (is_late(l))
            stop_late(l, worker);
        return MACHINE_RUNS;
    }
    if (has(worker, MACHINE_WAITS_FOR_GRID))
        return MACHINE_WAITS_FOR_GRID;
    if (!has(worker, MACHINE_WAITS))
        return MACHINE_ENDED;
    change(worker, MACHINE_WAITS, MACHINE_RUNS); /* everyone is at the barrier: it opens */
    machine_check_open(worker);
    return MACHINE_RUNS;
}

void machine_group_release(struct machine_worker *worker) {
    change(worker, MACHINE_WAITS_FOR_GRID, MACHINE_RUNS);
}

void machine_group_end(struct machine_launch *l, struct machine_worker *worker,
                       enum machine_turn turn) {
    if (turn == MACHINE_WAITS_FOR_GRID) {
        worker->waves[0]->stop.why = "a barrier of the grid needs a cooperative launch";
        stop_launch(l, worker->waves[0], ISA_UNSUPPORTED);
    }
    machine_check_end(worker);
}

bool machine_group_run(struct machine_launch *l, struct machine_worker *worker, uint64_t index) {
    enum { LONG = 16 };
    enum machine_turn turn = machine_group_start(l, worker, index) ? MACHINE_RUNS : MACHINE_ENDED;
    if (turn == MACHINE_RUNS && is_late(l)) /* many groups may each be short */
        stop_late(l, worker);
    while (turn == MACHINE_RUNS && !l->stopped) {
        turn = machine_group_step(l, worker);
        if (turn == MACHINE_RUNS && worker->used_up >= LONG && !l->stopped)
            return false;
    }
    machine_group_end(l, worker, turn);
    return true;
}
