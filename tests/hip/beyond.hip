// beyond.hip - a kernel that forgets its bounds check, and with -DFIXED one that does not.
#include "check.h"

__global__ void scale(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
    if (i >= n)
        return;
#endif
    out[i] = in[i] * 2.0f;
}

int main() {
    const int n = 1000;
    Buffer<float> in(std::vector<float>(n, 1.0f)), out(n);
    scale<<<4, 256>>>(out.device, in.device, n);
    EXPECT(out.host()[n - 1] == 2.0f, "not scaled");
    return finish();
}
