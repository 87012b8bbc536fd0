/* rtc_link.c - hiprtcLink... and hipLink...: code objects out of bitcode, by the installed clang.
 *
 * Thread-safe as far as HIP is: different links in different threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/bundle.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/rtc/rtc_tool.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"

enum { LINKS_MAX = 1 << 12, INPUTS_MAX = 100, NAME_BYTES = 24 };

struct link {
    struct soft_handle handle;
    struct rtc_job *job;
    char inputs[INPUTS_MAX][NAME_BYTES];
    size_t count;
    char *code; /* once complete */
    size_t size;
};

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct soft_handles *pool;

static void make_pool(void) {
    pool = soft_handles_new(sizeof(struct link), LINKS_MAX);
}

static struct link *as_link(const void *handle) {
    pthread_once(&pool_once, make_pool);
    return soft_handle_valid(pool, handle) ? (struct link *)(uintptr_t)handle : NULL;
}

static struct link *create(void) {
    pthread_once(&pool_once, make_pool);
    struct link *l = soft_start() == hipSuccess && pool ? soft_handle_alloc(pool) : NULL;
    if (l && !(l->job = rtc_job_open())) {
        soft_handle_free(pool, l);
        l = NULL;
    }
    return l;
}

static void destroy(struct link *l) {
    rtc_job_close(&l->job);
    free(l->code);
    soft_handle_free(pool, l);
}

static bool put(struct link *l, const void *bitcode, size_t size) {
    if (l->count >= INPUTS_MAX)
        return false;
    snprintf(l->inputs[l->count], NAME_BYTES, "input%zu.bc", l->count);
    return rtc_job_write(l->job, l->inputs[l->count], bitcode, size) && ++l->count;
}

static bool starts_with(const void *data, size_t size, const char *magic) {
    return size >= strlen(magic) && !memcmp(data, magic, strlen(magic));
}

static bool is_bundle(const void *data, size_t size) {
    return starts_with(data, size, "__CLANG_OFFLOAD_BUNDLE__") || starts_with(data, size, "CCOB");
}

/* The part of a bundle that is for this GPU. */
static enum rc put_bundle(struct link *l, const void *data, size_t size) {
    const char *target = soft_arch_info(soft_settings()->arch)->target;
    struct codeobj_image part;
    enum rc rc = codeobj_from_bytes(data, size, target, &part, NULL);
    if (rc)
        return rc;
    rc = put(l, part.bytes, part.size) ? RC_OK : RC_MEMORY;
    free(part.bytes);
    return rc;
}

/* A static library: what its bundles have for this GPU, and its other members as they are. */
static bool put_archive(struct link *l, const char *data, size_t size) {
    enum { MAGIC = 8, HEADER = 60, SIZE_AT = 48, SIZE_DIGITS = 10 };
    bool ok = true;
    for (size_t at = MAGIC; ok && at + HEADER <= size;) {
        char digits[SIZE_DIGITS + 1] = { 0 };
        const char *member = data + at + HEADER;
        memcpy(digits, data + at + SIZE_AT, SIZE_DIGITS);
        size_t bytes = strtoul(digits, NULL, 10);
        if (bytes > size - at - HEADER)
            return false;
        if (is_bundle(member, bytes)) {
            enum rc rc = put_bundle(l, member, bytes);
            ok = !rc || rc == RC_UNSUPPORTED;
        } else if (data[at] != '/') { /* its tables of symbols and names */
            ok = put(l, member, bytes);
        }
        at += HEADER + bytes + bytes % 2;
    }
    return ok;
}

static bool add(struct link *l, const void *data, size_t size) {
    if (is_bundle(data, size))
        return put_bundle(l, data, size) == RC_OK;
    return starts_with(data, size, "!<arch>\n") ? put_archive(l, data, size) : put(l, data, size);
}

static bool add_file(struct link *l, const char *path) {
    FILE *f = fopen(path, "rb");
    char *text = NULL, part[4096];
    size_t size = 0, n;
    FILE *all = f ? open_memstream(&text, &size) : NULL;
    while (all && (n = fread(part, 1, sizeof part, f)))
        fwrite(part, 1, n, all);
    bool ok = all && !fclose(all) && add(l, text, size);
    if (f)
        fclose(f);
    free(text);
    return ok;
}

static bool complete(struct link *l) {
    const char *arguments[INPUTS_MAX + 8] = { "-target", "amdgcn-amd-amdhsa", "-O3", "-o", "code" };
    char gpu[32], *log = NULL;
    size_t n = 5;
    snprintf(gpu, sizeof gpu, "-mcpu=%s", soft_arch_info(soft_settings()->arch)->name);
    arguments[n++] = gpu;
    for (size_t i = 0; i < l->count; i++)
        arguments[n++] = l->inputs[i];
    free(l->code);
    l->code = NULL;
    if (l->count && rtc_job_run(l->job, arguments, &log))
        l->code = rtc_job_read(l->job, "code", &l->size);
    else if (log)
        fprintf(stderr, "%s", log);
    free(log);
    return l->code;
}

/* ---- hiprtc's ---- */

static bool is_bitcode(unsigned type) {
    return type >= HIPRTC_JIT_INPUT_LLVM_BITCODE &&
           type <= HIPRTC_JIT_INPUT_LLVM_ARCHIVES_OF_BUNDLED_BITCODE;
}

hiprtcResult soft_hiprtcLinkCreate(unsigned int num_options, hiprtcJIT_option *option_ptr,
                                   void **option_vals_pptr, hiprtcLinkState *hip_link_state_ptr) {
    if (!hip_link_state_ptr || (num_options && (!option_ptr || !option_vals_pptr)))
        return HIPRTC_ERROR_INVALID_INPUT;
    struct link *l = create();
    if (!l)
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    *hip_link_state_ptr = (hiprtcLinkState)l;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcLinkAddData(hiprtcLinkState hip_link_state, hiprtcJITInputType input_type,
                                    void *image, size_t image_size, const char *name,
                                    unsigned int num_options, hiprtcJIT_option *options_ptr,
                                    void **option_values) {
    struct link *l = as_link(hip_link_state);
    (void)name, (void)num_options, (void)options_ptr, (void)option_values;
    if (!l || !image || !image_size || !is_bitcode(input_type))
        return HIPRTC_ERROR_INVALID_INPUT;
    return add(l, image, image_size) ? HIPRTC_SUCCESS : HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
}

hiprtcResult soft_hiprtcLinkAddFile(hiprtcLinkState hip_link_state, hiprtcJITInputType input_type,
                                    const char *file_path, unsigned int num_options,
                                    hiprtcJIT_option *options_ptr, void **option_values) {
    struct link *l = as_link(hip_link_state);
    (void)num_options, (void)options_ptr, (void)option_values;
    if (!l || !file_path || !is_bitcode(input_type))
        return HIPRTC_ERROR_INVALID_INPUT;
    return add_file(l, file_path) ? HIPRTC_SUCCESS : HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
}

hiprtcResult soft_hiprtcLinkComplete(hiprtcLinkState hip_link_state, void **bin_out,
                                     size_t *size_out) {
    struct link *l = as_link(hip_link_state);
    if (!l || !bin_out || !size_out)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!complete(l))
        return HIPRTC_ERROR_LINKING;
    *bin_out = l->code;
    *size_out = l->size;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcLinkDestroy(hiprtcLinkState hip_link_state) {
    struct link *l = as_link(hip_link_state);
    if (!l)
        return HIPRTC_ERROR_INVALID_INPUT;
    destroy(l);
    return HIPRTC_SUCCESS;
}

/* ---- hip's, with other errors ---- */

hipError_t soft_hipLinkCreate(unsigned int numOptions, hipJitOption *options, void **optionValues,
                              hipLinkState_t *stateOut) {
    if (!stateOut || (numOptions && (!options || !optionValues)))
        return hipErrorInvalidValue;
    struct link *l = create();
    if (!l)
        return hipErrorOutOfMemory;
    *stateOut = (hipLinkState_t)l;
    return hipSuccess;
}

hipError_t soft_hipLinkAddData(hipLinkState_t state, hipJitInputType type, void *data, size_t size,
                               const char *name, unsigned int numOptions, hipJitOption *options,
                               void **optionValues) {
    struct link *l = as_link(state);
    (void)name, (void)numOptions, (void)options, (void)optionValues;
    if (!l)
        return hipErrorInvalidHandle;
    if (!data || !size || !is_bitcode(type))
        return hipErrorInvalidValue;
    return add(l, data, size) ? hipSuccess : hipErrorInvalidConfiguration;
}

hipError_t soft_hipLinkAddFile(hipLinkState_t state, hipJitInputType type, const char *path,
                               unsigned int numOptions, hipJitOption *options,
                               void **optionValues) {
    struct link *l = as_link(state);
    (void)numOptions, (void)options, (void)optionValues;
    if (!l)
        return hipErrorInvalidHandle;
    if (!path || !is_bitcode(type))
        return hipErrorInvalidValue;
    return add_file(l, path) ? hipSuccess : hipErrorFileNotFound;
}

hipError_t soft_hipLinkComplete(hipLinkState_t state, void **hipBinOut, size_t *sizeOut) {
    struct link *l = as_link(state);
    if (!l)
        return hipErrorInvalidHandle;
    if (!hipBinOut || !sizeOut)
        return hipErrorInvalidValue;
    if (!complete(l))
        return hipErrorInvalidImage;
    *hipBinOut = l->code;
    *sizeOut = l->size;
    return hipSuccess;
}

hipError_t soft_hipLinkDestroy(hipLinkState_t state) {
    struct link *l = as_link(state);
    if (!l)
        return hipErrorInvalidHandle;
    destroy(l);
    return hipSuccess;
}
