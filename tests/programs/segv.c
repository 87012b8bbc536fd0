/* Host code touches what it must not: segv WHERE [caught].
 * WHERE: device (live device memory), after and before (beside it), freed, null, or none; sent:
 * nothing is touched, the program sends itself the signal. caught: a handler of the program's gets
 * the signal, with the signals blocked that it asked for, and jumps out of it. */
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "program.h"

static sigjmp_buf back;

static void on_fault(int number) {
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    siglongjmp(back, sigismember(&blocked, SIGUSR1) && sigismember(&blocked, number) ? 1 : 2);
}

void touch(volatile char *p);
__attribute__((noinline)) void touch(volatile char *p) {
    *p = 1;
}

static volatile char *place(const char *where) {
    enum { BYTES = 1000, BESIDE = 8192 };
    char *device;
    CHECK(hipMalloc((void **)&device, BYTES));
    if (strcmp(where, "freed") == 0)
        CHECK(hipFree(device));
    if (strcmp(where, "after") == 0)
        return device + BYTES + BESIDE;
    if (strcmp(where, "before") == 0)
        return device - BESIDE;
    return strcmp(where, "null") == 0 ? (char *)16 : device + 10;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    volatile char *p = place(argv[1]);
    struct sigaction action = { .sa_handler = on_fault }, now;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    if (argc > 2)
        sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGSEGV, NULL, &now);
    if (argc > 2 && now.sa_handler != on_fault)
        return 3;
    int caught = sigsetjmp(back, 1);
    if (caught)
        printf("caught %d\n", caught);
    else if (strcmp(argv[1], "sent") == 0)
        raise(SIGSEGV);
    else if (strcmp(argv[1], "none") != 0)
        touch(p);
    return 0;
}
