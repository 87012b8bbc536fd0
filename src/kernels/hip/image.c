#include "kernels/hip/image.h"

/* GRETA_GPU_IMAGE: the bundle's path; GRETA_GPU_ORIGIN: who compiled it, for what. From the build;
 * not defined if it has no compiler for them. */
#ifdef GRETA_GPU_IMAGE

__asm__(".section .rodata\n"
        ".balign 64\n"
        "gpu_image_begin:\n"
        ".incbin \"" GRETA_GPU_IMAGE "\"\n"
        "gpu_image_end:\n"
        ".previous\n");

extern const char gpu_image_begin[] __attribute__((visibility("hidden")));
extern const char gpu_image_end[] __attribute__((visibility("hidden")));

const char *image_origin(void) {
    return GRETA_GPU_ORIGIN;
}

enum rc image_find(const char *target, struct codeobj_image *out, struct err *e) {
    size_t size = (size_t)(gpu_image_end - gpu_image_begin);
    enum rc rc = codeobj_from_bytes(gpu_image_begin, size, target, out, e);
    if (rc == RC_UNSUPPORTED)
        return err_set(e, rc, "this build has no code for %s, only %s", target, GRETA_GPU_ORIGIN);
    return rc;
}

#else

const char *image_origin(void) {
    return "none";
}

enum rc image_find(const char *target, struct codeobj_image *out, struct err *e) {
    (void)out;
    return err_set(
        e, RC_UNSUPPORTED,
        "this build has no GPU kernels for %s: no clang with the AMDGPU target was found "
        "when it was configured (install clang-19 and lld-19 and configure again)",
        target);
}

#endif
