/* module_image.c - the code object for this device in what a program hands over. */
#include <string.h>

#include "soft/runtime/module/module.h"
#include "soft/runtime/settings.h"

/* In this order: code for the GPU that the device says it is, then, unless the user has chosen
 * that GPU, for the others. */
static const char *target(int i) {
    return soft_arch_info((enum soft_arch)((soft_settings()->arch + (unsigned)i) % SOFT_ARCHES))
        ->target;
}

static int targets(void) {
    return soft_settings()->takes_other_code ? SOFT_ARCHES : 1;
}

hipError_t soft_image_error(enum rc rc) {
    switch (rc) {
    case RC_OK:
        return hipSuccess;
    case RC_MEMORY:
        return hipErrorOutOfMemory;
    case RC_UNSUPPORTED:
        return hipErrorNoBinaryForGpu;
    case RC_IO:
        return hipErrorFileNotFound;
    default:
        return hipErrorInvalidImage;
    }
}

static hipError_t finish(enum rc rc, const struct codeobj_image *found, struct soft_image *out) {
    if (rc == RC_OK)
        *out = (struct soft_image){ .bytes = found->bytes, .size = found->size };
    return soft_image_error(rc);
}

hipError_t soft_image_from_memory(const void *image, struct soft_image *out) {
    char magic[sizeof SOFT_NATIVE_IMAGE - 1];
    if (codeobj_peek_memory(magic, image, sizeof magic) == sizeof magic &&
        !memcmp(magic, SOFT_NATIVE_IMAGE, sizeof magic)) {
        *out = (struct soft_image){ .native = true };
        return hipSuccess;
    }
    struct codeobj_image found = { 0 };
    enum rc rc = RC_UNSUPPORTED;
    for (int i = 0; i < targets() && rc == RC_UNSUPPORTED; i++)
        rc = codeobj_from_memory(image, target(i), &found, NULL);
    return finish(rc, &found, out);
}

hipError_t soft_image_from_file(const char *path, struct soft_image *out) {
    struct codeobj_image found = { 0 };
    enum rc rc = RC_UNSUPPORTED;
    for (int i = 0; i < targets() && rc == RC_UNSUPPORTED; i++)
        rc = codeobj_from_file(path, target(i), &found, NULL);
    return finish(rc, &found, out);
}
