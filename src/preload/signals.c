#include "preload/signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "preload/crash.h"
#include "preload/next.h"
#include "preload/preload.h"
#include "preload/watch.h"
#include "record/bus.h"

/* The program's actions for SIGSEGV and SIGTRAP, for signals that are not ours. */
static struct sigaction next_action[2];
static atomic_bool taken[2];

/* The program's action, which follows our handler; NULL if we do not handle the signal. */
static struct sigaction *behind(int number) {
    if (number == SIGBUS)
        return bus_next();
    bool ours = number == SIGSEGV || number == SIGTRAP;
    return ours && atomic_load_explicit(&taken[number == SIGTRAP], memory_order_acquire)
               ? &next_action[number == SIGTRAP]
               : NULL;
}

static bool is_function(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

bool signals_are_handled(int number) {
    const struct sigaction *action = behind(number);
    if (!action || !is_function(action))
        return false;
    /* A handler of the runtime's usually ends in the default action. */
    return !preload_is_internal((const void *)(uintptr_t)action->sa_handler);
}

/* Calls the program's handler as the system would: with the signals blocked that it asked for. */
static void call_next(int number, siginfo_t *info, void *context) {
    struct sigaction *mine = behind(number), action = *mine;
    sigset_t blocked = action.sa_mask;
    if (!(action.sa_flags & SA_NODEFER))
        sigaddset(&blocked, number);
    if (action.sa_flags & (int)SA_RESETHAND)
        *mine = (struct sigaction){ .sa_handler = SIG_DFL };
    pthread_sigmask(SIG_BLOCK, &blocked, NULL); /* ends with the return from our handler */
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

static void pass_on(int number, siginfo_t *info, void *context) {
    struct sigaction *mine = behind(number);
    bool sent = info->si_code <= 0; /* by a process: no access repeats */
    if (is_function(mine)) {
        call_next(number, info, context);
    } else if (!sent || mine->sa_handler == SIG_DFL) { /* the default action */
        struct sigaction action = *mine;
        atomic_store_explicit(&taken[number == SIGTRAP], false, memory_order_release);
        NEXT(sigaction)(number, &action, NULL);
        if (sent)
            raise(number);
    }
}

static void on_fault(int number, siginfo_t *info, void *context) {
    if (watch_on_fault(info, context))
        return;
    crash_note(number, info, context);
    pass_on(number, info, context);
}

static void on_trap(int number, siginfo_t *info, void *context) {
    if (!watch_on_step(context))
        pass_on(number, info, context);
}

static void take(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = handler;
    if (NEXT(sigaction)(number, &action, &next_action[number == SIGTRAP]) == 0)
        atomic_store_explicit(&taken[number == SIGTRAP], true, memory_order_release);
}

void signals_start(bool watch) {
    take(SIGSEGV, on_fault);
    if (watch)
        take(SIGTRAP, on_trap);
    bus_observe(crash_note);
}

/* ---- what the program calls ------------------------------------------------------------------ */

PRELOAD_EXPORT int sigaction(int number, const struct sigaction *restrict action,
                             struct sigaction *restrict old) {
    struct sigaction *mine = behind(number);
    if (!mine)
        return NEXT(sigaction)(number, action, old);
    struct sigaction now = *mine;
    if (action)
        *mine = *action;
    if (old)
        *old = now;
    return 0;
}

PRELOAD_EXPORT __sighandler_t signal(int number, __sighandler_t handler) {
    struct sigaction *mine = behind(number);
    if (!mine)
        return NEXT(signal)(number, handler);
    __sighandler_t old = mine->sa_handler;
    *mine = (struct sigaction){ .sa_handler = handler, .sa_flags = SA_RESTART };
    return old;
}
