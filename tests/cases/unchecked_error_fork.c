/* The program forks after it has used HIP. The child's calls fail, at once and without hanging, and
 * the child goes on with the null pointer that its allocation left.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR; also INVALID_POINTER; findings 2;
 *         culprit hipMalloc site=child; messenger hipMemset site=child */
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { BYTES = 4096 };

int child(void) {
    void *memory = NULL;
    hipError_t result = hipMalloc(&memory, BYTES);
    if (result != hipSuccess && !BUG) { /* HIP does not survive a fork: the child does without it */
        fprintf(stderr, "child: %s\n", hipGetErrorString(result));
        return 0;
    }
    return hipMemset(memory, 0, BYTES) != hipSuccess;
}

int main(void) {
    void *memory;
    int status = 0;
    CHECK(hipMalloc(&memory, BYTES));
    CHECK(hipMemset(memory, 0, BYTES));
    pid_t pid = fork();
    if (pid == 0)
        _exit(child());
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(memory));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
