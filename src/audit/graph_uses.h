/* graph_uses.h - host memory that the operations of graphs use, so that a launch of the graph can
 * be tracked like a copy. Kept only if there is an observer of such memory (audit.host).
 *
 * Thread-safe. If there is no memory for a use, it is not tracked. */
#ifndef AUDIT_GRAPH_USES_H
#define AUDIT_GRAPH_USES_H

#include "audit/audit.h"

/* Adds a use to the capture with that number, or to a graph or executable graph. use->event is that
 * of the captured operation. */
void graph_uses_captured(uint32_t capture, const struct audit_host_use *use);
void graph_uses_add(const void *graph, const struct audit_host_use *use);
/* The capture became this graph; NULL: it failed. */
void graph_uses_ended(uint32_t capture, const void *graph);
/* `to` has, besides its own, all that `from` has: an executable graph, a clone. */
void graph_uses_copy(const void *from, const void *to);
void graph_uses_forget(const void *graph);
/* Calls f for every use of the graph. */
void graph_uses_each(const void *graph, void (*f)(const struct audit_host_use *use, void *user),
                     void *user);
void graph_uses_reset(void);

#endif
