/* promise.h - a figure and the limit that the project promises, as one line that scripts/bench
 * collects: `name value limit ok|missed`. */
#ifndef SUPPORT_PROMISE_H
#define SUPPORT_PROMISE_H

/* Print the line, and return 1 if the promise is missed, else 0. A name is one word, such as
 * launch.queued. */
int promise_at_most(const char *name, double value, double limit);
int promise_at_least(const char *name, double value, double limit);

#endif
