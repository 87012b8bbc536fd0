/* compiler.c - what compilers call in libamdhip64, and no header declares.
 *
 * Conversions of half precision, as in libgcc, and the launch of the compiler before clang. All of
 * them are in node hip_4.2 (cmake/hip_exports.h). */
#include <string.h>

#include "base/half.h"
#include "hip/hip_api.h"
#include "soft/runtime/error.h"
#include "soft/runtime/function.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/runtime.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT float __gnu_h2f_ieee(unsigned short half);
EXPORT unsigned short __gnu_f2h_ieee(float value);
EXPORT void _ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv(
    uintptr_t function, const dim3 *grid, const dim3 *block, uint32_t shared_bytes,
    hipStream_t stream, void **extra);

float __gnu_h2f_ieee(unsigned short half) {
    return half_to_float(half);
}

unsigned short __gnu_f2h_ieee(float value) {
    return (unsigned short)float_to_half(value);
}

/* hip_impl::hipLaunchKernelGGLImpl(unsigned long, dim3 const&, dim3 const&, unsigned,
 * ihipStream_t*, void**): the kernel by its host address, the arguments as hipModuleLaunchKernel's
 * `extra`. */
void _ZN8hip_impl22hipLaunchKernelGGLImplEmRK4dim3S2_jP12ihipStream_tPPv(
    uintptr_t function, const dim3 *grid, const dim3 *block, uint32_t shared_bytes,
    hipStream_t stream, void **extra) {
    struct soft_function *f;
    hipError_t r = soft_enter(HIP_FN_hipLaunchKernel);
    if (r == hipSuccess)
        r = soft_function_for_host((const void *)function, &f);
    if (r == hipSuccess)
        r = soft_hipModuleLaunchKernel((hipFunction_t)f, grid->x, grid->y, grid->z, block->x,
                                       block->y, block->z, shared_bytes, stream, NULL, extra);
    (void)soft_leave(r);
}
