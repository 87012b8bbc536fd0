/* bus.h - keeps the program alive if its recording is truncated while it is written.
 *
 * The file is mapped; a store past its new end is a SIGBUS, and would end a program that never
 * asked for a recorder. So the recorder handles that signal: if the address is in a page of a
 * recording, the page is replaced by private memory and the store succeeds; what is written there
 * is lost, and the file shows that it was cut. Any other SIGBUS goes to the previous handler.
 *
 * Thread-safe, and, except for bus_guard and bus_unguard, safe in signal handlers. */
#ifndef RECORD_BUS_H
#define RECORD_BUS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* At most this many recordings are guarded at a time; usually there is one. */
enum { BUS_GUARDS = 8 };

/* Guards two ranges of a recording; *cut becomes true when one of their pages was replaced. */
void bus_guard(const void *first, size_t first_bytes, const void *second, size_t second_bytes,
               atomic_bool *cut);
void bus_unguard(const atomic_bool *cut);

/* The action to take when the signal is not ours; NULL while the recorder has not taken it. A
 * library that stands in front of sigaction() keeps the program's own action there. */
struct sigaction *bus_next(void);

/* Called for signals that are not the recorder's, before they are handed on. */
void bus_observe(void (*observer)(int number, const siginfo_t *info, void *context));

#endif
