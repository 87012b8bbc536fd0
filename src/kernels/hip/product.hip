/* product.hip - the operands of a product; matmul.hip has the kernels, which gemv.hip and gemm.hip serve. */

enum {
    GEMV_TOKENS = 4,    /* KERN_FEW of kern.h */
    GEMV_GROUP = 8,     /* rows of a group */
    TILE_ROWS = 128,    /* of a group */
    TILE_TOKENS = 64,
};

struct product {
    float *out;
    const u8 *weight;
    const float *bias; /* NULL: none */
    u32 type, n;
};

/* What the weights are multiplied with. */
struct input {
    const float *x;
    struct levels levels;
    u32 tokens, k;
    u32 run; /* elements that share a scale of levels: 16 or 32 */
};

DEVICE void put(const struct product *p, u32 token, u32 row, float value, u32 added) {
    float *out = p->out + (u64)token * p->n + row;
    if (p->bias)
        value += p->bias[row];
    *out = added ? *out + value : value;
}

