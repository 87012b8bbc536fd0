#include "model/tokenizer/tokenizer_merge.h"

#include <stdlib.h>

enum rc merger_start(struct merger *m, size_t count, struct err *e) {
    m->count = 0;
    m->heap_count = 0;
    if (count <= m->room)
        return RC_OK;
    size_t room = count > 2 * m->room ? count : 2 * m->room;
    merger_close(m);
    /* A pair enters the heap for each symbol at the start and twice for each merge: below 3 *
     * count. */
    m->symbols = calloc(room, sizeof *m->symbols);
    m->heap = calloc(room, 3 * sizeof *m->heap);
    if (!m->symbols || !m->heap) {
        merger_close(m);
        return err_set(e, RC_MEMORY, "no memory to merge %zu symbols", count);
    }
    m->room = room;
    return RC_OK;
}

static void merger_push(struct merger *m, uint64_t key) {
    size_t i = m->heap_count++;
    while (i > 0 && m->heap[(i - 1) / 2] > key) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = key;
}

static uint64_t merger_pop(struct merger *m) {
    uint64_t top = m->heap[0], last = m->heap[--m->heap_count];
    size_t i = 0;
    for (size_t child = 1; child < m->heap_count; child = 2 * i + 1) {
        if (child + 1 < m->heap_count && m->heap[child + 1] < m->heap[child])
            child++;
        if (m->heap[child] >= last)
            break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return top;
}

/* Works out again what left and its right neighbour would make. Called whenever one of the two
 * changes, so that a symbol always knows its present pair. */
static void merger_update(struct merger *m, int32_t left, merger_pair *pair, const void *context) {
    struct merger_symbol *s = &m->symbols[left];
    s->merged = s->next < 0 ? MERGER_NONE : pair(context, s, &m->symbols[s->next], &s->priority);
    if (s->merged != MERGER_NONE)
        merger_push(m, (uint64_t)s->priority << 32 | (uint32_t)left);
}

void merger_run(struct merger *m, merger_pair *pair, const void *context) {
    for (size_t i = 0; i + 1 < m->count; i++)
        merger_update(m, (int32_t)i, pair, context);
    while (m->heap_count > 0) {
        uint64_t key = merger_pop(m);
        struct merger_symbol *left = &m->symbols[(uint32_t)key];
        /* Entries are not taken out when their pair changes; they are recognised here. */
        if (left->len == 0 || left->merged == MERGER_NONE || left->priority != key >> 32)
            continue;
        struct merger_symbol *right = &m->symbols[left->next];
        left->len += right->len;
        left->symbol = left->merged;
        left->next = right->next;
        right->len = 0;
        if (left->next >= 0)
            m->symbols[left->next].prev = (int32_t)(uint32_t)key;
        if (left->prev >= 0)
            merger_update(m, left->prev, pair, context);
        merger_update(m, (int32_t)(uint32_t)key, pair, context);
    }
}

void merger_close(struct merger *m) {
    free(m->symbols);
    free(m->heap);
    *m = (struct merger){ 0 };
}
