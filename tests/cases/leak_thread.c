/* A thread keeps its managed memory when it ends.
 *
 * Expect: verdict FINDINGS; hypothesis LEAK;
 *         culprit hipMallocManaged site=work; messenger none */
#include <pthread.h>

#include "case.h"

void *work(void *unused) {
    int *mine;
    CHECK(hipMallocManaged((void **)&mine, 64 * sizeof *mine, hipMemAttachGlobal));
    mine[0] = 1;
    if (!BUG)
        CHECK(hipFree(mine));
    return unused;
}

int main(void) {
    pthread_t thread;
    CHECK(hipSetDevice(0));
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    return 0;
}
