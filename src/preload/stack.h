/* stack.h - which memory is a stack, and whose.
 *
 * Stacks differ from other host memory in two ways: their pages cannot be watched, because the
 * system puts the frames of signal handlers there; and their memory is released without a call,
 * when the function returns. Thread-safe. */
#ifndef PRELOAD_STACK_H
#define PRELOAD_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* True if the address is on the stack of the calling thread, signal stacks not counted. */
bool stack_is_mine(uint64_t address);

/* True if it is on that stack, or on the one that the process began with. */
bool stack_is_any(uint64_t address);

#endif
