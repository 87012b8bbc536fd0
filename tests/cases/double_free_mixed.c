/* Memory that was freed in the order of a stream is freed again by hipFree.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis DOUBLE_FREE; culprit hipFree site=main;
 *         messenger hipFree site=main */
#include "case.h"

int main(void) {
    void *memory;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMallocAsync(&memory, 333, stream));
    CHECK(hipMemsetAsync(memory, 0, 333, stream));
    CHECK(hipFreeAsync(memory, stream));
    CHECK(hipStreamSynchronize(stream));
    if (BUG)
        CHECK(hipFree(memory));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
