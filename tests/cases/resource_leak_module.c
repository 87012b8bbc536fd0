/* A module is loaded again for every launch, because its handle is not kept; none is unloaded.
 *
 * Expect: verdict FINDINGS; hypothesis RESOURCE_LEAK;
 *         culprit hipModuleLoadData site=launch; messenger none */
#include "case.h"

enum { COUNT = 32 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

void launch(void *memory) {
    hipModule_t module;
    hipFunction_t function;
    uint32_t count = COUNT;
    CHECK(hipModuleLoadData(&module, GRETA_SOFT_NATIVE_IMAGE));
    CHECK(hipModuleGetFunction(&function, module, "fill"));
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){ &memory, &count },
                                NULL));
    CHECK(hipDeviceSynchronize());
    if (!BUG)
        CHECK(hipModuleUnload(module));
}

int main(void) {
    void *memory;
    KERNEL_ENTER(fill);
    CHECK(hipMalloc(&memory, COUNT * sizeof(float)));
    for (int i = 0; i < 3; i++)
        launch(memory);
    CHECK(hipFree(memory));
    return 0;
}
