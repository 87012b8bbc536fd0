/* fault_signal.h - SIGSEGV on a worker becomes a fault of the device.
 * The handlers are the process's from soft_fault_init() on. Thread-safe. */
#ifndef SOFT_RUNTIME_FAULT_SIGNAL_H
#define SOFT_RUNTIME_FAULT_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "soft/runtime/op.h"

enum rc soft_fault_init(struct err *e);
/* Calls fn(user) so that a bad access inside it returns here: true if fn came to its end, else
 * false with the program address and enum greta_soft_fault_kind of the access. */
bool soft_fault_guard(void (*fn)(void *user), void *user, uint64_t *address, int *kind);
/* A pointer that no kernel may use, as one that faults wherever it is used. */
uint64_t soft_fault_poison(uint64_t pointer);
/* Reports to the observer, or aborts, and raises hipErrorIllegalAddress on the operation's device.
 */
void soft_fault_report(const struct soft_op *op, uint64_t address, int kind);
/* The same for a launch of machine code that one of its waves ended. */
struct soft_machine_stop;
void soft_fault_report_stop(const struct soft_op *op, const struct soft_machine_stop *stop);

#endif
