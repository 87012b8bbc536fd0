/* Four threads with a stream each copy, set, wait, allocate and free, without end and without a
 * bug; after so many microseconds the program dies: crash abort|segv|kill MICROSECONDS. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

enum { THREADS = 4, BYTES = 4096 };

struct death {
    const char *how;
    useconds_t after;
};

static void *die(void *data) {
    const struct death *d = data;
    usleep(d->after);
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
    CHECK(hipStreamCreate(&stream));
    CHECK(hipEventCreateWithFlags(&event, 0));
    CHECK(hipHostMalloc(&pinned, BYTES, 0));
    memset(pinned, 1, BYTES);
    for (;;) {
        void *device = NULL;
        CHECK(hipMalloc(&device, BYTES));
        CHECK(hipMemcpyAsync(device, pinned, BYTES, hipMemcpyHostToDevice, stream));
        CHECK(hipMemsetAsync(device, 2, BYTES / 2, stream));
        CHECK(hipEventRecord(event, stream));
        CHECK(hipEventSynchronize(event));
        CHECK(hipMemcpyAsync(pinned, device, BYTES, hipMemcpyDeviceToHost, stream));
        CHECK(hipStreamSynchronize(stream));
        CHECK(hipFree(device));
    }
    return unused;
}

int main(int argc, char **argv) {
    static struct death death;
    pthread_t thread[THREADS + 1];
    if (argc < 3)
        return 2;
    death = (struct death){ argv[1], (useconds_t)atoi(argv[2]) };
    pthread_create(&thread[THREADS], NULL, die, &death);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, NULL);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
