/* Memory from a pool is there in the order of the stream that asked for it; another stream uses it
 * at once.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis STREAM_UNSYNCED; also UPSTREAM_KERNEL_FAULT?;
 *         culprit hipMemsetAsync site=clear; messenger none or hipDeviceSynchronize */
#include "case.h"

enum { BYTES = 8192 };

void clear(void *memory, hipStream_t stream) {
    CHECK(hipMemsetAsync(memory, 0, BYTES, stream));
}

int main(void) {
    hipStream_t owner, user;
    hipEvent_t there, done;
    void *memory;
    CHECK(hipStreamCreate(&owner));
    CHECK(hipStreamCreate(&user));
    CHECK(hipEventCreate(&there));
    CHECK(hipEventCreate(&done));
    CHECK(hipMallocAsync(&memory, BYTES, owner));
    CHECK(hipEventRecord(there, owner));
    if (BUG) /* waits for the wrong stream */
        CHECK(hipStreamSynchronize(user));
    else
        CHECK(hipStreamWaitEvent(user, there, 0));
    clear(memory, user);
    CHECK(hipEventRecord(done, user));
    CHECK(hipStreamWaitEvent(owner, done, 0));
    CHECK(hipFreeAsync(memory, owner));
    CHECK(hipDeviceSynchronize());
    CHECK(hipEventDestroy(there));
    CHECK(hipEventDestroy(done));
    CHECK(hipStreamDestroy(owner));
    CHECK(hipStreamDestroy(user));
    return 0;
}
