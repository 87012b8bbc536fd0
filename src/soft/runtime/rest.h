/* rest.h - sleeping threads of the software device, and how many operations are queued meanwhile. A
 * thread that sleeps, or wakes another, while there is work makes that work wait for the system:
 * these calls are counted (greta/soft_times.h). Thread-safe. */
#ifndef SOFT_RUNTIME_REST_H
#define SOFT_RUNTIME_REST_H

#include <stdbool.h>
#include <stdint.h>

/* Operations in all queues. Noted by whoever holds the scheduler's lock. */
uint64_t soft_rest_queued(void);
void soft_rest_note_queued(uint64_t operations);

/* futex_wait() and futex_wake(). */
bool soft_rest_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);
int soft_rest_wake(_Atomic uint32_t *word, int n);

#endif
