/* Downloads into registered memory, one after the other; the host writes a byte of each while it
 * may be under way: rounds N. */
#include <sys/mman.h>

#include "program.h"

enum { BYTES = 1 << 20 };

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    hipStream_t stream;
    void *device;
    char *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMemset(device, 9, BYTES));
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostRegister(host, BYTES, 0));
    for (int i = 0; i < rounds; i++) {
        CHECK(hipMemcpyAsync(host, device, BYTES, hipMemcpyDeviceToHost, stream));
        for (volatile int wait = 0; wait < i * 100; wait++)
            ; /* so that it comes at another moment of the copy each time */
        host[BYTES / 2] = 1;
        CHECK(hipStreamSynchronize(stream));
    }
    CHECK(hipHostUnregister(host));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
