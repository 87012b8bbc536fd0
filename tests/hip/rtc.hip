// Kernels compiled at run time: plain ones, templates by name expressions, headers, options, errors.
#include "check.h"

#include <hip/hiprtc.h>

#include <cstring>
#include <string>

#define RTC(call)                                                                                  \
    do {                                                                                           \
        hiprtcResult result_ = (call);                                                             \
        if (result_ != HIPRTC_SUCCESS) {                                                           \
            printf("%s: %s\nFAIL\n", #call, hiprtcGetErrorString(result_));                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const char source[] = R"(
#include "scale.h"
namespace n {
__constant__ int offset = 5;
template <class T, int N> __global__ void scale(T *data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    T *own = (T *)malloc(sizeof(T)); // known without an include, as are halves
    *own = FACTOR * twice(data[i]) + __half2float(__float2half(N));
    data[i] = *own + offset;
    free(own);
}
}
)";
static const char header[] = "template <class T> __device__ T twice(T x) { return x + x; }\n";

static std::string log_of(hiprtcProgram p) {
    size_t size = 0;
    RTC(hiprtcGetProgramLogSize(p, &size));
    std::string log(size, '\0');
    if (size)
        RTC(hiprtcGetProgramLog(p, &log[0]));
    return log;
}

static void good() {
    hiprtcProgram p;
    const char *headers[] = {header}, *names[] = {"scale.h"}, *options[] = {"-DFACTOR=3", "-O2"};
    const char *kernel, *variable;
    RTC(hiprtcCreateProgram(&p, source, "good.cu", 1, headers, names));
    RTC(hiprtcAddNameExpression(p, "n::scale<float, 7>"));
    RTC(hiprtcAddNameExpression(p, "&n::offset"));
    hiprtcResult r = hiprtcCompileProgram(p, 2, options);
    EXPECT(r == HIPRTC_SUCCESS, "%s", log_of(p).c_str());
    RTC(hiprtcGetLoweredName(p, "n::scale<float, 7>", &kernel));
    RTC(hiprtcGetLoweredName(p, "&n::offset", &variable));
    EXPECT(hiprtcGetLoweredName(p, "n::scale<int, 7>", &kernel) == HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID,
           "a name that nobody asked for is known");
    size_t size;
    RTC(hiprtcGetCodeSize(p, &size));
    std::vector<char> code(size);
    RTC(hiprtcGetCode(p, code.data()));
    hipModule_t module;
    hipFunction_t function;
    hipDeviceptr_t offset;
    size_t bytes;
    CHECK(hipModuleLoadData(&module, code.data()));
    CHECK(hipModuleGetFunction(&function, module, kernel));
    CHECK(hipModuleGetGlobal(&offset, &bytes, module, variable));
    RTC(hiprtcDestroyProgram(&p));
    EXPECT(bytes == sizeof(int), "offset has %d bytes", (int)bytes);
    Buffer<float> data(std::vector<float>(100, 2.0f));
    int count = 100;
    void *arguments[] = {&data.device, &count};
    CHECK(hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    for (float x : data.host())
        EXPECT(x == 3 * 4 + 7 + 5, "%g", x);
    CHECK(hipModuleUnload(module));
}

static void bad() {
    hiprtcProgram p;
    RTC(hiprtcCreateProgram(&p, "__global__ void broken() { no_such_thing(); }", "bad.cu", 0, nullptr, nullptr));
    EXPECT(hiprtcCompileProgram(p, 0, nullptr) == HIPRTC_ERROR_COMPILATION, "it compiles");
    EXPECT(log_of(p).find("no_such_thing") != std::string::npos, "the log says %s", log_of(p).c_str());
    RTC(hiprtcDestroyProgram(&p));
}

int main() {
    good();
    bad();
    return finish();
}
