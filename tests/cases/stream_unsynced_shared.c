/* Two processes share memory by an IPC handle. The parent sets it again without waiting until the
 * child has copied it out. How processes wait for each other is not followed, so that the race is
 * not found; but such a run is never CLEAN. The fixed program gives its handle to nobody.
 *
 * Expect: verdict FINDINGS|INCONCLUSIVE; hypothesis STREAM_UNSYNCED; culprit hipMemset site=main;
 *         messenger none */
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { BYTES = 4096 };

static int child(int from) {
    static char host[BYTES];
    hipIpcMemHandle_t handle;
    void *memory;
    if (read(from, &handle, sizeof handle) != sizeof handle)
        return 1;
    CHECK(hipIpcOpenMemHandle(&memory, handle, hipIpcMemLazyEnablePeerAccess));
    CHECK(hipMemcpy(host, memory, BYTES, hipMemcpyDeviceToHost));
    CHECK(hipIpcCloseMemHandle(memory));
    return 0;
}

int main(void) {
    int ends[2], status = 0;
    hipIpcMemHandle_t handle;
    void *memory;
    if (pipe(ends) != 0)
        return 1;
    pid_t pid = BUG ? fork() : 1; /* before the first HIP call: the child has HIP of its own */
    if (pid == 0)
        exit(child(ends[0]));
    CHECK(hipMalloc(&memory, BYTES));
    CHECK(hipMemset(memory, 1, BYTES));
    CHECK(hipIpcGetMemHandle(&handle, memory));
    if (BUG && write(ends[1], &handle, sizeof handle) != sizeof handle)
        return 1;
    CHECK(hipMemset(memory, 2, BYTES));
    if (BUG && waitpid(pid, &status, 0) != pid)
        return 1;
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(memory));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
