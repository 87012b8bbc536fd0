// Kernels of an ordinary hipcc program, whose arguments the audit must know: by types of C++, by
// metadata alone (extern "C"), in a struct, in one block, in a module.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

struct Pair {
    float *p;
    long n;
};

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}

__global__ void by_value(Pair pair) {
    pair.p[threadIdx.x] = pair.n;
}

__global__ void table(float **rows, int n) {
    rows[blockIdx.x][threadIdx.x] = n;
}

extern "C" __global__ void plain(float *out, const float *in, long k) {
    out[threadIdx.x] = in[threadIdx.x] + k;
}

int main(int argc, char **argv) {
    float *d, *e, **rows;
    if (hipMalloc((void **)&d, 1024) || hipMalloc((void **)&e, 2048) || hipMalloc((void **)&rows, 8) ||
        hipMemset(d, 0, 1024) || hipMemset(e, 0, 2048) || hipMemcpy(rows, &e, 8, hipMemcpyHostToDevice))
        return 1;
    saxpy<<<4, 64>>>(256, 2.0f, d, e);
    by_value<<<1, 64>>>(Pair{e, 3});
    table<<<1, 64>>>(rows, 7);
    plain<<<1, 64>>>(d, e, 5);
    if (argc > 1) { // the same code as a module, from a buffer that is freed at once
        std::ifstream in(argv[1], std::ios::binary);
        std::vector<char> *image = new std::vector<char>(std::istreambuf_iterator<char>(in), {});
        hipModule_t m;
        hipFunction_t f;
        if (hipModuleLoadData(&m, image->data()))
            return 2;
        memset(image->data(), 0, image->size());
        delete image;
        if (hipModuleGetFunction(&f, m, "plain"))
            return 3;
        struct {
            float *out, *in;
            long k;
        } block = {e, d, 9};
        size_t size = sizeof block;
        void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &block, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                         HIP_LAUNCH_PARAM_END};
        (void)hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, 0, nullptr, extra);
        (void)hipModuleUnload(m);
    }
    printf("done %d\n", hipDeviceSynchronize() == hipSuccess);
    (void)hipFree(d);
    (void)hipFree(e);
    (void)hipFree(rows);
    return 0;
}
