/* machine_launch.c - a launch of machine code.
 *
 * Kernarg segment, dispatch packet and queue lie in device memory, because the kernel reads them as
 * any other; so does scratch. That memory is the runtime's own and kept from launch to launch. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <greta/soft.h>

#include "base/clock.h"
#include "isa/race.h"
#include "soft/runtime/hostcall/hostcall.h"
#include "soft/runtime/machine/machine.h"
#include "soft/runtime/machine/machine_again.h"
#include "soft/runtime/machine/machine_check.h"
#include "soft/runtime/machine/machine_through.h"
#include "soft/runtime/machine/machine_touch.h"
#include "soft/runtime/machine/machine_used.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/pool.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/slack.h"

enum {
    STACK_BYTES = 16 << 10, /* per lane, for recursion and function pointers */
    FRAME_BYTES = 8 << 10,  /* packet, queue, kernarg segment */
    QUEUE_AT = 64,
    GRID_AT = 384, /* of a cooperative launch */
    KERNARG_AT = 512,
};

/* ---- what is kept ---------------------------------------------------------------------------- */

static struct spin kept_lock;

/* Packet, queue and kernarg segment of a launch that is running. */
struct frame {
    struct frame *next;
    struct soft_block *block;
};
static struct frame *kept_frames;

static struct frame *take_frame(int device, uint64_t bytes) {
    struct frame *f = NULL;
    spin_lock(&kept_lock);
    for (struct frame **link = &kept_frames; *link && !f; link = &(*link)->next)
        if ((*link)->block->size >= bytes && (*link)->block->device == device) {
            f = *link;
            *link = f->next;
            break;
        }
    spin_unlock(&kept_lock);
    if (f || !(f = calloc(1, sizeof *f)))
        return f;
    f->block = machine_worker_memory(device, bytes > FRAME_BYTES ? bytes : FRAME_BYTES);
    if (!f->block) {
        free(f);
        return NULL;
    }
    return f;
}

static void keep_frame(struct frame *f) {
    spin_lock(&kept_lock);
    f->next = kept_frames;
    kept_frames = f;
    spin_unlock(&kept_lock);
}

/* ---- arguments ------------------------------------------------------------------------------- */

uint32_t soft_machine_argument_bytes(const struct soft_machine *m) {
    return codeobj_kernarg_bytes(m->kernel);
}

/* extra: { HIP_LAUNCH_PARAM_BUFFER_POINTER, buffer, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, END } */
static hipError_t pack_extra(const struct soft_machine *m, void **extra, unsigned char *out) {
    if (extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != HIP_LAUNCH_PARAM_BUFFER_SIZE ||
        extra[4] != HIP_LAUNCH_PARAM_END || !extra[1] || !extra[3])
        return hipErrorInvalidValue;
    size_t given = *(const size_t *)extra[3], room = soft_machine_argument_bytes(m);
    if (given < codeobj_explicit_bytes(m->kernel))
        return hipErrorInvalidValue;
    memcpy(out, extra[1], given < room ? given : room);
    return hipSuccess;
}

hipError_t soft_machine_pack(const struct soft_machine *m, void **params, void **extra,
                             unsigned char *out) {
    struct err e = { 0 };
    memset(out, 0, soft_machine_argument_bytes(m));
    if (params)
        return codeobj_kernarg_pack(m->kernel, params, out, &e) ? hipErrorInvalidValue : hipSuccess;
    if (extra)
        return pack_extra(m, extra, out);
    return codeobj_explicit_count(m->kernel) ? hipErrorInvalidValue : hipSuccess;
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_groups(void *user, uint64_t first, uint64_t last, unsigned worker,
                       unsigned workers) {
    struct machine_launch *l = user;
    (void)worker, (void)workers;
    struct machine_worker *w = l->stopped || l->some_aside ? NULL : machine_worker_take(l);
    for (; w && first < last && !l->stopped && !l->some_aside; first++)
        if (!machine_group_run(l, w, first)) {
            machine_turns_put(l, w);
            w = NULL;
        }
    if (w)
        machine_worker_give(l, w);
    if (first < last && !l->stopped)
        machine_turns_leave(l, first, last);
}

static void run_all(struct machine_launch *l) {
    uint64_t groups = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (l->cooperative) {
        machine_turns_together(l, groups);
        return;
    }
    machine_launch_job(l, run_groups, l, groups);
    if (l->some_aside)
        machine_turns_finish(l);
}

/* What a kernel of a cooperative launch finds out about its grid, and other grids: there are none.
 */
struct grid_info {
    uint64_t together; /* what grids of several devices count in */
    uint32_t grid, grids;
    uint64_t threads_before, threads;
    uint32_t count[2], groups, reserved;
};

static uint64_t fill_grid_info(const struct machine_launch *l, uint64_t base,
                               unsigned char *frame) {
    struct grid_info g = { .together = base + GRID_AT + offsetof(struct grid_info, count),
                           .grids = 1,
                           .groups = l->grid[0] * l->grid[1] * l->grid[2] };
    g.threads = (uint64_t)g.groups * l->block[0] * l->block[1] * l->block[2];
    memcpy(frame + GRID_AT, &g, sizeof g);
    return base + GRID_AT;
}

/* What hidden arguments point at, as far as the kernel has them: it is made when first needed. */
static void set_services(const struct codeobj_kernel *k, int device, struct codeobj_dispatch *d) {
    for (uint32_t i = 0; i < k->argument_count; i++)
        switch (k->arguments[i].kind) {
        case CODEOBJ_HIDDEN_HOSTCALL_BUFFER:
            d->hostcall_buffer = soft_hostcall_buffer(device);
            break;
        case CODEOBJ_HIDDEN_HEAP:
            d->heap = soft_hostcall_heap(device);
            break;
        default:
            break;
        }
}

/* Fills the frame: what the kernel reads of its launch. False, with the stop, if an argument cannot
 * be given. */
static bool fill_frame(const struct soft_op *op, struct machine_launch *l, struct frame *f) {
    const struct soft_launch *launch = &op->u.launch;
    const struct soft_machine *m = l->machine;
    uint64_t base = f->block->addr;
    unsigned char *bytes = soft_reach(base);
    struct codeobj_dispatch d = { .dims = launch->grid[2] * launch->block[2] > 1   ? 3
                                          : launch->grid[1] * launch->block[1] > 1 ? 2
                                                                                   : 1,
                                  .dynamic_lds = launch->shared_bytes,
                                  .queue = base + QUEUE_AT,
                                  .private_base = MACHINE_PRIVATE_BASE,
                                  .shared_base = MACHINE_SHARED_BASE };
    struct err e = { 0 };
    for (int i = 0; i < 3; i++) {
        d.block[i] = launch->block[i];
        d.grid[i] = launch->grid[i] * launch->block[i];
    }
    set_services(m->kernel, l->device, &d);
    l->packet = base;
    l->queue = base + QUEUE_AT;
    l->kernarg = base + KERNARG_AT;
    memset(bytes, 0, f->block->size);
    memcpy(bytes + KERNARG_AT, op->data, op->bytes);
    if (l->cooperative)
        d.multigrid_sync = fill_grid_info(l, base, bytes);
    if (codeobj_kernarg_hide(m->kernel, &d, bytes + KERNARG_AT, &e)) {
        l->stop->result = ISA_UNSUPPORTED;
        snprintf(l->stop->text, sizeof l->stop->text, "%s", e.msg);
        return false;
    }
    codeobj_packet_fill((struct codeobj_packet *)(void *)bytes, &d, m->object, l->kernarg,
                        l->scratch_bytes, l->lds_bytes);
    codeobj_queue_fill((struct codeobj_queue *)(void *)(bytes + QUEUE_AT), &d);
    return true;
}

/* It is not known what a launch that was stopped would have touched. */
static void tell_touches(const struct soft_op *op, struct machine_launch *l) {
    struct greta_soft_touch touched[MACHINE_TOUCHES_MAX];
    size_t count;
    if (l->touches && !l->stopped && machine_touches_tell(l->touches, touched, &count))
        soft_touches_tell(op, touched, count);
    machine_touches_close(&l->touches);
}

/* ---- races ----------------------------------------------------------------------------------- */

/* Unless GRETA_SOFT_CHECK asks for more, the launches of a recorded program are followed until that
 * has cost some seconds: accesses of all launches together, memory of each. */
enum { RACE_ACCESSES = 250 * 1000 * 1000, RACE_BYTES = 40 << 20 };

static _Atomic uint64_t race_accesses_left = RACE_ACCESSES;

/* Whether races are looked for within the budget. */
static bool is_some_wanted(void) {
    unsigned checks = soft_settings()->checks;
    return !(checks & SOFT_CHECK_RACE) && checks & SOFT_CHECK_SOME_RACES && soft_touches_wanted();
}

static void begin_races(struct machine_launch *l) {
    struct isa_race_limits some = { atomic_load(&race_accesses_left), RACE_BYTES };
    if (soft_settings()->checks & SOFT_CHECK_RACE)
        l->race = isa_race_open(machine_waves(l), NULL);
    else if (is_some_wanted() && some.accesses)
        l->race = isa_race_open(machine_waves(l), &some);
}

/* Reports what was promised when the launch was queued and did not hold. */
static void end_races(struct machine_launch *l) {
    bool some = is_some_wanted();
    if (l->race && some) {
        uint64_t followed = isa_race_accesses(l->race), left = atomic_load(&race_accesses_left);
        while (!atomic_compare_exchange_weak(&race_accesses_left, &left,
                                             left > followed ? left - followed : 0)) {
        }
    }
    enum machine_again_answer answer =
        l->suspect_count ? machine_again_judge(l) : MACHINE_AGAIN_HARMLESS;
    if (answer != MACHINE_AGAIN_UNTRIED)
        machine_check_tell_races(l, answer == MACHINE_AGAIN_MATTERS
                                        ? GRETA_SOFT_CAUGHT_RACE
                                        : GRETA_SOFT_CAUGHT_RACE_HARMLESS);
    bool promised = some || soft_settings()->checks & SOFT_CHECK_RACE;
    bool to_the_end = l->race && !isa_race_is_full(l->race) && answer != MACHINE_AGAIN_UNTRIED;
    if (promised && !l->stopped && !l->cooperative && !to_the_end)
        soft_caught_tell(l->op,
                         &(struct greta_soft_caught){ .kind = GRETA_SOFT_CAUGHT_RACES_UNFOLLOWED });
    isa_race_close(&l->race);
}

bool soft_machine_run(const struct soft_op *op, const struct soft_machine *m,
                      struct soft_machine_stop *stop) {
    const struct soft_launch *launch = &op->u.launch;
    struct machine_launch l = { .machine = m, .device = op->device, .op = op, .stop = stop };
    memcpy(l.grid, launch->grid, sizeof l.grid);
    memcpy(l.block, launch->block, sizeof l.block);
    l.cooperative = launch->cooperative;
    if (soft_settings()->watchdog_s)
        l.deadline_ns = clock_now_ns() + soft_settings()->watchdog_s * UINT64_C(1000000000);
    l.lds_bytes = m->descriptor.group_bytes + launch->shared_bytes;
    l.scratch_bytes = m->descriptor.private_bytes;
    if (m->kernel->uses_dynamic_stack || m->descriptor.dynamic_stack)
        l.scratch_bytes += STACK_BYTES;
    l.scratch_bytes = (l.scratch_bytes + 15) / 16 * 16;
    memset(stop, 0, sizeof *stop);
    struct frame *f = take_frame(op->device, KERNARG_AT + op->bytes);
    if (!f || l.lds_bytes > MACHINE_LDS_MAX) {
        stop->result = ISA_UNSUPPORTED;
        snprintf(stop->text, sizeof stop->text, "%s",
                 f ? "more LDS than a workgroup can have" : "no device memory for the launch");
        if (f)
            keep_frame(f);
        return false;
    }
    bool ok = fill_frame(op, &l, f);
    if (ok) {
        if (soft_settings()->checks & SOFT_CHECK_BOUNDS && soft_touches_wanted())
            l.touches = machine_touches_open(f->block->addr);
        begin_races(&l);
        if (soft_settings()->checks & SOFT_CHECK_BOUNDS)
            machine_through_begin(&l);
        machine_used_begin(&l);
        run_all(&l);
        end_races(&l);
        tell_touches(op, &l);
        machine_used_end(&l);
        machine_through_end(&l);
    }
    keep_frame(f);
    return ok && !l.stopped;
}
