/* A program of hipcc registers its kernels before main(), which does not initialise HIP. Its child
 * may use HIP, unless the parent has made another call before: then the child's allocation fails.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR; also INVALID_POINTER; findings 2;
 *         culprit hipMalloc site=child; messenger hipMemset site=child */
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { BYTES = 4096 };

void **__hipRegisterFatBinary(const void *data);

int child(void) {
    void *memory = NULL;
    (void)hipMalloc(&memory, BYTES);
    if (hipMemset(memory, 0, BYTES) != hipSuccess)
        return 1;
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(memory));
    return 0;
}

int main(void) {
    int count, status = 0;
    (void)__hipRegisterFatBinary(NULL); /* as the compiler's constructor does */
    if (BUG)
        CHECK(hipGetDeviceCount(&count));
    pid_t pid = fork();
    if (pid == 0)
        exit(child());
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
