/* fork: a child goes on with HIP. exec: a child is another program. spawn: a shell runs two. */
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

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int status = 0;
    if (strcmp(how, "alone") == 0) {
        work("alone");
        return 0;
    }
    if (strcmp(how, "exec") == 0) /* only the child's children call HIP here, and this one after */
        if (fork() == 0)
            return execl(argv[0], argv[0], "alone", (char *)NULL);
    if (strcmp(how, "fork") == 0) {
        int count = 0;
        CHECK(hipGetDeviceCount(&count));
        if (fork() == 0) {
            CHECK(hipGetDeviceCount(&count));
            printf("child\n");
            return 0;
        }
    }
    wait(&status);
    work("parent");
    return WEXITSTATUS(status);
}
