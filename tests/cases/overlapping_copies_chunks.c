/* Four streams copy the four quarters of a buffer; with the rounding the wrong way the quarters
 * overlap.
 *
 * Expect: verdict FINDINGS; hypothesis OVERLAPPING_COPIES; also STREAM_UNSYNCED;
 *         culprit hipMemcpyAsync site=split; messenger none
 * Run:    --watch-host */
#include "case.h"

enum { BYTES = 4 * 1000, PARTS = 4 };

static void *device;
static char *host;
static hipStream_t stream[PARTS];

void split(void) {
    const size_t part = BYTES / PARTS;
    for (int i = 0; i < PARTS; i++) {
        size_t bytes = BUG && i < PARTS - 1 ? (part + 63) / 64 * 64 : part;
        CHECK(hipMemcpyAsync((char *)device + i * part, host + i * part, bytes,
                             hipMemcpyHostToDevice, stream[i]));
    }
}

int main(void) {
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostMalloc((void **)&host, BYTES, 0));
    memset(host, 1, BYTES);
    for (int i = 0; i < PARTS; i++)
        CHECK(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
    split();
    for (int i = 0; i < PARTS; i++) {
        CHECK(hipStreamSynchronize(stream[i]));
        CHECK(hipStreamDestroy(stream[i]));
    }
    CHECK(hipFree(device));
    CHECK(hipHostFree(host));
    return 0;
}
