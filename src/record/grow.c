/* The file grows by chunks. A chunk is backed by disk blocks before anybody can store into it: a
 * store into a mapped page that the file system cannot back would be a SIGBUS in the middle of the
 * recorded program. fallocate() alone would do for that; the zeroes are written as well because a
 * write of 64 KiB puts large folios into the page cache, and faulting those in costs 3 ns an event
 * where fresh 4 KiB pages cost 30. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"
#include "record/writer_internal.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels say EINVAL */
#endif

enum { ZERO_BYTES = 64 << 10, ZERO_PARTS = 16, RETRY_NS = 100000000 };

static const unsigned char zeroes[ZERO_BYTES];

static int write_zeroes(int fd, off_t offset, size_t bytes) {
    while (bytes) {
        struct iovec parts[ZERO_PARTS];
        size_t want = 0;
        int n = 0;
        for (; n < ZERO_PARTS && want < bytes; n++) {
            size_t part = bytes - want < ZERO_BYTES ? bytes - want : ZERO_BYTES;
            parts[n] = (struct iovec){ (void *)(uintptr_t)zeroes, part };
            want += part;
        }
        ssize_t done = pwritev(fd, parts, n, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : ENOSPC;
        offset += done;
        bytes -= (size_t)done;
    }
    return 0;
}

int grow_back_range(int fd, off_t offset, size_t bytes) {
    /* Past this limit the kernel would send SIGXFSZ, which ends a program that never asked for a
     * recorder. */
    struct rlimit limit;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
        (uint64_t)offset + bytes > limit.rlim_cur)
        return EFBIG;
    while (fallocate(fd, 0, offset, (off_t)bytes)) {
        if (errno == EOPNOTSUPP || errno == ENOSYS)
            break; /* the zeroes below allocate, too */
        if (errno != EINTR)
            return errno;
    }
    return write_zeroes(fd, offset, bytes);
}

/* The program may have closed our descriptor (daemons close all they find) and may use its number
 * for a file of its own by now. Returns a descriptor that is the recording, or -1. */
static int checked_fd(writer *w) {
    struct stat st;
    int fd = atomic_load_explicit(&w->fd, memory_order_relaxed);
    if (fd >= 0 && !fstat(fd, &st) && st.st_dev == w->device && st.st_ino == w->inode)
        return fd;
    fd = open(w->path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &st) || st.st_dev != w->device || st.st_ino != w->inode)) {
        close(fd);
        fd = -1;
    }
    atomic_store_explicit(&w->fd, fd, memory_order_relaxed);
    return fd;
}

static off_t chunk_offset(const writer *w, uint32_t chunk) {
    return (off_t)RECORD_HEADER_BYTES + ((off_t)chunk << w->chunk_shift);
}

/* Keeps a chunk number that was claimed and not used. If another one is kept already the room is
 * wasted, which takes two lost races in a row. */
static void chunk_keep(writer *w, uint32_t entry) {
    uint32_t none = 0;
    atomic_compare_exchange_strong(&w->h->spare_chunk, &none, entry);
}

/* Takes a chunk of the file and backs it. Returns its number plus one, 0 if there is no room. */
static uint32_t chunk_take(writer *w, int fd) {
    uint32_t entry = atomic_exchange(&w->h->spare_chunk, 0);
    if (entry && !(entry & RECORD_CHUNK_UNBACKED))
        return entry;
    uint32_t chunk =
        entry ? (entry & ~RECORD_CHUNK_UNBACKED) - 1 : atomic_fetch_add(&w->h->file_chunks, 1);
    if (!grow_back_range(fd, chunk_offset(w, chunk), (size_t)1 << w->chunk_shift))
        return chunk + 1;
    atomic_store(&w->retry_ns, clock_now_ns() + RETRY_NS);
    chunk_keep(w, (chunk + 1) | RECORD_CHUNK_UNBACKED);
    return 0;
}

/* Faults all pages of a mapped chunk in at once. */
static bool populate(unsigned char *at, size_t bytes) {
    if (!madvise(at, bytes, MADV_POPULATE_WRITE))
        return true;
    if (errno != EINVAL)
        return false;
    for (size_t i = 0; i < bytes; i += 4096)
        __atomic_fetch_or((uint64_t *)(void *)(at + i), 0, __ATOMIC_RELAXED);
    return true;
}

static bool map_at(writer *w, int fd, uint32_t chunk, unsigned char *at) {
    size_t bytes = (size_t)1 << w->chunk_shift;
    void *p =
        mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, chunk_offset(w, chunk));
    if (p == MAP_FAILED)
        return false;
    if (populate(at, bytes))
        return true;
    /* Back to reserved address space: nothing must be stored into pages that cannot be had. */
    mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return false;
}

static bool map_chunk(writer *w, _Atomic uint32_t *directory, unsigned char *at) {
    uint32_t entry = atomic_load_explicit(directory, memory_order_acquire);
    int fd = checked_fd(w);
    if (fd < 0)
        return false;
    if (!entry) {
        uint32_t taken = chunk_take(w, fd);
        if (!taken)
            return false;
        if (atomic_compare_exchange_strong(directory, &entry, taken))
            entry = taken;
        else
            chunk_keep(w, taken); /* another process was faster */
    }
    return map_at(w, fd, entry - 1, at);
}

/* True when the lock is the caller's. A waiter gives the processor away; the thread that holds the
 * lock cannot wait for itself, it gives up. */
static bool grower_lock(struct process_page *page) {
    uint32_t me = (uint32_t)syscall(SYS_gettid);
    for (unsigned tries = 0;; tries++) {
        uint32_t holder = 0;
        if (atomic_compare_exchange_strong_explicit(&page->grower, &holder, me,
                                                    memory_order_acquire, memory_order_relaxed))
            return true;
        if (holder == me)
            return false;
        if (tries < 100)
            spin_pause();
        else
            sched_yield();
    }
}

bool grow_map_chunk(writer *w, enum chunk_use use, unsigned index) {
    bool events = use == CHUNK_EVENTS;
    _Atomic uint8_t *mapped = events ? &w->event_mapped[index] : &w->definition_mapped[index];
    _Atomic uint32_t *directory =
        events ? &w->h->event_chunk[index] : &w->h->definition_chunk[index];
    if (atomic_load_explicit(mapped, memory_order_acquire))
        return true;
    /* Without room, do not make every event of the program wait for a system call. */
    if (!atomic_load_explicit(directory, memory_order_relaxed) &&
        clock_now_ns() < atomic_load_explicit(&w->retry_ns, memory_order_relaxed))
        return false;
    int saved = errno;
    bool done = false;
    if (grower_lock(w->page)) {
        done = atomic_load_explicit(mapped, memory_order_relaxed);
        if (!done) {
            unsigned char *base = events ? (unsigned char *)w->events : w->definitions;
            done = map_chunk(w, directory, base + ((size_t)index << w->chunk_shift));
            atomic_store_explicit(mapped, done, memory_order_release);
        }
        atomic_store_explicit(&w->page->grower, 0, memory_order_release);
    }
    errno = saved;
    return done;
}
