/* crash.h - what a bad access of the program's met.
 *
 * A host access that ends in SIGSEGV or SIGBUS is recorded as HOST_FAULT with its call stack: the
 * address, and whether it lies in memory that only the device can reach, in freed memory, or beside
 * an allocation, and whose. Whatever the program, or the system, does about the signal follows. */
#ifndef PRELOAD_CRASH_H
#define PRELOAD_CRASH_H

#include <signal.h>

/* In a handler of the signal. Accesses of the device's own are left out, and where the program
 * handles the signal, so are addresses that have nothing to do with HIP. */
void crash_note(int number, const siginfo_t *info, void *context);

#endif
