/* crash.h - what a bad access of the program's met.
 *
 * A host access that ends in SIGSEGV or SIGBUS is recorded as HOST_FAULT with its call stack: the
 * address, and whether it lies in memory that only the device can reach, in freed memory, or beside
 * an allocation, and which one. Then the signal takes its course: the program's handler or the
 * default action. */
#ifndef PRELOAD_CRASH_H
#define PRELOAD_CRASH_H

#include <signal.h>

/* In a handler of the signal. Accesses of the device's own are left out, and where the program
 * handles the signal, so are addresses that have nothing to do with HIP. */
void crash_note(int number, const siginfo_t *info, void *context);

#endif
