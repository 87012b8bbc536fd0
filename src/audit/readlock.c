#include "audit/readlock.h"

static atomic_uint readlock_threads;
/* 1 + this thread's counter; 0: not chosen yet. */
static __thread unsigned readlock_mine __attribute__((tls_model("initial-exec")));

static unsigned slot_of_thread(void) {
    if (!readlock_mine)
        readlock_mine = 1 + atomic_fetch_add(&readlock_threads, 1) % READLOCK_SLOTS;
    return readlock_mine - 1;
}

readlock_token readlock_take(struct readlock *l) {
    readlock_token mine = &l->slot[slot_of_thread()].readers;
    for (int tries = 0;; tries++) {
        /* Both sides of this store-then-load pair are sequentially consistent: either the writer
         * sees the count, or the reader sees the flag. */
        atomic_fetch_add(mine, 1);
        if (!atomic_load(&l->writing))
            return mine;
        atomic_fetch_sub_explicit(mine, 1, memory_order_release);
        while (atomic_load_explicit(&l->writing, memory_order_relaxed)) {
            if (++tries < SPIN_LIMIT)
                spin_pause();
            else
                sched_yield();
        }
    }
}

readlock_token readlock_try(struct readlock *l) {
    readlock_token mine = &l->slot[slot_of_thread()].readers;
    for (int tries = 0; tries < 10 * SPIN_LIMIT; tries++) {
        atomic_fetch_add(mine, 1);
        if (!atomic_load(&l->writing))
            return mine;
        atomic_fetch_sub_explicit(mine, 1, memory_order_release);
        sched_yield();
    }
    return NULL;
}

void readlock_write_take(struct readlock *l) {
    spin_lock(&l->writer);
    atomic_store(&l->writing, true);
    for (int i = 0; i < READLOCK_SLOTS; i++)
        for (int tries = 0; atomic_load(&l->slot[i].readers) != 0;) {
            if (++tries < SPIN_LIMIT)
                spin_pause();
            else
                sched_yield();
        }
}

void readlock_write_give(struct readlock *l) {
    atomic_store(&l->writing, false);
    spin_unlock(&l->writer);
}
