/* image.h - GPU code of the kernels, as the build compiled it.
 *
 * An offload bundle with a code object for each of GRETA_GPU_ARCHES (cmake/gpu.cmake), compressed
 * where the compiler can do that. Empty if the build found no clang with the AMDGPU target.
 * Thread-safe: constant data. */
#ifndef KERNELS_HIP_IMAGE_H
#define KERNELS_HIP_IMAGE_H

#include "base/err.h"
#include "codeobj/bundle.h"

/* The code object for a device, e.g. "gfx942:sramecc+:xnack-". RC_UNSUPPORTED if there is none; e
 * says whether this build has others. On success the bytes are the caller's to free(). */
NODISCARD enum rc image_find(const char *target, struct codeobj_image *out, struct err *e);

/* The compiler and the architectures, for people; "none" if the build has no GPU code. */
const char *image_origin(void);

#endif
