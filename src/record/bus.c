#include "record/bus.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard {
    _Atomic uintptr_t from[2], bytes[2];
    _Atomic(atomic_bool *) cut; /* NULL: unused */
};
static struct guard guards[BUS_GUARDS];
static atomic_bool installed;
static struct sigaction next;
static uintptr_t page_size;
static _Atomic(void (*)(int, const siginfo_t *, void *)) observed_by;

void bus_observe(void (*observer)(int number, const siginfo_t *info, void *context)) {
    atomic_store(&observed_by, observer);
}

struct sigaction *bus_next(void) {
    return atomic_load_explicit(&installed, memory_order_acquire) ? &next : NULL;
}

/* True if the address was in a recording and now has memory behind it. */
static bool replace_page(uintptr_t address) {
    for (size_t i = 0; i < BUS_GUARDS; i++) {
        atomic_bool *cut = atomic_load_explicit(&guards[i].cut, memory_order_acquire);
        for (int k = 0; cut && k < 2; k++) {
            uintptr_t from = atomic_load_explicit(&guards[i].from[k], memory_order_relaxed);
            if (address - from >= atomic_load_explicit(&guards[i].bytes[k], memory_order_relaxed))
                continue;
            atomic_store(cut, true);
            void *page = (void *)(address & ~(page_size - 1));
            return mmap(page, page_size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
        }
    }
    return false;
}

static void handle(int number, siginfo_t *info, void *context) {
    int saved = errno;
    bool ours = info->si_code > 0 && replace_page((uintptr_t)info->si_addr);
    errno = saved;
    if (ours)
        return;
    void (*observer)(int, const siginfo_t *, void *) = atomic_load(&observed_by);
    if (observer)
        observer(number, info, context);
    struct sigaction action = next;
    if (action.sa_flags & SA_SIGINFO) {
        action.sa_sigaction(number, info, context);
    } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
        action.sa_handler(number);
    } else { /* the access repeats and meets the default action */
        atomic_store_explicit(&installed, false, memory_order_release);
        sigaction(number, &action, NULL);
        if (info->si_code <= 0) /* sent by a process, not raised by an access */
            raise(number);
    }
}

/* Installs our handler, again if the program has replaced it meanwhile. While `installed` is false,
 * a library that interposes sigaction() passes our call on to the C library. */
static void install(void) {
    struct sigaction now, action = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = handle;
    atomic_store_explicit(&installed, false, memory_order_release);
    if (sigaction(SIGBUS, NULL, &now) != 0)
        return;
    if (now.sa_sigaction != handle) {
        next = now;
        if (sigaction(SIGBUS, &action, NULL) != 0)
            return;
    }
    atomic_store_explicit(&installed, true, memory_order_release);
}

void bus_guard(const void *first, size_t first_bytes, const void *second, size_t second_bytes,
               atomic_bool *cut) {
    install();
    for (size_t i = 0; i < BUS_GUARDS; i++) {
        if (atomic_load(&guards[i].cut))
            continue;
        atomic_store(&guards[i].from[0], (uintptr_t)first);
        atomic_store(&guards[i].bytes[0], first_bytes);
        atomic_store(&guards[i].from[1], (uintptr_t)second);
        atomic_store(&guards[i].bytes[1], second_bytes);
        atomic_store_explicit(&guards[i].cut, cut, memory_order_release);
        return;
    }
}

void bus_unguard(const atomic_bool *cut) {
    for (size_t i = 0; i < BUS_GUARDS; i++)
        if (atomic_load(&guards[i].cut) == cut)
            atomic_store(&guards[i].cut, NULL);
}
