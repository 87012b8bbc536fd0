/* signals.h - signals that this library takes in front of the program's own handlers.
 *
 * SIGSEGV, to see what a bad access met; and SIGTRAP where host memory is watched. The program's
 * handlers are kept here and are called as the system would call them. SIGBUS is the recorder's
 * (record/bus.h), whose next handler the program sets here. */
#ifndef PRELOAD_SIGNALS_H
#define PRELOAD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Called once, when the audit records. */
void signals_start(bool watch);

/* True if the program has a handler of its own for the signal. */
bool signals_are_handled(int number);

#endif
