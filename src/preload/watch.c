/* watch.c - see watch.h.
 *
 * The device must get through to the pages that the host must not touch. A GPU does. The software
 * device is made of the same threads and addresses, so it says when a copy begins and ends to touch
 * memory, and the pages are open in between; what else it runs (kernels that use pinned memory) is
 * told apart by greta_soft_is_running() and ends the watch without a remark.
 *
 * Two threads can fault on one page at once. The second then finds a page that is open again, and
 * is told by the list of those that were opened last; a fault that repeats is somebody else's. */
#include "preload/watch.h"

#include <greta/soft.h>

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "audit/order.h"
#include "base/spin.h"
#include "preload/host.h"
#include "preload/next.h"
#include "preload/preload.h"

struct watched {
    uint64_t first, last; /* pages [first, last); 0: unused */
    struct audit_host_use use;
    unsigned open; /* copies of the software device that touch it now */
};
enum { WATCHED_MAX = 256, OPENED_MAX = 64, TOUCHES_MAX = 32 };

static atomic_bool started;
static struct spin lock; /* all below */
static struct watched watched[WATCHED_MAX];
static struct { uint64_t first, last; } opened[OPENED_MAX], touches[TOUCHES_MAX];
static unsigned next_opened;
static _Atomic unsigned count;

static uint64_t page_size;
static int (*soft_is_running)(void);
static struct sigaction next_action; /* whose turn it is when an access is not ours */

/* ---- pages ------------------------------------------------------------------------------------
 */

static void protect(const struct watched *w) {
    mprotect((void *)(uintptr_t)w->first, w->last - w->first,
             w->use.written ? PROT_NONE : PROT_READ);
}

static void unprotect(uint64_t first, uint64_t last) {
    mprotect((void *)(uintptr_t)first, last - first, PROT_READ | PROT_WRITE);
}

/* Ends a watch. Pages that another one needs are closed again. */
static void release_watch(struct watched *w) {
    uint64_t first = w->first, last = w->last;
    opened[next_opened % OPENED_MAX].first = first;
    opened[next_opened++ % OPENED_MAX].last = last;
    w->first = w->last = 0;
    atomic_fetch_sub(&count, 1);
    unprotect(first, last);
    for (size_t i = 0; i < WATCHED_MAX; i++)
        if (watched[i].first < last && first < watched[i].last && !watched[i].open)
            protect(&watched[i]);
}

/* A thread that was interrupted inside is not kept waiting by itself. */
static bool enter(void) {
    if (!atomic_load_explicit(&started, memory_order_acquire) || preload_me.inside)
        return false;
    preload_me.inside++;
    spin_lock(&lock);
    return true;
}

static void leave(void) {
    spin_unlock(&lock);
    preload_me.inside--;
}

static bool is_pinned(const struct audit_host_use *use) {
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, use->address);
    bool pinned = entry && entry->family == LEDGER_PINNED &&
                  use->bytes <= entry->addr + entry->size - use->address;
    ledger_read_end(t);
    return pinned;
}

void watch_add(const struct audit_host_use *use) {
    if (!atomic_load_explicit(&started, memory_order_acquire) || !is_pinned(use))
        return;
    int saved = errno;
    if (!enter())
        return;
    struct watched *w = NULL;
    for (size_t i = 0; i < WATCHED_MAX && !w; i++)
        w = watched[i].last ? NULL : &watched[i];
    if (w && host_is_pending(use)) {
        w->first = use->address & ~(page_size - 1);
        w->last = (use->address + use->bytes + page_size - 1) & ~(page_size - 1);
        w->use = *use;
        w->open = 0;
        atomic_fetch_add(&count, 1);
        for (size_t i = 0; i < TOUCHES_MAX; i++)
            w->open += touches[i].first < w->last && w->first < touches[i].last;
        if (!w->open)
            protect(w);
    }
    leave();
    errno = saved;
}

/* Ends the watches that `over` says so of. */
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
static bool is_before(const struct watched *w, uint64_t event, uint64_t b) {
    (void)b;
    return w->use.event < event;
}

void watch_drop(uint64_t address, uint64_t bytes) {
    release_if(is_in, address, bytes);
}
void watch_release_finished(void) {
    release_if(is_finished, 0, 0);
}
void watch_release_before(uint64_t queued) {
    release_if(is_before, queued, 0);
}

/* ---- the software device's own accesses -------------------------------------------------------
 */

static void touch(uint64_t address, uint64_t bytes, int begins, void *user) {
    (void)user;
    if (!enter())
        return;
    uint64_t last = address + bytes;
    for (size_t i = 0; i < TOUCHES_MAX; i++) {
        bool mine =
            begins ? !touches[i].last : touches[i].first == address && touches[i].last == last;
        if (!mine)
            continue;
        touches[i].first = begins ? address : 0;
        touches[i].last = begins ? last : 0;
        break;
    }
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        struct watched *w = &watched[i];
        if (!w->last || !is_in(w, address, bytes))
            continue;
        if (begins && w->open++ == 0)
            unprotect(w->first, w->last);
        else if (!begins && w->open && --w->open == 0)
            protect(w);
    }
    leave();
}

/* ---- the program's ----------------------------------------------------------------------------
 */

enum answer { ANSWER_AGAIN, ANSWER_NOT_OURS };

static void record_access(const struct watched *w, uint64_t address, bool writes, uintptr_t ip) {
    struct event ev = {
        .kind = EVENT_EARLY_HOST_ACCESS,
        .dst = address,
        .src = w->use.event,
        .len = 1,
        .aux = event_aux(EVENT_NO_FN, writes ? DETAIL_ACCESS_WRITE : DETAIL_ACCESS_READ),
        .site = record_site_full(audit.writer, (const void *)ip),
    };
    record_event(audit.writer, &ev);
}

/* The page was watched a moment ago; but the same access twice is no coincidence. */
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

static enum answer answer(uint64_t address, bool writes, uintptr_t ip) {
    bool device = preload_me.runtime || (soft_is_running && soft_is_running());
    enum answer a = ANSWER_NOT_OURS;
    spin_lock(&lock);
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        struct watched *w = &watched[i];
        if (!w->last || address < w->first || address >= w->last)
            continue;
        if (!device && host_is_pending(&w->use) && address - w->use.address < w->use.bytes)
            record_access(w, address, writes, ip);
        release_watch(w);
        a = ANSWER_AGAIN;
    }
    if (a == ANSWER_NOT_OURS && was_opened(address, ip))
        a = ANSWER_AGAIN;
    spin_unlock(&lock);
    return a;
}

static void pass_on(int number, siginfo_t *info, void *context) {
    struct sigaction action = next_action;
    if (action.sa_flags & SA_SIGINFO) {
        action.sa_sigaction(number, info, context);
    } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
        action.sa_handler(number);
    } else { /* the access repeats and meets the default action */
        NEXT(sigaction)(number, &action, NULL);
    }
}

static void handle(int number, siginfo_t *info, void *context) {
    int saved = errno;
#if defined(__x86_64__)
    const ucontext_t *u = context;
    uintptr_t ip = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
    bool writes = u->uc_mcontext.gregs[REG_ERR] & 2;
#else
    uintptr_t ip = 0;
    bool writes = false;
#endif
    enum answer a = ANSWER_NOT_OURS;
    if (info->si_code == SEGV_ACCERR && preload_me.inside == 0) {
        preload_me.inside++;
        a = answer((uint64_t)(uintptr_t)info->si_addr, writes, ip);
        preload_me.inside--;
    }
    errno = saved;
    if (a == ANSWER_NOT_OURS)
        pass_on(number, info, context);
}

/* The program's own handler for SIGSEGV stands behind ours. */
PRELOAD_EXPORT int sigaction(int number, const struct sigaction *restrict action,
                             struct sigaction *restrict old) {
    if (number != SIGSEGV || !atomic_load_explicit(&started, memory_order_acquire))
        return NEXT(sigaction)(number, action, old);
    struct sigaction now = next_action;
    if (action)
        next_action = *action;
    if (old)
        *old = now;
    return 0;
}

PRELOAD_EXPORT __sighandler_t signal(int number, __sighandler_t handler) {
    if (number != SIGSEGV || !atomic_load_explicit(&started, memory_order_acquire))
        return NEXT(signal)(number, handler);
    __sighandler_t old = next_action.sa_handler;
    next_action = (struct sigaction){ .sa_handler = handler, .sa_flags = SA_RESTART };
    return old;
}

static void find(const char *name, void *out) {
    void *symbol = next_dlsym()(preload_runtime_library(), name);
    memcpy(out, &symbol, sizeof symbol);
}

bool watch_start(void) {
#if defined(__x86_64__)
    void (*observe)(greta_soft_touch_observer, void *);
    page_size = (uint64_t)sysconf(_SC_PAGESIZE);
    find("greta_soft_is_running", &soft_is_running);
    find("greta_soft_observe_touches", &observe);
    struct sigaction action = { .sa_sigaction = handle,
                                .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    if (NEXT(sigaction)(SIGSEGV, &action, &next_action) != 0)
        return false;
    if (observe)
        observe(touch, NULL);
    atomic_store_explicit(&started, true, memory_order_release);
    return true;
#else
    return false;
#endif
}
