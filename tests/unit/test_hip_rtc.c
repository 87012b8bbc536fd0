/* GPU kernels that are compiled at run time, and the cache of the result, with a compiler that only
 * counts how often it is asked. */
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/hip/rtc.h"
#include "unit/folder.h"

static int compiled, version;
static const char code[] = "what a compiler made";
static char option[100], source[100];

static hiprtcResult create(hiprtcProgram *program, const char *src, const char *name, int headers,
                           const char **texts, const char **names) {
    (void)name, (void)headers, (void)texts, (void)names;
    assert_true(strstr(src, "KERNEL(THREADS)") && !strstr(src, "#include"));
    snprintf(source, sizeof source, "%.90s", src);
    *program = (hiprtcProgram)(void *)&compiled;
    return HIPRTC_SUCCESS;
}

static hiprtcResult compile(hiprtcProgram program, int count, const char **options) {
    (void)program, (void)count;
    snprintf(option, sizeof option, "%s", options[0]);
    compiled++;
    return strstr(option, "gfx000") ? HIPRTC_ERROR_COMPILATION : HIPRTC_SUCCESS;
}

static hiprtcResult get_size(hiprtcProgram program, size_t *size) {
    (void)program;
    *size = sizeof code;
    return HIPRTC_SUCCESS;
}

static hiprtcResult get_code(hiprtcProgram program, char *to) {
    (void)program;
    memcpy(to, code, sizeof code);
    return HIPRTC_SUCCESS;
}

static hiprtcResult get_log(hiprtcProgram program, char *to) {
    (void)program;
    strcpy(to, "no such processor");
    return HIPRTC_SUCCESS;
}

static hiprtcResult destroy(hiprtcProgram *program) {
    *program = NULL;
    return HIPRTC_SUCCESS;
}

static hiprtcResult get_version(int *major, int *minor) {
    *major = 9;
    *minor = 0;
    return HIPRTC_SUCCESS;
}

static hipError_t get_runtime_version(int *v) {
    *v = version;
    return hipSuccess;
}

static hip_cstring error_string(hiprtcResult r) {
    (void)r;
    return "HIPRTC_ERROR_COMPILATION";
}

static const struct hip_api fake = { .hiprtcCreateProgram = create,
                                     .hiprtcCompileProgram = compile,
                                     .hiprtcGetCodeSize = get_size,
                                     .hiprtcGetCode = get_code,
                                     .hiprtcGetProgramLogSize = get_size,
                                     .hiprtcGetProgramLog = get_log,
                                     .hiprtcDestroyProgram = destroy,
                                     .hiprtcVersion = get_version,
                                     .hipRuntimeGetVersion = get_runtime_version,
                                     .hiprtcGetErrorString = error_string };

/* Asks for code and says whether the compiler was asked. */
static int find(const char *target) {
    struct codeobj_image image = { 0 };
    struct err e = { 0 };
    compiled = 0;
    if (rtc_find(&fake, target, &image, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(image.size, sizeof code);
    assert_memory_equal(image.bytes, code, sizeof code);
    free(image.bytes);
    return compiled;
}

/* Calls on() with every file of the cache; returns how many. */
static int each_file(void (*on)(const char *path)) {
    char path[600];
    int count = 0;
    snprintf(path, sizeof path, "%s/greta", folder);
    DIR *d = opendir(path);
    for (struct dirent *f; d && (f = readdir(d));) {
        if (f->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/greta/%.300s", folder, f->d_name);
        if (on)
            on(path);
        count++;
    }
    if (d)
        closedir(d);
    return count;
}

static void erase(const char *path) {
    unlink(path);
}

static int begin(void **state) {
    (void)state;
    version = 60000000;
    return 0;
}

static int clean(void **state) {
    (void)state;
    each_file(erase);
    return 0;
}

static void code_is_compiled_once(void **state) {
    (void)state;
    assert_int_equal(find("gfx1030"), 1);
    assert_string_equal(option, "--offload-arch=gfx1030");
    assert_int_equal(find("gfx1030"), 0);
    assert_int_equal(each_file(NULL), 1); /* and nothing half-written */
}

static void another_target_or_runtime_has_code_of_its_own(void **state) {
    (void)state;
    assert_int_equal(find("gfx1030"), 1);
    assert_int_equal(find("gfx908:sramecc+:xnack-"), 1);
    assert_int_equal(find("gfx908:sramecc-:xnack-"), 1);
    version++;
    assert_int_equal(find("gfx1030"), 1);
    version--;
    assert_int_equal(find("gfx1030"), 0);
}

static void flip(const char *path) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, -2, SEEK_END);
    fputc('?', f);
    fclose(f);
}

static void cut(const char *path) {
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(truncate(path, s.st_size - 1), 0);
}

static void lengthen(const char *path) {
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(truncate(path, s.st_size + 1), 0);
}

static void empty(const char *path) {
    assert_int_equal(truncate(path, 0), 0);
}

static void a_damaged_file_is_made_again(void **state) {
    (void)state;
    void (*const damage[])(const char *) = { flip, cut, lengthen, empty };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        (void)find("gfx1030");
        assert_int_equal(each_file(damage[i]), 1);
        assert_int_equal(find("gfx1030"), 1);
        assert_int_equal(find("gfx1030"), 0);
    }
}

/* What one of several processes does: asks for code again and again, while one of them removes the
 * file. */
static bool always_finds_whole_code(bool removes) {
    bool good = true;
    for (int i = 0; good && i < 100; i++) {
        struct codeobj_image image = { 0 };
        struct err e = { 0 };
        good = !rtc_find(&fake, "gfx1030", &image, &e) && image.size == sizeof code &&
               !memcmp(image.bytes, code, sizeof code);
        free(image.bytes);
        if (removes)
            (void)each_file(erase);
    }
    return good;
}

static void processes_that_race_find_whole_code(void **state) {
    (void)state;
    enum { PROCESSES = 8 };
    pid_t pid[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (!pid[i])
            _exit(!always_finds_whole_code(i == 0));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 1;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    (void)find("gfx1030");
    assert_int_equal(find("gfx1030"), 0);
    assert_int_equal(each_file(NULL), 1); /* and nothing half-written */
}

static void a_cache_that_cannot_be_written_is_no_failure(void **state) {
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    assert_int_equal(find("gfx1030"), 1);
    assert_int_equal(find("gfx1030"), 1);
    setenv("XDG_CACHE_HOME", folder, 1);
}

static void a_failure_says_what_the_compiler_says(void **state) {
    (void)state;
    struct codeobj_image image = { 0 };
    struct err e = { 0 };
    assert_int_equal(rtc_find(&fake, "gfx000", &image, &e), RC_UNSUPPORTED);
    assert_string_equal(e.msg, "hiprtc cannot compile the GPU kernels for gfx000: "
                               "HIPRTC_ERROR_COMPILATION: no such processor");
    assert_int_equal(each_file(NULL), 0);
}

static int make_folder(void **state) {
    return folder_make(state) ? -1 : setenv("XDG_CACHE_HOME", folder, 1);
}

static int remove_folder(void **state) {
    char path[200];
    (void)state;
    snprintf(path, sizeof path, "%s/greta", folder);
    (void)rmdir(path);
    return rmdir(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, clean)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(code_is_compiled_once),
        TEST(another_target_or_runtime_has_code_of_its_own),
        TEST(a_damaged_file_is_made_again),
        TEST(processes_that_race_find_whole_code),
        TEST(a_cache_that_cannot_be_written_is_no_failure),
        TEST(a_failure_says_what_the_compiler_says),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
