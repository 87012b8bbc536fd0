/* program.h - what a small program on the HIP API needs: greta's own declarations, so that it
 * builds with no ROCm, and a check that ends the program. The programs know nothing of the audit.
 */
#ifndef PROGRAMS_PROGRAM_H
#define PROGRAMS_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>

#include "hip/hip_types.h"

#define HIP_FN(ret, name, params, args, cls, since) extern ret name params;
#define HIP_VOID_FN(name, params, args, cls, since) extern void name params;
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

#define CHECK(call)                                                                                \
    do {                                                                                           \
        hipError_t check_result = (call);                                                          \
        if (check_result != hipSuccess) {                                                          \
            printf("%s: %s\n", #call, hipGetErrorName(check_result));                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
