/* bench_ops - the inner loops of the small kernels and of attention: nanoseconds of each on each
 * instruction set, and how much faster than the scalar twin that is; sizes are those of a 1.1B
 * model. Then attention as a whole, of one token after 1,800 others and of a prompt, on one core,
 * with the best set that GRETA_CPU allows. It promises nothing: test_ops says whether the results
 * are right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "kernels/cpu/native.h"
#include "kernels/cpu/ops.h"
#include "model/quant/quant.h"

enum { DIM = 2048, HIDDEN = 5632, HEAD = 64, TILE = 64, GROUP = 8, CHUNK = 32, ROUNDS = 7 };

static _Alignas(64) float x[HIDDEN], y[HIDDEN], out[HIDDEN], tile[TILE * TILE], turned[TILE * TILE];
static uint16_t halves[DIM];
static unsigned char q8_0[DIM / 32 * 34];
static const struct ops *set;
static volatile double sink;

/* ---- one function each, its work of one call ------------------------------------------------- */

static const struct ops_matrix keys = { tile, TILE }, columns = { turned, TILE };

static void decode_f16(void) {
    set->decode(TENSOR_TYPE_F16, halves, out, DIM);
}
static void decode_q8_0(void) {
    set->decode(TENSOR_TYPE_Q8_0, q8_0, out, DIM);
}
static void encode_f16(void) {
    set->encode_f16(x, halves, DIM);
}
static void sum_squares(void) {
    sink = set->sum_squares(x, DIM);
}
static void scale(void) {
    set->scale(out, x, 0.5f, y, DIM);
}
static void swiglu(void) {
    set->swiglu(out, x, y, HIDDEN);
}
static void rotate_halves(void) {
    set->rotate_halves(out, x, y, HEAD / 2);
}
static void rotate_neighbours(void) {
    set->rotate_neighbours(out, x, y, HEAD / 2);
}
static void transpose(void) {
    set->transpose(columns, keys, TILE, HEAD, 1);
}
static void score(void) {
    set->score(out, x, keys, GROUP, TILE, HEAD);
}
static void score_one(void) {
    set->score(out, x, keys, 1, TILE, HEAD);
}
static void score_many(void) {
    set->score(out, x, keys, CHUNK, TILE, HEAD);
}
static void soften(void) { /* what is there decays to exp(-1), exp(exp(-1) - 1), …: all alike */
    float highest[OPS_LANES], total[OPS_LANES], shrink[OPS_LANES];
    for (int i = 0; i < OPS_LANES; i++)
        highest[i] = 1, total[i] = 0;
    set->soften(out, highest, total, shrink, GROUP, TILE);
    sink = (double)total[0];
}
static const struct ops_rows values = { TENSOR_TYPE_F32, tile, TILE * sizeof *tile };

static void add_weighted(void) {
    static float shrink[GROUP];
    set->add_weighted((struct ops_matrix){ out, HEAD }, shrink, (struct ops_matrix){ x, GROUP },
                      values, GROUP, TILE, HEAD);
}
static void add_weighted_halves(void) {
    static float shrink[GROUP];
    static const struct ops_rows rows = { TENSOR_TYPE_F16, halves, HEAD * sizeof *halves };
    set->add_weighted((struct ops_matrix){ out, HEAD }, shrink, (struct ops_matrix){ x, GROUP },
                      rows, GROUP, DIM / HEAD, HEAD);
}
static void add_weighted_one(void) {
    static float shrink[1];
    set->add_weighted((struct ops_matrix){ out, HEAD }, shrink, (struct ops_matrix){ x, 1 }, values,
                      1, TILE, HEAD);
}

static const struct {
    const char *what;
    void (*run)(void);
} functions[] = {
    { "decode F16, 2048", decode_f16 },
    { "decode Q8_0, 2048", decode_q8_0 },
    { "encode F16, 2048", encode_f16 },
    { "sum_squares, 2048", sum_squares },
    { "scale, 2048", scale },
    { "swiglu, 5632", swiglu },
    { "rotate_halves, 32 pairs", rotate_halves },
    { "rotate_neighbours, 32 pairs", rotate_neighbours },
    { "transpose, 64 x 64", transpose },
    { "score, 8 rows, 64 x 64", score },
    { "score, 1 row, 64 x 64", score_one },
    { "score, 32 rows, 64 x 64", score_many },
    { "soften, 8 rows, 64", soften },
    { "add_weighted, 8 rows, 64 x 64", add_weighted },
    { "add_weighted, 8 rows, 32 x 64 F16", add_weighted_halves },
    { "add_weighted, 1 row, 64 x 64", add_weighted_one },
};

/* Nanoseconds of a call: the best of several rounds. */
static double time_of(void (*run)(void), int calls) {
    double best = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_now_ns();
        for (int i = 0; i < calls; i++)
            run();
        best = fmin(best, (double)(clock_now_ns() - start) / calls);
    }
    return best;
}

/* ---- attention ------------------------------------------------------------------------------- */

enum {
    PAST = 1800,
    HEADS = 32,
    KV_HEADS = 4,
    LAYERS = 22,
    TURNS = 10,
    RANGES = (PAST + KERN_RANGE) / KERN_RANGE,
    PROMPT = 512
};

static struct kern_attention attention;
static int32_t table[KERN_BLOCKS(PAST + 1)]; /* the blocks of the one sequence, in order */

static void attend(void) {
    struct greta_soft_work w = { .last = (uint64_t)KV_HEADS * RANGES };
    cpu_attention(&w, &attention);
    struct kern_attention_merge m = { .out = attention.out,
                                      .parts = attention.parts,
                                      .tokens = 1,
                                      .heads = HEADS,
                                      .head_size = HEAD,
                                      .ranges = RANGES };
    w = (struct greta_soft_work){ .last = 1 };
    cpu_attention_merge(&w, &m);
}

/* A different cache every time, as every layer has its own: it comes from memory, as it does where
 * the weights of a model have been read in between. */
static void attend_layers(void) {
    static size_t turn;
    size_t bytes = sizeof table / sizeof *table * KERN_BLOCK *
                   tensor_type_row_bytes(attention.keys.type, KV_HEADS * HEAD);
    char *first = attention.keys.ptr, *at = first + turn++ % TURNS * 2 * LAYERS * bytes;
    for (int layer = 0; layer < LAYERS; layer++, at += 2 * bytes) {
        attention.keys.ptr = at;
        attention.values.ptr = at + bytes;
        attend();
    }
    attention.keys.ptr = first;
}

static struct kern_attention describe(char *caches, enum tensor_type type) {
    for (int32_t i = 0; i < (int32_t)(sizeof table / sizeof *table); i++)
        table[i] = i;
    return (struct kern_attention){ .out.ptr = out,
                                    .q.ptr = x,
                                    .keys = { caches, 0, type, "keys" },
                                    .values = { caches, 0, type, "values" },
                                    .tables.ptr = table,
                                    .sequences = 1,
                                    .table_width = sizeof table / sizeof *table,
                                    .tokens = 1,
                                    .heads = HEADS,
                                    .kv_heads = KV_HEADS,
                                    .head_size = HEAD,
                                    .rows = sizeof table / sizeof *table * KERN_BLOCK,
                                    .ranges = 1,
                                    .scale = 0.125f };
}

static int time_token(enum tensor_type type) {
    size_t bytes =
        sizeof table / sizeof *table * KERN_BLOCK * tensor_type_row_bytes(type, KV_HEADS * HEAD);
    static int32_t pos = PAST, seq;
    static float parts[HEADS * RANGES * (HEAD + 16)];
    size_t page = (size_t)1 << 21, all = (TURNS * 2 * LAYERS * bytes / page + 1) * page;
    char *caches = aligned_alloc(page, all);
    if (!caches)
        return 1;
    madvise(caches, all, MADV_HUGEPAGE); /* as the device does */
    memset(caches, 1, all);
    for (size_t at = 0; at + sizeof halves <= all && type == TENSOR_TYPE_F16; at += sizeof halves)
        memcpy(caches + at, halves, sizeof halves);
    attention = describe(caches, type);
    attention.parts.ptr = parts;
    attention.pos.ptr = &pos;
    attention.seqs.ptr = &seq;
    attention.ranges = RANGES;
    printf(
        "attention of %d layers, 1 token behind %d, 32 heads, 4 of keys, %s cache, %s: %.2f ms\n",
        LAYERS, PAST, tensor_type_name(type), ops()->name, time_of(attend_layers, 1) / 1e6);
    free(caches);
    return 0;
}

static void attend_prompt(void) {
    struct greta_soft_work w = { .last = KERN_TOKEN_BLOCKS(PROMPT) * KV_HEADS };
    cpu_attention(&w, &attention);
}

static int time_prompt(void) {
    static int32_t pos[PROMPT], seqs[PROMPT];
    size_t floats = (size_t)PROMPT * HEADS * HEAD;
    float *q = malloc(2 * floats * sizeof *q);
    uint16_t *cache = malloc((size_t)PROMPT * KV_HEADS * HEAD * sizeof *cache);
    if (!q || !cache) {
        free(q);
        free(cache);
        return 1;
    }
    for (size_t i = 0; i < 2 * floats; i++)
        q[i] = x[i % HIDDEN];
    for (size_t i = 0; i < (size_t)PROMPT * KV_HEADS * HEAD; i++)
        cache[i] = halves[i % (sizeof halves / sizeof *halves)];
    for (int i = 0; i < PROMPT; i++)
        pos[i] = i;
    attention = describe((char *)cache, TENSOR_TYPE_F16);
    attention.q.ptr = q;
    attention.out.ptr = q + floats;
    attention.pos.ptr = pos;
    attention.seqs.ptr = seqs;
    attention.tokens = PROMPT;
    printf("attention of a layer, %d tokens, 32 heads, 4 of keys, %s: %.2f ms\n", PROMPT,
           ops()->name, time_of(attend_prompt, 1) / 1e6);
    free(q);
    free(cache);
    return 0;
}

int main(void) {
    for (int i = 0; i < HIDDEN; i++)
        x[i] = sinf((float)i), y[i] = cosf((float)i); /* what turns a pair keeps its length */
    for (int i = 0; i < TILE * TILE; i++)
        tile[i] = turned[i] = sinf((float)i * 0.3f);
    quant_encoder(TENSOR_TYPE_F16)(x, halves, DIM, QUANT_FAST);
    quant_encoder(TENSOR_TYPE_Q8_0)(x, q8_0, DIM, QUANT_FAST);
    puts("set      function                                  ns   times scalar");
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        double plain = 0;
        for (unsigned s = 0; (set = ops_at(s)); s++) {
            double ns = time_of(functions[f].run, 200);
            plain = s == 0 ? ns : plain;
            printf("%-8s %-34s %9.1f %10.1f\n", set->name, functions[f].what, ns, plain / ns);
        }
    }
    return time_token(TENSOR_TYPE_F16) || time_token(TENSOR_TYPE_Q8_0) || time_prompt();
}
