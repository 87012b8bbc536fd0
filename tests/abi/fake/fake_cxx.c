/* The C++ symbol under which ROCm 5 has hipExtModuleLaunchKernel. */
#include "hip/hip_types.h"

__attribute__((visibility("default"))) hipError_t
_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(
    void);

hipError_t
_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(
    void) {
    return hipErrorNotReady;
}
