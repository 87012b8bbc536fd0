#include "soft/runtime/rtc/rtc_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "soft/runtime/settings.h"

enum { PATH_BYTES = 1024, ARGUMENTS_MAX = 256 };
static const char LOG[] = "log";
static const char LIBRARIES[] = "amdgcn";

static const char NO_COMPILER[] =
    "error: the software HIP device of greta compiles with the installed clang, and there is none "
    "(clang++-15 to clang++-19, clang++, /opt/rocm/llvm/bin/clang++); compile the kernel with "
    "hipcc "
    "--genco and load it with hipModuleLoad\n";

/* In this order; those that only know gfx90a come last where gfx942 is asked for. */
static const char *const compilers[SOFT_ARCHES][8] = {
    [SOFT_ARCH_gfx90a] = { "/opt/rocm/llvm/bin/clang++", "clang++-15", "clang++-16", "clang++-17",
                           "clang++-18", "clang++-19", "clang++", NULL },
    [SOFT_ARCH_gfx942] = { "/opt/rocm/llvm/bin/clang++", "clang++-19", "clang++-18", "clang++-17",
                           "clang++", NULL },
};

static const char *const library_folders[] = {
    "/opt/rocm/amdgcn/bitcode",
    "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode",
    "/usr/lib/aarch64-linux-gnu/amdgcn/bitcode",
    "/usr/lib/amdgcn/bitcode",
    "/usr/amdgcn/bitcode",
};

struct rtc_job {
    char folder[PATH_BYTES / 2];
};

/* ---- files ---- */

struct rtc_job *rtc_job_open(void) {
    struct rtc_job *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    int n = snprintf(j->folder, sizeof j->folder, "%s/greta-rtc-XXXXXX", env_text(ENV_TMPDIR));
    if (n < 0 || (size_t)n >= sizeof j->folder || !mkdtemp(j->folder)) {
        free(j);
        return NULL;
    }
    return j;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

void rtc_job_close(struct rtc_job **job) {
    if (!*job)
        return;
    (void)nftw((*job)->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(*job);
    *job = NULL;
}

static bool path_of(const struct rtc_job *j, const char *name, char out[PATH_BYTES]) {
    int n = snprintf(out, PATH_BYTES, "%s/%s", j->folder, name);
    return n > 0 && n < PATH_BYTES && !strstr(name, "..");
}

/* Makes the folders that lead to the file. */
static void make_parents(char *path, size_t from) {
    for (char *p = strchr(path + from + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(path, 0700);
        *p = '/';
    }
}

bool rtc_job_write(struct rtc_job *job, const char *name, const void *bytes, size_t size) {
    char path[PATH_BYTES];
    if (!path_of(job, name, path))
        return false;
    make_parents(path, strlen(job->folder));
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool ok = fwrite(bytes, 1, size, f) == size;
    return !fclose(f) && ok;
}

char *rtc_job_read(struct rtc_job *job, const char *name, size_t *size) {
    char path[PATH_BYTES];
    struct stat st;
    if (!path_of(job, name, path))
        return NULL;
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = fstat(fileno(f), &st) ? NULL : malloc((size_t)st.st_size + 1);
    *size = text ? fread(text, 1, (size_t)st.st_size, f) : 0;
    fclose(f);
    if (text)
        text[*size] = '\0';
    return text;
}

/* ---- the compiler ---- */

static bool has_library(const char *folder, const char *name) {
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s.bc", folder, name);
    return !access(path, R_OK);
}

static void link_library(const char *from, const char *name, const char *to, const char *as) {
    char old[2 * PATH_BYTES], new[2 * PATH_BYTES];
    snprintf(old, sizeof old, "%s/%s.bc", from, name);
    snprintf(new, sizeof new, "%s/%s.bc", to, as);
    (void)symlink(old, new);
}

/* Links to all that clang asks for, and to the instruction set of gfx940 as that of gfx942. */
static void link_libraries(const char *from, const char *to) {
    static const char *const names[] = {
        "hip",
        "opencl",
        "ocml",
        "ockl",
        "oclc_abi_version_400",
        "oclc_abi_version_500",
        "oclc_correctly_rounded_sqrt_off",
        "oclc_correctly_rounded_sqrt_on",
        "oclc_daz_opt_off",
        "oclc_daz_opt_on",
        "oclc_finite_only_off",
        "oclc_finite_only_on",
        "oclc_unsafe_math_off",
        "oclc_unsafe_math_on",
        "oclc_wavefrontsize64_off",
        "oclc_wavefrontsize64_on",
    };
    (void)mkdir(to, 0700);
    link_library(from, "oclc_isa_version_940", to, "oclc_isa_version_942");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        link_library(from, names[i], to, names[i]);
}

/* The folder of the device libraries that know the GPU. Libraries that know gfx940 serve gfx942,
 * whose instructions are the same: then it is one of links, in the job. */
static bool find_libraries(struct rtc_job *j, char out[PATH_BYTES]) {
    bool is_942 = soft_settings()->arch == SOFT_ARCH_gfx942;
    const char *wanted = is_942 ? "oclc_isa_version_942" : "oclc_isa_version_90a";
    for (size_t i = 0; i < sizeof library_folders / sizeof *library_folders; i++) {
        if (has_library(library_folders[i], wanted)) {
            snprintf(out, PATH_BYTES, "%s", library_folders[i]);
            return true;
        }
        if (is_942 && has_library(library_folders[i], "oclc_isa_version_940") &&
            path_of(j, LIBRARIES, out)) {
            link_libraries(library_folders[i], out);
            return true;
        }
    }
    return false;
}

/* The environment without what records or replaces the program's own HIP calls. The caller frees
 * the list, not its strings. */
static char **clean_environment(void) {
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **out = calloc(n + 1, sizeof *out);
    for (size_t i = 0; out && i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) &&
            strncmp(environ[i], "GCORE_", strlen("GCORE_")))
            out[kept++] = environ[i];
    return out;
}

/* The exit status; -1 if the program is not there. */
static int run(struct rtc_job *j, char *const arguments[], char *const environment[]) {
    char log[PATH_BYTES];
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    if (!path_of(j, LOG, log) || posix_spawn_file_actions_init(&actions))
        return -1;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawn_file_actions_addchdir_np(&actions, j->folder);
    if (!posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environment)) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        status = WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    return status;
}

bool rtc_job_run(struct rtc_job *job, const char *const arguments[], char **log) {
    char libraries[PATH_BYTES], option[PATH_BYTES + 32];
    char *all[ARGUMENTS_MAX] = { NULL };
    size_t n = 1, size;
    char **environment = clean_environment();
    const char *const *names = compilers[soft_settings()->arch];
    int status = -1;
    *log = NULL;
    if (!environment)
        return false;
    if (find_libraries(job, libraries)) {
        snprintf(option, sizeof option, "--rocm-device-lib-path=%s", libraries);
        all[n++] = option;
    }
    while (*arguments && n < ARGUMENTS_MAX - 1)
        all[n++] = (char *)(uintptr_t)*arguments++;
    for (; !*arguments && *names && status < 0; names++) {
        all[0] = (char *)(uintptr_t)*names;
        status = run(job, all, environment);
    }
    free(environment);
    *log = status < 0 ? strdup(NO_COMPILER) : rtc_job_read(job, LOG, &size);
    return !status;
}
