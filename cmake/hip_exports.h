/* hip_exports.h - lists the functions of hip_api.def, the C++ names of hip_cxx.def and the symbols
 * of hip_compiler.def, with their version nodes. Only ever preprocessed; version_script.cmake reads
 * what comes out. */
#define HIP_FN(ret, name, params, args, class, since) HIP_EXPORT name since;
#define HIP_VOID_FN(name, params, args, class, since) HIP_EXPORT name since;
#include "hip/hip_api.def"
#define HIP_CXX(name, symbol) HIP_EXPORT symbol 4_2;
#include "hip/hip_cxx.def"
#define HIP_COMPILER(symbol) HIP_EXPORT symbol 4_2;
#include "hip/hip_compiler.def"
