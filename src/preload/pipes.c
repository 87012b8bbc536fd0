/* pipes.c - order by data: threads and processes that read what another has written.
 *
 * A thread that reads what another wrote into a pipe, an eventfd or a pair of sockets comes after
 * it. Both ends of a pipe have one inode, an eventfd one descriptor; the descriptors of socket
 * pairs are remembered here. Other sockets are not followed. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "preload/next.h"
#include "preload/preload.h"
#include "preload/threads.h"
#include "preload/watch.h"

enum { PAIRED_MAX = 4096 };
static _Atomic unsigned paired[PAIRED_MAX]; /* by descriptor: 1 + the lower one of the pair */
static atomic_bool used;                    /* something was written that matters */

/* Numbers that are never addresses. */
static const uint64_t PIPE = UINT64_C(1) << 59, DESCRIPTOR = UINT64_C(3) << 58,
                      PAIR = UINT64_C(5) << 57;

/* NULL: not followed. */
static const void *object(int fd) {
    struct stat s;
    uint64_t number = 0;
    if (fstat(fd, &s) != 0)
        return NULL;
    if (S_ISFIFO(s.st_mode))
        number = PIPE | (uint64_t)s.st_ino;
    else if (!(s.st_mode & S_IFMT))
        number = DESCRIPTOR | (unsigned)fd;
    else if (S_ISSOCK(s.st_mode) && fd < PAIRED_MAX && atomic_load(&paired[fd]))
        number = PAIR | atomic_load(&paired[fd]);
    return (const void *)(uintptr_t)number; /* NOLINT(performance-no-int-to-ptr): a name */
}

void pipes_before_write(int fd, const void *caller) {
    if (!preload_me.news || !preload_is_recording() || preload_is_internal(caller))
        return;
    int saved = errno;
    const void *what = object(fd);
    if (what) {
        atomic_store_explicit(&used, true, memory_order_relaxed);
        threads_release(what, caller);
    }
    errno = saved;
}

void pipes_after_read(int fd, const void *caller) {
    if (!atomic_load_explicit(&used, memory_order_relaxed) || !preload_is_recording())
        return;
    int saved = errno;
    const void *what = object(fd);
    if (what)
        threads_acquire(what, caller);
    errno = saved;
}

PRELOAD_EXPORT int socketpair(int domain, int type, int protocol, int fd[2]) {
    struct watch_pass pass = { 0 };
    if (preload_is_ready())
        watch_open(&pass, (uint64_t)(uintptr_t)fd, 2 * sizeof *fd, true,
                   __builtin_return_address(0));
    int r = NEXT(socketpair)(domain, type, protocol, fd);
    if (pass.flights || pass.all)
        watch_close(&pass);
    for (int i = 0; r == 0 && i < 2; i++)
        if (fd[i] >= 0 && fd[i] < PAIRED_MAX)
            atomic_store(&paired[fd[i]], 1u + (unsigned)(fd[0] < fd[1] ? fd[0] : fd[1]));
    return r;
}
