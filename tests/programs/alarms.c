/* Signal handlers call HIP while the first call starts the runtime, and children are forked among
 * threads that start. Ends with 0; a thread that waits for itself would never end. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

static volatile sig_atomic_t handled;

static void handler(int number) {
    int count = 0;
    (void)number;
    (void)hipGetDeviceCount(&count);
    (void)hipPeekAtLastError();
    handled = 1;
}

static void *first_call(void *unused) {
    int count = 0;
    CHECK(hipGetDeviceCount(&count));
    return unused;
}

int main(int argc, char **argv) {
    enum { THREADS = 4, FORKS = 20 };
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
    pthread_t thread[THREADS];
    (void)argv;
    sigaction(SIGALRM, &action, NULL);
    if (argc < 2)
        setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, first_call, NULL) != 0)
            return 1;
    for (int i = 0; argc > 1 && i < FORKS; i++) {
        pid_t child = fork();
        int status = 0;
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    void *memory;
    CHECK(hipMalloc(&memory, 64));
    CHECK(hipFree(memory));
    return 0;
}
