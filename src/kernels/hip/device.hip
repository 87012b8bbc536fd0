/* device.hip - what the kernels need of the language: types, work-items, barriers, a few functions.
 *
 * The files of this folder are one translation unit, kernels.hip, and include nothing but each other
 * and greta's lists: no header of ROCm, no device library. So every clang with the AMDGPU target
 * compiles them, and so does hiprtc.
 *
 * WAVE is the number of lanes of a wave: 64 on CDNA, 32 on RDNA. MATRIX_CORES: the processor has the
 * matrix instructions of gfx90a and gfx942. SMALL_HALVES: they multiply halves below 2^-14, which gfx90a
 * treats as 0.
 *
 * The interpreter runs no processor with waves of 32. For tests, GRETA_AS_WAVE32 compiles the code for such
 * processors, which have no matrix instructions either, for waves of 64: a WAVE is half a wave then. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef signed char i8;
typedef int i32;
typedef _Float16 f16;
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef f16 f16x4 __attribute__((ext_vector_type(4)));
typedef f16 f16x8 __attribute__((ext_vector_type(8)));
typedef short i16x4 __attribute__((ext_vector_type(4)));
typedef short i16x8 __attribute__((ext_vector_type(8)));

#define DEVICE static __attribute__((device, always_inline)) inline
#define SHARED static __attribute__((shared))
#define KERNEL(threads)                                                                            \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void

#if (defined(__gfx90a__) || defined(__gfx942__)) && !defined(GRETA_AS_WAVE32)
#define MATRIX_CORES 1
#else
#define MATRIX_CORES 0
#endif

#if defined(__gfx942__) && !defined(GRETA_AS_WAVE32)
#define SMALL_HALVES 1
#else
#define SMALL_HALVES 0
#endif

#if defined(GRETA_AS_WAVE32)
enum { WAVE = 32 };
#elif defined(__AMDGCN_WAVEFRONT_SIZE__)
enum { WAVE = __AMDGCN_WAVEFRONT_SIZE__ };
#elif defined(__AMDGCN_WAVEFRONT_SIZE)
enum { WAVE = __AMDGCN_WAVEFRONT_SIZE };
#else
enum { WAVE = __builtin_amdgcn_wavefrontsize() };
#endif

enum { THREADS = 256, WAVES = THREADS / WAVE };

DEVICE u32 thread_id(void) {
    return __builtin_amdgcn_workitem_id_x();
}

DEVICE u32 group_id(void) {
    return __builtin_amdgcn_workgroup_id_x();
}

DEVICE u32 lane_id(void) {
    return thread_id() % WAVE;
}

/* The same in all lanes, as the compiler knows. */
DEVICE u32 wave_id(void) {
#if defined(GRETA_AS_WAVE32)
    return thread_id() / WAVE;
#else
    return (u32)__builtin_amdgcn_readfirstlane((int)(thread_id() / WAVE));
#endif
}

/* Waits for all waves of the group; what they wrote to LDS and memory is visible after it. */
DEVICE void barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

/* Makes the compiler forget what it knows about a value that is the same in all lanes. It then computes what
 * depends on the value where it is used, instead of hoisting all of it out of the kernel's loops into more
 * scalar registers than there are. */
DEVICE void forget(u32 *x) {
    *x = (u32)__builtin_amdgcn_readfirstlane((int)*x);
    __asm__ volatile("" : "+s"(*x));
}

DEVICE u32 least(u32 a, u32 b) {
    return a < b ? a : b;
}

DEVICE u32 most(u32 a, u32 b) {
    return a > b ? a : b;
}

DEVICE u32 bits_of(float f) {
    return __builtin_bit_cast(u32, f);
}

DEVICE float float_of(u32 bits) {
    return __builtin_bit_cast(float, bits);
}

DEVICE float half_of(u16 bits) {
    return (float)__builtin_bit_cast(f16, bits);
}

/* ---- memory without alignment: blocks of weights have any size ------------------------------- */

typedef u32 u32_any __attribute__((aligned(1)));
typedef u16 u16_any __attribute__((aligned(1)));
typedef u32 u32x2_any __attribute__((ext_vector_type(2), aligned(1)));
typedef float f32x4_any __attribute__((ext_vector_type(4), aligned(4)));
typedef u32 u32x4_any __attribute__((ext_vector_type(4), aligned(1)));

DEVICE u32 load_u32(const u8 *p) {
    return *(const u32_any *)p;
}

DEVICE u16 load_u16(const u8 *p) {
    return *(const u16_any *)p;
}

DEVICE u32x4 load_u32x4(const u8 *p) {
    return *(const u32x4_any *)p;
}

DEVICE float load_half(const u8 *p) {
    return half_of(load_u16(p));
}

/* ---- lanes ---------------------------------------------------------------------------------- */

DEVICE float from_lane(float x, u32 lane) {
#if defined(GRETA_AS_WAVE32)
    lane += wave_id() % 2 * WAVE;
#endif
    return float_of((u32)__builtin_amdgcn_ds_bpermute((int)(lane * 4), (int)bits_of(x)));
}

/* The sum, or the maximum, of `width` neighbouring lanes (a power of 2), in all of them. */
DEVICE float sum_lanes(float x, u32 width) {
    for (u32 step = width / 2; step; step /= 2)
        x += from_lane(x, lane_id() ^ step);
    return x;
}

DEVICE float max_lanes(float x, u32 width) {
    for (u32 step = width / 2; step; step /= 2) {
        float other = from_lane(x, lane_id() ^ step);
        x = other > x ? other : x;
    }
    return x;
}

/* The sum of a float of every thread, in all threads. */
DEVICE float sum_threads(float x) {
    SHARED float sums[WAVES];
    x = sum_lanes(x, WAVE);
    barrier();
    if (lane_id() == 0)
        sums[wave_id()] = x;
    barrier();
    float sum = 0;
    for (u32 i = 0; i < WAVES; i++)
        sum += sums[i];
    return sum;
}

/* Whether this is the last of `all` groups that share this count to come here; it is 0 again then, and what the
 * others wrote is visible. The same in all threads. */
DEVICE bool is_last_group(u32 *count, u32 all) {
    SHARED u32 last;
    barrier();
    if (thread_id() == 0) {
        u32 before = __hip_atomic_fetch_add(count, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
        last = before + 1 == all;
        if (last)
            __hip_atomic_store(count, 0u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    }
    barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    return last;
}

/* ---- functions ------------------------------------------------------------------------------ */

DEVICE float exp2_of(float x) {
#if __has_builtin(__builtin_amdgcn_exp2f)
    return __builtin_amdgcn_exp2f(x);
#else
    return __builtin_exp2f(x);
#endif
}

/* e^x within 2 units of the last place: the product with log2(e) is carried in two parts. */
DEVICE float exp_of(float x) {
    const float high = 0x1.715476p+0f, low = 0x1.4ae0cp-26f, ln2 = 0x1.62e43p-1f;
    float y = x * high;
    float rest = __builtin_fmaf(x, high, -y) + x * low;
    float power = exp2_of(y);
    power = __builtin_fmaf(power, rest * ln2, power);
    return x > 88.7f ? __builtin_inff() : x < -87.0f ? 0 : power;
}

/* tanh(x): a series where 1 - 2 / (e^2x + 1) would cancel. */
DEVICE float tanh_of(float x) {
    float z = x * x;
    if (z < 0.09f) {
        float s = __builtin_fmaf(z, -1382.0f / 155925, 62.0f / 2835);
        s = __builtin_fmaf(z, s, -17.0f / 315);
        s = __builtin_fmaf(z, s, 2.0f / 15);
        s = __builtin_fmaf(z, s, -1.0f / 3);
        return __builtin_fmaf(x * z, s, x);
    }
    return 1 - 2 / (exp_of(2 * x) + 1);
}

DEVICE float soft_cap_of(float x, float cap) {
    return cap * tanh_of(x / cap);
}

/* Cosine and sine of an angle as doubles have it: those of positions in a long context need it. */
DEVICE void cos_sin(double angle, float *cosine, float *sine) {
    double turns = __builtin_rint(angle * 0x1.45f306dc9c883p-1);
    double r = __builtin_fma(-turns, 0x1.921fb54442d18p+0, angle);
    r = __builtin_fma(-turns, 0x1.1a62633145c07p-54, r);
    double z = r * r, s = 1, c = 1;
    for (int i = 16; i >= 2; i -= 2) {
        s = 1 - s * z / (i * (i + 1));
        c = 1 - c * z / (i * (i - 1));
    }
    s *= r;
    i32 quadrant = (i32)turns & 3;
    double x = quadrant & 1 ? s : c, y = quadrant & 1 ? c : s;
    *cosine = (float)(quadrant == 1 || quadrant == 2 ? -x : x);
    *sine = (float)(quadrant >= 2 ? -y : y);
}
