/* matrix_device.c - finds the program, the model and the device before anything is run or written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/cmd.h"
#include "audit/matrix.h"
#include "base/env.h"
#include "base/hash.h"
#include "hip/hip_load.h"

static bool is_program(const char *path) {
    struct stat st;
    return access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The file that exec would take. */
static bool find_in_path(const char *command, char out[static PATH_MAX]) {
    const char *path = env_get_str("PATH", "/bin:/usr/bin");
    while (*command) {
        size_t n = strcspn(path, ":");
        int used = snprintf(out, PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? path : ".", command);
        if (used > 0 && used < PATH_MAX && is_program(out))
            return true;
        path += n;
        if (!*path++)
            break;
    }
    return false;
}

static bool beside_self(const struct matrix *m, const char *what, char out[static PATH_MAX]) {
    const char *slash = strrchr(m->self, '/');
    int used = snprintf(out, PATH_MAX, "%.*s/%s", (int)(slash - m->self), m->self, what);
    return used > 0 && used < PATH_MAX && access(out, F_OK) == 0;
}

static enum rc hash_file(const char *path, uint64_t *out, struct err *e) {
    char buffer[1 << 16];
    hash *h = NULL;
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    enum rc rc = hash_open(&h, 0, e);
    size_t n;
    while (rc == RC_OK && (n = fread(buffer, 1, sizeof buffer, f)) > 0)
        hash_add(h, buffer, n);
    if (rc == RC_OK && ferror(f))
        rc = err_set(e, RC_IO, "%s: cannot be read", path);
    if (rc == RC_OK)
        *out = hash_value(h);
    hash_close(&h);
    fclose(f);
    return rc;
}

static int find_model(const struct matrix *m) {
    struct stat st;
    const char *path = m->o.model;
    if (!path)
        return -1;
    if (stat(path, &st) != 0 || access(path, R_OK) != 0)
        matrix_say("no model: %s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        matrix_say("no model: %s: expected a file", path);
    else
        return -1;
    return EXIT_REFUSED;
}

static bool needs_recording(const struct matrix *m) {
    for (size_t i = 0; i < m->profile.mode_count; i++)
        if (m->profile.modes[i].recorded && m->profile.modes[i].iterations)
            return true;
    return false;
}

int matrix_find_program(struct matrix *m) {
    char path[PATH_MAX];
    struct err e = { 0 };
    ssize_t n = readlink("/proc/self/exe", m->self, sizeof m->self - 1);
    m->self[n > 0 ? n : 0] = '\0';
    if (n <= 0) {
        matrix_say("expected /proc to be there");
        return EXIT_REFUSED;
    }
    const char *command = m->o.command ? m->o.command[0] : "greta_infer";
    bool found = !m->o.command ? beside_self(m, command, path) && is_program(path)
                 : strchr(command, '/') != NULL
                     ? snprintf(path, sizeof path, "%s", command) > 0 && is_program(path)
                     : find_in_path(command, path);
    if (!found || !realpath(path, m->program)) {
        matrix_say("no such program: %s (expected %s)", command,
                   m->o.command ? "an executable file, or a name that PATH finds"
                                : "it beside greta_audit");
        return EXIT_REFUSED;
    }
    if (hash_file(m->program, &m->program_hash, &e) != RC_OK) {
        matrix_say("%s", e.msg);
        return EXIT_REFUSED;
    }
    if (needs_recording(m) && !beside_self(m, "../lib/libgcore_preload.so", path) &&
        !beside_self(m, "libgcore_preload.so", path)) {
        matrix_say("expected libgcore_preload.so in ../lib beside this program; build or install "
                   "greta again (builds with sanitizers do not have it)");
        return EXIT_REFUSED;
    }
    return find_model(m);
}

/* ---- the device ---- */

struct answer {
    bool found;
    struct matrix_device device;
    char why[512];
};

/* In a process of its own: a HIP runtime that was looked at never goes away again. */
static void ask(const char *choice, int fd) {
    static struct answer a;
    static struct hip_runtime rt;
    struct err e = { 0 };
    if (hip_load(&rt, choice, &e) == RC_OK) {
        struct matrix_device *d = &a.device;
        d->soft = rt.kind == HIP_DEVICE_SOFT;
        snprintf(d->library, sizeof d->library, "%s", rt.path);
        a.found = rt.api.hipGetDeviceCount(&d->count) == hipSuccess && d->count > 0;
        if (!a.found)
            snprintf(a.why, sizeof a.why, "%s: no device is visible (see HIP_VISIBLE_DEVICES)",
                     rt.path);
        else if (rt.api.hipDeviceGetName(d->name, sizeof d->name, 0) != hipSuccess)
            d->name[0] = '\0';
    } else {
        snprintf(a.why, sizeof a.why, "%s", e.msg);
    }
    _exit(write(fd, &a, sizeof a) == (ssize_t)sizeof a ? 0 : 1);
}

int matrix_find_device(struct matrix *m) {
    static struct answer a;
    int fd[2], status;
    size_t got = 0;
    ssize_t n = 0;
    snprintf(a.why, sizeof a.why, "the search for a device ended without an answer");
    if (pipe2(fd, O_CLOEXEC) == 0) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            ask(m->o.device, fd[1]);
        close(fd[1]);
        while (
            child > 0 && got < sizeof a &&
            ((n = read(fd[0], (char *)&a + got, sizeof a - got)) > 0 || (n < 0 && errno == EINTR)))
            got += n > 0 ? (size_t)n : 0;
        close(fd[0]);
        while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (got < sizeof a || !a.found) {
        matrix_say("no device: %s", a.why);
        return EXIT_REFUSED;
    }
    m->device = a.device;
    memcpy(m->device.folder, m->device.library, sizeof m->device.folder);
    char *slash = strrchr(m->device.folder, '/');
    if (slash)
        *slash = '\0';
    if (!a.device.soft && m->o.schedules.count) {
        matrix_say("--schedules: only the software device lets one choose (--device soft)");
        return EXIT_REFUSED;
    }
    return -1;
}
