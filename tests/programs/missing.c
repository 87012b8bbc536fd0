/* Calls a function that the software device does not have. */
#include "program.h"

int main(void) {
    hipArray_t array = NULL;
    hipError_t r = hipArrayDestroy(array);
    printf("%s\n", hipGetErrorName(r));
    return 0;
}
