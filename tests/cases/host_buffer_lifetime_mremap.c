/* A registered mapping grows with mremap, and may move, while the upload from it may still run.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis HOST_BUFFER_LIFETIME;
 *         also UPSTREAM_KERNEL_FAULT?; culprit hipMemcpyAsync site=upload;
 *         messenger none or hipStreamSynchronize
 * Run:    --watch-host */
#include <sys/mman.h>

#include "case.h"

enum { BYTES = 256 << 10 };

void upload(void *device, const void *host, hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
}

int main(void) {
    hipStream_t stream;
    void *device;
    char *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED)
        return 1;
    memset(host, 1, BYTES);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostRegister(host, BYTES, hipHostRegisterDefault));
    upload(device, host, stream);
    if (!BUG) {
        CHECK(hipStreamSynchronize(stream));
        CHECK(hipHostUnregister(host));
    }
    char *more = mremap(host, BYTES, 4 * BYTES, MREMAP_MAYMOVE);
    if (more == MAP_FAILED)
        return 1;
    CHECK(hipStreamSynchronize(stream));
    munmap(more, 4 * BYTES);
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
