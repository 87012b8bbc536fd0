/* The source of a captured upload is freed after the capture; the replay reads it.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis HOST_BUFFER_LIFETIME;
 *         also UPSTREAM_KERNEL_FAULT? INVALID_POINTER?; culprit hipMemcpyAsync site=upload;
 *         messenger none or hipStreamSynchronize */
#include "case_graph.h"

enum { BYTES = 64 << 10 };

static char *source;
static void *device;

void upload(hipStream_t stream) {
    CHECK(hipMemcpyAsync(device, source, BYTES, hipMemcpyHostToDevice, stream));
}

int main(void) {
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    source = malloc(BYTES);
    if (!source)
        return 1;
    memset(source, 1, BYTES);
    hipGraphExec_t exec = make_exec(stream, upload);
    if (BUG)
        free(source);
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    if (!BUG)
        free(source);
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
