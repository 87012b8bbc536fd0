/* Four threads with a stream each copy, set, wait, allocate and free, without end and without a
 * bug; when they have made so many calls together, the program dies: crash abort|segv|kill CALLS.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

enum { THREADS = 4, BYTES = 4096 };

struct death {
    const char *how;
    unsigned long after;
};

static _Atomic unsigned long calls;

#define CALL(call)                                                                                 \
    do {                                                                                           \
        CHECK(call);                                                                               \
        atomic_fetch_add(&calls, 1);                                                               \
    } while (0)

static void *die(void *data) {
    const struct death *d = data;
    while (atomic_load(&calls) < d->after)
        usleep(10);
    if (strcmp(d->how, "abort") == 0)
        abort();
    if (strcmp(d->how, "kill") == 0)
        kill(getpid(), SIGKILL);
    uintptr_t nowhere = strlen(d->how); /* the compiler must not know */
    *(volatile int *)nowhere = 1;
    return NULL;
}

static void *work(void *unused) {
    hipStream_t stream;
    hipEvent_t event;
    void *pinned = NULL;
    CALL(hipStreamCreate(&stream));
    CALL(hipEventCreateWithFlags(&event, 0));
    CALL(hipHostMalloc(&pinned, BYTES, 0));
    memset(pinned, 1, BYTES);
    for (;;) {
        void *device = NULL;
        CALL(hipMalloc(&device, BYTES));
        CALL(hipMemcpyAsync(device, pinned, BYTES, hipMemcpyHostToDevice, stream));
        CALL(hipMemsetAsync(device, 2, BYTES / 2, stream));
        CALL(hipEventRecord(event, stream));
        CALL(hipEventSynchronize(event));
        CALL(hipMemcpyAsync(pinned, device, BYTES, hipMemcpyDeviceToHost, stream));
        CALL(hipStreamSynchronize(stream));
        CALL(hipFree(device));
    }
    return unused;
}

int main(int argc, char **argv) {
    static struct death death;
    pthread_t thread[THREADS + 1];
    if (argc < 3)
        return 2;
    death = (struct death){ argv[1], strtoul(argv[2], NULL, 10) };
    pthread_create(&thread[THREADS], NULL, die, &death);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, NULL);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
