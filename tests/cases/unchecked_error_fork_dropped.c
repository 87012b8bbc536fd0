/* The program forks after it has used HIP. The child's only call fails, and it does not look at the
 * result.
 *
 * Expect: verdict FINDINGS; hypothesis UNCHECKED_ERROR; culprit hipMemcpy site=child; messenger
 *         none */
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { BYTES = 4096 };

int child(void *memory) {
    static char host[BYTES];
#if BUG
    (void)hipMemcpy(host, memory, BYTES, hipMemcpyDeviceToHost);
#else
    if (hipMemcpy(host, memory, BYTES, hipMemcpyDeviceToHost) != hipSuccess)
        fprintf(stderr, "child: %s\n", hipGetErrorString(hipGetLastError()));
#endif
    return 0;
}

int main(void) {
    void *memory;
    int status = 0;
    CHECK(hipMalloc(&memory, BYTES));
    CHECK(hipMemset(memory, 0, BYTES));
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(memory));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(memory));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
