#include "kernels/hip/rtc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache_folder.h"
#include "base/hash.h"

/* GRETA_GPU_SOURCE: the path of kernels.hip with everything that it includes, from the build. */
__asm__(".section .rodata\n"
        "gpu_source_begin:\n"
        ".incbin \"" GRETA_GPU_SOURCE "\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char gpu_source_begin[] __attribute__((visibility("hidden")));

enum { CODE_MAX = 64 << 20 };

/* A file of the cache: this, then the code object. */
struct header {
    char magic[8];
    uint64_t bytes, checksum;
};

static const char magic[8] = "GRETACO1";

/* ---- the cache ------------------------------------------------------------------------------- */

/* The name of the file that has the code of this source for a target, by this compiler. */
static bool find_path(char out[CACHE_FOLDER_BYTES], const struct hip_api *hip, const char *target) {
    int numbers[3] = { 0 };
    char name[64] = "";
    if (!cache_folder_find(out))
        return false;
    (void)hip->hiprtcVersion(&numbers[0], &numbers[1]);
    (void)hip->hipRuntimeGetVersion(&numbers[2]);
    uint64_t key = hash_bytes(gpu_source_begin, strlen(gpu_source_begin), 0);
    key = hash_bytes(numbers, sizeof numbers, key);
    key = hash_bytes(target, strlen(target), key);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(target, ":/"), target);
    size_t used = strlen(out);
    snprintf(out + used, CACHE_FOLDER_BYTES - used, "/kernels-%s-%016llx.co", name,
             (unsigned long long)key);
    return true;
}

/* False if there is no such file, or if it is not whole. */
static bool read_code(const char *path, struct codeobj_image *out) {
    FILE *in = fopen(path, "rb");
    struct header h;
    unsigned char *bytes = NULL;
    if (!in)
        return false;
    bool good = fread(&h, sizeof h, 1, in) == 1 && !memcmp(h.magic, magic, sizeof magic) &&
                h.bytes > 0 && h.bytes <= CODE_MAX && (bytes = malloc(h.bytes)) &&
                fread(bytes, h.bytes, 1, in) == 1 && fgetc(in) == EOF &&
                hash_bytes(bytes, h.bytes, 0) == h.checksum;
    fclose(in);
    if (good)
        *out = (struct codeobj_image){ bytes, h.bytes };
    else
        free(bytes);
    return good;
}

static void write_code(const char *path, const struct codeobj_image *code) {
    struct header h = { .bytes = code->size, .checksum = hash_bytes(code->bytes, code->size, 0) };
    memcpy(h.magic, magic, sizeof magic);
    cache_folder_write(path, &h, sizeof h, code->bytes, code->size);
}

/* ---- compiling ------------------------------------------------------------------------------- */

static enum rc failed(const struct hip_api *hip, hiprtcProgram program, const char *target,
                      hiprtcResult r, struct err *e) {
    char log[300] = "";
    size_t size = 0;
    char *all = NULL;
    if (program && hip->hiprtcGetProgramLogSize(program, &size) == HIPRTC_SUCCESS && size &&
        (all = calloc(1, size + 1)) && hip->hiprtcGetProgramLog(program, all) == HIPRTC_SUCCESS)
        snprintf(log, sizeof log, ": %.250s", all);
    free(all);
    return err_set(e, RC_UNSUPPORTED, "hiprtc cannot compile the GPU kernels for %s: %s%s", target,
                   hip->hiprtcGetErrorString(r), log);
}

static enum rc compile(const struct hip_api *hip, const char *target, struct codeobj_image *out,
                       struct err *e) {
    char arch[300];
    const char *options[] = { arch, "-O3" };
    hiprtcProgram program = NULL;
    size_t size = 0;
    unsigned char *bytes = NULL;
    snprintf(arch, sizeof arch, "--offload-arch=%s", target);
    hiprtcResult r =
        hip->hiprtcCreateProgram(&program, gpu_source_begin, "kernels.hip", 0, NULL, NULL);
    if (r == HIPRTC_SUCCESS)
        r = hip->hiprtcCompileProgram(program, 2, options);
    if (r == HIPRTC_SUCCESS)
        r = hip->hiprtcGetCodeSize(program, &size);
    bytes = r == HIPRTC_SUCCESS ? malloc(size + 1) : NULL;
    if (bytes)
        r = hip->hiprtcGetCode(program, (char *)bytes);
    enum rc rc = RC_OK;
    if (r != HIPRTC_SUCCESS)
        rc = failed(hip, program, target, r, e);
    else if (!bytes)
        rc = err_set(e, RC_MEMORY, "out of memory");
    if (program)
        (void)hip->hiprtcDestroyProgram(&program);
    if (rc)
        free(bytes);
    else
        *out = (struct codeobj_image){ bytes, size };
    return rc;
}

enum rc rtc_find(const struct hip_api *hip, const char *target, struct codeobj_image *out,
                 struct err *e) {
    char path[CACHE_FOLDER_BYTES];
    bool cached = find_path(path, hip, target);
    if (cached && read_code(path, out))
        return RC_OK;
    enum rc rc = compile(hip, target, out, e);
    if (!rc && cached)
        write_code(path, out);
    return rc;
}
