/* rtc.h - GPU code of the kernels for a GPU that the build did not compile for: hiprtc compiles the
 * source that is built in, and the result is kept in the user's cache.
 *
 * The cache is $XDG_CACHE_HOME/greta, or ~/.cache/greta; a file's name says architecture and a hash
 * of everything that the code depends on. Files are written whole and then renamed, and are read
 * back with a checksum: processes may start side by side, and a file that is damaged is made again.
 * A cache that cannot be written is no failure. Thread-safe. */
#ifndef KERNELS_HIP_RTC_H
#define KERNELS_HIP_RTC_H

#include "base/err.h"
#include "codeobj/bundle.h"
#include "hip/hip_api.h"

/* Code for a target as the device names it. RC_UNSUPPORTED with the compiler's words if it cannot
 * be compiled. On success the bytes are the caller's to free(). */
NODISCARD enum rc rtc_find(const struct hip_api *hip, const char *target, struct codeobj_image *out,
                           struct err *e);

#endif
