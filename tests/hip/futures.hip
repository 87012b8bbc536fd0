// A thread fills a buffer and tells another by a std::promise, which then uses it in a stream of its
// own. Without FIXED the promise is kept when the kernel is only queued.
#include <hip/hip_runtime.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <thread>

__global__ void fill(float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = i;
}

__global__ void twice(float *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] *= 2;
}

static void check(hipError_t r) {
    if (r == hipSuccess)
        return;
    printf("%s\n", hipGetErrorString(r));
    exit(1);
}

// Is the thread asleep? Field 3 of its stat, behind the name in parentheses, then is S.
static bool sleeps(int thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    getline(file, line);
    size_t name = line.rfind(") ");
    return name != std::string::npos && line[name + 2] == 'S';
}

int main() {
    const int n = 4096;
    float *p;
    hipStream_t s, t;
    check(hipMalloc(&p, n * sizeof *p));
    check(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    check(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
    std::promise<void> filled;
    std::future<void> done = filled.get_future();
    std::atomic<int> waiter{0};
    std::thread user([&] {
        waiter = gettid();
        done.wait();
        twice<<<n / 256, 256, 0, t>>>(p, n);
        check(hipGetLastError());
    });
    // Only a future that has to wait can be seen, so the promise is not kept before it does.
    while (!waiter || !sleeps(waiter))
        std::this_thread::yield();
    std::thread filler([&] {
        fill<<<n / 256, 256, 0, s>>>(p, n);
        check(hipGetLastError());
#ifdef FIXED
        check(hipStreamSynchronize(s));
#endif
        filled.set_value();
    });
    filler.join();
    user.join();
    check(hipDeviceSynchronize());
    check(hipFree(p));
    check(hipStreamDestroy(s));
    check(hipStreamDestroy(t));
    return 0;
}
