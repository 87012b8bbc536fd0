#include <pthread.h>
#include <signal.h>

#include "soft/runtime/soft.h"

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
    bool ok = pthread_create(&thread, NULL, main, argument) == 0;
    if (ok)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &theirs, NULL);
    return ok;
}
