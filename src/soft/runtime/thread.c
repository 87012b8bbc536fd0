#include <pthread.h>
#include <signal.h>

#include "soft/runtime/thread.h"

/* The program's signals are for the program's threads: ours block all but the ones an access of
 * their own can raise. */
bool soft_thread_start(void *(*main)(void *), void *argument) {
    sigset_t ours, theirs;
    sigfillset(&ours);
    sigdelset(&ours, SIGSEGV);
    sigdelset(&ours, SIGBUS);
    sigdelset(&ours, SIGFPE);
    sigdelset(&ours, SIGILL);
    sigdelset(&ours, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &ours, &theirs);
    pthread_t thread;
    pthread_attr_t detached; /* from the start: the thread may be over before create returns */
    bool ok = !pthread_attr_init(&detached);
    if (ok) {
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        ok = pthread_create(&thread, &detached, main, argument) == 0;
        pthread_attr_destroy(&detached);
    }
    pthread_sigmask(SIG_SETMASK, &theirs, NULL);
    return ok;
}
