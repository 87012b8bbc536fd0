/* System calls with memory on a page of which other bytes are in use by an unfinished copy: every
 * one must do what it does without anybody watching (beside.h). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "beside.h"

/* ---- one function for each call; the result is what it returned ---- */

static long do_read(void *p) {
    return (void)!write(pipe_fd[1], "abcd", 4), read(pipe_fd[0], p, 4);
}
static long do_write(void *p) {
    char out[8];
    memcpy(p, "wxyz", 4);
    long n = write(pipe_fd[1], p, 4);
    return n == 4 && read(pipe_fd[0], out, 4) == 4 && !memcmp(out, "wxyz", 4) ? n : -2;
}
static long do_pread(void *p) {
    return pread(file, p, PART, 0);
}
static long do_pwrite(void *p) {
    return pwrite(file, p, PART, 0);
}
static long do_readv(void *p) {
    struct iovec v[2] = { { p, 100 }, { (char *)p + 200, 100 } };
    lseek(file, 0, SEEK_SET);
    return readv(file, v, 2);
}
static long do_writev(void *p) {
    struct iovec v[2] = { { p, 100 }, { (char *)p + 200, 100 } };
    lseek(file, 0, SEEK_SET);
    return writev(file, v, 2);
}
static long do_preadv(void *p) {
    struct iovec v = { p, PART };
    return preadv(file, &v, 1, 0);
}
static long do_pwritev(void *p) {
    struct iovec v = { p, PART };
    return pwritev(file, &v, 1, 0);
}
static long do_preadv2(void *p) {
    struct iovec v = { p, PART };
    return preadv2(file, &v, 1, 0, 0);
}
/* The list itself is on the page. */
static long do_list(void *p) {
    static char text[4];
    struct iovec *v = p;
    *v = (struct iovec){ text, 4 };
    return preadv(file, v, 1, 0);
}
static long do_recv(void *p) {
    return send(pair[0], "abcd", 4, 0) == 4 ? recv(pair[1], p, 4, 0) : -2;
}
static long do_send(void *p) {
    char out[8];
    return send(pair[0], p, 4, 0) == 4 ? recv(pair[1], out, 4, 0) : -2;
}
/* A datagram that is lost is lost for good. */
static long do_recvfrom(void *p) {
    return send(grams[0], "abcd", 4, 0) == 4 ? recvfrom(grams[1], p, 4, MSG_DONTWAIT, NULL, NULL)
                                             : -2;
}
static long do_recvmsg(void *p) {
    struct iovec v = { p, 4 };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
    return send(grams[0], "abcd", 4, 0) == 4 ? recvmsg(grams[1], &m, MSG_DONTWAIT) : -2;
}
static long do_sendmsg(void *p) {
    char out[8];
    struct iovec v = { p, 4 };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
    return sendmsg(grams[0], &m, 0) == 4 ? recv(grams[1], out, 4, MSG_DONTWAIT) : -2;
}
static long do_header(void *p) { /* the message's header is on the page */
    static char out[8];
    static struct iovec v = { out, 4 };
    struct msghdr *m = p;
    *m = (struct msghdr){ .msg_iov = &v, .msg_iovlen = 1 };
    return send(grams[0], "abcd", 4, 0) == 4 ? recvmsg(grams[1], m, MSG_DONTWAIT) : -2;
}
static long do_recvmmsg(void *p) {
    struct iovec v = { p, 4 };
    struct mmsghdr m = { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } };
    return send(grams[0], "abcd", 4, 0) == 4 ? recvmmsg(grams[1], &m, 1, MSG_DONTWAIT, NULL) : -2;
}
static long do_sendmmsg(void *p) {
    char out[8];
    struct iovec v = { p, 4 };
    struct mmsghdr m = { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } };
    return sendmmsg(grams[0], &m, 1, 0) == 1 ? recv(grams[1], out, 4, MSG_DONTWAIT) : -2;
}
static long do_process_vm_readv(void *p) {
    static char text[4] = "abc";
    struct iovec l = { p, 4 }, r = { text, 4 };
    return process_vm_readv(getpid(), &l, 1, &r, 1, 0);
}
static long do_process_vm_writev(void *p) {
    static char text[4] = "abc";
    struct iovec l = { text, 4 }, r = { p, 4 };
    return process_vm_writev(getpid(), &l, 1, &r, 1, 0);
}
static long do_ioctl(void *p) {
    char out[8];
    (void)!write(pipe_fd[1], "abc", 3);
    long r = ioctl(pipe_fd[0], FIONREAD, p);
    return read(pipe_fd[0], out, 3) == 3 && r == 0 ? *(int *)p : -2;
}
static long do_poll(void *p) {
    struct pollfd *f = p;
    *f = (struct pollfd){ pipe_fd[1], POLLOUT, 0 };
    return poll(f, 1, 0);
}
static long do_ppoll(void *p) {
    struct pollfd *f = p;
    *f = (struct pollfd){ pipe_fd[1], POLLOUT, 0 };
    struct timespec *limit = (struct timespec *)(f + 8);
    *limit = (struct timespec){ 0 };
    return ppoll(f, 1, limit, NULL);
}
static long do_select(void *p) {
    fd_set *set = p;
    FD_ZERO(set);
    FD_SET(pipe_fd[1], set);
    struct timeval *limit = (struct timeval *)(set + 1);
    *limit = (struct timeval){ 0 };
    return select(pipe_fd[1] + 1, NULL, set, NULL, limit);
}
static long do_epoll(void *p) {
    struct epoll_event *e = p;
    int fd = epoll_create1(0);
    *e = (struct epoll_event){ .events = EPOLLOUT };
    long r = epoll_ctl(fd, EPOLL_CTL_ADD, pipe_fd[1], e);
    r = r ? r : epoll_wait(fd, e, 1, 0);
    close(fd);
    return r;
}
static long do_getrandom(void *p) {
    return getrandom(p, PART, 0);
}
static long do_statx(void *p) {
    return statx(file, "", AT_EMPTY_PATH, STATX_SIZE, p) ? -1 : (long)((struct statx *)p)->stx_size;
}
static long do_fstat(void *p) {
    return fstat(file, p) ? -1 : (long)((struct stat *)p)->st_size;
}
static long do_uname(void *p) {
    return uname(p);
}
static long do_readlink(void *p) {
    return readlink("/proc/self/exe", p, PART) > 0;
}
static long do_getsockopt(void *p) {
    socklen_t *n = (socklen_t *)((char *)p + 64);
    *n = sizeof(int);
    return getsockopt(pair[0], SOL_SOCKET, SO_TYPE, p, n) ? -1 : *(int *)p;
}
static long do_waitpid(void *p) {
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    int *status = p;
    return waitpid(child, status, 0) == child && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}
static long do_accept(void *p) {
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    socklen_t *bytes = (socklen_t *)((char *)p + 256);
    int from = socket(AF_UNIX, SOCK_STREAM, 0), to = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "beside-%d", (int)getpid());
    *bytes = 128;
    long r = bind(to, (void *)&name, sizeof name) || listen(to, 1) ||
             connect(from, (void *)&name, sizeof name);
    int fd = r ? -1 : accept(to, p, bytes);
    close(from);
    close(to);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}
static long do_msgrcv(void *p) {
    struct {
        long type;
        char text[8];
    } m = { 1, "abc" }, *to = p;
    int id = msgget(IPC_PRIVATE, 0600);
    if (id < 0)
        return 4; /* there are none here */
    long r = msgsnd(id, &m, 4, 0) ? -1 : msgrcv(id, to, 4, 0, IPC_NOWAIT);
    msgctl(id, IPC_RMID, NULL);
    return r;
}
static long do_fread(void *p) {
    FILE *f = fdopen(dup(file), "r");
    rewind(f);
    long n = (long)fread(p, 1, PART, f);
    fclose(f);
    return n;
}
static long do_syscall(void *p) {
    return syscall(SYS_pread64, file, p, (size_t)PART, (off_t)0);
}
static long do_raw_stat(void *p) {
    return syscall(SYS_fstat, file, p);
}

/* The system writes the page when the call is over. */
static long do_io_uring(void *p) {
    struct io_uring_params q = { 0 };
    int fd = (int)syscall(SYS_io_uring_setup, 4, &q);
    if (fd < 0)
        return PART; /* not allowed here */
    char *sq = mmap(NULL, q.sq_off.array + q.sq_entries * 4, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, q.cq_off.cqes + q.cq_entries * sizeof(struct io_uring_cqe),
                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_CQ_RING);
    struct io_uring_sqe *s = mmap(NULL, q.sq_entries * sizeof *s, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_POPULATE, fd, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || s == MAP_FAILED)
        return -2;
    memset(s, 0, sizeof *s);
    *s = (struct io_uring_sqe){
        .opcode = IORING_OP_READ, .fd = file, .addr = (uintptr_t)p, .len = PART
    };
    ((unsigned *)(void *)(sq + q.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(void *)(sq + q.sq_off.tail), 1, __ATOMIC_RELEASE);
    syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    long r = ((struct io_uring_cqe *)(void *)(cq + q.cq_off.cqes))->res;
    close(fd);
    return r;
}

#define EACH(F)                                                                                    \
    F(read)                                                                                        \
    F(write)                                                                                       \
    F(pread)                                                                                       \
    F(pwrite)                                                                                      \
    F(readv)                                                                                       \
    F(writev)                                                                                      \
    F(preadv)                                                                                      \
    F(pwritev)                                                                                     \
    F(preadv2)                                                                                     \
    F(list)                                                                                        \
    F(recv)                                                                                        \
    F(send)                                                                                        \
    F(recvfrom)                                                                                    \
    F(recvmsg)                                                                                     \
    F(sendmsg)                                                                                     \
    F(header)                                                                                      \
    F(recvmmsg)                                                                                    \
    F(sendmmsg)                                                                                    \
    F(process_vm_readv)                                                                            \
    F(process_vm_writev)                                                                           \
    F(ioctl)                                                                                       \
    F(poll)                                                                                        \
    F(ppoll)                                                                                       \
    F(select)                                                                                      \
    F(epoll)                                                                                       \
    F(getrandom)                                                                                   \
    F(statx)                                                                                       \
    F(fstat)                                                                                       \
    F(uname)                                                                                       \
    F(readlink)                                                                                    \
    F(getsockopt)                                                                                  \
    F(waitpid)                                                                                     \
    F(accept)                                                                                      \
    F(msgrcv)                                                                                      \
    F(fread)                                                                                       \
    F(syscall)                                                                                     \
    F(raw_stat)                                                                                    \
    F(io_uring)

BESIDE_MAIN(EACH)
