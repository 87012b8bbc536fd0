/* Two threads hand device memory to each other: by a semaphore, by a mutex, by a join. */
#include <pthread.h>
#include <semaphore.h>

#include "program.h"

static sem_t filled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *device;

static void *fill(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    CHECK(hipMalloc(&device, 4096));
    pthread_mutex_unlock(&lock);
    CHECK(hipMemset(device, 3, 4096));
    CHECK(hipDeviceSynchronize());
    sem_post(&filled);
    CHECK(hipDeviceSynchronize());
    return NULL;
}

int main(void) {
    pthread_t thread;
    unsigned char back[16];
    CHECK(hipInit(0));
    sem_init(&filled, 0, 0);
    if (pthread_create(&thread, NULL, fill, NULL) != 0)
        return 1;
    sem_wait(&filled);
    CHECK(hipMemcpy(back, device, sizeof back, hipMemcpyDeviceToHost));
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    CHECK(hipFree(device));
    for (int i = 0; i < 1000; i++) { /* a busy lock without news */
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    printf("first=%d\n", back[0]);
    return 0;
}
