/* forks COUNT [late]: forks among threads that begin to use HIP, or that use it all the time:
 * copies into pinned memory, frees under way, locks, new threads. No child may hang, whatever
 * another thread was in the middle of; each uses the heap, a lock, a file and HIP, on the parent's
 * objects too, and ends by _exit, exit or another program. A child that takes 60 s hangs. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

enum { WORKERS = 3, SIZE = 8192, USED = 64, LIMIT_SECONDS = 60 };

static atomic_bool stop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct work {
    pthread_t thread;
    hipStream_t stream;
    hipEvent_t event;
    void *device;
    unsigned char *pinned;
} works[WORKERS];

static void *work(void *data) {
    struct work *w = data;
    CHECK(hipStreamCreate(&w->stream));
    CHECK(hipEventCreate(&w->event));
    CHECK(hipMalloc(&w->device, SIZE));
    CHECK(hipMemset(w->device, 1, SIZE));
    CHECK(hipHostMalloc((void **)&w->pinned, SIZE, 0));
    for (unsigned n = 0; !stop; n++) {
        void *block = malloc(5000 + n % 3000);
        CHECK(hipMemcpyAsync(w->pinned, w->device, USED, hipMemcpyDeviceToHost, w->stream));
        CHECK(hipMemcpyAsync(block, w->device, USED, hipMemcpyDeviceToHost, w->stream));
        CHECK(hipEventRecord(w->event, w->stream));
        *(volatile unsigned char *)(w->pinned + SIZE / 4) = 1; /* beside what is copied */
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        CHECK(hipStreamSynchronize(w->stream));
        free(block);
    }
    CHECK(hipHostFree(w->pinned));
    CHECK(hipFree(w->device));
    CHECK(hipEventDestroy(w->event));
    CHECK(hipStreamDestroy(w->stream));
    return NULL;
}

static void *nothing(void *block) {
    free(block);
    return NULL;
}

static void *begin_threads(void *unused) {
    while (!stop) {
        pthread_t t;
        int n;
        CHECK(hipGetDeviceCount(&n));
        if (pthread_create(&t, NULL, nothing, malloc(100)) == 0)
            pthread_join(t, NULL);
    }
    return unused;
}

/* What HIP answers is its business; that it answers is ours. */
static void use_hip(const struct work *w) {
    int n;
    (void)!hipGetDeviceCount(&n);
    (void)!hipMemcpyAsync(w->pinned, w->device, USED, hipMemcpyDeviceToHost, w->stream);
    (void)!hipEventRecord(w->event, w->stream);
    (void)!hipEventSynchronize(w->event);
    (void)!hipStreamSynchronize(w->stream);
    (void)!hipFree(w->device);
    (void)!hipDeviceSynchronize();
}

static void child(int n, int late) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    struct work w = works[n % WORKERS];
    alarm(LIMIT_SECONDS);
    for (size_t k = 0; k < 50; k++) {
        char *block = malloc(4000 + 100 * k);
        memset(block, 1, 4000);
        free(block);
    }
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    if (late) {
        w.pinned[0] = w.pinned[SIZE / 4];
        if (n % 2)
            use_hip(&w);
    }
    FILE *f = fopen("/dev/null", "w");
    if (!f || fputs("x", f) < 0 || fclose(f) != 0)
        _exit(1);
    if (n % 5 == 0)
        execl("/bin/true", "true", (char *)NULL);
    if (n % 7 == 0)
        exit(0);
    _exit(0);
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1, late = argc > 2, hung = 0, failed = 0;
    pthread_t starter;
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&works[i].thread, NULL, work, &works[i]);
    pthread_create(&starter, NULL, begin_threads, NULL);
    if (late)
        usleep(300000);
    for (int i = 0; i < WORKERS && late; i++)
        while (!*(unsigned char *volatile *)&works[i].pinned)
            usleep(1000);
    for (int i = 0; i < count; i++) {
        int status;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            child(i, late);
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            return 99;
        bool stuck = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        hung += stuck;
        failed += status != 0 && !stuck;
    }
    stop = true;
    for (int i = 0; i < WORKERS; i++)
        pthread_join(works[i].thread, NULL);
    pthread_join(starter, NULL);
    printf("%d forks, %d hung, %d failed\n", count, hung, failed);
    return hung || failed;
}
