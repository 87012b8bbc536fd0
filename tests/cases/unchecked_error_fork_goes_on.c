/* The program forks after it has used HIP, and the child goes on as if HIP worked there: none of
 * its results is checked.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipMemset site=child; messenger hipDeviceSynchronize site=child */
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { BYTES = 1024 };

void child(void *memory) {
    (void)hipMemset(memory, 1, BYTES);
    (void)hipDeviceSynchronize();
}

int main(void) {
    void *memory;
    int status = 0;
    CHECK(hipMalloc(&memory, BYTES));
    CHECK(hipMemset(memory, 0, BYTES));
    CHECK(hipDeviceSynchronize());
    pid_t pid = fork();
    if (pid == 0) {
        if (BUG)
            child(memory);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    CHECK(hipFree(memory));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
