/* torn.h - recordings with slots taken out, as a kill, a full disk or a ring that went round leave
 * them: whatever is missing, the verdict on a correct program must not find a bug.
 *
 * torn_open() maps a recording; torn_take() takes slots out of the file in one of many ways, and
 * torn_restore() puts them back, so that one file serves thousands of variants. */
#ifndef TESTS_SUPPORT_TORN_H
#define TESTS_SUPPORT_TORN_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/event.h"
#include "record/layout.h"

struct torn {
    unsigned char *map;
    size_t bytes;
    uint64_t slots;
    uint64_t *ready; /* of every slot as it was */
};

static inline union event_slot *torn_slot(const struct torn *t, uint64_t seq) {
    const struct record_header *h = (const struct record_header *)t->map;
    uint64_t per_chunk = h->chunk_bytes / sizeof(union event_slot);
    uint32_t chunk = atomic_load(&h->event_chunk[seq / per_chunk]);
    return chunk ? (union event_slot *)(t->map + h->header_bytes +
                                        (uint64_t)(chunk - 1) * h->chunk_bytes) +
                       seq % per_chunk
                 : NULL;
}

static inline void torn_close(struct torn *t) {
    if (t->map)
        munmap(t->map, t->bytes);
    free(t->ready);
    *t = (struct torn){ 0 };
}

/* False if the file cannot be had, or its ring went round. */
static inline bool torn_open(struct torn *t, const char *path) {
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    *t = (struct torn){ 0 };
    if (fd < 0 || fstat(fd, &st) != 0 || (size_t)st.st_size < sizeof(struct record_header)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    t->bytes = (size_t)st.st_size;
    void *map = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return false;
    t->map = map;
    const struct record_header *h = map;
    t->slots = atomic_load(&h->next_seq);
    t->ready = calloc(t->slots + 1, sizeof *t->ready);
    bool whole = t->ready &&
                 t->slots <= (uint64_t)h->event_chunks * h->chunk_bytes / sizeof(union event_slot);
    for (uint64_t i = 0; whole && i < t->slots; i++) {
        const union event_slot *s = torn_slot(t, i);
        t->ready[i] = s ? s->word[0] : 0;
    }
    if (!whole)
        torn_close(t);
    return whole;
}

static inline void torn_restore(struct torn *t) {
    for (uint64_t i = 0; i < t->slots; i++) {
        union event_slot *s = torn_slot(t, i);
        if (s)
            s->word[0] = t->ready[i];
    }
}

static inline void torn_out(struct torn *t, uint64_t seq) {
    union event_slot *s = seq < t->slots ? torn_slot(t, seq) : NULL;
    if (s)
        s->word[0] = 0;
}

static inline uint64_t torn_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Takes slots out: one, two, a run of them, each with some probability, all events of one kind, the
 * first ones, or the last ones. The same variant is always the same. */
static inline void torn_take(struct torn *t, uint64_t variant) {
    uint64_t state = variant * 7919, n = t->slots ? t->slots : 1, at = torn_random(&state) % n;
    uint64_t length = 1 + torn_random(&state) % 12, part = 2 + torn_random(&state) % 30;
    switch (variant % 7) {
    case 0:
        torn_out(t, at);
        break;
    case 1:
        torn_out(t, at);
        torn_out(t, torn_random(&state) % n);
        break;
    case 2:
        for (uint64_t i = 0; i < length; i++)
            torn_out(t, at + i);
        break;
    case 3:
        for (uint64_t i = 0; i < n; i++)
            if (torn_random(&state) % part == 0)
                torn_out(t, i);
        break;
    case 4: {
        const union event_slot *chosen = torn_slot(t, at);
        uint16_t kind = chosen ? chosen->event.kind : EVENT_FREE;
        for (uint64_t i = 0; i < n; i++)
            if (torn_slot(t, i) && torn_slot(t, i)->event.kind == kind)
                torn_out(t, i);
        break;
    }
    case 5:
        for (uint64_t i = 0; i < at; i++)
            torn_out(t, i);
        break;
    default:
        for (uint64_t i = at; i < n; i++)
            torn_out(t, i);
    }
}

#endif
