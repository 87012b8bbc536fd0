/* packed_format.h - the bytes of a file of packed matrices, for its reader and its writer; see
 * packed_file.h. Numbers are in the machine's byte order, which the magic shows. */
#ifndef KERNELS_CPU_PACKED_FORMAT_H
#define KERNELS_CPU_PACKED_FORMAT_H

#include "base/hash.h"
#include "kernels/cpu/packed_file.h"

enum {
    PACKED_VERSION = 1,    /* of the format; pack.def is part of the key */
    PACKED_PAGE = 4096,    /* where matrices begin */
    PACKED_CHUNK = 1 << 20 /* bytes that are hashed, packed and written at once */
};
#define PACKED_MAGIC UINT64_C(0x4b43415041544552) /* "RETAPACK" */

struct packed_entry {
    char name[GGUF_MAX_NAME + 8]; /* terminated */
    uint64_t at, bytes;
    struct hash_pair hash; /* packed_hash() of the matrix */
};

struct packed_header {
    uint64_t magic;
    uint64_t version;
    struct hash_pair key;  /* packed_key() */
    uint64_t count, table; /* matrices, and where their table begins; the file ends with it */
    struct hash_pair of_table;
    struct hash_pair self; /* of all before it */
};

/* What a file must have to belong to a model and to this program. */
NODISCARD enum rc packed_key(const gguf *g, struct hash_pair *key, struct err *e);

/* The hash of what came before and of the next chunk; of PACKED_CHUNK bytes each but the last. */
static inline struct hash_pair packed_hash(struct hash_pair before, const void *chunk,
                                           size_t bytes) {
    const struct hash_pair next = hash_pair(chunk, bytes, before.low);
    return (struct hash_pair){ next.low, next.high ^ before.high };
}

#endif
