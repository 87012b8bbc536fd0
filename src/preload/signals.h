/* signals.h - signals that this library handles before the program's own handlers.
 *
 * SIGSEGV, to see what a bad access hit; and SIGTRAP if host memory is watched. The program's
 * handlers are kept here and are called as the system would call them. SIGBUS is handled by the
 * recorder (record/bus.h); here the program sets the handler that follows it. */
#ifndef PRELOAD_SIGNALS_H
#define PRELOAD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Called once, when the audit records. */
void signals_start(bool watch);

/* True if the program has a handler of its own for the signal. */
bool signals_are_handled(int number);

#endif
