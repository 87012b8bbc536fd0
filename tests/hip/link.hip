// Kernels compiled at run time in two parts and linked: by hiprtc, from memory; by HIP, from memory and
// link FILE BUNDLE ARCHIVE, which hold the other part.
#include "check.h"

#include <hip/hiprtc.h>

#include <dlfcn.h>

#include <string>

// Debian's headers and library do not have these calls yet: they are looked up in the library that runs.
// What can be linked: 100: bitcode; 101: bitcode in an
// offload bundle; 102: a static library of such bundles.
enum { BITCODE = 100, BUNDLED_BITCODE = 101, ARCHIVE = 102, OBJECT = 3 };

template <class... T> static int call(const char *name, T... arguments) {
    auto *function = (int (*)(T...))dlsym(RTLD_DEFAULT, name);
    EXPECT(function, "there is no %s", name);
    return function(arguments...);
}

static int add(const char *name, void *link, int type, std::string &code) {
    return call(name, link, type, (void *)code.data(), code.size(), (const char *)"part", 0u, (int *)nullptr,
                (void **)nullptr);
}

static int add_file(void *link, int type, const char *path) {
    return call("hipLinkAddFile", link, type, path, 0u, (int *)nullptr, (void **)nullptr);
}

static void *create(const char *name) {
    void *link;
    EXPECT(!call(name, 0u, (int *)nullptr, (void **)nullptr, &link), "no link");
    return link;
}

static const char user[] = "extern \"C\" __device__ int added(int);\n"
                           "extern \"C\" __global__ void sum(int *data) { data[threadIdx.x] += added(threadIdx.x); }\n";
static const char maker[] = "extern \"C\" __device__ int added(int i) { return 10 * i + 1; }\n";

static std::string bitcode(const char *source) {
    hiprtcProgram p;
    const char *options[] = {"-fgpu-rdc"};
    size_t size = 0;
    EXPECT(!hiprtcCreateProgram(&p, source, "part.cu", 0, nullptr, nullptr), "no program");
    EXPECT(!hiprtcCompileProgram(p, 1, options), "it does not compile");
    EXPECT(!call("hiprtcGetBitcodeSize", p, &size) && size, "there is no bitcode");
    std::string code(size, '\0');
    EXPECT(!call("hiprtcGetBitcode", p, &code[0]), "the bitcode cannot be had");
    EXPECT(!hiprtcDestroyProgram(&p), "the program stays");
    return code;
}

static void runs(void *code) {
    hipModule_t module;
    hipFunction_t function;
    CHECK(hipModuleLoadData(&module, code));
    CHECK(hipModuleGetFunction(&function, module, "sum"));
    Buffer<int> data(std::vector<int>(64, 5));
    void *arguments[] = {&data.device};
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    std::vector<int> got = data.host();
    for (int i = 0; i < 64; i++)
        EXPECT(got[i] == 5 + 10 * i + 1, "%d: %d", i, got[i]);
    CHECK(hipModuleUnload(module));
}

static void by_hiprtc(std::string one, std::string other) {
    void *link = create("hiprtcLinkCreate"), *code;
    size_t size = 0;
    EXPECT(!add("hiprtcLinkAddData", link, BITCODE, one), "the first part is refused");
    EXPECT(add("hiprtcLinkAddData", link, OBJECT, one), "an object of CUDA is taken");
    EXPECT(call("hiprtcLinkComplete", link, &code, &size), "it is linked without its other part");
    EXPECT(!add("hiprtcLinkAddData", link, BITCODE, other), "the second part is refused");
    EXPECT(!call("hiprtcLinkComplete", link, &code, &size) && size, "it is not linked");
    runs(code);
    EXPECT(!call("hiprtcLinkDestroy", link), "the link stays");
}

static void by_hip(std::string one, int type, const char *path) {
    void *link = create("hipLinkCreate"), *code;
    size_t size = 0;
    EXPECT(!add("hipLinkAddData", link, BITCODE, one), "the first part is refused");
    EXPECT(add_file(link, type, "no such file") == hipErrorFileNotFound, "a file that is not there is found");
    EXPECT(!add_file(link, type, path), "%s is refused", path);
    EXPECT(!call("hipLinkComplete", link, &code, &size) && size, "%s is not linked", path);
    runs(code);
    EXPECT(!call("hipLinkDestroy", link), "the link stays");
}

int main(int, char **argv) {
    std::string one = bitcode(user), other = bitcode(maker);
    by_hiprtc(one, other);
    by_hip(one, BITCODE, argv[1]);
    by_hip(one, BUNDLED_BITCODE, argv[2]);
    by_hip(one, ARCHIVE, argv[3]);
    return finish();
}
