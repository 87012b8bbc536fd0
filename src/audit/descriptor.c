#include "audit/descriptor.h"

#include <stdatomic.h>
#include <string.h>

/* An entry is replaced as a whole: version is odd while that happens, and readers compare it before
 * and after. */
struct entry {
    _Atomic uint32_t version;
    _Atomic uint32_t number;
    _Atomic uint64_t low, high;
};
enum { ENTRIES = 8192, WAYS = 2, KEY_BYTES_MAX = 1024 };
#define MET UINT32_MAX /* the number of a key that was seen once and has no definition yet */
static struct entry entries[ENTRIES];

/* ---- the cache ------------------------------------------------------------------------------ */

static struct entry *set_of(struct hash_pair key) {
    return &entries[key.low % (ENTRIES / WAYS) * WAYS];
}

/* The entry's number if it is the key's, else 0. */
static uint32_t entry_read(struct entry *e, struct hash_pair key) {
    uint32_t version = atomic_load_explicit(&e->version, memory_order_acquire);
    uint64_t low = atomic_load_explicit(&e->low, memory_order_acquire);
    uint64_t high = atomic_load_explicit(&e->high, memory_order_acquire);
    uint32_t number = atomic_load_explicit(&e->number, memory_order_acquire);
    bool whole =
        !(version & 1) && version == atomic_load_explicit(&e->version, memory_order_relaxed);
    return whole && low == key.low && high == key.high ? number : 0;
}

static void entry_write(struct entry *e, struct hash_pair key, uint32_t number) {
    uint32_t version = atomic_load_explicit(&e->version, memory_order_relaxed);
    if (version & 1 ||
        !atomic_compare_exchange_strong_explicit(&e->version, &version, version + 1,
                                                 memory_order_acquire, memory_order_relaxed))
        return; /* another thread replaces it: this key is met again later */
    atomic_store_explicit(&e->low, key.low, memory_order_release);
    atomic_store_explicit(&e->high, key.high, memory_order_release);
    atomic_store_explicit(&e->number, number, memory_order_release);
    atomic_store_explicit(&e->version, version + 2, memory_order_release);
}

static uint32_t cache_find(struct hash_pair key) {
    struct entry *set = set_of(key);
    uint32_t number = entry_read(&set[0], key);
    return number ? number : entry_read(&set[1], key);
}

/* Takes the key's own entry if it has one, else one without a definition, else one chosen by a bit
 * of the key. */
static void cache_store(struct hash_pair key, uint32_t number) {
    struct entry *set = set_of(key);
    unsigned way = key.high & 1;
    if (entry_read(&set[0], key))
        way = 0;
    else if (entry_read(&set[1], key))
        way = 1;
    else if (atomic_load_explicit(&set[way].number, memory_order_relaxed) - 1 < MET - 1)
        way ^= 1;
    entry_write(&set[way], key, number);
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* Numbers are valid in one recording only, so its run id is part of every key. */
static uint64_t seed(void) {
    return record_run_id(audit.writer);
}

struct key_text {
    uint64_t function, shared;
    uint32_t grid[3], block[3];
    uint32_t cooperative, name; /* a handle may come to stand for another kernel */
    unsigned char values[KEY_BYTES_MAX];
};

bool descriptor_key_of_launch(const struct kernel *kernel, const struct hook_launch *q,
                              struct hash_pair *key) {
    struct key_text text;
    size_t used = 0;
    if (!q->params && q->extra)
        return false; /* which of its values are pointers is looked up in the ledger */
    text.function = (uint64_t)(uintptr_t)q->function;
    text.shared = q->shared;
    memcpy(text.grid, q->grid, sizeof text.grid);
    memcpy(text.block, q->block, sizeof text.block);
    text.cooperative = q->cooperative;
    text.name = kernel->record_name;
    for (unsigned i = 0; q->params && kernel->layout && i < kernel->layout->count; i++) {
        size_t bytes = kernel->layout->param[i].size;
        if (!q->params[i] || bytes > sizeof text.values - used)
            return false;
        if (bytes == sizeof(uint64_t))
            memcpy(text.values + used, q->params[i], sizeof(uint64_t));
        else
            memcpy(text.values + used, q->params[i], bytes);
        used += bytes;
    }
    *key = hash_pair(&text, offsetof(struct key_text, values) + used, seed());
    return true;
}

struct hash_pair descriptor_key_of_extras(const union event_slot *extras, unsigned count) {
    return hash_pair(extras, count * sizeof *extras, ~seed());
}

/* ---- definitions ---------------------------------------------------------------------------- */

uint32_t descriptor_find(struct hash_pair key) {
    uint32_t number = cache_find(key);
    return number != MET ? number : 0;
}

uint32_t descriptor_meet(struct hash_pair key, const union event_slot *extras, unsigned count) {
    uint32_t number = cache_find(key);
    if (!number) {
        cache_store(key, MET);
        return 0;
    }
    if (number == MET) {
        number = record_launch(audit.writer, extras, count);
        if (number)
            cache_store(key, number);
    }
    return number;
}
