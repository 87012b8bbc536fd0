/* Every request makes a memory pool of its own and frees the memory, but not the pool.
 *
 * Expect: verdict FINDINGS; hypothesis RESOURCE_LEAK;
 *         culprit hipMemPoolCreate site=serve; messenger none */
#include "case.h"

void serve(size_t bytes) {
    const hipMemPoolProps props = { .allocType = hipMemAllocationTypePinned,
                                    .location = { .type = hipMemLocationTypeDevice } };
    hipMemPool_t pool;
    void *memory;
    CHECK(hipMemPoolCreate(&pool, &props));
    CHECK(hipMallocFromPoolAsync(&memory, bytes, pool, NULL));
    CHECK(hipMemsetAsync(memory, 0, bytes, NULL));
    CHECK(hipFreeAsync(memory, NULL));
    CHECK(hipStreamSynchronize(NULL));
    if (!BUG)
        CHECK(hipMemPoolDestroy(pool));
}

int main(void) {
    for (int i = 0; i < 3; i++)
        serve(4096);
    return 0;
}
