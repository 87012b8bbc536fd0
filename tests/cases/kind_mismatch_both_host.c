/* Both pointers are the host's, because the device's was never used: the copy says otherwise and is
 * refused.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis KIND_MISMATCH; culprit hipMemcpy site=download;
 *         messenger hipMemcpy site=download */
#include "case.h"

enum { COUNT = 600 };

void download(float *to, const void *from) {
    CHECK(hipMemcpy(to, from, COUNT * sizeof(float), hipMemcpyDeviceToHost));
}

int main(void) {
    float *in = calloc(COUNT, sizeof *in), *out = calloc(COUNT, sizeof *out);
    void *device;
    CHECK(hipMalloc(&device, COUNT * sizeof *in));
    CHECK(hipMemcpy(device, in, COUNT * sizeof *in, hipMemcpyHostToDevice));
    download(out, BUG ? (void *)in : device);
    CHECK(hipFree(device));
    free(in);
    free(out);
    return 0;
}
