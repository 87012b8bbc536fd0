/* rtc.c - hiprtc: programs compiled at run time, by the installed clang.
 *
 * A name expression becomes a device variable after the source that holds the address of what it
 * names; in the code object that is made, the symbol at that address is the lowered name.
 * Thread-safe as far as hiprtc is: different programs in different threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/codeobj.h"
#include "codeobj/image.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/rtc/rtc_tool.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"

struct expression {
    struct expression *next;
    char *text;
    char *lowered; /* once compiled; NULL if it names nothing */
};

struct header {
    char *name, *text;
};

struct program {
    struct soft_handle handle;
    char *source, *name;
    struct header *headers;
    int header_count;
    struct expression *expressions; /* in order */
    bool compiled;                  /* compilation was tried */
    bool is_bitcode;                /* -fgpu-rdc: code for the linker */
    char *log, *code;
    size_t code_size;
};

enum { PROGRAMS_MAX = 1 << 14 };
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct soft_handles *pool;

static void make_pool(void) {
    pool = soft_handles_new(sizeof(struct program), PROGRAMS_MAX);
}

static struct program *as_program(hiprtcProgram handle) {
    pthread_once(&pool_once, make_pool);
    return soft_handle_valid(pool, handle) ? (struct program *)handle : NULL;
}

hip_cstring soft_hiprtcGetErrorString(hiprtcResult result) {
    switch (result) {
#define RESULT(name)                                                                               \
    case name:                                                                                     \
        return #name;
        RESULT(HIPRTC_SUCCESS)
        RESULT(HIPRTC_ERROR_OUT_OF_MEMORY)
        RESULT(HIPRTC_ERROR_PROGRAM_CREATION_FAILURE)
        RESULT(HIPRTC_ERROR_INVALID_INPUT)
        RESULT(HIPRTC_ERROR_INVALID_PROGRAM)
        RESULT(HIPRTC_ERROR_INVALID_OPTION)
        RESULT(HIPRTC_ERROR_COMPILATION)
        RESULT(HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE)
        RESULT(HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION)
        RESULT(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION)
        RESULT(HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID)
        RESULT(HIPRTC_ERROR_INTERNAL_ERROR)
        RESULT(HIPRTC_ERROR_LINKING)
#undef RESULT
    }
    return "Invalid HIPRTC error code";
}

hiprtcResult soft_hiprtcVersion(int *major, int *minor) {
    if (!major || !minor)
        return HIPRTC_ERROR_INVALID_INPUT;
    *major = 9; /* what hiprtc has said since it began */
    *minor = 0;
    return HIPRTC_SUCCESS;
}

/* ---- programs ---- */

static void release(struct program *p) {
    for (struct expression *e = p->expressions, *next; e; e = next) {
        next = e->next;
        free(e->text);
        free(e->lowered);
        free(e);
    }
    for (int i = 0; p->headers && i < p->header_count; i++) {
        free(p->headers[i].name);
        free(p->headers[i].text);
    }
    free(p->headers);
    free(p->source);
    free(p->name);
    free(p->log);
    free(p->code);
}

static bool fill(struct program *p, const char *src, const char *name, int count,
                 const char **headers, const char **names) {
    const char *last = name ? strrchr(name, '/') : NULL;
    name = last ? last + 1 : name;
    p->source = strdup(src);
    p->name = strdup(name && *name ? name : "CompileSource");
    p->headers = calloc(count ? (size_t)count : 1, sizeof *p->headers);
    if (!p->source || !p->name || !p->headers)
        return false;
    p->header_count = count;
    for (int i = 0; i < count; i++) {
        p->headers[i].name = strdup(names[i]);
        p->headers[i].text = strdup(headers[i]);
        if (!p->headers[i].name || !p->headers[i].text)
            return false;
    }
    return true;
}

hiprtcResult soft_hiprtcCreateProgram(hiprtcProgram *prog, const char *src, const char *name,
                                      int numHeaders, const char **headers,
                                      const char **includeNames) {
    if (!prog)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!src || numHeaders < 0 || (numHeaders && (!headers || !includeNames)))
        return HIPRTC_ERROR_INVALID_INPUT;
    for (int i = 0; i < numHeaders; i++)
        if (!headers[i] || !includeNames[i])
            return HIPRTC_ERROR_INVALID_INPUT;
    pthread_once(&pool_once, make_pool);
    struct program *p = pool ? soft_handle_alloc(pool) : NULL;
    if (!p)
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    if (!fill(p, src, name, numHeaders, headers, includeNames)) {
        release(p);
        soft_handle_free(pool, p);
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    }
    *prog = (hiprtcProgram)p;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcDestroyProgram(hiprtcProgram *prog) {
    if (!prog)
        return HIPRTC_SUCCESS;
    struct program *p = as_program(*prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    release(p);
    soft_handle_free(pool, p);
    *prog = NULL;
    return HIPRTC_SUCCESS;
}

/* ---- names ---- */

static struct expression **find(struct program *p, const char *text) {
    struct expression **link = &p->expressions;
    while (*link && strcmp((*link)->text, text))
        link = &(*link)->next;
    return link;
}

hiprtcResult soft_hiprtcAddNameExpression(hiprtcProgram prog, const char *name_expression) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!name_expression)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (p->compiled)
        return HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    struct expression **link = find(p, name_expression);
    if (*link)
        return HIPRTC_SUCCESS;
    struct expression *e = calloc(1, sizeof *e);
    if (!e || !(e->text = strdup(name_expression))) {
        free(e);
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    }
    *link = e;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcGetLoweredName(hiprtcProgram prog, const char *name_expression,
                                       const char **lowered_name) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!name_expression || !lowered_name)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!p->compiled)
        return HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    const struct expression *e = *find(p, name_expression);
    if (!e || !e->lowered)
        return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    *lowered_name = e->lowered;
    return HIPRTC_SUCCESS;
}

/* What stands at the address that variable greta_name_N holds. */
static char *lower(const struct codeobj_list *list, const struct codeobj_extent *extent,
                   const unsigned char *image, unsigned number) {
    char name[32];
    uint64_t address;
    snprintf(name, sizeof name, "greta_name_%u", number);
    const struct codeobj_variable *v = codeobj_list_variable(list, name);
    if (!v || v->size != sizeof address)
        return NULL;
    memcpy(&address, image + (v->address - extent->first), sizeof address);
    const struct codeobj_function *f = codeobj_list_function_at(list, address);
    const struct codeobj_variable *to = codeobj_list_variable_at(list, address);
    return f ? strdup(f->name) : to ? strdup(to->name) : NULL;
}

static void lower_names(struct program *p) {
    struct codeobj_list *list = NULL;
    struct codeobj_extent extent;
    const unsigned char *elf = (const unsigned char *)p->code;
    unsigned char *image = NULL;
    if (p->expressions && codeobj_list_open(&list, elf, p->code_size, NULL) == RC_OK &&
        codeobj_measure(&extent, elf, p->code_size, NULL) == RC_OK &&
        (image = malloc(extent.bytes)) &&
        codeobj_load(image, extent.first, &extent, elf, p->code_size, NULL) == RC_OK) {
        unsigned number = 0;
        for (struct expression *e = p->expressions; e; e = e->next)
            e->lowered = lower(list, &extent, image, number++);
    }
    free(image);
    codeobj_list_close(&list);
}

/* ---- compiling ---- */

static bool write_source(const struct program *p, struct rtc_job *job) {
    char *text = NULL;
    size_t size = 0;
    unsigned number = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return false;
    fprintf(f, "%s\n", p->source);
    for (const struct expression *e = p->expressions; e; e = e->next)
        fprintf(f,
                "extern \"C\" __attribute__((used)) __device__ const void *volatile greta_name_%u "
                "= (const void *)(%s%s);\n",
                number++, *e->text == '&' ? "" : "&", e->text);
    bool ok = !fclose(f) && rtc_job_write(job, p->name, text, size);
    free(text);
    for (int i = 0; ok && i < p->header_count; i++)
        ok = rtc_job_write(job, p->headers[i].name, p->headers[i].text, strlen(p->headers[i].text));
    return ok;
}

static bool begins(const char *text, const char *with) {
    return !strncmp(text, with, strlen(with));
}

/* Options as hiprtc knows them, to those of clang. */
static char *translate(const char *option) {
    static const char NVCC[] = "--gpu-architecture=";
    char *out = NULL;
    if (!begins(option, NVCC))
        return strdup(option);
    if (asprintf(&out, "--offload-arch=%s", option + strlen(NVCC)) < 0)
        return NULL;
    return out;
}

enum { OPTIONS_MAX = 200 };

struct options {
    char *all[OPTIONS_MAX + 1];
    size_t count;
};

static bool add(struct options *o, char *owned) {
    if (!owned || o->count >= OPTIONS_MAX) {
        free(owned);
        return false;
    }
    o->all[o->count++] = owned;
    return true;
}

static bool collect(struct program *p, struct options *o, int count, const char **given) {
    /* hiprtc knows what these headers declare without an include. The second one is clang's own,
     * with malloc() for kernels; clang leaves it out where it does not recognise the HIP
     * installation. */
    static const char *const always[] = { "-x",
                                          "hip",
                                          "--cuda-device-only",
                                          "--no-gpu-bundle-output",
                                          "-c",
                                          "-O3",
                                          "-std=c++17",
                                          "--rocm-path=/usr",
                                          "-I.",
                                          "-include",
                                          "hip/hip_version.h",
                                          "-include",
                                          "__clang_hip_runtime_wrapper.h",
                                          "-include",
                                          "hip/hip_runtime.h",
                                          "-include",
                                          "hip/hip_fp16.h",
                                          "-o",
                                          "code" };
    bool ok = true, has_arch = false;
    char *arch = NULL;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        ok &= add(o, strdup(always[i]));
    p->is_bitcode = false;
    for (int i = 0; i < count; i++) {
        ok &= given[i] && add(o, translate(given[i]));
        if (!ok)
            return false;
        has_arch |= begins(o->all[o->count - 1], "--offload-arch=");
        p->is_bitcode |= !strcmp(given[i], "-fgpu-rdc");
    }
    if (p->is_bitcode)
        ok &= add(o, strdup("-emit-llvm"));
    if (!has_arch)
        ok &=
            asprintf(&arch, "--offload-arch=%s", soft_arch_info(soft_settings()->arch)->name) > 0 &&
            add(o, arch);
    return ok && add(o, strdup(p->name));
}

hiprtcResult soft_hiprtcCompileProgram(hiprtcProgram prog, int numOptions, const char **options) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (numOptions < 0 || (numOptions && !options))
        return HIPRTC_ERROR_INVALID_INPUT;
    if (soft_start() != hipSuccess)
        return HIPRTC_ERROR_INTERNAL_ERROR;
    struct options all = { .count = 0 };
    struct rtc_job *job = rtc_job_open();
    p->compiled = true;
    free(p->log);
    free(p->code);
    p->log = p->code = NULL;
    p->code_size = 0;
    bool ready = job && write_source(p, job) && collect(p, &all, numOptions, options);
    bool ok = ready && rtc_job_run(job, (const char *const *)all.all, &p->log) &&
              (p->code = rtc_job_read(job, "code", &p->code_size));
    for (size_t i = 0; i < all.count; i++)
        free(all.all[i]);
    rtc_job_close(&job);
    if (ok && !p->is_bitcode)
        lower_names(p);
    return ok ? HIPRTC_SUCCESS : ready ? HIPRTC_ERROR_COMPILATION : HIPRTC_ERROR_INTERNAL_ERROR;
}

/* ---- results ---- */

static const char *log_of(const struct program *p) {
    return p->log ? p->log : "";
}

hiprtcResult soft_hiprtcGetProgramLogSize(hiprtcProgram prog, size_t *logSizeRet) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!logSizeRet)
        return HIPRTC_ERROR_INVALID_INPUT;
    *logSizeRet = *log_of(p) ? strlen(log_of(p)) + 1 : 0;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcGetProgramLog(hiprtcProgram prog, char *log) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!log)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (*log_of(p))
        strcpy(log, log_of(p));
    return HIPRTC_SUCCESS;
}

static hiprtcResult size_of(hiprtcProgram prog, bool bitcode, size_t *size) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!size)
        return HIPRTC_ERROR_INVALID_INPUT;
    *size = p->is_bitcode == bitcode ? p->code_size : 0;
    return HIPRTC_SUCCESS;
}

static hiprtcResult copy_of(hiprtcProgram prog, bool bitcode, char *to) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!to)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!p->code || p->is_bitcode != bitcode)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    memcpy(to, p->code, p->code_size);
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcGetCodeSize(hiprtcProgram prog, size_t *codeSizeRet) {
    return size_of(prog, false, codeSizeRet);
}

hiprtcResult soft_hiprtcGetCode(hiprtcProgram prog, char *code) {
    return copy_of(prog, false, code);
}

hiprtcResult soft_hiprtcGetBitcodeSize(hiprtcProgram prog, size_t *bitcode_size) {
    return size_of(prog, true, bitcode_size);
}

hiprtcResult soft_hiprtcGetBitcode(hiprtcProgram prog, char *bitcode) {
    return copy_of(prog, true, bitcode);
}
