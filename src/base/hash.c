#include "base/hash.h"

#include <xxhash.h>

/* struct hash is libxxhash's state under a name of ours. */
static XXH64_state_t *state_of(hash *h) {
    return (XXH64_state_t *)h;
}

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed) {
    return XXH64(data, len, seed);
}

struct hash_pair hash_pair(const void *data, size_t len, uint64_t seed) {
    XXH128_hash_t h = XXH3_128bits_withSeed(data, len, seed);
    return (struct hash_pair){ .low = h.low64, .high = h.high64 };
}

enum rc hash_open(hash **out, uint64_t seed, struct err *e) {
    XXH64_state_t *state = XXH64_createState();
    if (!state)
        return err_set(e, RC_MEMORY, "no memory for a hash");
    XXH64_reset(state, seed);
    *out = (hash *)state;
    return RC_OK;
}

void hash_add(hash *h, const void *data, size_t len) {
    if (len > 0)
        XXH64_update(state_of(h), data, len);
}

uint64_t hash_value(const hash *h) {
    return XXH64_digest((const XXH64_state_t *)h);
}

void hash_close(hash **h) {
    XXH64_freeState(state_of(*h));
    *h = NULL;
}
