/* Compares the functions of hip_api.def with the prototypes of the real HIP headers, at compile
 * time: the lines are expanded among the real types, and a function whose type differs fails the
 * build with its name. */
#include "abi_real.h"

#include "abi_signatures.h"
#include "abi_undeclared.h"

/* Deprecated functions are compared like the others. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* A function is compared if its version node is in the headers and it is not excused. */
#define SECOND(first, second, ...) second
#define EXCUSED(...)               SECOND(__VA_ARGS__, 0, ~)
#define PASTE(a, b)                PASTE_EXPANDED(a, b)
#define PASTE_EXPANDED(a, b)       a##b

#define COMPARE_1(name, ret, params)
#define COMPARE_0(name, ret, params)                                                               \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), ret(*) params),                 \
                   #name ": not the type that HIP declares");

#define COMPARE(name, ret, params)                                                                 \
    PASTE(COMPARE_, EXCUSED(ABI_UNDECLARED_##name))(name, ret, params)
#define NOT_YET(name, ret, params)

#define HAS(major, minor) (HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR >= (major)*100 + (minor))

#define NODE_4_2 COMPARE
#define NODE_4_3 COMPARE
#define NODE_4_4 COMPARE
#define NODE_4_5 COMPARE
#define NODE_5_0 COMPARE
#define NODE_5_1 COMPARE
#define NODE_5_2 COMPARE
#if HAS(6, 3)
#define NODE_5_3 COMPARE
#define NODE_5_5 COMPARE
#define NODE_5_6 COMPARE
#define NODE_6_0 COMPARE
#define NODE_6_1 COMPARE
#define NODE_6_2 COMPARE
#else
#define NODE_5_3 NOT_YET
#define NODE_5_5 NOT_YET
#define NODE_5_6 NOT_YET
#define NODE_6_0 NOT_YET
#define NODE_6_1 NOT_YET
#define NODE_6_2 NOT_YET
#endif
#define NODE_6_3 NOT_YET
#if HAS(7, 2)
#define NODE_6_4 COMPARE
#define NODE_6_5 COMPARE
#define NODE_7_1 COMPARE
#define NODE_7_2 COMPARE
#else
#define NODE_6_4 NOT_YET
#define NODE_6_5 NOT_YET
#define NODE_7_1 NOT_YET
#define NODE_7_2 NOT_YET
#endif

#define HIP_FN(ret, name, params, args, cls, since) NODE_##since(name, ret, params)
#define HIP_VOID_FN(name, params, args, cls, since) NODE_##since(name, void, params)
#include "hip/hip_api.def"

#undef COMPARE_0
#define COMPARE_0(name, ret, params) +1
size_t abi_signatures_compared(void) {
    return 0
#include "hip/hip_api.def"
        ;
}
