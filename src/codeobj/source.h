/* source.h - where bundle.c and inflate.c read from: bytes of known size, or the program's memory.
 */
#ifndef CODEOBJ_SOURCE_H
#define CODEOBJ_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct source {
    const unsigned char *base;
    size_t size;
    bool sized;
};

enum { SOURCE_BYTES_MAX = 1 << 30 }; /* no image is larger */

/* Copies up to bytes from offset on; returns how many there are. */
size_t source_read(const struct source *s, uint64_t offset, void *to, size_t bytes);

/* inflate.c: what a compressed bundle at the start of the source holds, in a buffer that the caller
 * frees. RC_FORMAT, RC_UNSUPPORTED (a version or method from the future), RC_MEMORY. */
NODISCARD enum rc source_decompress(const struct source *s, unsigned char **out, size_t *size,
                                    struct err *e);

#endif
