/* host.c - threads for the program's host functions.
 *
 * A host function may block for as long as it likes, on something another host function or the main
 * program will do. So each one whose turn has come gets a thread at once: an idle one, else a new
 * one. Threads that have been idle for LINGER_S end. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "soft/runtime/host.h"
#include "soft/runtime/op.h"
#include "soft/runtime/start.h"
#include "soft/runtime/thread.h"

enum { LINGER_S = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER;
static struct soft_op *first, *last;
static unsigned waiting_ops, idle_threads;
static void (*run_op)(struct soft_op *op), (*complete_op)(struct soft_op *op);

static struct soft_op *take(void) {
    struct soft_op *op = first;
    if (op) {
        first = op->host_next;
        if (!first)
            last = NULL;
        waiting_ops--;
    }
    return op;
}

/* The next host function, or NULL when it is time to end. */
static struct soft_op *await_op(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LINGER_S;
    pthread_mutex_lock(&lock);
    idle_threads++;
    int r = 0;
    while (!first && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&come, &lock, &until);
    struct soft_op *op = take();
    idle_threads--;
    pthread_mutex_unlock(&lock);
    return op;
}

static void *host_main(void *unused) {
    (void)unused;
    for (struct soft_op *op; (op = await_op());) {
        run_op(op);
        if (soft_is_forked()) /* that function forked, and has returned in the child */
            return NULL;
        complete_op(op);
    }
    return NULL;
}

void soft_host_init(void (*run)(struct soft_op *op), void (*complete)(struct soft_op *op)) {
    run_op = run;
    complete_op = complete;
}

void soft_host_queue(struct soft_op *op) {
    pthread_mutex_lock(&lock);
    op->host_next = NULL;
    if (last)
        last->host_next = op;
    else
        first = op;
    last = op;
    waiting_ops++;
    bool enough = waiting_ops <= idle_threads;
    pthread_cond_signal(&come);
    pthread_mutex_unlock(&lock);
    /* No thread could be started: an existing one takes it when it has finished its own. */
    if (!enough)
        (void)soft_thread_start(host_main, NULL);
}
