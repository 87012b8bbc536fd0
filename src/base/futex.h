/* futex.h - sleeping on a 32-bit word until another thread of this process changes it.
 *
 * Wake-ups may be spurious: a caller loops on its own condition. Both functions leave errno as it
 * was. Thread-safe. */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word == expected, for at most timeout_ns nanoseconds (negative: for ever).
 * Returns false only if the time ran out; true if woken, interrupted or the word differed. */
static inline bool futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns) {
    struct timespec ts = { .tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000 };
    int saved = errno;
    long r = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? NULL : &ts,
                     NULL, 0);
    bool in_time = r == 0 || errno != ETIMEDOUT;
    errno = saved;
    return in_time;
}

/* Wakes at most n sleepers (INT_MAX: all). Returns how many it woke. */
static inline int futex_wake(_Atomic uint32_t *word, int n) {
    int saved = errno;
    long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
    errno = saved;
    return woken > 0 ? (int)woken : 0;
}

#endif
