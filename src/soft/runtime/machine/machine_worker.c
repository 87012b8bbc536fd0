/* machine_worker.c - what a thread needs to run workgroups, kept from launch to launch, and how
 * launches use the threads. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "soft/runtime/machine/machine.h"
#include "soft/runtime/machine/machine_check.h"
#include "soft/runtime/machine/machine_used.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/settings.h"

static struct spin kept_lock;
static struct machine_worker *kept_workers;

static void free_worker(struct machine_worker *w) {
    for (unsigned i = 0; i < MACHINE_WAVES_MAX; i++)
        free(w->waves[i]);
    machine_checks_free(w->checks);
    free(w->lds);
    free(w);
}

static struct machine_worker *new_worker(void) {
    struct machine_worker *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->lds = malloc(MACHINE_LDS_MAX);
    w->checks = machine_checks_new();
    if (!w->lds || !w->checks) {
        free_worker(w);
        return NULL;
    }
    return w;
}

static struct machine_worker *take_worker(void) {
    spin_lock(&kept_lock);
    struct machine_worker *w = kept_workers;
    if (w)
        kept_workers = w->next;
    spin_unlock(&kept_lock);
    return w ? w : new_worker();
}

static void keep_worker(struct machine_worker *w) {
    machine_memory_forget(w);
    spin_lock(&kept_lock);
    w->next = kept_workers;
    kept_workers = w;
    spin_unlock(&kept_lock);
}

struct soft_block *machine_worker_memory(int device, uint64_t bytes) {
    struct soft_block *b = NULL;
    if (soft_memory_alloc(device, SOFT_GLOBAL, bytes, 0, false, &b) != hipSuccess)
        return NULL;
    b->keep = true;
    return b;
}

static bool prepare_worker(struct machine_worker *w, struct machine_launch *l) {
    uint64_t scratch = (uint64_t)l->scratch_bytes * ISA_LANES * MACHINE_WAVES_MAX;
    machine_memory_begin(w, l);
    unsigned waves = (l->block[0] * l->block[1] * l->block[2] + ISA_LANES - 1) / ISA_LANES;
    for (unsigned i = 0; i < waves; i++)
        if (!w->waves[i] && !(w->waves[i] = aligned_alloc(64, sizeof *w->waves[i])))
            return false;
    if (scratch && (!w->scratch || w->scratch->size < scratch || w->scratch->device != l->device)) {
        if (w->scratch)
            soft_memory_free(w->scratch);
        w->scratch = machine_worker_memory(l->device, scratch);
    }
    return !scratch || w->scratch;
}

void machine_launch_stop(struct machine_launch *l, const char *text) {
    spin_lock(&l->lock);
    if (!l->stopped) {
        *l->stop = (struct soft_machine_stop){ .result = ISA_UNSUPPORTED };
        snprintf(l->stop->text, sizeof l->stop->text, "%s", text);
    }
    l->stopped = true;
    spin_unlock(&l->lock);
}

struct machine_worker *machine_worker_take(struct machine_launch *l) {
    struct machine_worker *w = take_worker();
    if (w && prepare_worker(w, l)) {
        machine_used_take(l, w);
        return w;
    }
    if (w)
        keep_worker(w);
    machine_launch_stop(l, "no memory for scratch and registers");
    return NULL;
}

void machine_worker_give(struct machine_launch *l, struct machine_worker *w) {
    machine_used_give(l, w);
    keep_worker(w);
}

/* Runs a job on all cores. Without checks a bad access is a signal, as of native code: then nobody
 * knows which lane it was. */
void machine_launch_job(struct machine_launch *l, soft_pool_fn fn, void *user, uint64_t count) {
    uint64_t address;
    int kind;
    if (soft_settings()->checks & SOFT_CHECK_BOUNDS) {
        soft_pool_run(fn, user, count);
        return;
    }
    if (soft_pool_run_guarded(fn, user, count, &address, &kind))
        return;
    *l->stop = (struct soft_machine_stop){
        .result = ISA_FAULT,
        .where = { .address = soft_program_address(address),
                   .kind = kind == GRETA_SOFT_FAULT_READ ? ISA_LOAD : ISA_STORE },
        .text = "access to memory that is not mapped; GRETA_SOFT_CHECK=bounds says where",
    };
    l->stopped = true;
}
