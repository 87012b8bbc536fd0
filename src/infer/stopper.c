#include "infer/stopper.h"

#include <string.h>

/* Bytes at the end of the held text that are the beginning of a stop text. */
static size_t partial_match(const struct stopper *s) {
    size_t longest = 0;
    for (size_t i = 0; i < s->count; i++) {
        size_t len = strlen(s->stops[i]);
        size_t most = len - 1 < s->held.len ? len - 1 : s->held.len;
        for (size_t n = most; n > longest; n--)
            if (!memcmp(s->held.data + s->held.len - n, s->stops[i], n))
                longest = n;
    }
    return longest;
}

enum rc stopper_push(struct stopper *s, const char *text, size_t len, size_t *ready, bool *found,
                     struct err *e) {
    enum rc rc = token_text_add(&s->held, text, len, e);
    *ready = 0;
    *found = false;
    if (rc || !s->held.len)
        return rc;
    size_t first = s->held.len;
    for (size_t i = 0; i < s->count; i++) {
        const char *at = memmem(s->held.data, s->held.len, s->stops[i], strlen(s->stops[i]));
        if (at && (size_t)(at - s->held.data) < first) {
            first = (size_t)(at - s->held.data);
            *found = true;
        }
    }
    *ready = *found ? first : s->held.len - partial_match(s);
    return RC_OK;
}

void stopper_drop(struct stopper *s, size_t len) {
    if (len) /* an empty text has no data */
        memmove(s->held.data, s->held.data + len, s->held.len - len);
    s->held.len -= len;
}

void stopper_close(struct stopper *s) {
    token_text_close(&s->held);
}
