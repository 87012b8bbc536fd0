/* slack.h - patterns in the bytes between a block and its guards, and reports about launches to the
 * observer. Owns nothing. Thread-safe where a function does not say otherwise. */
#ifndef SOFT_RUNTIME_SLACK_H
#define SOFT_RUNTIME_SLACK_H

#include <stdbool.h>
#include <stdint.h>

#include <greta/soft.h>

#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"

struct soft_slacks { /* one for each side, at most */
    unsigned count;
    struct greta_soft_slack at[2];
};

/* Gives a block that was just mapped its pattern, if there is an observer. Under the table's lock,
 * or before the block is in the table. */
void soft_slack_fill(struct soft_block *block);
/* Looks at a block that is mapped, after the launch with that tag (0: none). Under the table's
 * lock, or before the block is in the table. What is damaged goes to *out and is repaired. */
void soft_slack_look(struct soft_block *block, uint64_t tag, struct soft_slacks *out);
/* The most slack that a block can have, and whether it has a pattern. */
void soft_slack_limits(struct greta_soft_check *out);
/* Reports to the observer; without locks. */
void soft_slack_tell(const struct soft_slacks *found);
/* Whether a launch that gets this parameter is followed by a look at the block's slack. */
static inline bool soft_slack_is_looked_at(const struct greta_soft_param *p) {
    return (p->flags & (GRETA_SOFT_POINTER | GRETA_SOFT_FOOTPRINT)) == GRETA_SOFT_POINTER;
}
/* An operation is over: if it is a launch, it is counted, and its arguments' blocks are looked at.
 */
void soft_launch_done(const struct soft_op *op);
/* Whether the observer asked which bytes launches touch; and the report of them. */
bool soft_touches_wanted(void);
void soft_touches_tell(const struct soft_op *op, const struct greta_soft_touch *touched,
                       size_t count);
/* Reports what a check found in a launch to the observer, or on standard error. The places' texts
 * are filled in here. */
void soft_caught_tell(const struct soft_op *op, struct greta_soft_caught *caught);

/* How the instructions of a launch were executed; wanted: there is an observer for it. */
bool soft_executed_wanted(void);
void soft_executed_tell(const struct soft_op *op, struct greta_soft_executed *executed);
/* A wait for a value has ended that could do so since the write with that tag. */
void soft_value_tell(const struct soft_op *wait, uint64_t write);
/* An operation was skipped, because its device has failed. */
void soft_launch_skipped(const struct soft_op *op);

#endif
