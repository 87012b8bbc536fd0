/* machine_check.c - what checks find in a kernel while it runs.
 *
 * Races are looked for if the launch has an isa_race. Barriers are always checked, because that
 * costs nothing until a wave reaches one while some of its threads are off. Then the wave is
 * watched until one of those threads continues, which proves that it skipped the barrier, or until
 * the wave ends, which means that those threads had ended before. */
#include <stdlib.h>
#include <string.h>

#include "isa/race.h"
#include "isa/watch.h"
#include "soft/runtime/defined.h"
#include "soft/runtime/machine/machine_check.h"
#include "soft/runtime/machine/machine_count.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/slack.h"

enum { PLACE_BYTES = 1024 };

/* A barrier that a wave waits at, or waited at last. */
struct barrier {
    uint64_t pc, lanes; /* pc 0: none */
    bool waits;
    struct isa_watch watch;
};

struct machine_checks {
    struct isa_race_group *race;
    struct barrier at[MACHINE_WAVES_MAX];
    /* Undefined values: of each wave's registers; a byte per byte of LDS and scratch, not 0 where
     * nothing has written. NULL until they are wanted. */
    struct isa_taint *taint[MACHINE_WAVES_MAX], *approximate[MACHINE_WAVES_MAX];
    unsigned char *lds, *scratch;
    uint64_t scratch_room;
    struct isa_taint_host host, approximate_host;
    bool met; /* the access under way is by a load that met a store: struct machine_again */
};

struct machine_checks *machine_checks_new(void) {
    return calloc(1, sizeof(struct machine_checks));
}

void machine_checks_free(struct machine_checks *c) {
    if (!c)
        return;
    isa_race_end(&c->race);
    for (unsigned i = 0; i < MACHINE_WAVES_MAX; i++) {
        free(c->taint[i]);
        free(c->approximate[i]);
    }
    free(c->lds);
    free(c->scratch);
    free(c);
}

uint32_t machine_waves(const struct machine_launch *l) {
    return (l->block[0] * l->block[1] * l->block[2] + ISA_LANES - 1) / ISA_LANES;
}

/* ---- telling --------------------------------------------------------------------------------- */

static void set_thread(const struct machine_launch *l, struct greta_soft_caught_at *at,
                       uint32_t wave, uint32_t lane) {
    uint32_t n = wave * ISA_LANES + lane;
    at->thread[0] = n % l->block[0];
    at->thread[1] = n / l->block[0] % l->block[1];
    at->thread[2] = n / l->block[0] / l->block[1];
}

static void set_block(const struct machine_launch *l, struct greta_soft_caught_at *at,
                      uint64_t group) {
    at->block[0] = (uint32_t)(group % l->grid[0]);
    at->block[1] = (uint32_t)(group / l->grid[0] % l->grid[1]);
    at->block[2] = (uint32_t)(group / l->grid[0] / l->grid[1]);
}

static void tell_race(const struct machine_launch *l, const struct isa_race_found *f, int kind) {
    static const int kinds[] = { [ISA_LOAD] = GRETA_SOFT_TOUCH_READ,
                                 [ISA_STORE] = GRETA_SOFT_TOUCH_WRITE,
                                 [ISA_ATOMIC] = GRETA_SOFT_TOUCH_ATOMIC };
    bool global = f->space == ISA_SPACE_GLOBAL;
    struct greta_soft_caught c = { .kind = kind,
                                   .space = global ? GRETA_SOFT_SPACE_GLOBAL : GRETA_SOFT_SPACE_LDS,
                                   .address = f->address,
                                   .bytes = 1 };
    struct soft_block b;
    if (global && soft_memory_find(f->address, &b))
        c.allocation_base = b.addr;
    for (int i = 0; i < 2; i++) {
        const struct isa_race_side *s = &f->side[i];
        c.at[i].pc = s->pc;
        c.at[i].kind = kinds[s->kind];
        set_block(l, &c.at[i], s->group);
        set_thread(l, &c.at[i], s->wave, s->lane);
    }
    soft_caught_tell(l->op, &c);
}

void machine_check_tell_races(const struct machine_launch *l, int kind) {
    bool all = kind == GRETA_SOFT_CAUGHT_RACE;
    for (unsigned i = 0; i < l->suspect_count && (all || !i); i++)
        tell_race(l, &l->suspects[i], kind);
}

static void suspect(struct machine_launch *l, const struct isa_race_found *f) {
    spin_lock(&l->lock);
    if (l->suspect_count < MACHINE_SUSPECTS_MAX)
        l->suspects[l->suspect_count++] = *f;
    spin_unlock(&l->lock);
}

/* Whether nothing has been reported about the instruction yet. */
static bool may_tell(struct machine_launch *l, uint64_t pc) {
    bool first = false;
    if (l->again)
        return false;
    spin_lock(&l->lock);
    for (unsigned i = 0; i < MACHINE_TOLD_MAX && !first && l->told[i] != pc; i++)
        if (!l->told[i]) {
            l->told[i] = pc;
            first = true;
        }
    spin_unlock(&l->lock);
    return first;
}

void machine_check_tell(struct machine_worker *w, const struct isa_wave *wave, unsigned lane,
                        struct greta_soft_caught *c) {
    memcpy(c->at[0].block, wave->group->id, sizeof c->at[0].block);
    set_thread(w->launch, &c->at[0], wave->index, lane);
    if (may_tell(w->launch, c->at[0].pc))
        soft_caught_tell(w->launch->op, c);
}

/* ---- barriers -------------------------------------------------------------------------------- */

static uint64_t threads_of(const struct machine_launch *l, uint32_t wave) {
    uint32_t all = l->block[0] * l->block[1] * l->block[2], first = wave * ISA_LANES;
    uint32_t count = all - first < ISA_LANES ? all - first : ISA_LANES;
    return count == ISA_LANES ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}

/* A thread that was off at the barrier continues: it has skipped the barrier. */
static void woken(void *context, struct isa_wave *wave) {
    struct machine_worker *w = context;
    const struct barrier *b = &w->checks->at[wave->index];
    uint64_t all = threads_of(w->launch, wave->index);
    struct greta_soft_caught c = { .kind = GRETA_SOFT_CAUGHT_BARRIER_PARTIAL,
                                   .count = (uint32_t)__builtin_popcountll(b->lanes),
                                   .all = (uint32_t)__builtin_popcountll(all),
                                   .at = { { .pc = b->pc } } };
    memcpy(c.at[0].block, wave->group->id, sizeof c.at[0].block);
    set_thread(w->launch, &c.at[0], wave->index,
               b->lanes ? (uint32_t)__builtin_ctzll(b->lanes) : 0);
    if (may_tell(w->launch, b->pc))
        soft_caught_tell(w->launch->op, &c);
}

static void waited(void *context, struct isa_wave *wave) {
    struct machine_worker *w = context;
    isa_race_wait(w->checks->race, wave->index);
}

void machine_check_wait(struct machine_worker *w, struct isa_wave *wave) {
    struct barrier *b = &w->checks->at[wave->index];
    b->pc = wave->stop.pc;
    b->lanes = ISA_WAVE_EXEC(wave);
    b->waits = true;
    b->watch.idle = threads_of(w->launch, wave->index) & ~b->lanes;
}

/* Two instructions may stand for one barrier of the source. */
static bool is_same_place(const struct machine_launch *l, uint64_t a, uint64_t b) {
    char one[PLACE_BYTES], two[PLACE_BYTES];
    return soft_module_place(l->op->u.launch.function, a, one, sizeof one) &&
           soft_module_place(l->op->u.launch.function, b, two, sizeof two) && !strcmp(one, two);
}

void machine_check_open(struct machine_worker *w) {
    const struct barrier *first = NULL, *other = NULL;
    uint32_t first_wave = 0, other_wave = 0;
    for (uint32_t i = 0; i < MACHINE_WAVES_MAX; i++) {
        struct barrier *b = &w->checks->at[i];
        if (!b->waits)
            continue;
        b->waits = false;
        if (!first) {
            first = b;
            first_wave = i;
        } else if (b->pc != first->pc && !other) {
            other = b;
            other_wave = i;
        }
    }
    if (w->checks->race)
        isa_race_barrier(w->checks->race);
    if (!other || is_same_place(w->launch, first->pc, other->pc) || !may_tell(w->launch, first->pc))
        return;
    struct greta_soft_caught c = { .kind = GRETA_SOFT_CAUGHT_BARRIER_DIFFERENT,
                                   .at = { { .pc = first->pc }, { .pc = other->pc } } };
    for (int i = 0; i < 2; i++) {
        memcpy(c.at[i].block, w->group.id, sizeof c.at[i].block);
        set_thread(w->launch, &c.at[i], i ? other_wave : first_wave, 0);
    }
    soft_caught_tell(w->launch->op, &c);
}

/* ---- undefined values ------------------------------------------------------------------------ */

/* The byte that stands for a byte of LDS or scratch; NULL: there is none. */
static unsigned char *map_of(const struct machine_worker *w, unsigned space, uint64_t address,
                             uint32_t bytes) {
    const struct machine_checks *c = w->checks;
    if (space == ISA_TAINT_LDS)
        return address + bytes <= MACHINE_LDS_MAX ? c->lds + address : NULL;
    uint64_t at = w->scratch ? address - w->scratch->addr : c->scratch_room;
    return at < c->scratch_room && c->scratch_room - at >= bytes ? c->scratch + at : NULL;
}

static bool is_undefined(void *context, const struct isa_wave *wave, unsigned space,
                         uint64_t address, uint32_t bytes) {
    (void)wave;
    if (space == ISA_TAINT_GLOBAL)
        return soft_defined_is_undefined(address, bytes);
    const unsigned char *map = map_of(context, space, address, bytes);
    bool undefined = map != NULL;
    for (uint32_t i = 0; undefined && i < bytes; i++)
        undefined = map[i];
    return undefined;
}

static void define(void *context, const struct isa_wave *wave, unsigned space, uint64_t address,
                   uint32_t bytes, bool undefined) {
    (void)wave;
    if (space == ISA_TAINT_GLOBAL) {
        soft_defined_write(address, bytes);
        return;
    }
    unsigned char *map = map_of(context, space, address, bytes);
    if (map)
        memset(map, undefined, bytes);
}

static void used(void *context, const struct isa_wave *wave, const struct isa_insn *i,
                 enum isa_taint_use how, struct isa_origin origin, unsigned lane) {
    static const int kinds[] = { [ISA_TAINT_ADDRESS] = GRETA_SOFT_CAUGHT_UNDEFINED_ADDRESS,
                                 [ISA_TAINT_BRANCH] = GRETA_SOFT_CAUGHT_UNDEFINED_BRANCH,
                                 [ISA_TAINT_STORE] = GRETA_SOFT_CAUGHT_UNDEFINED_STORE };
    struct machine_worker *w = context;
    /* Before the instruction the program counter is at it, afterwards at the next. */
    uint64_t pc = isa_wave_pc(wave) - (wave->ip == i ? 0 : 4u * i->words);
    struct greta_soft_caught c = { .kind = kinds[how],
                                   .space = origin.space,
                                   .address = origin.at,
                                   .bytes = 4,
                                   .at = { { .pc = pc } } };
    struct soft_block b;
    if (origin.space == ISA_TAINT_GLOBAL && soft_memory_find(origin.at, &b))
        c.allocation_base = b.addr;
    if (origin.space == ISA_TAINT_SCRATCH) /* as the lane sees it */
        c.address = (origin.at - wave->scratch_base) / (4 * ISA_LANES) * 4;
    machine_check_tell(w, wave, lane, &c);
}

/* ---- approximate values: only what becomes of them counts ---- */

static bool never(void *context, const struct isa_wave *wave, unsigned space, uint64_t address,
                  uint32_t bytes) {
    (void)context, (void)wave, (void)space, (void)address, (void)bytes;
    return false;
}

static void forget(void *context, const struct isa_wave *wave, unsigned space, uint64_t address,
                   uint32_t bytes, bool undefined) {
    (void)context, (void)wave, (void)space, (void)address, (void)bytes, (void)undefined;
}

static void reached(void *context, const struct isa_wave *wave, const struct isa_insn *i,
                    enum isa_taint_use how, struct isa_origin origin, unsigned lane) {
    const struct machine_worker *w = context;
    (void)wave, (void)i, (void)origin, (void)lane;
    atomic_fetch_or(&w->launch->reached, 1u << how);
}

/* ---- values of loads that met stores --------------------------------------------------------- */

static bool is_suspected_load(const struct machine_again *a, uint64_t pc) {
    for (unsigned i = 0; a->follows && i < a->loads; i++)
        if (a->load[i] == pc)
            return true;
    return false;
}

/* For LDS it is no longer known which bytes were written. */
static bool is_met(void *context, const struct isa_wave *wave, unsigned space, uint64_t address,
                   uint32_t bytes) {
    const struct machine_worker *w = context;
    if (space == ISA_TAINT_SCRATCH)
        return is_undefined(context, wave, space, address, bytes);
    bool met = w->checks->met && space == ISA_TAINT_LDS;
    for (uint32_t i = 0; w->checks->met && i < bytes && !met; i++)
        met = isa_race_is_written(w->launch->again->race, address + i);
    return met;
}

static void keep_met(void *context, const struct isa_wave *wave, unsigned space, uint64_t address,
                     uint32_t bytes, bool met) {
    const struct machine_worker *w = context;
    if (space == ISA_TAINT_SCRATCH)
        define(context, wave, space, address, bytes, met);
    else if (met)
        w->launch->again->reached = true;
}

static void met_is_used(void *context, const struct isa_wave *wave, const struct isa_insn *i,
                        enum isa_taint_use how, struct isa_origin origin, unsigned lane) {
    const struct machine_worker *w = context;
    (void)wave, (void)i, (void)origin, (void)lane;
    if (how != ISA_TAINT_BRANCH)
        w->launch->again->reached = true;
}

/* Room for what the group needs, with `value` in the maps of memory; without memory nothing is
 * followed. */
static bool make_room(struct machine_checks *c, const struct machine_launch *l, int value) {
    uint64_t scratch = (uint64_t)l->scratch_bytes * ISA_LANES * machine_waves(l);
    if (!c->lds && !(c->lds = malloc(MACHINE_LDS_MAX)))
        return false;
    if (c->scratch_room < scratch) {
        unsigned char *more = realloc(c->scratch, scratch);
        if (!more)
            return false;
        c->scratch = more;
        c->scratch_room = scratch;
    }
    for (unsigned i = 0; i < machine_waves(l); i++)
        if ((!c->taint[i] && !(c->taint[i] = malloc(sizeof *c->taint[i]))) ||
            (!c->approximate[i] && !(c->approximate[i] = malloc(sizeof *c->approximate[i]))))
            return false;
    memset(c->lds, value, l->lds_bytes);
    if (scratch)
        memset(c->scratch, value, scratch);
    return true;
}

static void begin_taint(struct machine_worker *w) {
    struct machine_checks *c = w->checks;
    const struct soft_machine *m = w->launch->machine;
    unsigned sgprs = m->start.count;
    if (m->start.preload >= 0)
        sgprs += m->descriptor.preload_count;
    c->host = (struct isa_taint_host){ w, is_undefined, define, used };
    c->approximate_host = (struct isa_taint_host){ w, never, forget, reached };
    if (!make_room(c, w->launch, 1))
        return;
    for (unsigned i = 0; i < machine_waves(w->launch); i++) {
        isa_taint_reset(c->taint[i], &c->host, sgprs);
        c->at[i].watch.taint = c->taint[i];
        if (!w->launch->used)
            continue;
        isa_taint_reset_approximations(c->approximate[i], &c->approximate_host,
                                       isa_code_gpu(m->code));
        c->at[i].watch.approximate = c->approximate[i];
    }
}

/* Without memory the values may have gone anywhere. */
static void begin_following(struct machine_worker *w) {
    struct machine_checks *c = w->checks;
    c->host = (struct isa_taint_host){ w, is_met, keep_met, met_is_used };
    if (!make_room(c, w->launch, 0)) {
        w->launch->again->reached = true;
        return;
    }
    for (unsigned i = 0; i < machine_waves(w->launch); i++) {
        isa_taint_reset_approximations(c->taint[i], &c->host,
                                       isa_code_gpu(w->launch->machine->code));
        c->taint[i]->approximations = false; /* but all that those loads get */
        c->at[i].watch.taint = c->taint[i];
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

void machine_check_begin(struct machine_worker *w, uint64_t index) {
    struct machine_checks *c = w->checks;
    memset(c->at, 0, sizeof c->at);
    if (w->launch->race && !isa_race_is_full(w->launch->race))
        c->race = isa_race_begin(w->launch->race, index);
    for (unsigned i = 0; i < MACHINE_WAVES_MAX; i++)
        c->at[i].watch =
            (struct isa_watch){ .context = w,
                                .woken = woken,
                                .waited = c->race ? waited : NULL,
                                .executed = machine_count_is_on() ? machine_count_insn : NULL,
                                .lock = c->race ? isa_race_lock(w->launch->race) : NULL };
    if (w->launch->again) {
        if (w->launch->again->follows)
            begin_following(w);
    } else if (soft_settings()->checks & SOFT_CHECK_INIT) {
        begin_taint(w);
    }
}

void machine_check_end(struct machine_worker *w) {
    isa_race_end(&w->checks->race);
}

enum isa_result machine_check_run(struct machine_worker *w, struct isa_wave *wave,
                                  uint64_t budget) {
    struct isa_watch *watch = &w->checks->at[wave->index].watch;
    return watch->idle || watch->waited || watch->taint || watch->executed
               ? isa_run_watched(wave, budget, watch)
               : isa_run(wave, budget);
}

void machine_check_access(struct machine_worker *w, const struct isa_access *a,
                          const uint64_t address[ISA_LANES], void *const host[ISA_LANES]) {
    struct isa_race_found found;
    /* The wave's program counter is at the next instruction already. */
    uint64_t pc = isa_wave_pc(a->wave) - 4u * a->insn->words;
    if (w->checks->race && isa_race_access(w->checks->race, a, pc, address, host, &found))
        suspect(w->launch, &found);
    w->checks->met = w->launch->again && is_suspected_load(w->launch->again, pc);
    if (w->checks->at[a->wave->index].watch.taint)
        isa_taint_note(w->checks->taint[a->wave->index], a, -1, address);
}

void machine_check_scratch(struct machine_worker *w, const struct isa_access *a, int row,
                           const uint64_t address[ISA_LANES]) {
    if (w->checks->at[a->wave->index].watch.taint)
        isa_taint_note(w->checks->taint[a->wave->index], a, row, address);
}
