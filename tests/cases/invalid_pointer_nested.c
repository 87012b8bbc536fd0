/* A structure is copied to the device, and the array it points to is not: the kernel follows a host
 * pointer that no argument of the launch shows.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis INVALID_POINTER; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=use site=launch; messenger hipMemcpy site=main */
#include "case.h"

enum { COUNT = 256 };

struct vector {
    uint32_t count;
    float *data;
};

KERNEL(use, { "v", 8, GRETA_SOFT_POINTER }, { "out", 8, GRETA_SOFT_POINTER }) {
    const struct vector *v = ARG(const struct vector *, 0);
    uint64_t at = (uint64_t)(uintptr_t)v->data;
    /* Host code could read this memory, but a kernel must not: the address becomes one that faults.
     */
    const float *data = at - work->device_base < work->device_span
                            ? greta_soft_reach(work, v->data)
                            : (const float *)(uintptr_t)(0x100000000000 + at % 4096);
    float total = 0;
    for (uint32_t i = 0; work->first == 0 && i < v->count; i++)
        total += data[i];
    *ARG(float *, 1) = total;
}

void launch(void *vector, void *out) {
    CHECK(LAUNCH(use, 1, NULL, &vector, &out));
}

int main(void) {
    static float host[COUNT], result;
    void *data, *vector, *out;
    KERNEL_ENTER(use);
    CHECK(hipMalloc(&data, sizeof host));
    CHECK(hipMalloc(&vector, sizeof(struct vector)));
    CHECK(hipMalloc(&out, sizeof result));
    CHECK(hipMemcpy(data, host, sizeof host, hipMemcpyHostToDevice));
    struct vector v = { COUNT, BUG ? host : data };
    CHECK(hipMemcpy(vector, &v, sizeof v, hipMemcpyHostToDevice));
    launch(vector, out);
    CHECK(hipMemcpy(&result, out, sizeof result, hipMemcpyDeviceToHost));
    CHECK(hipFree(out));
    CHECK(hipFree(vector));
    CHECK(hipFree(data));
    return 0;
}
