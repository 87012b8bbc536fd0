/* bundle.h - the code object for one processor in what a program hands to HIP.
 *
 * HIP passes images as a pointer without a size: a code object (ELF), an offload bundle with one
 * code object per processor (`__CLANG_OFFLOAD_BUNDLE__`), a compressed bundle (`CCOB`, versions 1
 * to 3, zlib or zstd), or the wrapper of a fat binary that points at one of these. Sizes come from
 * headers, which may be wrong, so the system copies the program's memory (process_vm_readv on its
 * own process) and fails where a plain read would crash.
 *
 * The result is a copy that the caller owns. Thread-safe: no state. */
#ifndef CODEOBJ_BUNDLE_H
#define CODEOBJ_BUNDLE_H

#include <stddef.h>

#include "base/err.h"

struct codeobj_image {
    unsigned char *bytes; /* malloc'd, so that it is aligned for codeobj_list_open(); free() it */
    size_t size;
};

/* The code object for a target, e.g. "gfx90a:sramecc+:xnack-", in the program's memory at image;
 * target NULL takes the first code object for any AMD GPU. RC_FORMAT if this is no image or
 * contradicts itself, RC_UNSUPPORTED if the bundle has nothing for the target, RC_MEMORY. On
 * failure *out is untouched. A code object that is not in a bundle is returned whatever its target.
 */
NODISCARD enum rc codeobj_from_memory(const void *image, const char *target,
                                      struct codeobj_image *out, struct err *e);

/* The same for `size` bytes that are known to be readable. */
NODISCARD enum rc codeobj_from_bytes(const void *bytes, size_t size, const char *target,
                                     struct codeobj_image *out, struct err *e);

/* The same for a file. RC_IO if it cannot be read. */
NODISCARD enum rc codeobj_from_file(const char *path, const char *target, struct codeobj_image *out,
                                    struct err *e);

/* How well code for the target that a bundle's entry names suits a device: 0: it does not run
 * there; otherwise higher is better. The id is "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-". */
int codeobj_rate_target(const char *id, const char *target);

/* Copies bytes of the program's memory up to the first that cannot be read; returns how many. */
size_t codeobj_peek_memory(void *to, const void *from, size_t bytes);

#endif
