/* thread.h - threads of the runtime. Thread-safe. */
#ifndef SOFT_RUNTIME_THREAD_H
#define SOFT_RUNTIME_THREAD_H

#include <stdbool.h>

/* Starts a detached thread that leaves the program's signals alone; false if it cannot be started.
 */
bool soft_thread_start(void *(*main)(void *), void *argument);

#endif
