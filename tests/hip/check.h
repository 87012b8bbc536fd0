// check.h - what the programs of this folder share: checked calls, buffers, and a last line that
// says PASS or FAIL.
#pragma once
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        hipError_t error_ = (call);                                                                \
        if (error_ != hipSuccess) {                                                                \
            printf("%s: %s\nFAIL\n", #call, hipGetErrorName(error_));                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int failures;

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition) && failures++ < 5) {                                                      \
            printf("%s:%d: ", __FILE__, __LINE__);                                                 \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)

static inline int finish() {
    puts(failures ? "FAIL" : "PASS");
    return failures != 0;
}

// A device buffer that is freed at the end of its scope.
template <class T> struct Buffer {
    T *device = nullptr;
    size_t count;
    explicit Buffer(size_t count) : count(count) { CHECK(hipMalloc(&device, count * sizeof(T))); }
    explicit Buffer(const std::vector<T> &from) : Buffer(from.size()) {
        CHECK(hipMemcpy(device, from.data(), count * sizeof(T), hipMemcpyHostToDevice));
    }
    Buffer(const Buffer &) = delete;
    ~Buffer() { (void)hipFree(device); }
    std::vector<T> host() const {
        std::vector<T> to(count);
        CHECK(hipMemcpy(to.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
        return to;
    }
};
