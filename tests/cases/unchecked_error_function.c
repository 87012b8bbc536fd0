/* A kernel's name is spelt wrong; the handle that was not found is launched.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         culprit hipModuleGetFunction site=find; messenger hipModuleLaunchKernel site=launch */
#include "case.h"

enum { COUNT = 32 };

KERNEL(fill, { "out", 8, GRETA_SOFT_POINTER }, { "count", 4, 0 }) {
    float *out = ARG(float *, 0);
    for (uint32_t i = 0; work->first == 0 && i < ARG(uint32_t, 1); i++)
        out[i] = (float)i;
}

hipFunction_t find(hipModule_t module, const char *name) {
    hipFunction_t function = NULL;
    (void)hipModuleGetFunction(&function, module, name);
    return function;
}

void launch(hipFunction_t function, void *memory) {
    uint32_t count = COUNT;
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){ &memory, &count },
                                NULL));
}

int main(void) {
    hipModule_t module;
    void *memory;
    KERNEL_ENTER(fill);
    CHECK(hipModuleLoadData(&module, GRETA_SOFT_NATIVE_IMAGE));
    CHECK(hipMalloc(&memory, COUNT * sizeof(float)));
    launch(find(module, BUG ? "fil" : "fill"), memory);
    CHECK(hipDeviceSynchronize());
    CHECK(hipFree(memory));
    CHECK(hipModuleUnload(module));
    return 0;
}
