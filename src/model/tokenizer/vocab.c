#include "model/tokenizer/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Open addressing, at most half full. The stored part of the hash saves most comparisons of
 * strings, and lets the table grow without reading the strings again. */
struct vocab_slot {
    uint32_t id_plus_1; /* 0: empty */
    uint32_t hash;
};

void vocab_source_init(struct vocab_source *s, const char *name) {
    *s = (struct vocab_source){
        .name = name,
        .bos = VOCAB_UNSET,
        .eos = VOCAB_UNSET,
        .eot = VOCAB_UNSET,
        .eom = VOCAB_UNSET,
        .unk = VOCAB_UNSET,
        .pad = VOCAB_UNSET,
        .add_bos = VOCAB_UNSET,
        .add_eos = VOCAB_UNSET,
        .add_space_prefix = VOCAB_UNSET,
    };
}

void vocab_source_close(struct vocab_source *s) {
    for (size_t i = 0; i < sizeof s->owned / sizeof *s->owned; i++)
        free(s->owned[i]);
    vocab_source_init(s, s->name);
}

static void vocab_table_link(struct vocab_table *t, uint32_t hash, uint32_t id) {
    uint32_t at = hash & t->slot_mask;
    while (t->slots[at].id_plus_1)
        at = (at + 1) & t->slot_mask;
    t->slots[at] = (struct vocab_slot){ id + 1, hash };
}

static enum rc vocab_table_grow_slots(struct vocab_table *t, size_t strings, struct err *e) {
    uint64_t wanted = 16;
    while (wanted < 2 * (uint64_t)strings)
        wanted *= 2;
    if (t->slots && wanted <= (uint64_t)t->slot_mask + 1)
        return RC_OK;
    if (wanted > UINT32_MAX / 2)
        return err_set(e, RC_FORMAT, "vocabulary: %zu strings are more than greta can index",
                       strings);
    struct vocab_slot *old = t->slots;
    uint64_t old_count = old ? (uint64_t)t->slot_mask + 1 : 0;
    struct vocab_slot *slots = calloc(wanted, sizeof *slots);
    if (!slots)
        return err_set(e, RC_MEMORY, "vocabulary: no memory for an index of %zu strings", strings);
    t->slots = slots;
    t->slot_mask = (uint32_t)(wanted - 1);
    for (uint64_t i = 0; i < old_count; i++)
        if (old[i].id_plus_1)
            vocab_table_link(t, old[i].hash, old[i].id_plus_1 - 1);
    free(old);
    return RC_OK;
}

static size_t vocab_at_least_double(size_t room, size_t wanted) {
    return wanted > 2 * room ? wanted : 2 * room;
}

enum rc vocab_table_reserve(struct vocab_table *t, size_t count, size_t bytes, struct err *e) {
    if (count > INT32_MAX || bytes > INT32_MAX)
        return err_set(e, RC_FORMAT,
                       "vocabulary: %zu strings of %zu bytes are more than greta can index", count,
                       bytes);
    if (count > t->room || !t->start) {
        uint32_t *start = realloc(t->start, (count + 1) * sizeof *start);
        if (!start)
            return err_set(e, RC_MEMORY, "vocabulary: no memory for %zu strings", count);
        if (!t->start)
            start[0] = 0;
        t->start = start;
        t->room = (uint32_t)count;
    }
    if (bytes > t->text_room || !t->text) {
        char *text = realloc(t->text, bytes + 1);
        if (!text)
            return err_set(e, RC_MEMORY, "vocabulary: no memory for %zu bytes of text", bytes);
        t->text = text;
        t->text_room = (uint32_t)bytes;
    }
    return vocab_table_grow_slots(t, count, e);
}

/* The slot of a string, or NULL. */
static struct vocab_slot *vocab_table_slot(const struct vocab_table *t, const char *s, size_t len,
                                           uint32_t hash) {
    if (!t->slots)
        return NULL;
    for (uint32_t at = hash & t->slot_mask; t->slots[at].id_plus_1; at = (at + 1) & t->slot_mask) {
        if (t->slots[at].hash != hash)
            continue;
        uint32_t id = t->slots[at].id_plus_1 - 1;
        if (vocab_table_length(t, id) == len && memcmp(vocab_table_text(t, id), s, len) == 0)
            return &t->slots[at];
    }
    return NULL;
}

enum rc vocab_table_add(struct vocab_table *t, const char *s, size_t len, struct err *e) {
    size_t used = t->count ? t->start[t->count] : 0;
    size_t room = t->room, text_room = t->text_room;
    if (t->count + (size_t)1 > room)
        room = vocab_at_least_double(room, t->count + (size_t)1);
    if (len > INT32_MAX || used + len > text_room)
        text_room = vocab_at_least_double(text_room, used + len);
    enum rc rc = vocab_table_reserve(t, room, text_room, e);
    if (rc != RC_OK)
        return rc;

    uint32_t hash = (uint32_t)hash_bytes(s, len, 0);
    struct vocab_slot *same = vocab_table_slot(t, s, len, hash);
    if (len)
        memcpy(t->text + used, s, len);
    if (same)
        same->id_plus_1 = t->count + 1;
    else
        vocab_table_link(t, hash, t->count);
    t->start[++t->count] = (uint32_t)(used + len);
    if (len > t->longest)
        t->longest = (uint32_t)len;
    return RC_OK;
}

int32_t vocab_table_find(const struct vocab_table *t, const char *s, size_t len) {
    if (len > t->longest)
        return -1;
    struct vocab_slot *slot = vocab_table_slot(t, s, len, (uint32_t)hash_bytes(s, len, 0));
    return slot ? (int32_t)(slot->id_plus_1 - 1) : -1;
}

void vocab_table_close(struct vocab_table *t) {
    free(t->text);
    free(t->start);
    free(t->slots);
    *t = (struct vocab_table){ 0 };
}
