/* matrix_lock.c - locks: who uses the device, and who writes in the folder.
 *
 * A lock is flock() on a file. The locks of a device are in the system's folder for temporary
 * files: greta-matrix-soft.lock for the software device, greta-matrix-hip-N.lock for GPU N, one for
 * each GPU that is visible. A profile that wants the device for itself takes them exclusively, the
 * others share them.
 *
 * Each holder appends a line to the file: pid, time, folder. The lines only serve to name the
 * holders in messages; the lock itself is the kernel's and cannot be left behind. The runs inherit
 * it: if this process is killed, the device is taken until its last run has ended. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "tools/audit/cmd.h"
#include "tools/audit/matrix.h"

enum { TRY_EVERY_MS = 50 };

/* In a sticky folder, another user's file can be opened, but not with O_CREAT. */
static int open_lock(const char *path) {
    int fd = open(path, O_RDWR | O_APPEND);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, O_RDWR | O_APPEND | O_CREAT, 0666);
        if (fd >= 0)
            (void)!fchmod(fd, 0666); /* for all users of the device, whatever the umask */
    }
    return fd;
}

/* The last holder in the file that lives; false if there is none. */
static bool find_holder(int fd, char *out, size_t size) {
    char text[4096], since[32] = "";
    off_t end = lseek(fd, 0, SEEK_END);
    off_t from = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
    ssize_t n = pread(fd, text, sizeof text - 1, from);
    bool found = false;
    text[n > 0 ? n : 0] = '\0';
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *rest;
        long pid = strtol(line, &rest, 10);
        long long when = strtoll(rest, &rest, 10);
        if (pid <= 0 || pid == getpid() || (kill((pid_t)pid, 0) != 0 && errno != EPERM))
            continue;
        time_t t = (time_t)when;
        struct tm tm;
        if (localtime_r(&t, &tm))
            strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", &tm);
        snprintf(out, size, "process %ld, since %s, for%s", pid, since, rest);
        found = true;
    }
    return found;
}

/* Empties the file first if nobody else holds the lock, so that it does not grow for ever. */
static bool try_lock(int fd, bool exclusive) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        (void)!ftruncate(fd, 0);
        return exclusive || flock(fd, LOCK_SH | LOCK_NB) == 0;
    }
    return !exclusive && flock(fd, LOCK_SH | LOCK_NB) == 0;
}

static void sign(int fd, const struct matrix *m) {
    char line[PATH_MAX + 64];
    int n = snprintf(line, sizeof line, "%ld %lld %s\n", (long)getpid(), (long long)time(NULL),
                     m->folder);
    (void)!write(fd, line, n > 0 ? (size_t)n : 0);
}

static int take(struct matrix *m, const char *path, const char *what, bool exclusive, double wait) {
    char holder[PATH_MAX + 128];
    bool told = false;
    int fd = open_lock(path);
    if (fd < 0) {
        matrix_say("%s: %s", path, strerror(errno));
        return EXIT_REFUSED;
    }
    uint64_t limit = clock_now_ns() + (uint64_t)(wait * 1e9);
    while (!try_lock(fd, exclusive)) {
        bool named = find_holder(fd, holder, sizeof holder);
        if (!named)
            snprintf(holder, sizeof holder, "a run of a matrix that has ended");
        if (clock_now_ns() >= limit) {
            matrix_say("%s is taken by %s (lock %s; --wait S waits longer)", what, holder, path);
            close(fd);
            return EXIT_REFUSED;
        }
        if (!told && named)
            matrix_say("%s is taken by %s; waiting for at most %g s", what, holder, wait);
        told |= named;
        nanosleep(&(struct timespec){ .tv_nsec = TRY_EVERY_MS * 1000000L }, NULL);
    }
    sign(fd, m);
    m->locks[m->lock_count++] = fd;
    return -1;
}

/* The lock of one entry of HIP_VISIBLE_DEVICES, or of a device by its number. */
static int take_device(struct matrix *m, const char *kind, const char *entry, size_t len) {
    char path[PATH_MAX], what[128];
    int n = snprintf(path, sizeof path, "%s/greta-matrix-%s%s%.*s.lock", P_tmpdir, kind,
                     len ? "-" : "", (int)(len < 64 ? len : 64), entry);
    for (char *p = path + strlen(P_tmpdir) + 1; n > 0 && *p; p++)
        if (*p == '/' || *p == ' ')
            *p = '_';
    snprintf(what, sizeof what, len ? "device %s %.*s" : "device %s", kind,
             (int)(len < 64 ? len : 64), entry);
    if (m->lock_count == 1)
        snprintf(m->lock_path, sizeof m->lock_path, "%s", path);
    return take(m, path, what, m->profile.exclusive, m->o.wait);
}

int matrix_lock_device(struct matrix *m) {
    const char *visible = env_text(ENV_HIP_VISIBLE_DEVICES);
    int code = -1;
    if (m->o.lock) {
        snprintf(m->lock_path, sizeof m->lock_path, "%s", m->o.lock);
        return take(m, m->o.lock, "the device", m->profile.exclusive, m->o.wait);
    }
    if (m->device.soft)
        return take_device(m, "soft", "", 0);
    for (int i = 0; !visible && i < m->device.count && i < MATRIX_LOCKS_MAX && code < 0; i++) {
        char number[16];
        int n = snprintf(number, sizeof number, "%d", i);
        code = take_device(m, "hip", number, (size_t)n);
    }
    for (int i = 0; visible && *visible && i < m->device.count && i < MATRIX_LOCKS_MAX && code < 0;
         i++) {
        size_t n = strcspn(visible, ",");
        code = n ? take_device(m, "hip", visible, n) : -1;
        visible += n + (visible[n] == ',');
    }
    return code;
}

int matrix_lock_folder(struct matrix *m) {
    char path[PATH_MAX], what[PATH_MAX];
    snprintf(path, sizeof path, "%s/matrix.lock", m->folder);
    snprintf(what, sizeof what, "the folder %s", m->folder);
    return take(m, path, what, true, m->o.wait);
}

void matrix_unlock(struct matrix *m) {
    while (m->lock_count > 0)
        close(m->locks[--m->lock_count]);
}
