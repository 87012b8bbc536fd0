/* Two streams, the second reads what the first writes; nothing orders them, unless the argument
 * says `fixed`. Ends with 1 if the old bytes were read: that depends on the schedule. */
#include <string.h>

#include "program.h"

enum { BYTES = 4096 };

int main(int argc, char **argv) {
    int fixed = argc > 1 && strcmp(argv[1], "fixed") == 0;
    static unsigned char host[BYTES];
    void *device;
    hipStream_t writer, reader;
    hipEvent_t written;
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipStreamCreateWithFlags(&writer, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&reader, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&written, hipEventDisableTiming));
    CHECK(hipMemset(device, 1, BYTES));
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemsetAsync(device, 2, BYTES, writer));
    CHECK(hipEventRecord(written, writer));
    if (fixed)
        CHECK(hipStreamWaitEvent(reader, written, 0));
    CHECK(hipMemcpyAsync(host, device, BYTES, hipMemcpyDeviceToHost, reader));
    CHECK(hipStreamSynchronize(reader));
    CHECK(hipStreamSynchronize(writer));
    int last = host[BYTES - 1];
    printf("last=%d\n", last);
    CHECK(hipEventDestroy(written));
    CHECK(hipStreamDestroy(reader));
    CHECK(hipStreamDestroy(writer));
    CHECK(hipFree(device));
    return last == 2 ? 0 : 1;
}
