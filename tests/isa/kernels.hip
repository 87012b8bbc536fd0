// Kernels for the disassembly test: no headers, so that they compile with nothing but a compiler.
#define GLOBAL extern "C" __attribute__((global))
typedef _Float16 half2 __attribute__((ext_vector_type(2)));

GLOBAL void tile(float *a, float *b, int n) {
    __attribute__((shared)) static float t[256];
    int i = __builtin_amdgcn_workitem_id_x() + 256 * __builtin_amdgcn_workgroup_id_x();
    if (i < n)
        t[i & 255] = a[i];
    __builtin_amdgcn_s_barrier();
    if (i < n)
        b[i] = t[(i + 1) & 255] / a[i] + __builtin_sqrtf(b[i]);
}

GLOBAL void doubles(double *a, double *b, long n) {
    for (long i = __builtin_amdgcn_workitem_id_x(); i < n; i += 64)
        b[i] = a[i] / b[i] + a[i] * 3.0;
}

GLOBAL void small(half2 *a, half2 *b, unsigned char *c, short *s) {
    int i = __builtin_amdgcn_workitem_id_x();
    half2 x = a[i];
    a[i] = x * b[i] + x;
    c[i] = c[i] * 3 + s[i];
    s[i] = (short)(c[i] >> 2) + (short)i;
}

GLOBAL void integers(int *a, unsigned long *b, int n) {
    int i = __builtin_amdgcn_workitem_id_x(), local[32], sum = 0;
    for (int k = 0; k < 32; k++)
        local[k] = a[k * i];
    for (int k = 0; k < n; k++)
        sum += local[(k * 7 + i) & 31];
    a[i] = sum / (n + 1) + sum % (n + 3);
    b[i] = b[i] / (unsigned long)(sum + 1);
    __atomic_fetch_add(a + 5, sum, __ATOMIC_RELAXED);
}

GLOBAL void choose(float *a) {
    int i = __builtin_amdgcn_workitem_id_x();
    float x = __builtin_amdgcn_cosf(a[i]) + __builtin_amdgcn_sinf(a[i]);
    switch (i & 7) {
    case 0:
        x += 1;
        break;
    case 1:
        x *= 2;
        break;
    case 3:
        x -= 5;
        break;
    case 5:
        x = -x;
    }
    a[i] = x;
}
