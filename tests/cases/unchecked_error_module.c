/* A code object that is not there: nobody looks at the result of loading it, so that the function
 * is looked for in no module, which is where the program gives up.
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
