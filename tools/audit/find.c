#include "tools/audit/find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "hip/hip_load.h"

/* ---- files ----------------------------------------------------------------------------------- */

bool find_is_program(const char *path) {
    struct stat st;
    return access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool find_program(const char *command, char out[static PATH_MAX]) {
    if (strchr(command, '/')) {
        snprintf(out, PATH_MAX, "%s", command);
        return find_is_program(out);
    }
    const char *path = env_text(ENV_PATH);
    while (*command) {
        size_t n = strcspn(path, ":");
        int used = snprintf(out, PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? path : ".", command);
        if (used > 0 && used < PATH_MAX && find_is_program(out))
            return true;
        path += n;
        if (!*path++)
            break;
    }
    return false;
}

const char *find_obstacle(const char *command) {
    struct stat st;
    if (!strchr(command, '/'))
        return "no executable file of this name in PATH; a program in this folder needs ./ before "
               "its name";
    if (stat(command, &st))
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? "it is a folder" : "it is not a regular file";
    return "the file is not executable; chmod +x makes it so";
}

bool find_self(char out[static PATH_MAX]) {
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool find_beside_self(const char *what, char out[static PATH_MAX]) {
    char self[PATH_MAX], path[2 * PATH_MAX];
    if (!find_self(self))
        return false;
    snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(self, '/') - self), self, what);
    return realpath(path, out) != NULL;
}

bool find_preload(char out[static PATH_MAX]) {
    return find_beside_self("../lib/libgcore_preload.so", out) ||
           find_beside_self("libgcore_preload.so", out);
}

/* ---- the device ------------------------------------------------------------------------------ */

struct answer {
    bool found;
    struct find_device device;
    char why[512];
};

/* In the child. */
static void ask(const char *choice, struct answer *a) {
    static struct hip_runtime rt;
    struct err e = { 0 };
    struct find_device *d = &a->device;
    a->found = hip_load(&rt, choice, &e) == RC_OK;
    snprintf(a->why, sizeof a->why, "%s", e.msg);
    if (!a->found)
        return;
    d->soft = rt.kind == HIP_DEVICE_SOFT;
    snprintf(d->library, sizeof d->library, "%s", rt.path);
    snprintf(d->folder, sizeof d->folder, "%s", rt.path);
    char *slash = strrchr(d->folder, '/');
    if (slash)
        *slash = '\0';
    if (rt.api.hipGetDeviceCount(&d->count) != hipSuccess)
        d->count = 0;
    if (!d->count || rt.api.hipDeviceGetName(d->name, sizeof d->name, 0) != hipSuccess)
        d->name[0] = '\0';
}

static bool read_all(int fd, void *to, size_t size) {
    size_t got = 0;
    ssize_t n;
    while (got < size &&
           ((n = read(fd, (char *)to + got, size - got)) > 0 || (n < 0 && errno == EINTR)))
        got += n > 0 ? (size_t)n : 0;
    return got == size;
}

bool find_device(struct find_device *out, const char *choice, char why[static 512]) {
    static struct answer a;
    int fd[2];
    a = (struct answer){ .found = false };
    snprintf(why, 512, "the search for a device crashed");
    if (pipe2(fd, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        ask(choice, &a);
        _exit(write(fd[1], &a, sizeof a) == (ssize_t)sizeof a ? 0 : 1);
    }
    close(fd[1]);
    bool answered = child > 0 && read_all(fd[0], &a, sizeof a);
    close(fd[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (!answered)
        return false;
    *out = a.device;
    memcpy(why, a.why, sizeof a.why);
    return a.found;
}
