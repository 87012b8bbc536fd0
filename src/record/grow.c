/* The file grows by chunks. A chunk is backed by disk blocks before anybody can store into it: a
 * store into a mapped page that the file system cannot back would be a SIGBUS in the middle of the
 * recorded program. fallocate() alone would do for that; the zeroes are written as well because a
 * write of 64 KiB puts large folios into the page cache, and faulting those in costs 3 ns per event
 * where fresh 4 KiB pages cost 30. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spin.h"
#include "record/writer_internal.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels say EINVAL */
#endif

enum { ZERO_BYTES = 64 << 10, ZERO_PARTS = 16, RETRY_NS = 100000000, HIGH_FD = 900 };

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

/* Programs rely on getting low descriptor numbers, so ours is moved to a high one. */
int grow_hold_fd(int fd) {
    struct rlimit limit;
    int lowest = HIGH_FD;
    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur <= HIGH_FD)
        lowest = (int)limit.rlim_cur / 2;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    flock(fd, LOCK_SH | LOCK_NB); /* a file system without it only loses the check for busy files */
    return fd;
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
    if (fd >= 0)
        fd = grow_hold_fd(fd);
    atomic_store_explicit(&w->fd, fd, memory_order_relaxed);
    return fd;
}

static off_t chunk_offset(const writer *w, uint32_t chunk) {
    return (off_t)RECORD_HEADER_BYTES + ((off_t)chunk << w->chunk_shift);
}

/* Keeps a chunk that was claimed but not used. Its space is wasted if spare_chunk[] is full, which
 * takes more than RECORD_SPARES lost races at once. */
static void chunk_keep(writer *w, uint32_t entry) {
    for (int i = 0; i < RECORD_SPARES; i++) {
        uint32_t none = 0;
        if (atomic_compare_exchange_strong(&w->h->spare_chunk[i], &none, entry))
            return;
    }
}

static uint32_t chunk_kept(writer *w) {
    for (int i = 0; i < RECORD_SPARES; i++)
        if (atomic_load_explicit(&w->h->spare_chunk[i], memory_order_relaxed)) {
            uint32_t entry = atomic_exchange(&w->h->spare_chunk[i], 0);
            if (entry)
                return entry;
        }
    return 0;
}

/* Takes a chunk of the file and backs it. Returns its number plus one, 0 if there is no room. */
static uint32_t chunk_take(writer *w, int fd) {
    uint32_t entry = chunk_kept(w);
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

/* Mapping a chunk twice is harmless: both are the same pages of the same file. So a chunk whose
 * pages cannot be faulted in stays mapped, too, but is never marked as present. */
static bool map_at(writer *w, int fd, uint32_t chunk, unsigned char *at) {
    size_t bytes = (size_t)1 << w->chunk_shift;
    void *p =
        mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, chunk_offset(w, chunk));
    return p != MAP_FAILED && populate(at, bytes);
}

static bool map_chunk(writer *w, _Atomic uint32_t *directory, unsigned char *at) {
    int fd = atomic_load_explicit(&w->cut, memory_order_relaxed) ? -1 : checked_fd(w);
    if (fd < 0)
        return false;
    uint32_t entry = atomic_load_explicit(directory, memory_order_acquire);
    if (!entry) {
        uint32_t taken = chunk_take(w, fd);
        if (!taken)
            return false;
        if (atomic_compare_exchange_strong(directory, &entry, taken))
            entry = taken;
        else
            chunk_keep(w, taken); /* another was faster */
    }
    return map_at(w, fd, entry - 1, at);
}

/* True if the other thread that is mapping the chunk has finished. It may be descheduled,
 * interrupted by this very signal handler, or part of the process that this one was forked from:
 * then waiting does not help, and the work is done twice. */
static bool wait_for_other(const _Atomic uint8_t *state) {
    for (int i = 0; i < 2000; i++) {
        if (atomic_load_explicit(state, memory_order_acquire) == CHUNK_MAPPED)
            return true;
        if (i < 100)
            spin_pause();
        else
            sched_yield();
    }
    return false;
}

bool grow_map_chunk(writer *w, enum chunk_use use, unsigned index, bool ahead) {
    bool events = use == CHUNK_EVENTS;
    _Atomic uint8_t *state = events ? &w->event_mapped[index] : &w->definition_mapped[index];
    _Atomic uint32_t *directory =
        events ? &w->h->event_chunk[index] : &w->h->definition_chunk[index];
    uint8_t was = CHUNK_ABSENT;
    if (!atomic_compare_exchange_strong_explicit(state, &was, CHUNK_COMING, memory_order_acquire,
                                                 memory_order_acquire) &&
        (was == CHUNK_MAPPED || ahead || wait_for_other(state)))
        return was == CHUNK_MAPPED || !ahead;
    bool done = false;
    int saved = errno;
    /* When the disk is full, not every event of the program should wait for a system call. */
    if (atomic_load_explicit(directory, memory_order_relaxed) ||
        clock_now_ns() >= atomic_load_explicit(&w->retry_ns, memory_order_relaxed)) {
        unsigned char *base = events ? (unsigned char *)w->events : w->definitions;
        done = map_chunk(w, directory, base + ((size_t)index << w->chunk_shift));
    }
    was = CHUNK_COMING;
    if (done)
        atomic_store_explicit(state, CHUNK_MAPPED, memory_order_release);
    else /* unless another did it meanwhile */
        atomic_compare_exchange_strong(state, &was, CHUNK_ABSENT);
    errno = saved;
    return done;
}
