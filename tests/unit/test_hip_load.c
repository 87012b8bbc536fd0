/* Which library the loader takes, what it says when there is none, and what it puts in the place of
 * functions that the library lacks.
 *
 * A loaded library stays for the life of a process, and LD_LIBRARY_PATH counts at its start. So
 * each case runs in a process of its own: this program again, with a script of steps as arguments.
 * The libraries are fakes (tests/abi/fake), built into FAKE_HIP/FOLDER. */
#include "unit/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hip/hip_load.h"

/* ---- the process of a case ------------------------------------------------------------------ */

/* Steps, each "verb:argument":
 *   open:FILE      the program has this library before greta comes
 *   load:CHOICE    hip_load(); prints "load RC KIND MAJOR PATH" or "load RC MESSAGE"
 *   unload:        hip_unload(); prints whether everything is zero
 *   missing:       calls functions that no fake has, some twice
 *   cxx:           calls the function that ROCm 5 has under a C++ name
 *   rtc:           asks the run-time compiler for its version
 *   last:SONAME    prints the last error of the fake of that name */
static struct hip_runtime runtime;

static void step_load(const char *choice) {
    struct err e = { .msg = "" };
    enum rc rc = hip_load(&runtime, *choice ? choice : NULL, &e);
    if (rc == RC_OK)
        printf("load %s %s %d %s\n", rc_name(rc), hip_device_kind_name(runtime.kind),
               hip_runtime_major(&runtime), runtime.path);
    else
        printf("load %s %s\n", rc_name(rc), e.msg);
}

static void step_unload(void) {
    static const struct hip_runtime zero;
    hip_unload(&runtime);
    printf("unload %s\n", memcmp(&runtime, &zero, sizeof(zero)) == 0 ? "zero" : "not zero");
}

static void step_missing(void) {
    struct hip_api *api = &runtime.api;
    int minor = 0;
    errno = EDOM;
    printf("missing %d %d", api->hipMemset(NULL, 0, 1), api->hipMemset(NULL, 0, 1));
    printf(" %d", api->hiprtcVersion(&minor, &minor));
    printf(" '%s'", api->hipGetErrorName(hipSuccess));
    printf(" %s", api->__hipRegisterFatBinary(NULL) ? "handle" : "NULL");
    api->__hipUnregisterFatBinary(NULL);
    printf(" %d", api->hipFree(NULL));
    printf(" %s", errno == EDOM ? "errno kept" : "errno changed");
    printf(" %s\n", runtime.found == 4 ? "found 4" : "found others");
}

static void step_rtc(void) {
    int major = 0, minor = 0;
    hiprtcResult result = runtime.api.hiprtcVersion(&major, &minor);
    printf("rtc %d %d.%d\n", result, major, minor);
}

static void step_last(const char *soname) {
    void *library = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "fake_peek") : NULL;
    hipError_t (*peek)(void) = NULL;
    memcpy(&peek, &symbol, sizeof(symbol));
    printf("last %s\n", peek ? hip_error_name(peek()) : "none");
}

static int run_steps(char **steps) {
    for (; *steps; steps++) {
        char *argument = strchr(*steps, ':');
        if (!argument)
            return 2;
        *argument++ = '\0';
        if (strcmp(*steps, "open") == 0)
            printf("open %s\n", dlopen(argument, RTLD_NOW | RTLD_GLOBAL) ? "ok" : dlerror());
        else if (strcmp(*steps, "load") == 0)
            step_load(argument);
        else if (strcmp(*steps, "unload") == 0)
            step_unload();
        else if (strcmp(*steps, "missing") == 0)
            step_missing();
        else if (strcmp(*steps, "cxx") == 0)
            printf("cxx %s\n", hip_error_name(runtime.api.hipExtModuleLaunchKernel(
                                   NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0)));
        else if (strcmp(*steps, "rtc") == 0)
            step_rtc();
        else if (strcmp(*steps, "last") == 0)
            step_last(argument);
        else
            return 2;
    }
    return 0;
}

/* ---- running a case -------------------------------------------------------------------------- */

enum { STEPS_MAX = 8 };

struct scenario {
    const char *program;   /* NULL: this one; without a slash: found in `path` */
    const char *path;      /* PATH, if program has no slash */
    const char *libraries; /* LD_LIBRARY_PATH: a folder of FAKE_HIP, or NULL */
    const char *device;    /* GRETA_DEVICE, or NULL */
    const char *soft;      /* GRETA_SOFT_LIBRARY, or NULL */
    const char *steps[STEPS_MAX];
};

static char out_text[8192], err_text[8192];

static void set_or_unset(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void become_case(const struct scenario *s) {
    char folder[PATH_MAX] = FAKE_HIP "/nothing";
    if (s->libraries)
        snprintf(folder, sizeof(folder), FAKE_HIP "/%s", s->libraries);
    setenv("LD_LIBRARY_PATH", folder, 1);
    set_or_unset("GRETA_DEVICE", s->device);
    set_or_unset("GRETA_SOFT_LIBRARY", s->soft);
    if (s->path)
        setenv("PATH", s->path, 1);
    char *argv[STEPS_MAX + 3] = { (char *)(s->program ? s->program : "/proc/self/exe"), "--steps" };
    for (int i = 0; i < STEPS_MAX && s->steps[i]; i++)
        argv[i + 2] = (char *)s->steps[i];
    execvp(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

/* Reads both pipes to their ends. */
static void read_both(int out, int err) {
    struct pollfd fds[2] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
    char *texts[2] = { out_text, err_text };
    size_t used[2] = { 0, 0 };
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        assert_true(poll(fds, 2, 30000) > 0);
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            ssize_t n = read(fds[i].fd, texts[i] + used[i], sizeof(out_text) - 1 - used[i]);
            if (n > 0) {
                used[i] += (size_t)n;
                continue;
            }
            close(fds[i].fd);
            fds[i].fd = -1;
        }
    }
    out_text[used[0]] = err_text[used[1]] = '\0';
}

static void run(const struct scenario *s) {
    int out[2], err[2], status = 0;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(out[1], 1);
        dup2(err[1], 2);
        become_case(s);
    }
    close(out[1]);
    close(err[1]);
    read_both(out[0], err[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        print_message("# out: %s# err: %s", out_text, err_text);
    assert_int_equal(status, 0);
}

static void assert_output(const char *expected) {
    assert_string_equal(out_text, expected);
}

static void assert_says(const char *part) {
    if (!strstr(out_text, part))
        print_message("# expected '%s', found '%s'\n", part, out_text);
    assert_non_null(strstr(out_text, part));
}

/* ---- the words ------------------------------------------------------------------------------- */

static void unknown_words_are_usage_errors_with_the_list(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "every", .steps = { "load:cuda" } });
    assert_output("load RC_USAGE device: expected auto, hip or soft, found 'cuda'\n");
    run(&(struct scenario){ .libraries = "every", .device = "Soft", .steps = { "load:" } });
    assert_output("load RC_USAGE GRETA_DEVICE: expected auto, hip or soft, found 'Soft'\n");
}

static void the_callers_word_beats_the_environment(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "every", .device = "nonsense", .steps = { "load:hip" } });
    assert_says("load RC_OK rocm 7 ");
}

static void no_word_means_auto(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "every", .steps = { "load:" } });
    assert_output("load RC_OK rocm 7 " FAKE_HIP "/every/libamdhip64.so.7\n");
    run(&(struct scenario){ .libraries = "every", .device = "", .steps = { "load:" } });
    assert_output("load RC_OK rocm 7 " FAKE_HIP "/every/libamdhip64.so.7\n");
}

/* ---- ROCm ------------------------------------------------------------------------------------ */

static void the_newest_library_with_a_device_is_taken(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "five", .steps = { "load:hip" } });
    assert_output("load RC_OK rocm 5 " FAKE_HIP "/five/libamdhip64.so.5\n");
}

static void the_plain_name_comes_last_and_its_abi_from_the_version(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "plain", .steps = { "load:hip" } });
    assert_output("load RC_OK rocm 6 " FAKE_HIP "/plain/libamdhip64.so\n");
}

static void hip_without_a_device_is_refused_and_says_what_was_tried(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "none", .steps = { "load:hip" } });
    assert_says("load RC_REFUSED no HIP device (check ROCm, /dev/kfd and HIP_VISIBLE_DEVICES, or "
                "choose the device soft): tried ");
    assert_says("libamdhip64.so.7 (no device: a count of 0)");
    assert_says("libamdhip64.so.6 (no device: hipErrorNoDevice)");
    assert_says("libamdhip64.so.5 (no function hipGetDeviceCount)");
    assert_says("libamdhip64.so (");
}

static void a_file_that_is_no_library_is_named_with_the_reason(void **state) {
    (void)state;
    mkdir(FAKE_HIP "/broken", 0777);
    FILE *f = fopen(FAKE_HIP "/broken/libamdhip64.so.7", "w");
    assert_non_null(f);
    for (int i = 0; i < 100; i++)
        fputs("not an ELF file\n", f);
    fclose(f);
    run(&(struct scenario){ .libraries = "broken", .steps = { "load:hip" } });
    assert_says("libamdhip64.so.7 (");
    assert_says("invalid ELF header");
}

static void what_the_program_has_loaded_comes_first(void **state) {
    (void)state;
    run(&(struct scenario){
        .libraries = "every",
        .steps = { "open:" FAKE_HIP "/five/libamdhip64.so.5", "load:auto", "load:hip" } });
    assert_output("open ok\nload RC_OK rocm 5 " FAKE_HIP "/five/libamdhip64.so.5\n"
                  "load RC_OK rocm 5 " FAKE_HIP "/five/libamdhip64.so.5\n");
}

static void a_loaded_library_without_a_device_is_passed_over(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "five",
                            .steps = { "open:" FAKE_HIP "/five/libamdhip64.so.6", "load:hip" } });
    assert_output("open ok\nload RC_OK rocm 5 " FAKE_HIP "/five/libamdhip64.so.5\n");
}

static void a_device_that_has_faulted_is_a_device(void **state) {
    (void)state;
    run(&(struct scenario){
        .libraries = "every",
        .steps = { "open:" FAKE_HIP "/faulted/libamdhip64.so.6", "load:auto" } });
    assert_output("open ok\nload RC_OK rocm 6 " FAKE_HIP "/faulted/libamdhip64.so.6\n");
}

static void asking_for_devices_leaves_no_error_behind(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "five",
                            .steps = { "load:hip", "last:libamdhip64.so.6" } });
    assert_says("last hipSuccess\n");
    /* That of a library which the program uses is the program's. */
    run(&(struct scenario){ .libraries = "five",
                            .steps = { "open:" FAKE_HIP "/five/libamdhip64.so.6", "load:hip",
                                       "last:libamdhip64.so.6" } });
    assert_says("last hipErrorNoDevice\n");
}

/* ---- the software device --------------------------------------------------------------------- */

static void auto_takes_the_software_device_from_the_library_path(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "soft", .steps = { "load:auto" } });
    assert_output("load RC_OK soft 7 " FAKE_HIP "/soft/libamdhip64.so.7\n");
}

static void hip_refuses_the_software_device_on_the_library_path(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "soft", .steps = { "load:hip" } });
    assert_says("load RC_REFUSED no HIP device");
    assert_says("libamdhip64.so.7 (the software device)");
    assert_says("libamdhip64.so.5 (the software device)");
}

static void hip_takes_the_software_device_that_the_program_has(void **state) {
    (void)state;
    run(&(struct scenario){
        .libraries = "every",
        .steps = { "open:" FAKE_HIP "/soft/libamdhip64.so.5", "load:hip", "load:soft" } });
    assert_output("open ok\nload RC_OK soft 5 " FAKE_HIP "/soft/libamdhip64.so.5\n"
                  "load RC_OK soft 5 " FAKE_HIP "/soft/libamdhip64.so.5\n");
}

static void hip_refuses_the_software_device_that_greta_opened(void **state) {
    (void)state;
    run(&(struct scenario){ .soft = FAKE_HIP "/soft",
                            .steps = { "load:soft", "load:hip", "load:auto" } });
    assert_says("load RC_OK soft 7 " FAKE_HIP "/soft/libamdhip64.so.7\nload RC_REFUSED");
    assert_says("libamdhip64.so.7 (the software device)");
    assert_says("\nload RC_OK soft 7 " FAKE_HIP "/soft/libamdhip64.so.7\n");
}

static void auto_without_a_rocm_device_is_the_software_device(void **state) {
    (void)state;
    run(&(struct scenario){
        .libraries = "none", .soft = FAKE_HIP "/soft/libamdhip64.so.6", .steps = { "load:auto" } });
    /* The fake of ROCm has the SONAME already; the path still finds the file. */
    assert_output("load RC_OK soft 6 " FAKE_HIP "/soft/libamdhip64.so.6\n");
}

static void soft_library_may_be_a_file_or_a_folder(void **state) {
    (void)state;
    run(&(struct scenario){ .soft = FAKE_HIP "/soft/libamdhip64.so.5", .steps = { "load:soft" } });
    assert_output("load RC_OK soft 5 " FAKE_HIP "/soft/libamdhip64.so.5\n");
    run(&(struct scenario){ .soft = FAKE_HIP "/soft", .steps = { "load:soft" } });
    assert_output("load RC_OK soft 7 " FAKE_HIP "/soft/libamdhip64.so.7\n");
}

static void a_wrong_soft_library_is_an_error_and_nothing_else_is_tried(void **state) {
    (void)state;
    run(&(struct scenario){ .soft = "/does/not/exist.so", .steps = { "load:soft" } });
    assert_says("load RC_IO GRETA_SOFT_LIBRARY: expected the software device's libamdhip64.so or "
                "its folder (correct the variable or unset it), found /does/not/exist.so (not "
                "found)\n");
    run(&(struct scenario){ .soft = FAKE_HIP "/every/libamdhip64.so.6", .steps = { "load:soft" } });
    assert_says("load RC_IO GRETA_SOFT_LIBRARY");
    assert_says("(not the software device: no symbol greta_soft_version)");
    run(&(struct scenario){ .soft = FAKE_HIP, .steps = { "load:soft" } });
    assert_says("load RC_IO GRETA_SOFT_LIBRARY");
    assert_says(FAKE_HIP " (no libamdhip64.so there)");
}

static void copy_file(const char *from, const char *to) {
    char command[2 * PATH_MAX + 16];
    snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

/* A tree like an installed one: bin/PROGRAM and lib/soft, or bin/soft. */
static void the_software_device_is_found_beside_the_program(void **state) {
    (void)state;
    static const char *const places[] = { "lib", "lib/soft", "bin/soft" };
    char root[PATH_MAX - 64], program[PATH_MAX], self[PATH_MAX], path[PATH_MAX], expected[8192];
    const char *temp = getenv("TMPDIR");
    snprintf(root, sizeof(root), "%s/test_hip_load.XXXXXX", temp ? temp : "/tmp");
    assert_non_null(mkdtemp(root));
    assert_non_null(realpath(root, path));
    snprintf(root, sizeof(root), "%.*s", (int)sizeof(root) - 1, path);
    snprintf(path, sizeof(path), "%s/bin", root);
    mkdir(path, 0777);
    snprintf(program, sizeof(program), "%s/bin/loader", root);
    assert_non_null(realpath("/proc/self/exe", self));
    copy_file(self, program);

    for (size_t i = 0; i < 3; i++) {
        char folder[PATH_MAX], file[PATH_MAX + 32];
        snprintf(folder, sizeof(folder), "%s/%s", root, places[i]);
        mkdir(folder, 0777);
        if (i == 0)
            continue;
        snprintf(file, sizeof(file), "%s/libamdhip64.so.6", folder);
        copy_file(FAKE_HIP "/soft/libamdhip64.so.6", file);
        /* By its path, and as a shell finds it. */
        run(&(struct scenario){ .program = program, .steps = { "load:soft" } });
        snprintf(expected, sizeof(expected), "load RC_OK soft 6 %s/%s/libamdhip64.so.6\n", root,
                 places[i]);
        assert_output(expected);
        run(&(struct scenario){ .program = "loader", .path = path, .steps = { "load:soft" } });
        assert_output(expected);
        unlink(file);
    }
    char command[PATH_MAX + 16];
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

/* ---- functions that are not there ------------------------------------------------------------ */

static size_t count_lines(const char *text) {
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void missing_functions_say_so_once_and_fail(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "every", .steps = { "load:hip", "missing:" } });
    assert_says("missing 801 801 11 '' NULL 0 errno kept found 4\n");
    assert_non_null(strstr(err_text, "greta: hipMemset: not in " FAKE_HIP
                                     "/every/libamdhip64.so.7; returning hipErrorNotSupported\n"));
    assert_non_null(strstr(err_text, "greta: __hipUnregisterFatBinary: not in " FAKE_HIP
                                     "/every/libamdhip64.so.7; nothing done\n"));
    assert_int_equal(count_lines(err_text), 5);
}

static void cxx_names_of_rocm_5_are_found(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "five", .steps = { "load:hip", "cxx:" } });
    assert_says("cxx hipErrorNotReady\n");
}

static void the_run_time_compiler_may_be_a_library_of_its_own(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "rtc", .steps = { "load:hip", "rtc:" } });
    assert_says("rtc 0 7.1\n");
}

static void unload_zeroes_the_runtime_and_it_can_be_loaded_again(void **state) {
    (void)state;
    run(&(struct scenario){ .libraries = "every",
                            .steps = { "unload:", "load:hip", "unload:", "load:hip" } });
    assert_output("unload zero\nload RC_OK rocm 7 " FAKE_HIP "/every/libamdhip64.so.7\n"
                  "unload zero\nload RC_OK rocm 7 " FAKE_HIP "/every/libamdhip64.so.7\n");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--steps") == 0)
        return run_steps(argv + 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_words_are_usage_errors_with_the_list),
        cmocka_unit_test(the_callers_word_beats_the_environment),
        cmocka_unit_test(no_word_means_auto),
        cmocka_unit_test(the_newest_library_with_a_device_is_taken),
        cmocka_unit_test(the_plain_name_comes_last_and_its_abi_from_the_version),
        cmocka_unit_test(hip_without_a_device_is_refused_and_says_what_was_tried),
        cmocka_unit_test(a_file_that_is_no_library_is_named_with_the_reason),
        cmocka_unit_test(what_the_program_has_loaded_comes_first),
        cmocka_unit_test(a_loaded_library_without_a_device_is_passed_over),
        cmocka_unit_test(a_device_that_has_faulted_is_a_device),
        cmocka_unit_test(asking_for_devices_leaves_no_error_behind),
        cmocka_unit_test(auto_takes_the_software_device_from_the_library_path),
        cmocka_unit_test(hip_refuses_the_software_device_on_the_library_path),
        cmocka_unit_test(hip_takes_the_software_device_that_the_program_has),
        cmocka_unit_test(hip_refuses_the_software_device_that_greta_opened),
        cmocka_unit_test(auto_without_a_rocm_device_is_the_software_device),
        cmocka_unit_test(soft_library_may_be_a_file_or_a_folder),
        cmocka_unit_test(a_wrong_soft_library_is_an_error_and_nothing_else_is_tried),
        cmocka_unit_test(the_software_device_is_found_beside_the_program),
        cmocka_unit_test(missing_functions_say_so_once_and_fail),
        cmocka_unit_test(cxx_names_of_rocm_5_are_found),
        cmocka_unit_test(the_run_time_compiler_may_be_a_library_of_its_own),
        cmocka_unit_test(unload_zeroes_the_runtime_and_it_can_be_loaded_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
