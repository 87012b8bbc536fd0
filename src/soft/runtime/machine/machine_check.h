/* machine_check.h - what checks find in a kernel while it runs: races, barriers, undefined values.
 * The state of a group belongs to the worker that runs it. */
#ifndef SOFT_RUNTIME_MACHINE_CHECK_H
#define SOFT_RUNTIME_MACHINE_CHECK_H

#include "greta/soft.h"
#include "soft/runtime/machine/machine.h"

/* Of a worker; new returns NULL without memory, free accepts NULL. */
struct machine_checks *machine_checks_new(void);
void machine_checks_free(struct machine_checks *c);

/* How many waves a group of the launch has. */
uint32_t machine_waves(const struct machine_launch *l);

/* The worker begins and ends workgroup `index`. */
void machine_check_begin(struct machine_worker *w, uint64_t index);
void machine_check_end(struct machine_worker *w);

/* Runs a wave, watched if a check wants that. */
enum isa_result machine_check_run(struct machine_worker *w, struct isa_wave *wave, uint64_t budget);

/* Reports what a check found at c->at[0].pc, once per instruction of a launch; sets block and
 * thread of at[0]. */
void machine_check_tell(struct machine_worker *w, const struct isa_wave *wave, unsigned lane,
                        struct greta_soft_caught *c);

/* An access to global memory or LDS that was found in order. */
void machine_check_access(struct machine_worker *w, const struct isa_access *a,
                          const uint64_t address[ISA_LANES], void *const host[ISA_LANES]);

/* The same for scratch, of which row is a piece: isa_taint_note(). */
void machine_check_scratch(struct machine_worker *w, const struct isa_access *a, int row,
                           const uint64_t address[ISA_LANES]);

/* Reports the races that were found in a launch, as GRETA_SOFT_CAUGHT_RACE, or the first of them as
 * GRETA_SOFT_CAUGHT_RACE_HARMLESS. */
void machine_check_tell_races(const struct machine_launch *l, int kind);

/* A wave has reached a barrier; all that have not ended have reached it, and continue. */
void machine_check_wait(struct machine_worker *w, struct isa_wave *wave);
void machine_check_open(struct machine_worker *w);

#endif
