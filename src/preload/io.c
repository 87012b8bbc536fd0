/* io.c - functions by which the system reads and writes the program's memory.
 *
 * The kernel finds a page closed and fails where the program would have met the handler that
 * watch.c waits for. So the pages that a call touches are open while it lasts. Without watches that
 * is one comparison. The list of functions is io.def. Three are not in it: ioctl() and syscall()
 * take anything, and io_uring and the like have the system work on memory when the call is long
 * over: where they are used nothing is watched any more.
 *
 * What a program does without the C library, with system call instructions of its own, cannot be
 * seen here, but for an io_uring, whose descriptor tells (watch.c).
 *
 * All of these may be called in a signal handler or in a forked child, where the dynamic linker
 * cannot be asked: it is asked when the library starts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#undef fread_unlocked /* macros, where there is optimisation */
#undef fwrite_unlocked

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

static struct {
#define IO(result, name, params, args, touches) __typeof__(&name) name;
#include "preload/io.def"
    __typeof__(&ioctl) ioctl;
    __typeof__(&syscall) syscall;
} next;

#define FIND(name)                                                                                 \
    do {                                                                                           \
        void *found = next_find(#name);                                                            \
        memcpy(&next.name, &found, sizeof found);                                                  \
    } while (0)

__attribute__((constructor)) static void prepare(void) {
#define IO(result, name, params, args, touches) FIND(name);
#include "preload/io.def"
    FIND(ioctl);
    FIND(syscall);
}

#define IN(p, n)           touch(&call, p, n, false);
#define OUT(p, n)          touch(&call, p, n, true);
#define LIST_IN(p, n)      touch_list(&call, p, (size_t)(n), false);
#define LIST_OUT(p, n)     touch_list(&call, p, (size_t)(n), true);
#define MESSAGE_IN(p)      touch_message(&call, p, false);
#define MESSAGE_OUT(p)     touch_message(&call, p, true);
#define MESSAGES_IN(p, n)  touch_messages(&call, p, n, false);
#define MESSAGES_OUT(p, n) touch_messages(&call, p, n, true);
#define AGAIN              again = true;
#define SENDS(fd)          pipes_before_write(fd, call.caller);
#define RECEIVES(fd)       receives = fd;

/* Whether the call failed because of a closed page, of which there are none now. */
static bool is_to_be_repeated(struct call *c, bool again, bool failed) {
    return again && failed && errno == EFAULT && watch_open_all(&c->pass, c->caller);
}

/* Somebody else's constructor may come before ours. */
#define IO(result, name, params, args, touches)                                                    \
    PRELOAD_EXPORT result name params {                                                            \
        struct call call = { .caller = __builtin_return_address(0) };                              \
        bool again = false;                                                                        \
        int receives = -1;                                                                         \
        if (__builtin_expect(!next.name, 0))                                                       \
            FIND(name);                                                                            \
        touches result got = next.name args;                                                       \
        if (__builtin_expect(is_to_be_repeated(&call, again, got == (result)-1), 0))               \
            got = next.name args;                                                                  \
        watch_close(&call.pass);                                                                   \
        if (receives >= 0 && (ssize_t)got > 0)                                                     \
            pipes_after_read(receives, call.caller);                                               \
        return got;                                                                                \
    }
#include "preload/io.def"

/* ---- calls that may do anything -------------------------------------------------------------- */

PRELOAD_EXPORT int ioctl(int fd, unsigned long request, ...) {
    struct call call = { .caller = __builtin_return_address(0) };
    va_list args;
    va_start(args, request);
    void *p = va_arg(args, void *);
    va_end(args);
    if (__builtin_expect(!next.ioctl, 0))
        FIND(ioctl);
    watch_open_all(&call.pass, call.caller);
    int r = next.ioctl(fd, request, p);
    watch_close(&call.pass);
    return r;
}

/* Has the system work on memory when the call is over. */
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

/* Has lost something where it fails with EFAULT, or is not known here. Those that wait for long and
 * lose nothing are not among them: another thread's accesses would go unseen as long. */
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
    if (is_to_be_repeated(&call, is_harmless(number), r == -1))
        r = next.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    watch_close(&call.pass);
    return r;
}

/* liburing and libaio make their system calls by themselves. */
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
