/* Constructors run before main: one calls HIP on a thread of its own and one without. */
#include <pthread.h>

#include "program.h"

static void *before;

static void *thread_main(void *unused) {
    (void)unused;
    CHECK(hipMalloc(&before, 256));
    CHECK(hipMemset(before, 1, 256));
    return NULL;
}

void call_early(void) __attribute__((constructor(101)));
void call_early(void) {
    int count = 0;
    CHECK(hipGetDeviceCount(&count));
}

__attribute__((constructor(102))) static void start_early(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
        exit(1);
    pthread_join(thread, NULL);
}

int main(void) {
    unsigned char back[256];
    CHECK(hipMemcpy(back, before, sizeof back, hipMemcpyDeviceToHost));
    CHECK(hipFree(before));
    printf("first=%d\n", back[0]);
    return 0;
}
