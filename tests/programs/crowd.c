/* Many threads make the program's first HIP call at the same moment; forks happen in between. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

enum { THREADS = 16 };
static pthread_barrier_t start;

static void *call(void *data) {
    void *memory = NULL;
    pthread_barrier_wait(&start);
    if (data) { /* one of them forks while the others make their first call */
        pid_t child = fork();
        if (child == 0) {
            int count = 0;
            hipError_t r = hipGetDeviceCount(&count); /* which of the two depends on the moment */
            _exit((r == hipSuccess && count > 0) || r == hipErrorNotInitialized ? 0 : 1);
        }
        int status = 1;
        waitpid(child, &status, 0);
        if (status != 0)
            printf("the child failed\n");
        return NULL;
    }
    CHECK(hipMalloc(&memory, 64));
    CHECK(hipFree(memory));
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread[THREADS];
    static int forks;
    (void)argv;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, call, i == 7 && argc > 1 ? &forks : NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("done\n");
    return 0;
}
