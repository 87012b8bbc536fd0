/* fork: a child uses HIP too. exec: a child is another program. alone: no child. leak: memory
 * stays. replace: this program makes way for another. chain N: every one of N programs is started
 * by the one before. quick: ends by quick_exit. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

static void work(const char *who) {
    void *device = NULL;
    CHECK(hipMalloc(&device, 128));
    CHECK(hipMemset(device, 0, 128));
    CHECK(hipFree(device));
    printf("%s\n", who);
    fflush(stdout);
}

static void leak(void) {
    void *device = NULL;
    CHECK(hipMalloc(&device, 4096));
    printf("leak\n");
}

/* Runs this program again with other arguments; as a child, or in place of this one. */
static int again(char **argv, const char *how, const char *more, int child) {
    int status = 0;
    pid_t pid = child ? fork() : 0;
    if (pid == 0) {
        execl(argv[0], argv[0], how, more, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

static int chain(char **argv, int left) {
    char more[16];
    int status = 0;
    work("link");
    snprintf(more, sizeof more, "%d", left - 1);
    if (left > 1)
        status = again(argv, "chain", more, 1);
    work("back");
    return status;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int status = 0;
    if (strcmp(how, "alone") == 0) {
        work("alone");
        return 0;
    }
    if (strcmp(how, "leak") == 0) {
        leak();
        return 0;
    }
    if (strcmp(how, "chain") == 0)
        return chain(argv, argc > 2 ? atoi(argv[2]) : 3);
    if (strcmp(how, "replace") == 0) {
        work("first");
        return again(argv, "alone", NULL, 0);
    }
    if (strcmp(how, "quick") == 0) {
        work("quick");
        quick_exit(4);
    }
    if (strcmp(how, "exec") == 0) /* only the child's children call HIP here, and this one after */
        if (fork() == 0)
            return execl(argv[0], argv[0], "alone", (char *)NULL);
    if (strcmp(how, "fork") == 0) {
        int count = 0;
        if (fork() == 0) { /* before the first call: HIP cannot be used on both sides of a fork */
            CHECK(hipGetDeviceCount(&count));
            printf("child\n");
            fflush(stdout);
            if (argc > 2) /* as children do that do not want their parent's exit handlers */
                _exit(0);
            return 0;
        }
        CHECK(hipGetDeviceCount(&count));
    }
    wait(&status);
    work("parent");
    return WEXITSTATUS(status);
}
