/* Calls a function that the software device does not have: it draws nothing. */
#include "program.h"

int main(void) {
    hipError_t r = hipGraphicsUnregisterResource(NULL);
    printf("%s\n", hipGetErrorName(r));
    return 0;
}
