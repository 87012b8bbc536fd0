/* Two threads meet at a barrier before one uses what the other has filled. The second of them to
 * come there comes after the first, too.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#include <sched.h>
#include <stdatomic.h>

#include "case_relay.h"

static pthread_barrier_t barrier;
static atomic_int is_there;

static void hand_over(void) {
    atomic_store(&is_there, 1);
    pthread_barrier_wait(&barrier);
}

/* Comes last, and has news of its own. */
static void take_over(void) {
    CHECK(hipMemsetAsync(out, 0, sizeof(float), second));
    while (!atomic_load(&is_there))
        sched_yield();
    pthread_barrier_wait(&barrier);
}

int main(void) {
    pthread_barrier_init(&barrier, NULL, 2);
    int status = relay();
    pthread_barrier_destroy(&barrier);
    return status;
}
