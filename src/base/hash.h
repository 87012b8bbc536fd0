/* hash.h - 64-bit hashes of bytes (XXH64): fast, well mixed, the same on every machine; not a
 * protection against forgery. hash_bytes is thread-safe; a struct hash belongs to one thread. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The hash of len bytes. Different seeds give unrelated hashes; 0 is the usual one. */
uint64_t hash_bytes(const void *data, size_t len, uint64_t seed);

/* 128 bits (XXH3), for hashes that stand for their content: collisions do not occur in practice. */
struct hash_pair {
    uint64_t low, high;
};
struct hash_pair hash_pair(const void *data, size_t len, uint64_t seed);

/* The same as hash_bytes over data that comes in pieces: however it is cut, hash_value equals
 * hash_bytes of the whole. hash_value may be asked at any time and does not end the hash. */
typedef struct hash hash;
NODISCARD enum rc hash_open(hash **out, uint64_t seed, struct err *e);
void hash_add(hash *h, const void *data, size_t len);
uint64_t hash_value(const hash *h);
void hash_close(hash **h); /* sets *h to NULL; *h may be NULL */

#endif
