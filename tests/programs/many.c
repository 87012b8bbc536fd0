/* Much memory that host and device share, and host functions that run while it is there:
 * many BLOCKS FUNCTIONS. Nothing is wrong with it. */
#include "program.h"

enum { BYTES = 4096, BLOCKS_MAX = 1000 };

static void count(void *data) {
    ++*(int *)data;
}

int main(int argc, char **argv) {
    static void *block[BLOCKS_MAX];
    int blocks = argc > 1 ? atoi(argv[1]) : 1, functions = argc > 2 ? atoi(argv[2]) : 1, ran = 0;
    hipStream_t stream;
    void *device;
    if (blocks > BLOCKS_MAX)
        return 2;
    CHECK(hipStreamCreate(&stream));
    for (int i = 0; i < blocks; i++)
        CHECK(hipHostMalloc(&block[i], BYTES, 0));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMemcpyAsync(device, block[0], BYTES, hipMemcpyHostToDevice, stream));
    for (int i = 0; i < functions; i++)
        CHECK(hipLaunchHostFunc(stream, count, &ran));
    CHECK(hipStreamSynchronize(stream));
    for (int i = 0; i < blocks; i++)
        CHECK(hipHostFree(block[i]));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    printf("%d\n", ran);
    return ran != functions;
}
