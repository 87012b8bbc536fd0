/* Definitions: what events refer to by number. They live in a stream of their own that the ring
 * never overwrites, and those with a key are found again through a hash table in the file itself,
 * so that all processes of a run share their numbers and nothing has to be copied at a fork. */
#include <string.h>
#include <xxhash.h>

#include "record/writer_internal.h"

/* A chain longer than this means that the file is damaged. */
enum { CHAIN_MAX = 1 << 20 };

uint64_t intern_hash(enum definition_kind kind, const void *key, size_t bytes) {
    return XXH64(key, bytes, kind);
}

static uint64_t stream_limit(const writer *w) {
    return (uint64_t)w->h->definition_chunks << w->chunk_shift;
}

/* The definition at a position; NULL if that is past the stream's limit or cannot be mapped. */
static struct definition *definition_at(writer *w, uint64_t position) {
    if (position >= stream_limit(w))
        return NULL;
    unsigned chunk = (unsigned)(position >> w->chunk_shift);
    if (atomic_load_explicit(&w->definition_mapped[chunk], memory_order_acquire) != CHUNK_MAPPED &&
        !grow_map_chunk(w, CHUNK_DEFINITIONS, chunk, false))
        return NULL;
    return (struct definition *)(void *)(w->definitions + position);
}

/* Takes `size` bytes of the stream in one chunk; NULL (and counted) if there is no room. */
static struct definition *claim(writer *w, uint32_t size, uint64_t *position) {
    uint64_t chunk_bytes = UINT64_C(1) << w->chunk_shift;
    uint64_t next = atomic_load_explicit(&w->h->next_definition, memory_order_relaxed);
    for (;;) {
        uint64_t at = next;
        if ((at & (chunk_bytes - 1)) + size > chunk_bytes)
            at = (at | (chunk_bytes - 1)) + 1;
        struct definition *d = size <= chunk_bytes ? definition_at(w, at) : NULL;
        if (!d) {
            atomic_fetch_add_explicit(&w->h->lost_definitions, 1, memory_order_relaxed);
            return NULL;
        }
        if (atomic_compare_exchange_weak_explicit(&w->h->next_definition, &next, at + size,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            *position = at;
            return d;
        }
    }
}

/* Writes a definition; returns where, or NULL. Readers can see it from here on. */
static struct definition *store(writer *w, enum definition_kind kind, uint32_t id, uint64_t hash,
                                const void *key, size_t key_bytes, const void *value,
                                size_t value_bytes, uint64_t *position) {
    size_t size = definition_value_offset((uint32_t)key_bytes) + value_bytes;
    size = (size + RECORD_UNIT - 1) & ~(size_t)(RECORD_UNIT - 1);
    if (key_bytes > UINT16_MAX || size > (UINT64_C(1) << w->chunk_shift)) {
        atomic_fetch_add_explicit(&w->h->lost_definitions, 1, memory_order_relaxed);
        return NULL;
    }
    struct definition *d = claim(w, (uint32_t)size, position);
    if (!d)
        return NULL;
    d->size = (uint32_t)size;
    d->kind = (uint16_t)kind;
    d->key_bytes = (uint16_t)key_bytes;
    d->id = id;
    d->hash = hash;
    if (key_bytes)
        memcpy(d + 1, key, key_bytes);
    if (value_bytes)
        memcpy((unsigned char *)d + definition_value_offset((uint32_t)key_bytes), value,
               value_bytes);
    atomic_store_explicit(&d->ready, *position + 1, memory_order_release);
    return d;
}

uint32_t define_take_id(writer *w, enum definition_kind kind) {
    return atomic_fetch_add_explicit(&w->h->last_id[kind], 1, memory_order_relaxed) + 1;
}

bool define(writer *w, enum definition_kind kind, uint32_t id, const void *value, size_t bytes) {
    uint64_t position;
    return store(w, kind, id, 0, NULL, 0, value, bytes, &position) != NULL;
}

uint32_t define_next(writer *w, enum definition_kind kind, const void *value, size_t bytes) {
    uint32_t id = define_take_id(w, kind);
    return define(w, kind, id, value, bytes) ? id : 0;
}

/* ---- with a key ---------------------------------------------------------------------------- */

static _Atomic uint32_t *bucket_of(writer *w, uint64_t hash) {
    return &w->h->bucket[hash % RECORD_BUCKETS];
}

/* Walks a chain from link to (not including) end. */
static uint32_t chain_find(writer *w, uint32_t link, uint32_t end, enum definition_kind kind,
                           uint64_t hash, const void *key, size_t key_bytes) {
    for (unsigned steps = 0; link && link != end && steps < CHAIN_MAX; steps++) {
        struct definition *d = definition_at(w, (uint64_t)(link - 1) * RECORD_UNIT);
        if (!d)
            return 0;
        if (d->hash == hash && d->kind == kind && d->key_bytes == key_bytes &&
            !memcmp(d + 1, key, key_bytes))
            return d->id;
        link = atomic_load_explicit(&d->next, memory_order_acquire);
    }
    return 0;
}

uint32_t intern_find(writer *w, enum definition_kind kind, uint64_t hash, const void *key,
                     size_t key_bytes) {
    uint32_t head = atomic_load_explicit(bucket_of(w, hash), memory_order_acquire);
    return chain_find(w, head, 0, kind, hash, key, key_bytes);
}

uint32_t intern_add(writer *w, enum definition_kind kind, uint64_t hash, const void *key,
                    size_t key_bytes, const void *value, size_t value_bytes) {
    uint64_t position;
    _Atomic uint32_t *bucket = bucket_of(w, hash);
    uint32_t head = atomic_load_explicit(bucket, memory_order_acquire);
    uint32_t known = chain_find(w, head, 0, kind, hash, key, key_bytes);
    if (known)
        return known;
    struct definition *d = store(w, kind, define_take_id(w, kind), hash, key, key_bytes, value,
                                 value_bytes, &position);
    if (!d)
        return 0;
    for (;;) {
        uint32_t seen = head;
        atomic_store_explicit(&d->next, head, memory_order_relaxed);
        if (atomic_compare_exchange_strong_explicit(bucket, &head,
                                                    (uint32_t)(position / RECORD_UNIT) + 1,
                                                    memory_order_release, memory_order_acquire))
            return d->id;
        /* Another thread has added to the chain. If that was the same key, its definition counts,
         * and ours stays in the stream under a number that is never used. */
        known = chain_find(w, head, seen, kind, hash, key, key_bytes);
        if (known)
            return known;
    }
}

/* ---- strings and launches -------------------------------------------------------------------- */

/* The key is the text; the NUL that readers want is the value. */
uint32_t record_string_n(writer *w, const char *text, size_t length) {
    if (!w || !text || !length)
        return 0;
    length = length < RECORD_STRING_MAX ? length : RECORD_STRING_MAX;
    uint64_t hash = intern_hash(DEFINITION_STRING, text, length);
    uint32_t id = intern_find(w, DEFINITION_STRING, hash, text, length);
    return id ? id : intern_add(w, DEFINITION_STRING, hash, text, length, "", 1);
}

uint32_t record_string(writer *w, const char *text) {
    return w && text ? record_string_n(w, text, strlen(text)) : 0;
}

uint32_t record_launch(writer *w, const union event_slot *extras, unsigned count) {
    if (!w || !count || count > EVENT_EXTRA_MAX)
        return 0;
    size_t bytes = count * sizeof *extras;
    uint64_t hash = intern_hash(DEFINITION_LAUNCH, extras, bytes);
    uint32_t id = intern_find(w, DEFINITION_LAUNCH, hash, extras, bytes);
    return id ? id : intern_add(w, DEFINITION_LAUNCH, hash, extras, bytes, NULL, 0);
}
