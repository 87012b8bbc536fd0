/* texture.h - texture and surface objects: the descriptors that kernels read.
 *
 * An object is the device address of 16 dwords: the image descriptor of gfx9 (8 dwords, or 4 of a
 * buffer descriptor for linear memory), type, order and width for the device libraries (8 to 10),
 * and a sampler (12 to 15). The code that looks at them is src/isa/image.c. Thread-safe. */
#ifndef SOFT_RUNTIME_TEXTURE_H
#define SOFT_RUNTIME_TEXTURE_H

#include "hip/hip_types.h"

/* As hipCreateTextureObject; texture is NULL for a surface. */
hipError_t soft_texture_create(uint64_t *out, const hipResourceDesc *resource,
                               const hipTextureDesc *texture);
hipError_t soft_texture_destroy(uint64_t object);

#endif
