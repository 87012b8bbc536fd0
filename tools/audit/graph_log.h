/* graph_log.h - which operations a graph launch runs, as a reader of the events in order can tell.
 *
 * For display; the verdict tracks them more strictly. Not thread-safe. */
#ifndef TOOLS_AUDIT_GRAPH_LOG_H
#define TOOLS_AUDIT_GRAPH_LOG_H

#include <stdint.h>

#include "record/reader.h"

struct graph_log;

struct graph_log_node {
    uint64_t event; /* the captured one */
    uint32_t name;  /* of the kernel or tensor */
    uint16_t kind, fn;
    int64_t layer; /* of the marks when it was captured; -1: none */
    uint32_t next; /* of the same graph; 0: none yet */
};

struct graph_log *graph_log_open(void); /* NULL: no memory */
void graph_log_close(struct graph_log **g);

/* To be called with every event, in order. */
void graph_log_note(struct graph_log *g, const struct reader_event *e);

/* The nodes that a launch runs, one after the other. */
struct graph_log_walk {
    const struct graph_log *log;
    uint32_t at, last;
    int64_t step; /* that the launch belongs to; -1: unknown */
};
struct graph_log_walk graph_log_launch(const struct graph_log *g,
                                       const struct reader_event *launch);
/* NULL past the last; there is none if the recording does not say. */
const struct graph_log_node *graph_log_next(struct graph_log_walk *w);

#endif
