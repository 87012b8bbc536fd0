/* The offset of a slot is in bytes already; added to a float pointer it is multiplied by four
 * again.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; culprit hipMemcpyAsync site=store;
 *         messenger hipMemcpyAsync site=store
 * Run:    --watch-host */
#include "case.h"

enum { SLOTS = 8, SLOT = 256 };

void store(float *cache, size_t slot, const float *host, hipStream_t stream) {
    size_t offset = slot * SLOT * sizeof(float);
    void *at = BUG ? (void *)(cache + offset) : (void *)((char *)cache + offset);
    CHECK(hipMemcpyAsync(at, host, SLOT * sizeof(float), hipMemcpyHostToDevice, stream));
}

int main(void) {
    void *cache, *host;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&cache, SLOTS * SLOT * sizeof(float)));
    CHECK(hipHostMalloc(&host, SLOT * sizeof(float), 0));
    memset(host, 0, SLOT * sizeof(float));
    for (size_t slot = 0; slot < SLOTS; slot++)
        store(cache, slot, host, stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipHostFree(host));
    CHECK(hipFree(cache));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
