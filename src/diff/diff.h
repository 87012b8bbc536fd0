/* diff.h - compares two recordings of what should be the same run and says where they first differ.
 *
 * Host threads are compared as sequences of calls and operations, in the words of diff_words.h:
 * addresses, handles and times may differ. Threads are paired by what they do, not by their
 * numbers. What a thread did in one recording only is counted by the shortest edit from one
 * sequence to the other.
 *
 * Everything in struct diff belongs to it and lives until diff_close(); it does not refer to the
 * readers. Not thread-safe. */
#ifndef VERDICT_DIFF_H
#define VERDICT_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "record/reader.h"

enum diff_change {
    DIFF_SAME,
    DIFF_CHANGED, /* the same place, other words */
    DIFF_ONLY_A,  /* B goes on without this event */
    DIFF_ONLY_B,
};

/* A word that differs. */
struct diff_field {
    const char *label, *a, *b; /* "-" where one has none */
};

/* The first event that differs. */
struct diff_place {
    enum diff_change change;
    uint64_t a, b; /* events; EVENT_NO_SEQ: none, the sequence has ended */
    const char *text_a, *text_b, *text_before; /* as dump prints them; before: the last one that is
                                                  the same, of A. "" if there is none */
    const struct diff_field *fields;           /* if it is changed */
    size_t field_count;
};

/* A pair of host threads, or one alone. */
struct diff_lane {
    const char *name;            /* of the thread */
    uint32_t thread_a, thread_b; /* 0: only the other recording has it */
    uint64_t events_a, events_b;
    uint64_t common;         /* events before the first that differs */
    uint64_t only_a, only_b; /* of the shortest edit; if !aligned, all after common */
    bool aligned;            /* the edit was found */
    struct diff_place first; /* change is DIFF_SAME if none differs */
};

struct diff_fact {
    const char *key, *a, *b; /* NULL: it has none */
};

struct diff {
    bool same;
    const struct diff_lane *lanes; /* in the order of A, then those of B alone */
    size_t lane_count;
    const struct diff_lane *first; /* the one that differs first; NULL if none does */
    const struct diff_fact *facts; /* provenance that differs; no reason to be not the same */
    size_t fact_count;
    uint64_t missing_a, missing_b; /* slots lost or overwritten, which could not be compared */
};

typedef struct diff diff;

/* RC_MEMORY; on failure *out is untouched. */
NODISCARD enum rc diff_open(diff **out, const reader *a, const reader *b, struct err *e);
void diff_close(diff **d);

/* name_a, name_b: what to call the recordings. Errors of the stream stay in it. */
void diff_text(FILE *out, const diff *d, const char *name_a, const char *name_b);
NODISCARD enum rc diff_json(FILE *out, const diff *d, const char *name_a, const char *name_b,
                            struct err *e);

const char *diff_change_name(enum diff_change change); /* "changed" */

#endif
