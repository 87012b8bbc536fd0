#include "kernels/spec.h"

#include <string.h>

/* ---- footprints: arithmetic that saturates instead of wrapping ------------------------------- */

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static uint64_t rows_bytes(const struct kern_view *v, uint64_t n, uint64_t m) {
    uint64_t row = tensor_type_row_bytes(v->type, m);
    return row ? times(n, row) : UINT64_MAX;
}

#define TIMES(a, b)      times(a, b)
#define FLOATS(n, m)     times(times(n, m), sizeof(float))
#define INTS(n)          times(n, sizeof(int32_t))
#define ROWS(view, n, m) rows_bytes(&(view), n, m)
#define IF(c, bytes)     ((c) ? (bytes) : 0)
#define ACTIVATIONS(n, m, run)                                                                     \
    times(n, times((m) / KERN_SLAB + ((m) % KERN_SLAB != 0),                                       \
                   (run) == KERN_SPLIT ? KERN_SPLIT_BYTES : KERN_SLAB_BYTES))

#define IS_FLOAT(view)      tensor_type_is_float((enum tensor_type)(view).type)
#define SOME_FLOAT(a, b, c) (IS_FLOAT(a) || IS_FLOAT(b) || IS_FLOAT(c))
#define ALL_FLOAT(a, b, c)  (IS_FLOAT(a) && IS_FLOAT(b) && IS_FLOAT(c))

#define KERN_VIEW(k, name, access, type, need)                                                     \
    static uint64_t bytes_##k##_##name(const void *arguments) {                                    \
        const struct kern_##k *a = arguments;                                                      \
        return need;                                                                               \
    }
#define KERN_GRID(k, blocks)                                                                       \
    static uint64_t blocks_##k(const void *arguments) {                                            \
        const struct kern_##k *a = arguments;                                                      \
        return blocks;                                                                             \
    }
#define KERN_GROUPS(k, threads, groups)                                                            \
    enum { threads_##k = threads };                                                                \
    static uint64_t groups_##k(const void *arguments) {                                            \
        const struct kern_##k *a = arguments;                                                      \
        (void)a;                                                                                   \
        return groups;                                                                             \
    }
#include "kernels/kernel.def"

/* ---- views ---------------------------------------------------------------------------------- */

#define KERN_BEGIN(k) static const struct spec_view views_##k[] = {
#define KERN_VIEW(k, name, access, type, need)                                                     \
    { #name, offsetof(struct kern_##k, name), SPEC_##access, SPEC_##type, bytes_##k##_##name },
#define KERN_END(k)                                                                                \
    }                                                                                              \
    ;
#include "kernels/kernel.def"

/* ---- arguments: a view is its pointer; its type follows where the kernel must know it -------- */

#define POINTER_ONLY(k, name, access)                                                              \
    { #name, offsetof(struct kern_##k, name.ptr), sizeof(void *), SPEC_##access },
#define POINTER_AND_TYPE(k, name, access)                                                          \
    POINTER_ONLY(k, name, access){ #name " type", offsetof(struct kern_##k, name.type),            \
                                   sizeof(uint32_t), SPEC_VALUE },
#define PARAM_F32(k, name, access)    POINTER_ONLY(k, name, access)
#define PARAM_I32(k, name, access)    POINTER_ONLY(k, name, access)
#define PARAM_I8(k, name, access)     POINTER_ONLY(k, name, access)
#define PARAM_MATRIX(k, name, access) POINTER_AND_TYPE(k, name, access)
#define PARAM_CACHE(k, name, access)  POINTER_AND_TYPE(k, name, access)

#define KERN_BEGIN(k)                          static const struct spec_param params_##k[] = {
#define KERN_VIEW(k, name, access, type, need) PARAM_##type(k, name, access)
#define KERN_U32(k, name)                      { #name, offsetof(struct kern_##k, name), sizeof(uint32_t), SPEC_VALUE },
#define KERN_F32(k, name)                      { #name, offsetof(struct kern_##k, name), sizeof(float), SPEC_VALUE },
#define KERN_END(k)                                                                                \
    }                                                                                              \
    ;
#include "kernels/kernel.def"

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define KERN_BEGIN(k) _Static_assert(COUNT(params_##k) <= SPEC_PARAMS_MAX, #k);
#include "kernels/kernel.def"

const struct spec spec_table[KERN_COUNT] = {
#define KERN_BEGIN(k)                                                                              \
    [KERN_##k] = { #k,        sizeof(struct kern_##k), params_##k, COUNT(params_##k),              \
                   views_##k, COUNT(views_##k),        blocks_##k, threads_##k,                    \
                   groups_##k },
#include "kernels/kernel.def"
};

void spec_list(const struct spec *s, const void *arguments, void *params[SPEC_PARAMS_MAX]) {
    for (uint32_t i = 0; i < s->param_count; i++)
        params[i] = (char *)(uintptr_t)arguments + s->params[i].offset;
}

void spec_gather(const struct spec *s, void *const *params, void *arguments) {
    for (uint32_t i = 0; i < s->param_count; i++) {
        char *to = (char *)arguments + s->params[i].offset;
        if (s->params[i].size == sizeof(uint64_t)) /* sizes that the compiler knows: no calls */
            memcpy(to, params[i], sizeof(uint64_t));
        else
            memcpy(to, params[i], sizeof(uint32_t));
    }
}

const char *kern_name(enum kern_id id) {
    return (unsigned)id < KERN_COUNT ? spec_table[id].name : "?";
}

const char *spec_type_name(enum spec_type type) {
    static const char *const names[] = { [SPEC_F32] = "F32",
                                         [SPEC_I32] = "I32",
                                         [SPEC_I8] = "I8",
                                         [SPEC_MATRIX] = "a type weights may have",
                                         [SPEC_CACHE] = "F16 or Q8_0" };
    return names[type];
}

bool spec_type_allows(enum spec_type wanted, uint32_t type) {
    switch (wanted) {
    case SPEC_F32:
        return type == TENSOR_TYPE_F32;
    case SPEC_I32:
        return type == TENSOR_TYPE_I32;
    case SPEC_I8:
        return type == TENSOR_TYPE_I8;
    case SPEC_CACHE:
        return type == TENSOR_TYPE_F16 || type == TENSOR_TYPE_Q8_0;
    case SPEC_MATRIX:
        return tensor_type_is_computable(type);
    }
    return false;
}
