/* watch.h - runs a wave and says what happens on the way. */
#ifndef ISA_WATCH_H
#define ISA_WATCH_H

#include "base/spin.h"
#include "isa/taint.h"

struct isa_watch {
    void *context;
    /* Lanes that were off when the wave waited at a barrier. */
    uint64_t idle;
    /* One of them is on again: it has skipped the barrier. */
    void (*woken)(void *context, struct isa_wave *w);
    /* The wave has waited for its memory instructions. May be NULL. */
    void (*waited)(void *context, struct isa_wave *w);
    /* Held while a memory instruction is executed, its callbacks included, so that callbacks see
     * accesses in the order in which they happen. NULL: none. */
    struct spin *lock;
    /* An instruction was executed. May be NULL. */
    void (*executed)(const struct isa_insn *i);
    struct isa_taint *taint;       /* follows undefined values; NULL: they are not followed */
    struct isa_taint *approximate; /* follows approximate values; NULL: they are not followed */
    bool whole_wave; /* all lanes are on, to save or restore a register of the whole wave */
};

/* As isa_run(). */
enum isa_result isa_run_watched(struct isa_wave *w, uint64_t budget, struct isa_watch *watch);

#endif
