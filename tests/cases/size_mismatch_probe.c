/* The program probes what the device can do: attributes, peers, managed memory, pointers of the
 * host, occupancy, IPC. Some of it is refused, which is an answer. Its bug is elsewhere: the
 * download counts its bytes in a wider type than the buffer has.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH;
 *         culprit hipMemcpy site=download; messenger hipMemcpy site=download */
#include "case.h"

enum { COUNT = 128 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

static double host[COUNT];

void probe(void *device) {
    int value = 0, blocks = 0, peer = 0;
    hipPointerAttribute_t what;
    hipIpcMemHandle_t handle;
    size_t unused, total;
    (void)hipDeviceGetAttribute(&value, hipDeviceAttributeManagedMemory, 0);
    (void)hipDeviceCanAccessPeer(&peer, 0, 0);
    if (hipPointerGetAttributes(&what, host) != hipSuccess)
        (void)hipGetLastError();
    (void)hipPointerGetAttributes(&what, device);
    if (hipIpcGetMemHandle(&handle, device) != hipSuccess)
        (void)hipGetLastError();
    if (hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &fill_stub, 64, 0) != hipSuccess)
        (void)hipGetLastError();
    CHECK(hipMemGetInfo(&unused, &total));
}

void download(void *device, size_t bytes) {
    CHECK(hipMemcpy(host, device, bytes, hipMemcpyDeviceToHost));
}

int main(void) {
    void *device;
    uint32_t count = COUNT;
    KERNEL_ENTER(fill);
    CHECK(hipMalloc(&device, COUNT * sizeof(float)));
    probe(device);
    CHECK(LAUNCH(fill, 1, NULL, &device, &count));
    CHECK(hipGetLastError());
    download(device, BUG ? sizeof host : COUNT * sizeof(float));
    CHECK(hipFree(device));
    return 0;
}
