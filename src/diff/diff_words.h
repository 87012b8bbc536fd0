/* diff_words.h - what an event says apart from when and where: the words that two runs of one
 * program have in common.
 *
 * Addresses become "the third allocation of this thread, 64 bytes in" or "tensor wk, 0 bytes in";
 * streams their order of first use by the thread; handles, times, call sites and numbers of other
 * events are left out. Polls that found nothing done are left out: their number depends on chance.
 * Not thread-safe. */
#ifndef VERDICT_DIFF_WORDS_H
#define VERDICT_DIFF_WORDS_H

#include "report/report_memory.h"
#include "verdict/table.h"

enum { DIFF_WORDS_MAX = 192 };

struct diff_word {
    const char *label; /* "bytes", "dst offset"; a constant */
    const char *text;  /* of a word that is a name; NULL: a number */
    uint64_t value;    /* a number, or the hash of the text */
};

struct diff_words {
    struct diff_word word[DIFF_WORDS_MAX];
    unsigned count;
};

struct diff_state {
    const reader *r;
    struct report_memory memory;
    uint32_t *ordinals; /* by block: its place among those of its thread */
    size_t ordinals_room;
    struct diff_lane_state *lanes; /* by thread */
    struct table stream_ordinals;  /* by thread and stream: in which order they were used, from 1 */
    uint32_t lane_count, stream_count;
    bool out_of_memory;
};

NODISCARD enum rc diff_state_open(struct diff_state *s, const reader *r, struct err *e);
void diff_state_close(struct diff_state *s);

/* The words of the next event, in order; false if it is none that can be compared. All events must
 * be shown, those of no interest too. */
bool diff_state_see(struct diff_state *s, const struct reader_event *e, struct diff_words *out);

/* One number for all words. */
uint64_t diff_words_hash(const struct diff_words *w);

#endif
