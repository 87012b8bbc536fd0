/* stopper.h - holds back text that might be the beginning of a stop text.
 * A stopper belongs to one sequence and one thread; the stop texts to the caller. */
#ifndef INFER_STOPPER_H
#define INFER_STOPPER_H

#include <stdbool.h>
#include <stddef.h>

#include "model/tokenizer/tokenizer.h"

struct stopper {
    const char *const *stops;
    size_t count;
    struct token_text held; /* not yet given out */
};

/* Appends text; *ready is how many bytes of s->held may be given out now (then stopper_drop()
 * them). *found: a stop text begins there, and the sequence ends. */
NODISCARD enum rc stopper_push(struct stopper *s, const char *text, size_t len, size_t *ready,
                               bool *found, struct err *e);
void stopper_drop(struct stopper *s, size_t len);
void stopper_close(struct stopper *s);

#endif
