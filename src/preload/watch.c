/* watch.c - see watch.h.
 *
 * The device must still reach the pages that are closed to the host. A GPU does, and the software
 * device reaches pinned and managed memory through another mapping of the same pages. Registered
 * memory has only one mapping: there the software device has us copy, and we bypass the protection
 * by /proc/self/mem or, for shared pages, by a second mapping, so that they stay closed to the
 * program. A kernel that uses such memory is recognised by greta_soft_is_running(). Its pages are
 * opened while all threads of the program wait, and closed when the first of them continues. The
 * kernel is kept waiting until they all wait, but not for long: then the watch ends, which is
 * recorded.
 *
 * A page may hold bytes that are not in use beside those that are, and what a kernel does with a
 * pointer is not known exactly. So an access does not end a watch: the page is opened, the
 * processor executes the one instruction with the trap flag set, and the page is closed again. A
 * watch ends only after many accesses, because a loop over a large buffer would take too long.
 *
 * Two threads can fault on one page at once. The second then finds the page open, and recognises it
 * by the list of pages opened last; if its fault repeats, the cause is another one. */
#include "preload/watch.h"

#include <greta/soft.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "audit/order.h"
#include "base/clock.h"
#include "base/spin.h"
#include "preload/host.h"
#include "preload/next.h"
#include "preload/preload.h"
#include "preload/stack.h"

struct watched {
    uint64_t first, last; /* pages [first, last); 0: unused */
    struct audit_host_use use;
    unsigned open;      /* system calls that may touch it now */
    bool let_in;        /* open for a kernel */
    unsigned met;       /* accesses of the host so far */
    unsigned told;      /* how many of them were recorded */
    uint32_t id;        /* of this watch, for passes */
    bool doubted;       /* it is recorded that it may miss accesses */
    uintptr_t told_ip;  /* where the last of those came from, */
    uint32_t told_from; /* and who made it */
};
enum { WATCHED_MAX = 256, OPENED_MAX = 64, MET_MAX = 5000, TOLD_MAX = 8 };
enum { FLIGHTS_MAX = 512 }; /* a multiple of 64 */

static atomic_bool started;
static struct spin *lock; /* all below */
static struct watched watched[WATCHED_MAX];
static struct { uint64_t first, last; } opened[OPENED_MAX];
static unsigned next_opened;
/* The program's threads, how many of them wait, and whether pages are open for a kernel. A thread
 * that continues first lowers `waiting` and then reads let_in, to close the pages; a kernel first
 * sets let_in and then reads `waiting`. */
static _Atomic unsigned threads = 1, waiting;
static atomic_bool let_in;
static unsigned paused; /* system calls that may touch anything */
/* Memory of system calls in progress. A watch that begins during a call must not close that memory:
 * the system may not have written it yet. */
static struct flight {
    uint64_t address, bytes;
    bool writes;
} flights[FLIGHTS_MAX];
static uint64_t flying[FLIGHTS_MAX / 64]; /* which of them are in use */
static uint32_t last_id;
static _Atomic unsigned count;

static uint64_t page_size;
static int (*soft_is_running)(void);

/* Pages that the thread's present instruction may touch, until it is over. */
static __thread struct {
    unsigned count;
    bool blocked; /* the thread had SIGTRAP blocked */
    uint64_t page[4];
} stepping __attribute__((tls_model("initial-exec")));

/* ---- pages ----------------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}
static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Closes [first, last) as the watches require: first read-only pages, then inaccessible ones. */
static void protect(uint64_t first, uint64_t last) {
    for (int written = 0; written < 2; written++)
        for (size_t i = 0; i < WATCHED_MAX; i++) {
            const struct watched *w = &watched[i];
            uint64_t from = larger(first, w->first), to = smaller(last, w->last);
            if (w->last && !w->open && !w->let_in && !paused && w->use.written == (bool)written &&
                from < to)
                mprotect((void *)(uintptr_t)from, to - from, written ? PROT_NONE : PROT_READ);
        }
}

static void unprotect(uint64_t first, uint64_t last) {
    mprotect((void *)(uintptr_t)first, last - first, PROT_READ | PROT_WRITE);
}

/* Records, once for each watch, that it may miss accesses. */
static void doubt(struct watched *w, unsigned why) {
    struct event ev = {
        .kind = EVENT_UNWATCHED,
        .dst = w->use.address,
        .src = w->use.event,
        .len = w->use.bytes,
        .aux = event_aux(EVENT_NO_FN, why),
    };
    if (!w->doubted && host_is_pending(&w->use))
        record_event(audit.writer, &ev);
    w->doubted = true;
}

/* Ends a watch. Pages that another one needs are closed again. They are open before the watch is
 * gone: a child that is forked in between opens what it finds here (watch_forked). */
static void release_watch(struct watched *w) {
    uint64_t first = w->first, last = w->last;
    opened[next_opened % OPENED_MAX].first = first;
    opened[next_opened++ % OPENED_MAX].last = last;
    unprotect(first, last);
    w->first = w->last = 0;
    atomic_fetch_sub(&count, 1);
    protect(first, last);
}

static bool enter(void) {
    return atomic_load_explicit(&started, memory_order_acquire) && preload_enter(lock);
}

static void leave(void) {
    preload_leave(lock);
}

/* The pages of the use that hold nothing but its block, which may be none; false if it is not
 * memory that is watched. *whole: all of the use is in them. */
static bool find_pages(const struct audit_host_use *use, uint64_t *first, uint64_t *last,
                       bool *whole) {
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, use->address);
    bool known = entry && use->bytes <= entry->addr + entry->size - use->address;
    enum ledger_family family = known ? entry->family : LEDGER_DEVICE;
    uint64_t start = known ? entry->addr : 0, end = known ? entry->addr + entry->size : 0;
    ledger_read_end(t);
    *first = use->address & ~(page_size - 1);
    *last = (use->address + use->bytes + page_size - 1) & ~(page_size - 1);
    if (family == LEDGER_REGISTERED) { /* the program's other data may lie beside it */
        *first = larger(*first, (start + page_size - 1) & ~(page_size - 1));
        *last = smaller(*last, end & ~(page_size - 1));
        *whole = *first <= use->address && use->address + use->bytes <= *last;
        return true;
    }
    *whole = true;
    return family == LEDGER_PINNED || family == LEDGER_MANAGED;
}

/* True if one of the process's descriptors links to `what`. Without malloc: a signal handler may
 * call this. */
static bool has_descriptor(const char *what) {
    struct entry { /* struct linux_dirent64 */
        uint64_t inode;
        int64_t offset;
        unsigned short size;
        unsigned char type;
        char name[];
    };
    _Alignas(8) char list[2048];
    bool found = false;
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long n; fd >= 0 && !found && (n = syscall(SYS_getdents64, fd, list, sizeof list)) > 0;)
        for (long at = 0; at < n && !found;) {
            const struct entry *e = (const void *)(list + at);
            char text[32] = "";
            found = readlinkat(fd, e->name, text, sizeof text - 1) > 0 && !strcmp(text, what);
            at += e->size;
        }
    if (fd >= 0)
        close(fd);
    return found;
}

/* Opens everything until watch_close(). */
static void pause_all(struct watch_pass *p) {
    if (p->all)
        return;
    p->all = true;
    paused++;
    for (size_t i = 0; i < WATCHED_MAX; i++)
        if (watched[i].last) {
            doubt(&watched[i], DETAIL_UNWATCHED_SYSTEM);
            unprotect(watched[i].first, watched[i].last);
        }
}

/* True if the program uses a queue whose requests the system carries out on its own, in memory
 * named earlier. One that is made without the C library is found by its descriptor. */
static atomic_bool async_io;
static bool async_is_used(void) {
    enum { LOOK_NS = 1000000 };
    static uint64_t looked;
    uint64_t now = clock_now_ns();
    if (atomic_load_explicit(&async_io, memory_order_relaxed))
        return true;
    if (now - looked < LOOK_NS)
        return false;
    looked = now;
    if (has_descriptor("anon_inode:[io_uring]"))
        atomic_store_explicit(&async_io, true, memory_order_relaxed);
    return atomic_load_explicit(&async_io, memory_order_relaxed);
}

/* True if a call in progress touches memory that would be closed to it. */
static bool is_in_flight(uint64_t first, uint64_t last, bool written) {
    for (size_t i = 0; i < FLIGHTS_MAX; i++) {
        const struct flight *f = &flights[i];
        if (flying[i / 64] >> i % 64 & 1 && f->address < last && first < f->address + f->bytes &&
            (f->writes || written))
            return true;
    }
    return false;
}

/* Notes what a call touches until watch_close(). If there is no room, everything is opened. */
static void take_off(struct watch_pass *p, const struct flight *f) {
    for (size_t k = 0; k < FLIGHTS_MAX / 64 && p->flights < WATCH_PASS_MAX; k++) {
        if (flying[k] == UINT64_MAX)
            continue;
        unsigned i = (unsigned)__builtin_ctzll(~flying[k]);
        flying[k] |= UINT64_C(1) << i;
        flights[64 * k + i] = *f;
        p->flight[p->flights++] = (uint16_t)(64 * k + i);
        return;
    }
    pause_all(p);
}

static struct watched *free_watch(void) {
    for (size_t i = 0; i < WATCHED_MAX; i++)
        if (!watched[i].last)
            return &watched[i];
    return NULL;
}

static unsigned why_not(bool async, bool stack, bool pages, const struct watched *w) {
    if (async)
        return DETAIL_UNWATCHED_ASYNC_IO;
    if (paused)
        return DETAIL_UNWATCHED_SYSTEM;
    if (stack)
        return DETAIL_UNWATCHED_STACK;
    return pages && !w ? DETAIL_UNWATCHED_ROOM : DETAIL_UNWATCHED_SHARED;
}

bool watch_is_on(void) {
    return atomic_load_explicit(&count, memory_order_relaxed) != 0;
}

void watch_add(const struct audit_host_use *use) {
    uint64_t first, last;
    bool whole;
    if (!atomic_load_explicit(&started, memory_order_acquire) ||
        !find_pages(use, &first, &last, &whole))
        return;
    int saved = errno;
    if (!enter())
        return;
    bool async = async_is_used(), stack = stack_is_any(use->address), pages = first < last;
    bool flight = pages && is_in_flight(first, last, use->written);
    struct watched none, *w = pages && !async && !stack && !flight ? free_watch() : NULL;
    struct watched *it = w ? w : &none;
    if (host_is_pending(use)) {
        *it = (struct watched){ .first = first, .last = last, .use = *use, .id = ++last_id };
        if (flight)
            doubt(it, DETAIL_UNWATCHED_SYSTEM);
        else if (!w || !whole || paused)
            doubt(it, why_not(async, stack, pages, w));
        if (w) {
            atomic_fetch_add(&count, 1);
            protect(first, last);
        }
    }
    leave();
    errno = saved;
}

/* Ends the watches for which over() returns true. */
static void release_if(bool (*over)(const struct watched *w, uint64_t a, uint64_t b), uint64_t a,
                       uint64_t b) {
    if (!atomic_load_explicit(&count, memory_order_relaxed))
        return;
    int saved = errno;
    if (!enter())
        return;
    for (size_t i = 0; i < WATCHED_MAX; i++)
        if (watched[i].last && over(&watched[i], a, b))
            release_watch(&watched[i]);
    leave();
    errno = saved;
}

static bool is_in(const struct watched *w, uint64_t address, uint64_t bytes) {
    return w->first < address + bytes && address < w->last;
}
static bool is_finished(const struct watched *w, uint64_t a, uint64_t b) {
    (void)a, (void)b;
    return !host_is_pending(&w->use);
}

void watch_drop(uint64_t address, uint64_t bytes) {
    release_if(is_in, address, bytes);
}
void watch_release_finished(void) {
    release_if(is_finished, 0, 0);
}

/* Closes what was open for kernels, because a thread of the program continues. */
static void end_let_in(void) {
    if (!atomic_load(&let_in))
        return;
    int saved = errno;
    preload_me.inside++;
    spin_lock(lock);
    atomic_store(&let_in, false);
    for (size_t i = 0; i < WATCHED_MAX; i++)
        if (watched[i].let_in) {
            watched[i].let_in = false;
            protect(watched[i].first, watched[i].last);
        }
    spin_unlock(lock);
    preload_me.inside--;
    errno = saved;
}

void watch_waits(bool begins) {
    if (preload_me.runtime || preload_me.inside)
        return;
    if (begins && preload_me.waits++ == 0)
        atomic_fetch_add(&waiting, 1);
    if (!begins && --preload_me.waits == 0) {
        atomic_fetch_sub(&waiting, 1);
        end_let_in();
    }
}

void watch_thread(bool begins) {
    atomic_fetch_add(&threads, begins ? 1 : -1u);
    if (begins)
        end_let_in();
}

bool watch_threads_are_several(void) {
    return atomic_load_explicit(&threads, memory_order_relaxed) > 1;
}

/* The other threads, and what they were doing, do not exist in the child. Nor is HIP work waited
 * for here: HIP does not survive a fork. */
void watch_forked(void) {
    int saved = errno;
    atomic_store(&threads, 1);
    atomic_store(&waiting, preload_me.waits > 0);
    atomic_store(&let_in, false);
    if (!atomic_load_explicit(&started, memory_order_acquire))
        return;
    spin_unlock(lock);
    for (size_t i = 0; i < WATCHED_MAX; i++)
        if (watched[i].last)
            unprotect(watched[i].first, watched[i].last);
    memset(watched, 0, sizeof watched);
    memset(flying, 0, sizeof flying);
    atomic_store(&count, 0);
    paused = 0;
    errno = saved;
}

void watch_host_fn(bool begins) {
    preload_me.host_fn = begins;
    watch_thread(begins);
}

/* ---- the software device's own accesses ------------------------------------------------------ */

/* True if a page of [address, address + bytes) is watched. If why is given, ends such watches. */
static bool is_watched(uint64_t address, uint64_t bytes, const unsigned *why) {
    bool found = false;
    if (!enter())
        return false;
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        struct watched *w = &watched[i];
        if (!w->last || !is_in(w, address, bytes))
            continue;
        found = true;
        if (why) {
            doubt(w, *why);
            release_watch(w);
        }
    }
    leave();
    return found;
}

/* Through the system, which ignores the protection of private pages. The descriptor is opened anew
 * each time: a child has its own memory, and the program may close any descriptor. */
static bool move_by_system(uint64_t host, char *memory, uint64_t bytes, bool writes) {
    int fd = open("/proc/self/mem", (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    uint64_t done = 0;
    while (fd >= 0 && done < bytes) {
        long n = syscall(writes ? SYS_pwrite64 : SYS_pread64, fd, memory + done, bytes - done,
                         host + done);
        if (n <= 0)
            break;
        done += (uint64_t)n;
    }
    if (fd >= 0)
        close(fd);
    return done == bytes;
}

/* Through a second mapping, which only shared pages can have. */
static bool move_by_alias(uint64_t host, char *memory, uint64_t bytes, bool writes) {
    uint64_t first = host & ~(page_size - 1);
    size_t size = (host + bytes + page_size - 1 - first) & ~(page_size - 1);
    char *alias = NEXT(mremap)((void *)(uintptr_t)first, 0, size, MREMAP_MAYMOVE);
    if (alias == MAP_FAILED)
        return false;
    bool done = mprotect(alias, size, PROT_READ | PROT_WRITE) == 0;
    if (done && writes)
        memcpy(alias + (host - first), memory, bytes);
    else if (done)
        memcpy(memory, alias + (host - first), bytes);
    NEXT(munmap)(alias, size);
    return done;
}

static int move_past(uint64_t host, void *memory, uint64_t bytes, int writes, void *user) {
    static const unsigned why = DETAIL_UNWATCHED_DEVICE;
    (void)user;
    if (!atomic_load_explicit(&count, memory_order_acquire) || !is_watched(host, bytes, NULL))
        return 0;
    int saved = errno;
    bool done =
        move_by_system(host, memory, bytes, writes) || move_by_alias(host, memory, bytes, writes);
    if (!done)
        is_watched(host, bytes, &why);
    errno = saved;
    return done;
}

/* ---- the program's --------------------------------------------------------------------------- */

enum answer { ANSWER_AGAIN, ANSWER_STEP, ANSWER_NOT_OURS };

static void record_access(const struct watched *w, uint64_t address, uint64_t bytes, bool writes,
                          uintptr_t ip) {
    struct event ev = {
        .kind = EVENT_EARLY_HOST_ACCESS,
        .dst = address,
        .src = w->use.event,
        .len = bytes,
        .aux = event_aux(EVENT_NO_FN, writes ? DETAIL_ACCESS_WRITE : DETAIL_ACCESS_READ),
        .site = record_site_full(audit.writer, (const void *)ip),
    };
    record_event(audit.writer, &ev);
}

/* True if the page was watched until a moment ago. False if the same access faults again: that has
 * another cause. */
static bool was_opened(uint64_t address, uintptr_t ip) {
    static __thread uint64_t last_address __attribute__((tls_model("initial-exec")));
    static __thread uintptr_t last_ip __attribute__((tls_model("initial-exec")));
    bool repeated = last_address == address && last_ip == ip;
    last_address = address;
    last_ip = ip;
    for (size_t i = 0; !repeated && i < OPENED_MAX; i++)
        if (address - opened[i].first < opened[i].last - opened[i].first)
            return true;
    return false;
}

/* The program touched a page of a watch. True if the watch goes on. */
static bool meet(struct watched *w, uint64_t address, bool writes, uintptr_t ip) {
    if (!host_is_pending(&w->use))
        return false;
    if (++w->met > MET_MAX) {
        if (!w->told)
            doubt(w, DETAIL_UNWATCHED_OFTEN);
        return false;
    }
    uint32_t from = audit_thread_id();
    if (address - w->use.address >= w->use.bytes ||
        (w->told && w->told_ip == ip && w->told_from == from))
        return true;
    w->told_ip = ip;
    w->told_from = from;
    record_access(w, address, 1, writes, ip);
    return ++w->told < TOLD_MAX;
}

/* The page stays open for one instruction. */
static bool step_over(uint64_t page) {
    if (stepping.count == sizeof stepping.page / sizeof *stepping.page)
        return false;
    stepping.page[stepping.count++] = page;
    unprotect(page, page + page_size);
    return true;
}

/* Opens the pages for a kernel if no thread of the program can touch them meanwhile; otherwise ends
 * the watch. */
static void admit(struct watched *w) {
    atomic_store(&let_in, true);
    if (atomic_load(&waiting) >= atomic_load(&threads)) {
        w->let_in = true;
        unprotect(w->first, w->last);
    } else {
        doubt(w, DETAIL_UNWATCHED_DEVICE);
        release_watch(w);
    }
}

/* Keeps a kernel waiting until all threads of the program wait, but not for long. */
static void await_program(void) {
    enum { TRIES = 200, PAUSE_NS = 100000 };
    struct timespec pause = { .tv_nsec = PAUSE_NS };
    for (int i = 0; i < TRIES && atomic_load(&waiting) < atomic_load(&threads); i++)
        nanosleep(&pause, NULL);
}

static enum answer answer(uint64_t address, bool writes, uintptr_t ip) {
    bool device =
        !preload_me.host_fn && (preload_me.runtime || (soft_is_running && soft_is_running()));
    enum answer a = ANSWER_NOT_OURS;
    if (device && atomic_load(&count))
        await_program();
    spin_lock(lock);
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        struct watched *w = &watched[i];
        if (!w->last || address < w->first || address >= w->last)
            continue;
        if (device && host_is_pending(&w->use)) {
            admit(w);
            a = ANSWER_AGAIN;
        } else if (!device && meet(w, address, writes, ip)) {
            a = ANSWER_STEP;
        } else {
            release_watch(w);
            a = a == ANSWER_STEP ? a : ANSWER_AGAIN;
        }
    }
    if (a == ANSWER_STEP && !step_over(address & ~(page_size - 1)))
        a = ANSWER_NOT_OURS;
    if (a == ANSWER_NOT_OURS && was_opened(address, ip))
        a = ANSWER_AGAIN;
    spin_unlock(lock);
    return a;
}

/* ---- the system's accesses for the program --------------------------------------------------- */

/* A system call touches pages of the watch, and maybe the memory that the watch is for. */
static void look_at_call(struct watched *w, uint64_t address, uint64_t bytes, bool writes,
                         const void *caller) {
    uint64_t from = larger(address, w->use.address);
    uint64_t to = smaller(address + bytes, w->use.address + w->use.bytes);
    if (from < to && host_is_pending(&w->use)) {
        record_access(w, from, to - from, writes, (uintptr_t)caller);
        w->doubted = true; /* the access is recorded: no need to record a doubt */
    }
    doubt(w, DETAIL_UNWATCHED_SYSTEM);
}

void watch_open(struct watch_pass *p, uint64_t address, uint64_t bytes, bool writes,
                const void *caller) {
    if (!bytes || !atomic_load_explicit(&started, memory_order_acquire))
        return;
    int saved = errno;
    if (!enter())
        return;
    bool program = !preload_is_internal(caller);
    if (bytes > UINT64_MAX - address)
        bytes = UINT64_MAX - address;
    take_off(p, &(struct flight){ address, bytes, writes });
    for (size_t i = 0; i < WATCHED_MAX && atomic_load_explicit(&count, memory_order_relaxed); i++) {
        struct watched *w = &watched[i];
        if (!w->last || !is_in(w, address, bytes) || (!writes && !w->use.written))
            continue;
        if (program)
            look_at_call(w, address, bytes, writes, caller);
        if (p->count == WATCH_PASS_MAX) {
            release_watch(w);
            continue;
        }
        p->at[p->count].index = (uint16_t)i;
        p->at[p->count++].id = w->id;
        if (w->open++ == 0)
            unprotect(w->first, w->last);
    }
    leave();
    errno = saved;
}

bool watch_open_all(struct watch_pass *p, const void *caller) {
    if (p->all || !atomic_load_explicit(&started, memory_order_acquire) ||
        preload_is_internal(caller))
        return false;
    int saved = errno;
    if (!enter())
        return false;
    bool any = atomic_load_explicit(&count, memory_order_relaxed);
    pause_all(p);
    leave();
    errno = saved;
    return any;
}

void watch_close(struct watch_pass *p) {
    if (!p->count && !p->all && !p->flights)
        return;
    int saved = errno;
    preload_me.inside++;
    spin_lock(lock);
    for (unsigned i = 0; i < p->flights; i++)
        flying[p->flight[i] / 64] &= ~(UINT64_C(1) << p->flight[i] % 64);
    for (unsigned i = 0; i < p->count; i++) {
        struct watched *w = &watched[p->at[i].index];
        if (w->last && w->id == p->at[i].id && w->open && --w->open == 0)
            protect(w->first, w->last);
    }
    if (p->all && paused && --paused == 0)
        protect(0, UINT64_MAX);
    spin_unlock(lock);
    preload_me.inside--;
    errno = saved;
}

/* Ends all watches and says why. */
static bool release_all(unsigned why) {
    bool any = false;
    int saved = errno;
    if (enter()) {
        for (size_t i = 0; i < WATCHED_MAX; i++)
            if (watched[i].last) {
                doubt(&watched[i], why);
                release_watch(&watched[i]);
                any = true;
            }
        leave();
    }
    errno = saved;
    return any;
}

bool watch_end_present(void) {
    return atomic_load_explicit(&started, memory_order_acquire) &&
           release_all(DETAIL_UNWATCHED_SYSTEM);
}

void watch_end_all(void) {
    if (!atomic_load_explicit(&started, memory_order_acquire))
        return;
    atomic_store_explicit(&async_io, true, memory_order_relaxed);
    release_all(DETAIL_UNWATCHED_ASYNC_IO);
}

#if defined(__x86_64__)
enum { TRAP_FLAG = 0x100 };

/* Closes what the thread's instruction needed. */
static void end_step(ucontext_t *u) {
    preload_me.inside++;
    spin_lock(lock);
    while (stepping.count) {
        uint64_t page = stepping.page[--stepping.count];
        protect(page, page + page_size);
    }
    spin_unlock(lock);
    preload_me.inside--;
    u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    if (stepping.blocked)
        sigaddset(&u->uc_sigmask, SIGTRAP);
    stepping.blocked = false;
}

bool watch_on_fault(const siginfo_t *info, void *context) {
    if (!atomic_load_explicit(&started, memory_order_acquire))
        return false;
    int saved = errno;
    ucontext_t *u = context;
    uintptr_t ip = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    bool writes = u->uc_mcontext.gregs[REG_ERR] & 2;
    enum answer a = ANSWER_NOT_OURS;
    if (info->si_code == SEGV_ACCERR && preload_me.inside == 0) {
        preload_me.inside++;
        a = answer((uint64_t)(uintptr_t)info->si_addr, writes, ip);
        preload_me.inside--;
    }
    if (a == ANSWER_STEP) {
        stepping.blocked |= sigismember(&u->uc_sigmask, SIGTRAP) == 1;
        sigdelset(&u->uc_sigmask, SIGTRAP);
        u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    }
    if (a == ANSWER_NOT_OURS &&
        stepping.count) /* the instruction ends here, or a handler ends it */
        end_step(u);
    errno = saved;
    return a != ANSWER_NOT_OURS;
}

bool watch_on_step(void *context) {
    if (!stepping.count)
        return false;
    int saved = errno;
    end_step(context);
    errno = saved;
    return true;
}
#else
bool watch_on_fault(const siginfo_t *info, void *context) {
    (void)info, (void)context;
    return false;
}
bool watch_on_step(void *context) {
    (void)context;
    return false;
}
#endif

bool watch_start(void) {
#if defined(__x86_64__)
    page_size = (uint64_t)sysconf(_SC_PAGESIZE);
    lock = preload_new_lock();
    soft_is_running = audit.soft.is_running;
    if (audit.soft.move_host_by)
        audit.soft.move_host_by(move_past, NULL);
    atomic_store_explicit(&started, true, memory_order_release);
    return true;
#else
    return false;
#endif
}
