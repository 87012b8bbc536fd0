/* test_codeobj_compile.h - code objects compiled in the test run: gfx90a by hipcc (code object v4),
 * gfx942 by clang-19 (v5). Where the compiler is missing the test is skipped. Static functions;
 * included by one file. */
#ifndef TESTS_UNIT_TEST_CODEOBJ_COMPILE_H
#define TESTS_UNIT_TEST_CODEOBJ_COMPILE_H

#include "unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codeobj/bundle.h"
#include "codeobj/codeobj.h"

enum compile_target { COMPILE_GFX90A, COMPILE_GFX942, COMPILE_TARGETS };

static const char *const compile_names[] = { "gfx90a:sramecc+:xnack-", "gfx942:sramecc+:xnack-" };

static bool compile_has(const char *program) {
    char command[200];
    snprintf(command, sizeof command, "command -v %s >/dev/null", program);
    return system(command) == 0;
}

/* Compiles tests/hip/NAME to path (50 bytes, a temporary file). False if there is no compiler. */
static bool compile_file(enum compile_target target, const char *name, const char *flags,
                         char *path) {
    const char *sources = getenv("SOURCE_DIR");
    assert_non_null(sources);
    if (!compile_has(target == COMPILE_GFX90A ? "hipcc" : "clang-19") ||
        (target == COMPILE_GFX942 && !compile_has("ld.lld-19")))
        return false;
    strcpy(path, "/tmp/greta-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    char command[1000];
    snprintf(command, sizeof command, "%s %s '%s/tests/hip/%s' -o %s",
             target == COMPILE_GFX90A
                 ? "hipcc --offload-arch=gfx90a --genco"
                 : "clang-19 -x hip --offload-arch=gfx942 --cuda-device-only --no-gpu-bundle-output"
                   " -nogpulib -nogpuinc",
             flags, sources, name, path);
    if (system(command) != 0)
        fail_msg("does not compile: %s", command);
    return true;
}

/* The same, read: the caller frees out->bytes. What was compiled once in this program is not again:
 * compilers are slow. */
static bool compile(enum compile_target target, const char *name, const char *flags,
                    struct codeobj_image *out) {
    static struct {
        char key[200];
        struct codeobj_image image;
    } done[16];
    static unsigned count;
    char path[50], key[200];
    struct err e = { 0 };
    snprintf(key, sizeof key, "%d %s %s", (int)target, name, flags);
    unsigned i = 0;
    while (i < count && strcmp(done[i].key, key))
        i++;
    if (i == count) {
        assert_true(count < sizeof done / sizeof *done);
        if (!compile_file(target, name, flags, path))
            return false;
        enum rc rc = codeobj_from_file(path, compile_names[target], &done[i].image, &e);
        unlink(path);
        if (rc)
            fail_msg("%s", e.msg);
        strcpy(done[count++].key, key);
    }
    out->size = done[i].image.size;
    out->bytes = malloc(out->size);
    assert_non_null(out->bytes);
    memcpy(out->bytes, done[i].image.bytes, out->size);
    return true;
}

#endif
