/* Special tokens in a text. The longest ones are found first, anywhere in the text; shorter ones
 * are looked for in what is left between them. Most texts contain none: one pass over the text
 * first finds out which of them occur at all. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "model/tokenizer/tokenizer_internal.h"

static uint32_t special_length(const tokenizer *t, uint32_t id) {
    return vocab_table_length(&t->tokens, id);
}

static int special_compare(const void *a, const void *b, void *context) {
    const tokenizer *t = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t x_len = special_length(t, x), y_len = special_length(t, y);
    if (x_len != y_len)
        return x_len < y_len ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void specials_note_beginning(struct specials *s, const char *text, uint32_t len) {
    unsigned first = (uint8_t)text[0];
    for (unsigned second = 0; second < 256; second++) {
        if (len > 1 && second != (uint8_t)text[1])
            continue;
        unsigned pair = first << 8 | second;
        s->beginnings[pair / 8] |= (uint8_t)(1u << pair % 8);
    }
}

enum rc specials_build(tokenizer *t, struct err *e) {
    struct specials *s = &t->specials;
    uint32_t count = 0;
    for (uint32_t id = 0; id < t->tokens.count; id++)
        count += (t->attributes[id] & (TOKEN_SPECIAL | TOKEN_USER_DEFINED)) != 0;
    s->ids = malloc((count + (size_t)1) * sizeof *s->ids);
    s->lengths = malloc((count + (size_t)1) * sizeof *s->lengths);
    if (!s->ids || !s->lengths)
        return err_set(e, RC_MEMORY, "no memory for %u special tokens", count);
    for (uint32_t id = 0; id < t->tokens.count; id++)
        if (t->attributes[id] & (TOKEN_SPECIAL | TOKEN_USER_DEFINED))
            s->ids[s->count++] = id;
    qsort_r(s->ids, s->count, sizeof *s->ids, special_compare, t);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t len = special_length(t, s->ids[i]);
        specials_note_beginning(s, vocab_table_text(&t->tokens, s->ids[i]), len);
        if (i == 0 || len != s->lengths[s->length_count - 1])
            s->lengths[s->length_count++] = len;
    }
    return RC_OK;
}

void specials_free(struct specials *s) {
    free(s->ids);
    free(s->lengths);
}

static bool specials_may_begin(const struct specials *s, const char *text, uint32_t left) {
    unsigned pair = (unsigned)(uint8_t)text[0] << 8 | (left > 1 ? (uint8_t)text[1] : 0);
    return s->beginnings[pair / 8] & 1u << pair % 8;
}

/* Where a special token stands in s->ids. */
static size_t specials_rank(const tokenizer *t, uint32_t id) {
    const struct specials *s = &t->specials;
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (special_compare(&s->ids[mid], &id, (void *)(uintptr_t)t) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Sets occurs[rank] for the permitted specials that the text contains; false if there are none. */
static bool specials_mark(const tokenizer *t, const char *text, uint32_t len, uint8_t not,
                          uint8_t *occurs) {
    const struct specials *s = &t->specials;
    bool any = false;
    for (uint32_t at = 0; at < len; at++) {
        if (!specials_may_begin(s, text + at, len - at))
            continue;
        for (uint32_t i = 0; i < s->length_count; i++) {
            if (s->lengths[i] > len - at)
                continue;
            int32_t id = vocab_table_find(&t->tokens, text + at, s->lengths[i]);
            uint8_t is = id < 0 ? 0 : t->attributes[id];
            if (!(is & (TOKEN_SPECIAL | TOKEN_USER_DEFINED)) || is & not )
                continue;
            occurs[specials_rank(t, (uint32_t)id)] = 1;
            any = true;
        }
    }
    return any;
}

static bool fragments_add(struct fragment_list *list, uint32_t start, uint32_t len, int32_t token) {
    struct fragment *items = grow_array(list->items, &list->room, list->count, sizeof *items);
    if (!items)
        return false;
    list->items = items;
    list->items[list->count++] = (struct fragment){ start, len, token };
    return true;
}

void fragments_close(struct fragment_list *list) {
    free(list->items);
    *list = (struct fragment_list){ 0 };
}

/* Copies one fragment to out, cut at each occurrence of a token. */
static bool fragment_cut(const tokenizer *t, const char *text, struct fragment f, uint32_t id,
                         struct fragment_list *out) {
    const char *token = vocab_table_text(&t->tokens, id);
    uint32_t token_len = special_length(t, id);
    while (f.token == TOKENIZER_NO_TOKEN && f.len >= token_len) {
        const char *found = memmem(text + f.start, f.len, token, token_len);
        if (!found)
            break;
        uint32_t before = (uint32_t)(found - (text + f.start));
        if (before > 0 && !fragments_add(out, f.start, before, TOKENIZER_NO_TOKEN))
            return false;
        if (!fragments_add(out, f.start + before, token_len, (int32_t)id))
            return false;
        f.start += before + token_len;
        f.len -= before + token_len;
    }
    return f.len == 0 || fragments_add(out, f.start, f.len, f.token);
}

enum rc specials_cut(const tokenizer *t, const char *text, uint32_t len, uint8_t not,
                     struct fragment_list *list, struct err *e) {
    const struct specials *s = &t->specials;
    uint8_t *occurs = calloc(s->count + (size_t)1, 1);
    struct fragment_list next = { 0 };
    bool enough = occurs && (len == 0 || fragments_add(list, 0, len, TOKENIZER_NO_TOKEN));
    if (enough && s->count > 0 && specials_mark(t, text, len, not, occurs)) {
        for (uint32_t rank = 0; enough && rank < s->count; rank++) {
            if (!occurs[rank])
                continue;
            next.count = 0;
            for (size_t i = 0; enough && i < list->count; i++)
                enough = fragment_cut(t, text, list->items[i], s->ids[rank], &next);
            struct fragment_list swap = *list;
            *list = next;
            next = swap;
        }
    }
    fragments_close(&next);
    free(occurs);
    return enough ? RC_OK : err_set(e, RC_MEMORY, "no memory to look for special tokens");
}
