/* rtc.c - hiprtc without a compiler.
 *
 * Programs can be made, described and destroyed; compiling one fails as a program that does not
 * compile does, with a log that says why, so that callers take the path they have for that.
 * Thread-safe as far as hiprtc is: different programs in different threads. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/soft.h"

static const char NO_COMPILER[] =
    "error: the software HIP device of greta has no compiler in this build; "
    "compile the kernel with hipcc --genco and load it with hipModuleLoad\n";

struct program {
    struct soft_handle handle;
    bool compiled; /* compilation was tried */
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

hiprtcResult soft_hiprtcCreateProgram(hiprtcProgram *prog, const char *src, const char *name,
                                      int numHeaders, const char **headers,
                                      const char **includeNames) {
    (void)name;
    if (!prog)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!src || numHeaders < 0 || (numHeaders && (!headers || !includeNames)))
        return HIPRTC_ERROR_INVALID_INPUT;
    pthread_once(&pool_once, make_pool);
    struct program *p = pool ? soft_handle_alloc(pool) : NULL;
    if (!p)
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    p->compiled = false;
    *prog = (hiprtcProgram)p;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcDestroyProgram(hiprtcProgram *prog) {
    if (!prog)
        return HIPRTC_SUCCESS;
    struct program *p = as_program(*prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    soft_handle_free(pool, p);
    *prog = NULL;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcAddNameExpression(hiprtcProgram prog, const char *name_expression) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!name_expression)
        return HIPRTC_ERROR_INVALID_INPUT;
    return p->compiled ? HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION : HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcGetLoweredName(hiprtcProgram prog, const char *name_expression,
                                       const char **lowered_name) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!name_expression || !lowered_name)
        return HIPRTC_ERROR_INVALID_INPUT;
    return p->compiled ? HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID
                       : HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
}

hiprtcResult soft_hiprtcCompileProgram(hiprtcProgram prog, int numOptions, const char **options) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (numOptions < 0 || (numOptions && !options))
        return HIPRTC_ERROR_INVALID_INPUT;
    p->compiled = true;
    return HIPRTC_ERROR_COMPILATION;
}

static const char *log_of(const struct program *p) {
    return p->compiled ? NO_COMPILER : "";
}

hiprtcResult soft_hiprtcGetProgramLogSize(hiprtcProgram prog, size_t *logSizeRet) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!logSizeRet)
        return HIPRTC_ERROR_INVALID_INPUT;
    *logSizeRet = strlen(log_of(p)) + 1;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcGetProgramLog(hiprtcProgram prog, char *log) {
    struct program *p = as_program(prog);
    if (!p)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!log)
        return HIPRTC_ERROR_INVALID_INPUT;
    strcpy(log, log_of(p));
    return HIPRTC_SUCCESS;
}

/* There is never code. */
static hiprtcResult no_code(hiprtcProgram prog, size_t *size) {
    if (!as_program(prog))
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!size)
        return HIPRTC_ERROR_INVALID_INPUT;
    *size = 0;
    return HIPRTC_SUCCESS;
}

hiprtcResult soft_hiprtcGetCodeSize(hiprtcProgram prog, size_t *codeSizeRet) {
    return no_code(prog, codeSizeRet);
}

hiprtcResult soft_hiprtcGetBitcodeSize(hiprtcProgram prog, size_t *bitcode_size) {
    return no_code(prog, bitcode_size);
}

hiprtcResult soft_hiprtcGetCode(hiprtcProgram prog, char *code) {
    if (!as_program(prog))
        return HIPRTC_ERROR_INVALID_PROGRAM;
    return code ? HIPRTC_ERROR_COMPILATION : HIPRTC_ERROR_INVALID_INPUT;
}

hiprtcResult soft_hiprtcGetBitcode(hiprtcProgram prog, char *bitcode) {
    return soft_hiprtcGetCode(prog, bitcode);
}
