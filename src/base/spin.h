/* spin.h - a lock for sections of a few instructions.
 *
 * Zero-initialised is unlocked. A waiter spins with a pause and, after SPIN_LIMIT tries, gives its
 * time slice away, so that a holder that lost the processor can finish. Not recursive, not fair;
 * a section that may block or take long wants a pthread mutex. */
#ifndef BASE_SPIN_H
#define BASE_SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SPIN_LIMIT = 1000 };

struct spin {
    atomic_bool held;
};

/* Tells the processor that this is a waiting loop; no other effect. */
static inline void spin_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* True if the lock was free and is now the caller's. */
static inline bool spin_trylock(struct spin *s) {
    return !atomic_load_explicit(&s->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&s->held, true, memory_order_acquire);
}

static inline void spin_lock(struct spin *s) {
    for (int tries = 0; !spin_trylock(s);) {
        if (++tries < SPIN_LIMIT) {
            spin_pause();
        } else {
            sched_yield();
            tries = 0;
        }
    }
}

static inline void spin_unlock(struct spin *s) {
    atomic_store_explicit(&s->held, false, memory_order_release);
}

#endif
