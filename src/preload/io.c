/* io.c - functions by which the system reads and writes the program's memory.
 *
 * On a closed page, a system call fails with EFAULT where the program itself would raise the signal
 * that watch.c handles. So the pages that a call touches are opened while it lasts; without watches
 * that costs one comparison. io.def lists the functions. Not in it are functions with a variable
 * number of arguments; ioctl() and syscall(), which take anything; and io_uring and the like, which
 * have the system work on memory long after the call: once they are used, nothing is watched.
 *
 * System calls that a program makes without the C library go unseen here, except that the
 * descriptor of an io_uring gives it away (watch.c).
 *
 * All of these may be called in a signal handler or in a forked child, which must not call the
 * dynamic linker, so the functions are looked up when the library starts. */
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#undef fread_unlocked /* macros, where there is optimisation */
#undef fwrite_unlocked
#undef fputs_unlocked

#include "preload/next.h"
#include "preload/preload.h"
#include "preload/threads.h"
#include "preload/watch.h"

/* ---- what a call touches --------------------------------------------------------------------- */

struct call {
    struct watch_pass pass;
    const void *caller;
};

static void touch(struct call *c, const void *memory, uint64_t bytes, bool writes) {
    if (memory)
        watch_open(&c->pass, (uint64_t)(uintptr_t)memory, bytes, writes, c->caller);
}

/* strlen() runs while the first page of the text is open. */
static void touch_text(struct call *c, const char *text) {
    touch(c, text, 1, false);
    if (text && watch_is_on())
        touch(c, text, strlen(text) + 1, false);
}

/* A list that the system will refuse is not looked at. */
static void touch_list(struct call *c, const struct iovec *list, size_t count, bool writes) {
    enum { LIST_MAX = 1024 };
    touch(c, list, count <= LIST_MAX ? count * sizeof *list : 0, false);
    for (size_t i = 0; list && count <= LIST_MAX && i < count; i++)
        touch(c, list[i].iov_base, list[i].iov_len, writes);
}

static void touch_message(struct call *c, const struct msghdr *m, bool writes) {
    if (!m)
        return;
    touch(c, m, sizeof *m, writes);
    touch(c, m->msg_name, m->msg_namelen, writes);
    touch(c, m->msg_control, m->msg_controllen, writes);
    touch_list(c, m->msg_iov, m->msg_iovlen, writes);
}

static void touch_messages(struct call *c, const struct mmsghdr *m, unsigned count, bool writes) {
    enum { MESSAGES_MAX = 1024 };
    touch(c, m, (uint64_t)count * sizeof *m, true); /* the lengths are written in both directions */
    for (unsigned i = 0; m && i < count && i < MESSAGES_MAX; i++)
        touch_message(c, &m[i].msg_hdr, writes);
}

static size_t product(size_t a, size_t b) {
    size_t bytes;
    return __builtin_mul_overflow(a, b, &bytes) ? 0 : bytes;
}

/* ---- the functions --------------------------------------------------------------------------- */

extern ssize_t __read_chk(int fd, void *p, size_t n, size_t room);
extern ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room);
extern ssize_t __pread64_chk(int fd, void *p, size_t n, off64_t at, size_t room);
extern ssize_t __recv_chk(int fd, void *p, size_t n, size_t room, int flags);
extern ssize_t __recvfrom_chk(int fd, void *restrict p, size_t n, size_t room, int flags,
                              __SOCKADDR_ARG from, socklen_t *restrict bytes);
extern int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t room);
extern int __ppoll_chk(struct pollfd *p, nfds_t n, const struct timespec *limit,
                       const sigset_t *mask, size_t room);
extern size_t __fread_chk(void *p, size_t room, size_t size, size_t n, FILE *f);
extern ssize_t __readlink_chk(const char *restrict path, char *restrict p, size_t n, size_t room);

/* Declared with a variable number of arguments; one more at most is passed. */
#define EACH_VARIED                                                                                \
    VARIED(open)                                                                                   \
    VARIED(open64)                                                                                 \
    VARIED(openat)                                                                                 \
    VARIED(openat64)                                                                               \
    VARIED(fcntl)                                                                                  \
    VARIED(fcntl64)                                                                                \
    VARIED(prctl)                                                                                  \
    VARIED(semctl)                                                                                 \
    VARIED(ioctl)                                                                                  \
    VARIED(syscall)

static struct {
#define IO(result, name, params, args, touches) __typeof__(&name) name;
#include "preload/io.def"
#define VARIED(name) __typeof__(&name) name;
    EACH_VARIED
#undef VARIED
} next;

#define FIND(name)                                                                                 \
    do {                                                                                           \
        void *found = next_find(#name);                                                            \
        memcpy(&next.name, &found, sizeof found);                                                  \
    } while (0)

__attribute__((constructor)) static void prepare(void) {
#define IO(result, name, params, args, touches) FIND(name);
#include "preload/io.def"
#define VARIED(name) FIND(name);
    EACH_VARIED
#undef VARIED
}

#define IN(p, n)           touch(&call, p, n, false);
#define OUT(p, n)          touch(&call, p, n, true);
#define LIST_IN(p, n)      touch_list(&call, p, (size_t)(n), false);
#define LIST_OUT(p, n)     touch_list(&call, p, (size_t)(n), true);
#define MESSAGE_IN(p)      touch_message(&call, p, false);
#define MESSAGE_OUT(p)     touch_message(&call, p, true);
#define MESSAGES_IN(p, n)  touch_messages(&call, p, n, false);
#define MESSAGES_OUT(p, n) touch_messages(&call, p, n, true);
#define TEXT(p)            touch_text(&call, p);
#define AGAIN              again = AGAIN_ERRNO;
#define AGAIN_NUMBER       again = AGAIN_RESULT;
#define AGAIN_LAST         again = AGAIN_NEVER_BACK;
#define SENDS(fd)          pipes_before_write(fd, call.caller);
#define RECEIVES(fd)       receives = fd;

enum again { AGAIN_NOT, AGAIN_ERRNO, AGAIN_RESULT, AGAIN_NEVER_BACK };

/* True if the call may have failed because of a closed page; all pages are open then, for a second
 * try. is_efault: it returned EFAULT. */
static bool is_to_be_repeated(struct call *c, enum again again, bool failed, bool is_efault) {
    if (again == AGAIN_NOT || (again == AGAIN_RESULT ? !is_efault : !failed || errno != EFAULT))
        return false;
    return again == AGAIN_NEVER_BACK ? watch_end_present() : watch_open_all(&c->pass, c->caller);
}

#define FAILED(got)                                                                                \
    _Generic((got), FILE * : !(got), DIR * : !(got), char * : !(got), default                      \
             : (got) == (__typeof__(got)) - 1)

/* FIND() in the function itself is for calls from constructors that run before ours. */
#define IO(result, name, params, args, touches)                                                    \
    PRELOAD_EXPORT result name params {                                                            \
        struct call call = { .caller = __builtin_return_address(0) };                              \
        enum again again = AGAIN_NOT;                                                              \
        int receives = -1;                                                                         \
        if (__builtin_expect(!next.name, 0))                                                       \
            FIND(name);                                                                            \
        if (!preload_is_ready())                                                                   \
            return next.name args;                                                                 \
        touches result got = next.name args;                                                       \
        if (__builtin_expect(is_to_be_repeated(&call, again, FAILED(got), got == (result)EFAULT),  \
                             0))                                                                   \
            got = next.name args;                                                                  \
        watch_close(&call.pass);                                                                   \
        if (receives >= 0 && !FAILED(got))                                                         \
            pipes_after_read(receives, call.caller);                                               \
        return got;                                                                                \
    }
#include "preload/io.def"

/* ---- calls with an argument that may be missing ---------------------------------------------- */

/* It is handed on whatever it is, as the C library does. */
#define OPENS(name, params, args, last)                                                            \
    PRELOAD_EXPORT int name params {                                                               \
        struct call call = { .caller = __builtin_return_address(0) };                              \
        va_list more;                                                                              \
        va_start(more, last);                                                                      \
        unsigned long arg = va_arg(more, unsigned long);                                           \
        va_end(more);                                                                              \
        if (__builtin_expect(!next.name, 0))                                                       \
            FIND(name);                                                                            \
        if (!preload_is_ready())                                                                   \
            return next.name args;                                                                 \
        int got = next.name args;                                                                  \
        if (__builtin_expect(is_to_be_repeated(&call, AGAIN_ERRNO, got == -1, false), 0))          \
            got = next.name args;                                                                  \
        watch_close(&call.pass);                                                                   \
        return got;                                                                                \
    }
OPENS(open, (const char *path, int flags, ...), (path, flags, arg), flags)
OPENS(open64, (const char *path, int flags, ...), (path, flags, arg), flags)
OPENS(openat, (int at, const char *path, int flags, ...), (at, path, flags, arg), flags)
OPENS(openat64, (int at, const char *path, int flags, ...), (at, path, flags, arg), flags)
OPENS(fcntl, (int fd, int what, ...), (fd, what, arg), what)
OPENS(fcntl64, (int fd, int what, ...), (fd, what, arg), what)
OPENS(semctl, (int id, int number, int what, ...), (id, number, what, arg), what)

PRELOAD_EXPORT int prctl(int what, ...) {
    struct call call = { .caller = __builtin_return_address(0) };
    unsigned long a[4];
    va_list more;
    va_start(more, what);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(more, unsigned long);
    va_end(more);
    if (__builtin_expect(!next.prctl, 0))
        FIND(prctl);
    if (!preload_is_ready())
        return next.prctl(what, a[0], a[1], a[2], a[3]);
    int got = next.prctl(what, a[0], a[1], a[2], a[3]);
    if (__builtin_expect(is_to_be_repeated(&call, AGAIN_ERRNO, got == -1, false), 0))
        got = next.prctl(what, a[0], a[1], a[2], a[3]);
    watch_close(&call.pass);
    return got;
}

/* ---- calls that may do anything -------------------------------------------------------------- */

PRELOAD_EXPORT int ioctl(int fd, unsigned long request, ...) {
    struct call call = { .caller = __builtin_return_address(0) };
    va_list args;
    va_start(args, request);
    void *p = va_arg(args, void *);
    va_end(args);
    if (__builtin_expect(!next.ioctl, 0))
        FIND(ioctl);
    if (!preload_is_ready())
        return next.ioctl(fd, request, p);
    watch_open_all(&call.pass, call.caller);
    int r = next.ioctl(fd, request, p);
    watch_close(&call.pass);
    return r;
}

/* True for calls that have the system work on memory after they have returned. */
static bool is_async(long number) {
    static const long numbers[] = {
#ifdef SYS_io_uring_setup
        SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
#endif
        SYS_io_setup,       SYS_io_submit,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

/* True for calls that lose nothing if they fail with EFAULT and are repeated: they need no open
 * pages beforehand. Those that may wait for long belong here, because accesses of other threads go
 * unseen while all pages are open. Unknown calls are not harmless. */
static bool is_harmless(long number) {
    static const long numbers[] = { SYS_futex,         SYS_gettid,    SYS_getpid, SYS_sched_yield,
                                    SYS_clock_gettime, SYS_tgkill,    SYS_getcpu, SYS_membarrier,
                                    SYS_exit,          SYS_exit_group };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

PRELOAD_EXPORT long syscall(long number, ...) {
    struct call call = { .caller = __builtin_return_address(0) };
    va_list args;
    long a[6];
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (__builtin_expect(!next.syscall, 0))
        FIND(syscall);
    if (!preload_is_ready())
        return next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (is_async(number) && !preload_is_internal(call.caller))
        watch_end_all();
    else if (!is_harmless(number))
        watch_open_all(&call.pass, call.caller);
    bool futex = number == SYS_futex && !preload_is_internal(call.caller);
    if (futex)
        threads_before_futex((const void *)a[0], (int)a[1], call.caller);
    long r = next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (futex && (r != -1 || errno != EFAULT))
        threads_after_futex((const void *)a[0], (int)a[1], (unsigned)a[2], call.caller);
    if (is_to_be_repeated(&call, is_harmless(number) ? AGAIN_ERRNO : AGAIN_NOT, r == -1, false))
        r = next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    watch_close(&call.pass);
    return r;
}

/* liburing and libaio make their system calls themselves; the C library's aio functions make them
 * in threads of their own. */
#define ENDS_WATCHING(name, params, args)                                                          \
    PRELOAD_EXPORT int name params;                                                                \
    PRELOAD_EXPORT int name params {                                                               \
        watch_end_all();                                                                           \
        int(*real) params = NULL;                                                                  \
        void *found = next_find(#name);                                                            \
        memcpy(&real, &found, sizeof found);                                                       \
        return real ? real args : -ENOSYS;                                                         \
    }
ENDS_WATCHING(io_uring_queue_init, (unsigned n, void *ring, unsigned flags), (n, ring, flags))
ENDS_WATCHING(io_uring_queue_init_params, (unsigned n, void *ring, void *p), (n, ring, p))
ENDS_WATCHING(io_setup, (int n, void *queue), (n, queue))
ENDS_WATCHING(aio_read, (struct aiocb * request), (request))
ENDS_WATCHING(aio_read64, (struct aiocb64 * request), (request))
ENDS_WATCHING(aio_write, (struct aiocb * request), (request))
ENDS_WATCHING(aio_write64, (struct aiocb64 * request), (request))
ENDS_WATCHING(lio_listio64,
              (int mode, struct aiocb64 *const list[restrict], int n,
               struct sigevent *restrict how),
              (mode, list, n, how))
ENDS_WATCHING(lio_listio,
              (int mode, struct aiocb *const list[restrict], int n, struct sigevent *restrict how),
              (mode, list, n, how))
