/* io.c - functions of the C library that have the system read or write the program's memory.
 *
 * With --watch-host, pages of unfinished work are closed to the host; a system call that meets one
 * fails with EFAULT instead of raising the signal that watch.c waits for. So the memory is looked
 * at first. Without watches that is one comparison.
 *
 * All of these may be called in a signal handler or in a forked child, where the dynamic linker
 * cannot be asked: it is asked when the library starts. Before that, and only then, the system is
 * called directly. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/next.h"
#include "preload/preload.h"
#include "preload/watch.h"

extern ssize_t __read_chk(int fd, void *memory, size_t bytes, size_t room);
extern ssize_t __pread_chk(int fd, void *memory, size_t bytes, off_t at, size_t room);
extern ssize_t __recv_chk(int fd, void *memory, size_t bytes, size_t room, int flags);
extern size_t __fread_chk(void *memory, size_t room, size_t size, size_t count, FILE *file);

/* clang-format off */
#define IO_FUNCTIONS(F)                                                                            \
    F(read) F(write) F(pread) F(pwrite) F(pread64) F(pwrite64) F(readv) F(writev)                  \
    F(recv) F(send) F(recvfrom) F(sendto) F(fread) F(fwrite)                                       \
    F(__read_chk) F(__pread_chk) F(__recv_chk) F(__fread_chk)
/* clang-format on */

static struct {
#define IO_SLOT(name) __typeof__(&name) name;
    IO_FUNCTIONS(IO_SLOT)
#undef IO_SLOT
} next;

__attribute__((constructor)) static void prepare(void) {
    void *found;
#define IO_FIND(name)                                                                              \
    found = next_find(#name);                                                                      \
    memcpy(&next.name, &found, sizeof found);
    IO_FUNCTIONS(IO_FIND)
#undef IO_FIND
}

#define LOOK(memory, bytes, writes)                                                                \
    watch_syscall((uint64_t)(uintptr_t)(memory), bytes, writes, __builtin_return_address(0))

/* ---- files -----------------------------------------------------------------------------------
 */

PRELOAD_EXPORT ssize_t read(int fd, void *memory, size_t bytes) {
    LOOK(memory, bytes, true);
    return next.read ? next.read(fd, memory, bytes) : syscall(SYS_read, fd, memory, bytes);
}

PRELOAD_EXPORT ssize_t write(int fd, const void *memory, size_t bytes) {
    LOOK(memory, bytes, false);
    return next.write ? next.write(fd, memory, bytes) : syscall(SYS_write, fd, memory, bytes);
}

PRELOAD_EXPORT ssize_t pread(int fd, void *memory, size_t bytes, off_t at) {
    LOOK(memory, bytes, true);
    return next.pread ? next.pread(fd, memory, bytes, at)
                      : syscall(SYS_pread64, fd, memory, bytes, at);
}

PRELOAD_EXPORT ssize_t pwrite(int fd, const void *memory, size_t bytes, off_t at) {
    LOOK(memory, bytes, false);
    return next.pwrite ? next.pwrite(fd, memory, bytes, at)
                       : syscall(SYS_pwrite64, fd, memory, bytes, at);
}

PRELOAD_EXPORT ssize_t pread64(int fd, void *memory, size_t bytes, off64_t at) {
    LOOK(memory, bytes, true);
    return next.pread64 ? next.pread64(fd, memory, bytes, at)
                        : syscall(SYS_pread64, fd, memory, bytes, at);
}

PRELOAD_EXPORT ssize_t pwrite64(int fd, const void *memory, size_t bytes, off64_t at) {
    LOOK(memory, bytes, false);
    return next.pwrite64 ? next.pwrite64(fd, memory, bytes, at)
                         : syscall(SYS_pwrite64, fd, memory, bytes, at);
}

/* A list that the system will refuse is not looked at. */
static void look_at_list(const struct iovec *list, int count, bool writes, const void *caller) {
    enum { LIST_MAX = 1024 };
    for (int i = 0; count <= LIST_MAX && i < count; i++)
        watch_syscall((uint64_t)(uintptr_t)list[i].iov_base, list[i].iov_len, writes, caller);
}

PRELOAD_EXPORT ssize_t readv(int fd, const struct iovec *list, int count) {
    look_at_list(list, count, true, __builtin_return_address(0));
    return next.readv ? next.readv(fd, list, count) : syscall(SYS_readv, fd, list, count);
}

PRELOAD_EXPORT ssize_t writev(int fd, const struct iovec *list, int count) {
    look_at_list(list, count, false, __builtin_return_address(0));
    return next.writev ? next.writev(fd, list, count) : syscall(SYS_writev, fd, list, count);
}

/* ---- sockets ---------------------------------------------------------------------------------
 */

PRELOAD_EXPORT ssize_t recv(int fd, void *memory, size_t bytes, int flags) {
    LOOK(memory, bytes, true);
    return next.recv ? next.recv(fd, memory, bytes, flags)
                     : syscall(SYS_recvfrom, fd, memory, bytes, flags, NULL, NULL);
}

PRELOAD_EXPORT ssize_t send(int fd, const void *memory, size_t bytes, int flags) {
    LOOK(memory, bytes, false);
    return next.send ? next.send(fd, memory, bytes, flags)
                     : syscall(SYS_sendto, fd, memory, bytes, flags, NULL, 0);
}

PRELOAD_EXPORT ssize_t recvfrom(int fd, void *restrict memory, size_t bytes, int flags,
                                __SOCKADDR_ARG from, socklen_t *restrict length) {
    LOOK(memory, bytes, true);
    return next.recvfrom
               ? next.recvfrom(fd, memory, bytes, flags, from, length)
               : syscall(SYS_recvfrom, fd, memory, bytes, flags, from.__sockaddr__, length);
}

PRELOAD_EXPORT ssize_t sendto(int fd, const void *memory, size_t bytes, int flags,
                              __CONST_SOCKADDR_ARG to, socklen_t length) {
    LOOK(memory, bytes, false);
    return next.sendto ? next.sendto(fd, memory, bytes, flags, to, length)
                       : syscall(SYS_sendto, fd, memory, bytes, flags, to.__sockaddr__, length);
}

/* ---- streams: large pieces go to the system without a copy -------------------------------------
 */

static size_t product(size_t a, size_t b) {
    size_t bytes;
    return __builtin_mul_overflow(a, b, &bytes) ? 0 : bytes;
}

PRELOAD_EXPORT size_t fread(void *restrict memory, size_t size, size_t items, FILE *restrict file) {
    LOOK(memory, product(size, items), true);
    return next.fread ? next.fread(memory, size, items, file)
                      : NEXT(fread)(memory, size, items, file);
}

PRELOAD_EXPORT size_t fwrite(const void *restrict memory, size_t size, size_t items,
                             FILE *restrict file) {
    LOOK(memory, product(size, items), false);
    return next.fwrite ? next.fwrite(memory, size, items, file)
                       : NEXT(fwrite)(memory, size, items, file);
}

/* ---- as programs call them that were built with _FORTIFY_SOURCE --------------------------------
 */

PRELOAD_EXPORT ssize_t __read_chk(int fd, void *memory, size_t bytes, size_t room) {
    LOOK(memory, bytes, true);
    return next.__read_chk ? next.__read_chk(fd, memory, bytes, room)
                           : NEXT(__read_chk)(fd, memory, bytes, room);
}

PRELOAD_EXPORT ssize_t __pread_chk(int fd, void *memory, size_t bytes, off_t at, size_t room) {
    LOOK(memory, bytes, true);
    return next.__pread_chk ? next.__pread_chk(fd, memory, bytes, at, room)
                            : NEXT(__pread_chk)(fd, memory, bytes, at, room);
}

PRELOAD_EXPORT ssize_t __recv_chk(int fd, void *memory, size_t bytes, size_t room, int flags) {
    LOOK(memory, bytes, true);
    return next.__recv_chk ? next.__recv_chk(fd, memory, bytes, room, flags)
                           : NEXT(__recv_chk)(fd, memory, bytes, room, flags);
}

PRELOAD_EXPORT size_t __fread_chk(void *memory, size_t room, size_t size, size_t items,
                                  FILE *file) {
    LOOK(memory, product(size, items), true);
    return next.__fread_chk ? next.__fread_chk(memory, room, size, items, file)
                            : NEXT(__fread_chk)(memory, room, size, items, file);
}
