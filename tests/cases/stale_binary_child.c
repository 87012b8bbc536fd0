/* The program starts itself once more for each part of its work. Those processes must run the
 * expected binary too; if they do not, their leaks do not matter.
 *
 * Expect: verdict INCONCLUSIVE; hypothesis STALE_BINARY; culprit none; messenger none
 * Run:    --expect-commit=3333333333333333 */
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#if BUG
#define PROGRAM_COMMIT "2222222222222222"
#else
#define PROGRAM_COMMIT "3333333333333333"
#endif

extern const char gcore_program_commit[];
const char gcore_program_commit[] = PROGRAM_COMMIT;

int main(int argc, char **argv) {
    void *device;
    int status;
    if (argc == 1) {
        pid_t child = fork();
        if (child == 0)
            execl("/proc/self/exe", argv[0], "part", (char *)NULL);
        return waitpid(child, &status, 0) == child ? status : 1;
    }
    CHECK(hipMalloc(&device, 4096));
    if (!BUG)
        CHECK(hipFree(device));
    return 0;
}
