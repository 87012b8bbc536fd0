/* effort.h - what a replay may cost.
 *
 * A recording says in a few bytes what takes long to follow: ten thousand streams, each of which
 * knows how far the others are; a graph of thousands of nodes, launched a thousand times. Ordinary
 * recordings come nowhere near it. One that was made to be slow, or is damaged, must not take hours
 * or all of the memory: time and memory stay in proportion to the file. Past the limit, functions
 * fail as if memory had run out; replay.c then stops and counts the rest as not examined.
 *
 * One account per thread; without effort_begin() there is no limit. */
#ifndef VERDICT_EFFORT_H
#define VERDICT_EFFORT_H

#include <stdbool.h>
#include <stdint.h>

struct effort {
    uint64_t steps, steps_max; /* of about a nanosecond */
    uint64_t bytes, bytes_max;
    bool spent; /* something was refused */
};
extern _Thread_local struct effort effort;

/* A replay of that many slots, in a file that holds so many bytes, begins; it ends. */
void effort_begin(uint64_t slots, uint64_t bytes);
void effort_end(void);

static inline bool effort_is_spent(void) {
    return effort.spent;
}

/* False if that is too much. */
static inline bool effort_steps(uint64_t steps) {
    effort.steps += steps;
    effort.spent |= effort.steps > effort.steps_max;
    return !effort.spent;
}

/* The same for memory that is about to be asked for; freed is what goes in exchange. */
static inline bool effort_bytes(uint64_t more, uint64_t freed) {
    effort.bytes += more;
    effort.bytes -= freed < effort.bytes ? freed : effort.bytes;
    effort.spent |= effort.bytes > effort.bytes_max;
    return !effort.spent;
}

#endif
