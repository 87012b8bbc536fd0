/* tree.h - the processes that a process has started, and those that these have.
 *
 * A process whose parent ends is handed to the nearest ancestor that asked for it (tree_adopt), so
 * that a daemon, which makes its own session and lets its parent end, stays in the tree. The parent
 * of each process is checked again once its pidfd is open, so that a pid that has been reused
 * meanwhile is not signalled. Not thread-safe. */
#ifndef TOOLS_AUDIT_TREE_H
#define TOOLS_AUDIT_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on the caller inherits the orphans among its descendants. */
void tree_adopt(void);

/* Sends a signal to every descendant of root that has not ended, also to root itself if with_root;
 * number 0 only counts. Processes of the group not_group are left out (0: none are). Returns how
 * many there were. */
unsigned tree_signal(pid_t root, bool with_root, pid_t not_group, int number);

/* Kills every descendant of root until none is left, but not root itself: some may be forking. */
void tree_kill(pid_t root);

#endif
