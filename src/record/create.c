/* Where a recording comes from: a new file, made under a temporary name and renamed when it is
 * whole, so that no reader ever sees half a header; or the file of the program that started this
 * one. Every writer holds a shared flock() on the file, which the kernel drops however the process
 * dies: that is how a recording in progress is distinguished from an old one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "record/writer_internal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum { OLD_SUFFIX = 24 };

/* Appends text; false if it does not fit. */
static bool append(char *to, size_t room, size_t *used, const char *text, size_t length) {
    if (length >= room - *used)
        return false;
    memcpy(to + *used, text, length);
    *used += length;
    to[*used] = 0;
    return true;
}

/* Writes the absolute form of o's path, with %p replaced, to out. Room is left for suffixes. */
static enum rc expand_path(char out[PATH_MAX], const char *path, struct err *e) {
    size_t room = PATH_MAX - OLD_SUFFIX, used = 0;
    char pid[16];
    int pid_length = snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (!path || !*path)
        return err_set(e, RC_USAGE, "a recording needs a file name");
    if (path[0] != '/') {
        if (!getcwd(out, room - 1))
            return err_set(e, RC_IO, "%s: current directory: %s", path, strerror(errno));
        used = strlen(out);
        out[used++] = '/';
    }
    for (const char *p = path; *p; p++) {
        bool fits;
        if (p[0] == '%' && p[1] == 'p')
            fits = append(out, room, &used, pid, (size_t)pid_length), p++;
        else if (p[0] == '%' && p[1] == '%')
            fits = append(out, room, &used, "%", 1), p++;
        else if (p[0] == '%')
            return err_set(e, RC_USAGE, "%s: '%%' must be followed by p (the pid) or %%", path);
        else
            fits = append(out, room, &used, p, 1);
        if (!fits)
            return err_set(e, RC_USAGE, "%.80s...: file name too long", path);
    }
    return RC_OK;
}

static void temporary_name(char out[PATH_MAX], const writer *w) {
    snprintf(out, PATH_MAX, "%.*s.new.%d", PATH_MAX - OLD_SUFFIX, w->path, (int)getpid());
}

/* Releases what adopt_fd took. */
static void drop_fd(writer *w) {
    if (w->h)
        munmap(w->h, RECORD_HEADER_BYTES);
    w->h = NULL;
    close(atomic_exchange(&w->fd, -1));
}

static enum rc adopt_fd(writer *w, int fd, struct err *e) {
    struct stat st;
    fd = grow_hold_fd(fd);
    atomic_store(&w->fd, fd);
    if (fstat(fd, &st))
        return err_set(e, RC_IO, "%s: %s", w->path, strerror(errno));
    w->device = st.st_dev;
    w->inode = st.st_ino;
    w->h = mmap(NULL, RECORD_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (w->h == MAP_FAILED) {
        w->h = NULL;
        return err_set(e, RC_IO, "%s: cannot be mapped: %s", w->path, strerror(errno));
    }
    return RC_OK;
}

static uint64_t round_up_power(uint64_t n) {
    return n <= 1 ? 1 : UINT64_C(1) << (64 - __builtin_clzll(n - 1));
}

static void header_init(struct record_header *h, uint64_t events) {
    events = events ? events : RECORD_EVENTS_USUAL;
    events = events < RECORD_EVENTS_MIN ? RECORD_EVENTS_MIN : events;
    events = round_up_power(events > RECORD_EVENTS_MAX ? RECORD_EVENTS_MAX : events);
    uint64_t ring = events * sizeof(union event_slot);
    /* Small rings get small chunks, huge rings chunks that the directory has room for. */
    uint64_t chunk = ring / 16 < RECORD_CHUNK_USUAL ? ring / 16 : RECORD_CHUNK_USUAL;
    chunk = chunk < RECORD_CHUNK_MIN ? RECORD_CHUNK_MIN : chunk;
    if (ring / chunk > RECORD_EVENT_CHUNKS)
        chunk = ring / RECORD_EVENT_CHUNKS;
    uint64_t definition_chunks = RECORD_DEFINITION_MAX / chunk;

    memcpy(h->magic, RECORD_MAGIC, sizeof h->magic);
    h->version = RECORD_VERSION;
    h->byte_order = RECORD_BYTE_ORDER;
    h->header_bytes = RECORD_HEADER_BYTES;
    h->event_bytes = sizeof(union event_slot);
    h->chunk_bytes = (uint32_t)chunk;
    h->event_chunks = (uint32_t)(ring / chunk);
    h->definition_chunks = definition_chunks < RECORD_DEFINITION_CHUNKS
                               ? (uint32_t)definition_chunks
                               : RECORD_DEFINITION_CHUNKS;
    h->pid = (uint32_t)getpid();
    h->start_ns = clock_now_ns();
    h->start_wall_us = clock_wall_us();
    while (!h->run_id)
        if (getrandom(&h->run_id, sizeof h->run_id, 0) != sizeof h->run_id)
            h->run_id = (h->start_wall_us * 0x9e3779b97f4a7c15u) ^ h->pid;
}

static enum rc create_new(writer *w, uint64_t events, struct err *e) {
    char name[PATH_MAX];
    temporary_name(name, w);
    unlink(name); /* left by a dead process that had the same pid */
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY;
    int fd = open(name, flags, 0666);
    if (fd < 0 && errno == ENOENT && folder_make_parents(w->path))
        fd = open(name, flags, 0666);
    if (fd < 0)
        return err_set(e, RC_IO, "%s: cannot be created: %s", w->path, strerror(errno));
    int code = grow_back_range(fd, 0, RECORD_HEADER_BYTES);
    enum rc rc;
    if (code) {
        close(fd);
        rc = err_set(e, RC_IO, "%s: no room for a recording: %s", w->path, strerror(code));
    } else if ((rc = adopt_fd(w, fd, e)) == RC_OK) {
        header_init(w->h, events);
    }
    if (rc != RC_OK)
        unlink(name);
    return rc;
}

/* *found: the file is the recording to join, and w has it. Otherwise there is nothing to join. */
static enum rc try_join(writer *w, uint64_t run_id, bool *found, struct err *e) {
    struct stat st;
    *found = false;
    int fd = open(w->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return RC_OK;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < RECORD_HEADER_BYTES) {
        close(fd);
        return RC_OK;
    }
    enum rc rc = adopt_fd(w, fd, e);
    if (rc != RC_OK)
        return rc;
    const struct record_header *h = w->h;
    *found = !memcmp(h->magic, RECORD_MAGIC, sizeof h->magic) &&
             h->byte_order == RECORD_BYTE_ORDER && h->run_id == run_id;
    if (!*found)
        drop_fd(w);
    else if (h->version != RECORD_VERSION || h->header_bytes != RECORD_HEADER_BYTES)
        return err_set(e, RC_REFUSED,
                       "%s: the run is being recorded in version %u of the format, this greta "
                       "writes version %u; record both with the same build",
                       w->path, h->version, RECORD_VERSION);
    return RC_OK;
}

enum rc create_file(writer *w, const struct record_options *o, bool *joined, struct err *e) {
    enum rc rc = expand_path(w->path, o->path, e);
    *joined = false;
    if (rc == RC_OK && o->join)
        rc = try_join(w, o->join, joined, e);
    if (rc == RC_OK && !*joined)
        rc = create_new(w, o->events, e);
    return rc;
}

/* ---- giving a new file its name ------------------------------------------------------------ */

static int rename_no_replace(const char *from, const char *to) {
    if (!syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* The file system cannot do it in one step. */
    struct stat st;
    if (!lstat(to, &st)) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

static bool is_recording(int fd) {
    char magic[8];
    return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           !memcmp(magic, RECORD_MAGIC, sizeof magic);
}

/* path.old may be replaced if it is an even older recording, or does not exist. */
static enum rc check_old(const char *old, struct err *e) {
    int fd = open(old, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return RC_OK;
    bool ours = fd >= 0 && is_recording(fd);
    if (fd >= 0)
        close(fd);
    return ours ? RC_OK
                : err_set(e, RC_REFUSED,
                          "%s: the older recording would be kept under this name, but it is taken "
                          "by something else; move it away",
                          old);
}

/* Makes the name path free, if the file that has it may be moved or removed. */
static enum rc move_aside(const char *path, int fd, struct err *e) {
    struct stat st;
    char old[PATH_MAX];
    if (fstat(fd, &st))
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, RC_REFUSED, "%s: not a regular file; name another to record into", path);
    if (!st.st_size)
        return unlink(path) ? err_set(e, RC_IO, "%s: %s", path, strerror(errno)) : RC_OK;
    if (!is_recording(fd))
        return err_set(e, RC_REFUSED,
                       "%s: exists and is not a recording of greta; it was left as it is. Move it "
                       "away or name another file",
                       path);
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return err_set(e, RC_REFUSED,
                       "%s: another run is being recorded into it; give every run a file of its "
                       "own (%%p in the name is the pid)",
                       path);
    snprintf(old, sizeof old, "%.*s.old", PATH_MAX - OLD_SUFFIX, path);
    enum rc rc = check_old(old, e);
    if (rc == RC_OK && rename(path, old))
        rc = err_set(e, RC_IO, "%s: cannot be renamed to %s: %s", path, old, strerror(errno));
    return rc;
}

enum rc create_publish(writer *w, struct err *e) {
    char name[PATH_MAX];
    temporary_name(name, w);
    for (int tries = 0;; tries++) {
        if (!rename_no_replace(name, w->path))
            return RC_OK;
        if (errno != EEXIST || tries == 3)
            return err_set(e, RC_IO, "%s: cannot be created: %s", w->path, strerror(errno));
        int fd = open(w->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
            return err_set(e, RC_IO, "%s: exists and cannot be read: %s", w->path, strerror(errno));
        enum rc rc = move_aside(w->path, fd, e);
        close(fd);
        if (rc != RC_OK)
            return rc;
    }
}

void create_abandon(writer *w) {
    char name[PATH_MAX];
    temporary_name(name, w);
    unlink(name);
}
