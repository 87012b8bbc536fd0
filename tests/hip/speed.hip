// Kernels whose speed bench_isa measures. No headers, so that they compile with nothing but a compiler.
#define GLOBAL extern "C" __attribute__((global))
#define X      (__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x())

// 8 sums in registers.
GLOBAL void fma_loop(float *out, float a, float b, int n) {
    float x[8];
    for (int k = 0; k < 8; k++)
        x[k] = a * k + X;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 8; k++)
            x[k] = __builtin_fmaf(x[k], a, b);
    float sum = 0;
    for (int k = 0; k < 8; k++)
        sum += x[k];
    out[X] = sum;
}

// 5 points of a plane of w by h.
GLOBAL void stencil(float *out, const float *in, int w, int h, float centre, float side) {
    int x = X, y = __builtin_amdgcn_workgroup_id_y();
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
        return;
    int i = y * w + x;
    out[i] = centre * in[i] + side * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}

GLOBAL void copy(float *out, const float *in) {
    out[X] = in[X];
}
