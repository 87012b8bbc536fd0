/* attention.c - attention as a softmax that streams over tiles of keys and values.
 *
 * A block of work is a key head, a few tokens, and a range of their context. The queries of all
 * tokens and of all heads that share the key head are the rows of a small matrix, token by token.
 * Every tile of keys and values is decoded once for all of them:
 *
 *   scores[rows, tile]  = queries[rows, head_size] . keys[tile, head_size]
 *   scores              = exp(scores - the highest so far), row by row
 *   sums[rows, head_size] = sums, shrunk if the highest rose, + scores . values[tile, head_size]
 *
 * No row of scores is ever whole. A score is only computed, and a value only weighed, for positions
 * that the token may see: a NaN further on in the batch is none of its business. Where there are
 * several ranges, attention_merge joins them; how a context is divided is the launch's choice and
 * does not depend on the number of cores. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/native.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/scratch.h"

#define FLOATS(view) ((float *)(view).ptr)
#define INTS(view)   ((const int32_t *)(view).ptr)

enum {
    TILE = 64,                      /* positions that are decoded at once */
    TILE_STRIDE = TILE + OPS_LANES, /* columns are multiplied 16 at a time, from any of them on */
    CHUNK = 32,                     /* rows whose scores are held at once */
    TRANSPOSED_ROWS = 8,            /* so many pay for turning the keys */
};

_Static_assert(KERN_LANES % OPS_LANES == 0, "parts are multiplied as they are");

/* Tokens of the batch whose positions follow each other. Positions are named by their rows of the
 * cache. */
struct run {
    uint64_t token, count; /* the first one's number in the batch */
    uint64_t row;          /* the first one's */
    uint64_t seen;         /* positions it sees, itself included */
    uint64_t fresh;        /* the row from which on keys and values are in the batch … */
    uint64_t fresh_token;  /* … with this token */
};

/* What a thread works on: one run's queries for one key head, and a tile of its context. */
struct job {
    const struct kern_attention *a;
    const struct ops *o;
    struct run run;
    uint32_t kv_head, group;         /* group: query heads that share it */
    size_t width;                    /* head_size, rounded up: what is beyond it is 0 */
    struct ops_matrix queries, sums; /* [count * group, width] */
    struct ops_matrix scores;        /* [CHUNK, TILE_STRIDE] */
    struct ops_matrix keys, values;  /* [TILE, width] */
    struct ops_matrix turned;        /* [head_size, TILE_STRIDE]: keys, if there are many rows */
    struct ops_matrix key_room, value_room; /* [TILE, width] for those that must be decoded */
    float *highest, *total;                 /* [count * group] */
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* ---- where things are ------------------------------------------------------------------------ */

static uint64_t seen_by(const struct kern_attention *a, uint64_t token) {
    uint64_t all = (uint64_t)INTS(a->pos)[token] + 1;
    return a->window ? least(all, a->window) : all;
}

static bool follows(const struct kern_attention *a, uint64_t token) {
    return token > 0 && INTS(a->slots)[token] == INTS(a->slots)[token - 1] + 1 &&
           INTS(a->pos)[token] == INTS(a->pos)[token - 1] + 1;
}

/* The run that begins with a token and ends before `last` at the latest. */
static struct run find_run(const struct kern_attention *a, uint64_t token, uint64_t last) {
    struct run r = { .token = token, .count = 1, .row = (uint64_t)INTS(a->slots)[token] };
    r.seen = seen_by(a, token);
    while (token + r.count < last && follows(a, token + r.count))
        r.count++;
    uint64_t before = 0;
    while (before + 1 < r.seen && follows(a, token - before))
        before++;
    r.fresh = r.row - before;
    r.fresh_token = token - before;
    return r;
}

/* The rows a token of the run sees: [*from, *to). */
static void find_limits(const struct job *j, uint64_t i, uint64_t *from, uint64_t *to) {
    *to = j->run.row + i + 1;
    *from = *to - seen_by(j->a, j->run.token + i);
}

/* Rows [row, row + count) of one head's keys or values, as floats: where they are, or decoded into
 * room. All are in the batch, or none. */
static struct ops_matrix load_tile(const struct job *j, const struct kern_view *cache,
                                   const struct kern_view *batch, struct ops_matrix room,
                                   uint64_t row, uint64_t count) {
    size_t size = j->a->head_size, at = j->kv_head * size, whole = j->a->kv_heads * size;
    bool fresh = row >= j->run.fresh;
    float *in_batch =
        fresh ? FLOATS(*batch) + (j->run.fresh_token + row - j->run.fresh) * whole + at : NULL;
    if (fresh && size == j->width)
        return (struct ops_matrix){ in_batch, whole };
    enum tensor_type type = fresh ? TENSOR_TYPE_F32 : (enum tensor_type)cache->type;
    size_t row_bytes = tensor_type_row_bytes(type, whole);
    size_t head_bytes = tensor_type_row_bytes(type, size);
    const char *from =
        fresh ? (const char *)in_batch
              : (const char *)cache->ptr + row * row_bytes + tensor_type_row_bytes(type, at);
    for (uint64_t i = 0; i < count; i++, from += row_bytes) {
        float *to = room.at + i * room.stride;
        for (size_t ahead = 0; ahead < head_bytes; ahead += 64)
            __builtin_prefetch(from + TILE * row_bytes + ahead);
        j->o->decode(type, from, to, size);
        memset(to + size, 0, (j->width - size) * sizeof *to);
    }
    return room;
}

/* ---- a tile ---------------------------------------------------------------------------------- */

/* Scores of `rows` rows from `row` on with positions [from, to) of the tile. */
static void find_scores(const struct job *j, size_t row, size_t rows, size_t from, size_t to) {
    struct ops_matrix q = { j->queries.at + row * j->queries.stride, j->queries.stride };
    if (j->turned.at) {
        struct ops_matrix keys = { j->turned.at + from, j->turned.stride };
        size_t columns = (to - from + OPS_LANES - 1) / OPS_LANES * OPS_LANES;
        j->o->multiply(j->scores, q, keys, rows, columns, j->a->head_size, false);
        return;
    }
    struct ops_matrix keys = { j->keys.at + from * j->keys.stride, j->keys.stride };
    for (size_t i = 0; i < rows; i++)
        j->o->dot_rows(j->scores.at + i * j->scores.stride, q.at + i * q.stride, keys, to - from,
                       j->width);
}

/* Scores to weights; what was summed so far shrinks if the highest score rises. */
static void weigh(const struct job *j, size_t row, float *scores, size_t count) {
    float *sums = j->sums.at + row * j->sums.stride, before = j->highest[row];
    float sum = j->o->exp_below(scores, count, &j->highest[row]);
    if (j->highest[row] > before) {
        float shrink = expf(before - j->highest[row]);
        j->total[row] *= shrink;
        for (size_t i = 0; i < j->width; i++)
            sums[i] *= shrink;
    }
    j->total[row] += sum;
}

/* `rows` rows from `row` on, all of which see positions [from, to) of the tile. */
static void attend_rows(const struct job *j, size_t row, size_t rows, size_t from, size_t to) {
    struct ops_matrix values = { j->values.at + from * j->values.stride, j->values.stride };
    for (size_t done = 0; done < rows; done += CHUNK) {
        size_t n = least(rows - done, CHUNK), at = row + done;
        find_scores(j, at, n, from, to);
        for (size_t i = 0; i < n; i++)
            weigh(j, at + i, j->scores.at + i * j->scores.stride, to - from);
        struct ops_matrix sums = { j->sums.at + at * j->sums.stride, j->sums.stride };
        j->o->multiply(sums, j->scores, values, n, j->width, to - from, true);
    }
}

/* The tile of rows [row, row + count): tokens that see the same of it go together. */
static void attend_tile(struct job *j, uint64_t row, uint64_t count) {
    j->keys = load_tile(j, &j->a->keys, &j->a->k, j->key_room, row, count);
    if (j->turned.at)
        j->o->transpose(j->turned, j->keys, count, j->a->head_size);
    j->values = load_tile(j, &j->a->values, &j->a->v, j->value_room, row, count);
    uint64_t begin = 0, from = 0, to = 0;
    for (uint64_t i = 0; i <= j->run.count; i++) {
        uint64_t first = 0, last = 0;
        if (i < j->run.count) {
            find_limits(j, i, &first, &last);
            first = most(first, row) - row;
            last = most(row, least(last, row + count)) - row;
        }
        if (i < j->run.count && first == from && last == to)
            continue;
        if (from < to)
            attend_rows(j, begin * j->group, (i - begin) * j->group, from, to);
        begin = i, from = first, to = last;
    }
}

/* ---- a block of work ------------------------------------------------------------------------- */

static float *take(float **room, size_t floats) {
    float *at = *room;
    *room += (floats + OPS_LANES - 1) / OPS_LANES * OPS_LANES;
    return at;
}

/* Room for a run, the queries in it, scaled. */
static void begin_job(struct job *j) {
    const struct kern_attention *a = j->a;
    size_t rows = j->run.count * j->group, width = j->width;
    size_t floats = 2 * rows * width + 2 * (rows + OPS_LANES) + CHUNK * TILE_STRIDE +
                    2 * TILE * width + width * TILE_STRIDE;
    float *room = scratch_need(SCRATCH_HEADS, floats * sizeof *room);
    j->queries = (struct ops_matrix){ take(&room, rows * width), width };
    j->sums = (struct ops_matrix){ take(&room, rows * width), width };
    j->scores = (struct ops_matrix){ take(&room, CHUNK * TILE_STRIDE), TILE_STRIDE };
    j->key_room = (struct ops_matrix){ take(&room, TILE * width), width };
    j->value_room = (struct ops_matrix){ take(&room, TILE * width), width };
    j->highest = take(&room, rows);
    j->total = take(&room, rows);
    j->turned = (struct ops_matrix){ rows >= TRANSPOSED_ROWS ? room : NULL, TILE_STRIDE };
    memset(j->sums.at, 0, rows * width * sizeof *room);
    for (size_t r = 0; r < rows; r++) {
        uint64_t token = j->run.token + r / j->group;
        const float *q =
            FLOATS(a->q) + (token * a->heads + j->kv_head * j->group + r % j->group) * a->head_size;
        float *to = j->queries.at + r * width;
        for (size_t i = 0; i < width; i++)
            to[i] = i < a->head_size ? q[i] * a->scale : 0;
        j->highest[r] = -INFINITY;
        j->total[r] = 0;
    }
}

/* One row of `parts`: the sums, then the highest score and the sum of weights. */
static void put_part(const struct job *j, size_t row, uint64_t head, uint32_t range) {
    size_t size = KERN_PART(j->a->head_size);
    float *out = FLOATS(j->a->parts) + (head * j->a->ranges + range) * size;
    memcpy(out, j->sums.at + row * j->sums.stride, j->width * sizeof *out);
    memset(out + j->width, 0, (size - j->width) * sizeof *out);
    out[j->width] = j->highest[row];
    out[j->width + 1] = j->total[row];
}

static void end_job(const struct job *j, uint32_t range) {
    const struct kern_attention *a = j->a;
    for (size_t r = 0; r < j->run.count * j->group; r++) {
        uint64_t head =
            (j->run.token + r / j->group) * a->heads + j->kv_head * j->group + r % j->group;
        if (a->ranges > 1) {
            put_part(j, r, head, range);
            continue;
        }
        const float *sums = j->sums.at + r * j->sums.stride;
        float *out = FLOATS(a->out) + head * a->head_size;
        for (uint32_t i = 0; i < a->head_size; i++)
            out[i] = sums[i] / j->total[r];
    }
}

/* Range `range` of a run's context; the last one goes on to its end. */
static void attend(struct job *j, uint32_t range) {
    const struct kern_attention *a = j->a;
    uint64_t from, to, end = j->run.row + j->run.count;
    begin_job(j);
    find_limits(j, 0, &from, &to);
    from += (uint64_t)range * a->range;
    to = range + 1 < a->ranges ? least(from + a->range, end) : end;
    while (from < to) {
        uint64_t next = least(from + TILE, to);
        if (from < j->run.fresh)
            next = least(next, j->run.fresh);
        attend_tile(j, from, next - from);
        from = next;
    }
    end_job(j, range);
}

/* Blocks are counted from the last tokens on: those have the most to do. */
void cpu_attention(const struct greta_soft_work *work, const struct kern_attention *a) {
    struct job j = { .a = a, .o = ops(), .group = a->heads / a->kv_heads };
    j.width = KERN_PART_SUMS(a->head_size);
    for (uint64_t b = work->first; b < work->last; b++) {
        uint32_t range = (uint32_t)(b % a->ranges);
        uint64_t tokens = KERN_TOKEN_BLOCKS(a->tokens) - 1 - b / a->ranges / a->kv_heads;
        uint64_t last = least((tokens + 1) * KERN_TOKENS, a->tokens);
        j.kv_head = (uint32_t)(b / a->ranges % a->kv_heads);
        for (uint64_t t = tokens * KERN_TOKENS; t < last; t += j.run.count) {
            j.run = find_run(a, t, last);
            attend(&j, range);
        }
    }
}

/* ---- ranges joined --------------------------------------------------------------------------- */

void cpu_attention_merge(const struct greta_soft_work *work, const struct kern_attention_merge *a) {
    size_t size = KERN_PART(a->head_size), width = KERN_PART_SUMS(a->head_size);
    float *weights = scratch_need(SCRATCH_HEADS, (a->ranges + OPS_LANES + width) * sizeof *weights);
    float *sums = weights + (a->ranges + OPS_LANES - 1) / OPS_LANES * OPS_LANES;
    for (uint64_t head = work->first * a->heads; head < work->last * a->heads; head++) {
        struct ops_matrix parts = { FLOATS(a->parts) + head * a->ranges * size, size };
        float top = -INFINITY, total = 0;
        for (uint32_t r = 0; r < a->ranges; r++)
            top = fmaxf(top, parts.at[r * size + width]);
        for (uint32_t r = 0; r < a->ranges; r++) {
            weights[r] = expf(parts.at[r * size + width] - top);
            total += weights[r] * parts.at[r * size + width + 1];
        }
        ops()->multiply((struct ops_matrix){ sums, width }, (struct ops_matrix){ weights, 0 },
                        parts, 1, width, a->ranges, false);
        for (uint32_t i = 0; i < a->head_size; i++)
            FLOATS(a->out)[head * a->head_size + i] = sums[i] / total;
    }
}
