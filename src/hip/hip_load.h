/* hip_load.h - finds a HIP runtime and fills a struct hip_api from it.
 *
 * The device is chosen by name, by the caller or by GRETA_DEVICE:
 *
 *   auto  ROCm if it has a device, else the software device
 *   hip   ROCm with a device, or an error
 *   soft  the software device, or an error
 *
 * ROCm's library is libamdhip64.so.7, .6, .5 or plain, in that order, as the dynamic linker finds
 * them; it is taken only if hipGetDeviceCount finds a device. A libamdhip64 that is in the process
 * already comes first, because its streams and memory are the ones the program uses. The software
 * device is the same library under the same names, recognised by its symbol greta_soft_version, so
 * that LD_LIBRARY_PATH can put it where ROCm's is looked for:
 *
 *   auto takes it there, and says so in `kind`;
 *   hip  takes it only if the program itself has it in the process already (linked, preloaded or
 *        opened): every other HIP call of the program goes there, and a second runtime beside it
 *        would share nothing with it. One that is merely on the search path, or that an earlier
 *        hip_load() opened, is refused: hip means a GPU.
 *
 * soft looks for it in the process, then at GRETA_SOFT_LIBRARY (a library or a folder of them),
 * then in ../lib/soft and soft beside the object that contains this code, then in the folder soft
 * of the installation.
 *
 * A loaded library stays mapped for the rest of the process, also after hip_unload(): HIP runtimes
 * have threads and exit handlers of their own and do not survive being unmapped.
 *
 * Thread-safe; a struct hip_runtime belongs to its caller. */
#ifndef HIP_HIP_LOAD_H
#define HIP_HIP_LOAD_H

#include "base/err.h"
#include "hip/hip_api.h"
#include "hip/hip_soft.h"

enum hip_device_kind {
    HIP_DEVICE_ROCM,
    HIP_DEVICE_SOFT,
};

struct hip_runtime {
    struct hip_api api; /* complete: what the library lacks is an entry that says so when called */
    struct hip_soft soft; /* all NULL on ROCm */
    void *library;
    void *rtc_library; /* libhiprtc where ROCm has it apart, else NULL */
    enum hip_device_kind kind;
    int major;      /* of the ABI: 5, 6 or 7; see hip_types.h for what differs */
    unsigned found; /* functions of hip_api.def that the library has */
    char path[256]; /* the file, for reports; cut if longer */
};

/* Loads by choice; NULL or "" means GRETA_DEVICE, and auto if that is unset or empty. RC_USAGE for
 * an unknown word, RC_REFUSED if there is no such device, with what was tried; RC_IO if
 * GRETA_SOFT_LIBRARY names something that cannot be loaded. On failure *out is untouched. */
NODISCARD enum rc hip_load(struct hip_runtime *out, const char *choice, struct err *e);

/* Forgets the runtime and zeroes *rt. Its functions must not be called through it any more. */
void hip_unload(struct hip_runtime *rt);

/* The major number of the ABI that the runtime speaks: 5, 6 or 7. hipMemoryType,
 * hipGraphNodeType and some structures mean other things to 5 than to 6 and 7 (hip_types.h). */
int hip_runtime_major(const struct hip_runtime *rt);

/* "rocm" or "soft". */
const char *hip_device_kind_name(enum hip_device_kind kind);

#endif
