/* image.h - a code object as it lies in memory when it is loaded.
 *
 * Machine code reaches variables, constants and other functions relative to the program counter, so
 * a code object is loaded as one range, laid out as its segments say, and not piece by piece.
 * Only absolute addresses in data need relocations.
 *
 * Thread-safe: no state. */
#ifndef CODEOBJ_IMAGE_H
#define CODEOBJ_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CODEOBJ_SEGMENTS_MAX = 16 };

struct codeobj_segment {
    uint64_t address; /* in the code object */
    uint64_t bytes;   /* in memory; bytes past those in the file are zeros */
    uint64_t file_offset, file_bytes;
    uint32_t flags; /* PF_R, PF_W, PF_X */
};

struct codeobj_extent {
    uint64_t first, bytes; /* addresses [first, first + bytes) of the code object */
    uint64_t align; /* a power of two; the load address minus first must be a multiple of it */
    struct codeobj_segment segments[CODEOBJ_SEGMENTS_MAX];
    unsigned count;
};

/* How much memory the code object needs and what goes where. RC_FORMAT if it has no segments, or if
 * they leave the file, overlap, or are larger than any device. */
NODISCARD enum rc codeobj_measure(struct codeobj_extent *out, const unsigned char *elf, size_t size,
                                  struct err *e);

/* Copies the segments to `to`, which has extent->bytes bytes and stands for the device address
 * `base` (of extent->first), fills the rest with zeros, and relocates. RC_FORMAT if a relocation is
 * malformed, leaves the image or needs a symbol that is not there; RC_UNSUPPORTED for a kind that
 * is not known. */
NODISCARD enum rc codeobj_load(unsigned char *to, uint64_t base,
                               const struct codeobj_extent *extent, const unsigned char *elf,
                               size_t size, struct err *e);

#endif
