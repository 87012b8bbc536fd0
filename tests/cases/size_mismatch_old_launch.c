/* A program of the compiler before clang, which launches by a C++ function of the runtime, gives a
 * kernel more elements than its buffer has.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; also UPSTREAM_KERNEL_FAULT;
 *         culprit kernel=fill argument=out site=launch; messenger hipDeviceSynchronize site=main */
#include "case.h"

enum { COUNT = 1024 };

/* hip_impl::hipLaunchKernelGGLImpl(unsigned long, dim3 const&, dim3 const&, unsigned int,
 * ihipStream_t*, void**) */
extern void launch_by_reference(
    uintptr_t function, const dim3 *grid, const dim3 *block, uint32_t shared_bytes,
    hipStream_t stream,
    void **extra) __asm__("_ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv");

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = 1;
}

void launch(float *out, uint32_t count) {
    const dim3 grid = { 1, 1, 1 }, block = { 64, 1, 1 };
    struct {
        float *out;
        uint32_t count;
    } arguments = { out, count };
    size_t bytes = sizeof arguments;
    void *extra[] = { HIP_LAUNCH_PARAM_BUFFER_POINTER, &arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE,
                      &bytes, HIP_LAUNCH_PARAM_END };
    launch_by_reference((uintptr_t)&fill_stub, &grid, &block, 0, NULL, extra);
}

int main(void) {
    KERNEL_ENTER(fill);
    void *out = NULL;
    CHECK(hipMalloc(&out, COUNT * sizeof(float)));
    launch(out, BUG ? 2 * COUNT : COUNT);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(out));
    return 0;
}
