/* Ends in the middle of things, as the first argument says: abort, segv, kill, exit, handler. The
 * last has a handler for SIGSEGV of its own, and calls HIP in it. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

static void *device;

static void handle(int number) {
    int count = 0;
    (void)number;
    _exit(hipGetDeviceCount(&count) == hipSuccess && count > 0 ? 42 : 43);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    CHECK(hipMalloc(&device, 1024));
    CHECK(hipMemset(device, 0, 1024));
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "exit") == 0)
        _exit(5);
    if (strcmp(how, "handler") == 0)
        signal(SIGSEGV, handle);
    if (strcmp(how, "wait") == 0)
        for (;;)
            pause();
    *(volatile int *)device = 1; /* device memory is not the host's */
    return 0;
}
