/* threads.h - how other files of this folder tell threads.c of waits that they see. caller is the
 * address that the program's call returns to. Thread-safe; errno is preserved. */
#ifndef PRELOAD_THREADS_H
#define PRELOAD_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* Around a futex system call of the program's, which was made by the C library's syscall(). */
void threads_before_futex(const void *word, int op, const void *caller);
void threads_after_futex(const void *word, int op, unsigned value, const void *caller);

/* For other means of waiting: object is an address, or a number that is never one. */
void threads_release(const void *object, const void *caller);
void threads_acquire(const void *object, const void *caller);

/* pipes.c: around calls that write into a descriptor, and that have read something from one. */
void pipes_before_write(int fd, const void *caller);
void pipes_after_read(int fd, const void *caller);

/* A HIP call that waited for work is about to return to the caller. */
void threads_linger(const void *caller);

/* A query of the caller's found work done that nothing has waited for yet: should it answer "not
 * ready" once more? */
bool threads_withhold(const void *caller);

#endif
