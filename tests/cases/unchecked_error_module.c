/* A code object is missing. The result of loading it is not checked, and the program gives up when
 * it looks for a function in a module that does not exist.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR; culprit hipModuleLoad site=open_kernel;
 *         messenger hipModuleGetFunction site=main */
#include "case.h"

hipModule_t open_kernel(const char *path) {
    hipModule_t module = NULL;
    hipError_t result = hipModuleLoad(&module, path);
    if (!BUG && result != hipSuccess) {
        if (hipGetLastError() != result)
            exit(3);
        return NULL;
    }
    return module;
}

int main(void) {
    hipFunction_t function;
    void *memory;
    CHECK(hipMalloc(&memory, 256));
    hipModule_t module = open_kernel("no_such_file.co");
    if (BUG)
        CHECK(hipModuleGetFunction(&function, module, "scale"));
    CHECK(hipFree(memory));
    return 0;
}
