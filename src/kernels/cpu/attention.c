/* attention.c - attention as a softmax that streams over tiles of keys and values.
 *
 * A block of work is a key head, a few tokens, and a range of their context. The queries of all
 * tokens and of all heads that share the key head are the rows of a small matrix, token by token;
 * they are worked on in chunks. Every tile of keys and values is decoded once for all of them:
 *
 *   scores[tile, rows]    = keys[tile, head_size] . queries[rows, head_size]
 *   scores                = exp(scores - the highest so far of each row)
 *   sums[rows, head_size] = sums, shrunk if the highest rose, + scores . values[tile, head_size]
 *
 * No row of scores is ever whole. Scores of positions that a token may not see are struck out, and
 * their values are not even weighed: a NaN further on in the batch is none of its business. Where
 * there are several ranges, attention_merge joins them; how a context is divided is the launch's
 * choice and does not depend on the number of cores. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/native.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/scratch.h"

#define FLOATS(view) ((float *)(view).ptr)
#define INTS(view)   ((const int32_t *)(view).ptr)

enum {
    TILE = 64,       /* positions that are decoded at once */
    CHUNK = 32,      /* rows whose scores are held at once */
    DIRECT_ROWS = 8, /* so few have values decoded as they are weighed */
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
    uint32_t kv_head, group;            /* group: query heads that share it */
    size_t width;                       /* head_size, rounded up: what is beyond it is 0 */
    size_t rows;                        /* count * group */
    float *queries;                     /* [chunks, CHUNK * width], as ops.h has them */
    struct ops_matrix sums;             /* [chunks * CHUNK, width] */
    float *scores;                      /* [TILE, CHUNK] */
    float *highest, *total, *shrink;    /* [chunks * CHUNK] */
    struct ops_matrix keys, value_room; /* [TILE, width] */
    struct ops_rows values;             /* [TILE]: there, or in the cache */
};

/* Rows that see [from, to) of a tile. */
struct part {
    size_t row, count, from, to;
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static size_t pad(size_t n) {
    return (n + OPS_LANES - 1) / OPS_LANES * OPS_LANES;
}

/* So many lanes do for a chunk of n rows: what ops.h calls rows. */
static size_t lanes_for(size_t n) {
    size_t lanes = 1;
    while (lanes < n)
        lanes *= 2;
    return lanes;
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

/* The number of a row's query, and of its result, in the batch. */
static uint64_t find_head(const struct job *j, size_t row) {
    uint64_t token = j->run.token + row / j->group;
    return token * j->a->heads + j->kv_head * j->group + row % j->group;
}

/* One head's keys or values from a row of the cache on: there or, if they are fresh, in the batch.
 */
static struct ops_rows find_rows(const struct job *j, const struct kern_view *cache,
                                 const struct kern_view *batch, uint64_t row) {
    size_t size = j->a->head_size, whole = j->a->kv_heads * size;
    bool fresh = row >= j->run.fresh;
    enum tensor_type type = fresh ? TENSOR_TYPE_F32 : (enum tensor_type)cache->type;
    uint64_t at = fresh ? j->run.fresh_token + row - j->run.fresh : row;
    size_t bytes = tensor_type_row_bytes(type, whole);
    const char *from = (fresh ? batch : cache)->ptr;
    return (struct ops_rows){ type,
                              from + at * bytes + tensor_type_row_bytes(type, j->kv_head * size),
                              bytes };
}

/* Decoded to floats, with zeros up to the next multiple of OPS_LANES. Even floats are copied: rows
 * that are far apart get in each other's way in the cache of a core. */
static struct ops_rows load_rows(const struct job *j, struct ops_rows from, struct ops_matrix to,
                                 uint64_t count) {
    size_t size = j->a->head_size;
    j->o->decode_rows(to, from, count, size);
    for (uint64_t i = 0; size < j->width && i < count; i++)
        memset(to.at + i * to.stride + size, 0, (j->width - size) * sizeof *to.at);
    memset(to.at + count * to.stride, 0, (pad(count) - count) * to.stride * sizeof *to.at);
    return (struct ops_rows){ TENSOR_TYPE_F32, to.at, to.stride * sizeof *to.at };
}

static bool is_weighed_directly(const struct job *j, enum tensor_type type) {
    return type == TENSOR_TYPE_F16 && j->rows <= DIRECT_ROWS && j->a->head_size == j->width;
}

/* ---- a tile ---------------------------------------------------------------------------------- */

/* Rows [row, last), those together that see the same of the tile of rows [tile, tile + count).
 * Returns how many parts there are. */
static size_t find_parts(const struct job *j, size_t row, size_t last, uint64_t tile,
                         uint64_t count, struct part parts[CHUNK]) {
    size_t n = 0;
    for (uint64_t token = row / j->group; row < last; token++) {
        size_t rows = least(last, (token + 1) * j->group) - row;
        uint64_t from, to;
        find_limits(j, token, &from, &to);
        from = least(most(from, tile), tile + count) - tile;
        to = most(least(to, tile + count), tile) - tile;
        if (n > 0 && parts[n - 1].from == from && parts[n - 1].to == to)
            parts[n - 1].count += rows;
        else
            parts[n++] = (struct part){ row, rows, from, to };
        row += rows;
    }
    return n;
}

static void strike(float *scores, size_t lanes, size_t rows, size_t from, size_t to) {
    for (size_t p = from; p < to; p++)
        for (size_t r = 0; r < rows; r++)
            scores[p * lanes + r] = -INFINITY;
}

/* A chunk of rows, from `row` on, and those positions of a tile that any of them sees. */
static void attend_chunk(const struct job *j, size_t row, uint64_t tile, uint64_t count) {
    struct part parts[CHUNK];
    size_t rows = least(CHUNK, j->rows - row), lanes = lanes_for(rows);
    size_t n = find_parts(j, row, row + rows, tile, count, parts);
    size_t from = parts[0].from / OPS_LANES * OPS_LANES, to = parts[n - 1].to;
    if (from >= to)
        return;
    size_t positions = pad(to - from);
    struct ops_matrix keys = { j->keys.at + from * j->keys.stride, j->keys.stride };
    j->o->score(j->scores, j->queries + row * j->width, keys, lanes, positions, j->width);
    for (struct part *p = parts; p < parts + n; p++) {
        float *scores = j->scores + p->row - row;
        strike(scores, lanes, p->count, 0, least(p->from - from, positions));
        strike(scores, lanes, p->count, most(p->to, from) - from, positions);
    }
    j->o->soften(j->scores, j->highest + row, j->total + row, j->shrink + row, lanes, positions);
    for (struct part *p = parts; p < parts + n; p++) {
        if (p->from >= p->to)
            continue;
        struct ops_matrix sums = { j->sums.at + p->row * j->sums.stride, j->sums.stride };
        struct ops_matrix weights = { j->scores + (p->from - from) * lanes + p->row - row, lanes };
        struct ops_rows values = j->values;
        values.at = (const char *)values.at + p->from * values.bytes;
        j->o->add_weighted(sums, j->shrink + p->row, weights, values, p->count, p->to - p->from,
                           j->width);
    }
}

/* Sends for rows of the cache that are wanted soon. */
static void send_for(const struct job *j, const struct kern_view *cache, uint64_t row,
                     uint64_t count) {
    struct ops_rows rows = find_rows(j, cache, NULL, row);
    size_t bytes = tensor_type_row_bytes(rows.type, j->a->head_size);
    for (uint64_t i = 0; i < count; i++)
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch((const char *)rows.at + i * rows.bytes + at);
}

/* The values of this tile and the keys of the next come in while scores are computed. */
static void attend_tile(struct job *j, uint64_t row, uint64_t count) {
    uint64_t next = row + count, fresh = j->run.fresh;
    load_rows(j, find_rows(j, &j->a->keys, &j->a->k, row), j->keys, count);
    if (row < fresh)
        send_for(j, &j->a->values, row, count);
    if (next < fresh)
        send_for(j, &j->a->keys, next, least(TILE, fresh - next));
    j->values = find_rows(j, &j->a->values, &j->a->v, row);
    if (!is_weighed_directly(j, j->values.type))
        j->values = load_rows(j, j->values, j->value_room, count);
    for (size_t r = 0; r < j->rows; r += CHUNK)
        attend_chunk(j, r, row, count);
}

/* ---- a block of work ------------------------------------------------------------------------- */

static float *take(float **room, size_t floats) {
    float *at = *room;
    *room += pad(floats);
    return at;
}

/* The queries of a chunk, scaled. */
static void load_queries(const struct job *j, size_t row, float *room) {
    const struct kern_attention *a = j->a;
    size_t count = least(CHUNK, j->rows - row), lanes = lanes_for(count), width = j->width;
    size_t share = OPS_SHARE(lanes);
    if (count < lanes || a->head_size < width)
        memset(room, 0, lanes * width * sizeof *room);
    for (size_t i = 0; i < count; i++)
        j->o->scale(room + i * width, FLOATS(a->q) + find_head(j, row + i) * a->head_size, a->scale,
                    NULL, a->head_size);
    j->o->transpose((struct ops_matrix){ j->queries + row * width, lanes * share },
                    (struct ops_matrix){ room, width }, lanes, width / share, share);
}

/* Room for a run, the queries in it. */
static void begin_job(struct job *j) {
    j->rows = j->run.count * j->group;
    size_t rows = (j->rows + CHUNK - 1) / CHUNK * CHUNK, width = j->width;
    size_t floats = 2 * rows * width + 3 * rows + CHUNK * TILE + 2 * TILE * width;
    float *room = scratch_need(SCRATCH_HEADS, floats * sizeof *room);
    j->queries = take(&room, rows * width);
    j->sums = (struct ops_matrix){ take(&room, rows * width), width };
    j->scores = take(&room, CHUNK * TILE);
    j->keys = (struct ops_matrix){ take(&room, TILE * width), width };
    j->value_room = (struct ops_matrix){ take(&room, TILE * width), width };
    j->highest = take(&room, rows);
    j->total = take(&room, rows);
    j->shrink = take(&room, rows);
    memset(j->sums.at, 0, rows * width * sizeof *room);
    for (size_t r = 0; r < rows; r++) {
        j->highest[r] = -FLT_MAX; /* below it is only what nobody sees */
        j->total[r] = 0;
    }
    for (size_t r = 0; r < j->rows; r += CHUNK)
        load_queries(j, r, j->keys.at);
}

/* The sum of a row's weights; a row of a small chunk has several. */
static float find_total(const struct job *j, size_t row) {
    size_t chunk = row / CHUNK * CHUNK, lanes = lanes_for(least(CHUNK, j->rows - chunk));
    float total = 0;
    for (size_t l = 0; l < OPS_SHARE(lanes); l++)
        total += j->total[row + l * lanes];
    return total;
}

/* One row of `parts`: the sums, then the highest score and the sum of weights. */
static void put_part(const struct job *j, size_t row, uint64_t head, uint32_t range) {
    size_t size = KERN_PART(j->a->head_size);
    float *out = FLOATS(j->a->parts) + (head * j->a->ranges + range) * size;
    memcpy(out, j->sums.at + row * j->sums.stride, j->width * sizeof *out);
    memset(out + j->width, 0, (size - j->width) * sizeof *out);
    out[j->width] = j->highest[row];
    out[j->width + 1] = find_total(j, row);
}

static void end_job(const struct job *j, uint32_t range) {
    const struct kern_attention *a = j->a;
    for (size_t r = 0; r < j->rows; r++) {
        uint64_t head = find_head(j, r);
        if (a->ranges > 1) {
            put_part(j, r, head, range);
            continue;
        }
        j->o->scale(FLOATS(a->out) + head * a->head_size, j->sums.at + r * j->sums.stride,
                    1 / find_total(j, r), NULL, a->head_size);
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

/* Blocks are counted from the last tokens on: those have the most to do. The heads of one range
 * follow each other, as their keys and values do in memory. */
void cpu_attention(const struct greta_soft_work *work, const struct kern_attention *a) {
    struct job j = { .a = a, .o = ops(), .group = a->heads / a->kv_heads };
    j.width = KERN_PART_SUMS(a->head_size);
    for (uint64_t b = work->first; b < work->last; b++) {
        uint32_t range = (uint32_t)(b / a->kv_heads % a->ranges);
        uint64_t tokens = KERN_TOKEN_BLOCKS(a->tokens) - 1 - b / a->ranges / a->kv_heads;
        uint64_t last = least((tokens + 1) * KERN_TOKENS, a->tokens);
        j.kv_head = (uint32_t)(b % a->kv_heads);
        for (uint64_t t = tokens * KERN_TOKENS; t < last; t += j.run.count) {
            j.run = find_run(a, t, last);
            attend(&j, range);
        }
    }
}

/* ---- ranges joined --------------------------------------------------------------------------- */

void cpu_attention_merge(const struct greta_soft_work *work, const struct kern_attention_merge *a) {
    size_t size = KERN_PART(a->head_size), width = KERN_PART_SUMS(a->head_size);
    float *weights = scratch_need(SCRATCH_HEADS, (pad(a->ranges) + width) * sizeof *weights);
    float *sums = weights + pad(a->ranges);
    const float whole = 1;
    for (uint64_t head = work->first * a->heads; head < work->last * a->heads; head++) {
        const float *parts = FLOATS(a->parts) + head * a->ranges * size;
        float top = -FLT_MAX, total = 0;
        for (uint32_t r = 0; r < a->ranges; r++)
            top = fmaxf(top, parts[r * size + width]);
        for (uint32_t r = 0; r < a->ranges; r++) {
            weights[r] = expf(parts[r * size + width] - top);
            total += weights[r] * parts[r * size + width + 1];
        }
        memset(sums, 0, width * sizeof *sums);
        ops()->add_weighted(
            (struct ops_matrix){ sums, width }, &whole, (struct ops_matrix){ weights, 1 },
            (struct ops_rows){ TENSOR_TYPE_F32, parts, size * sizeof *parts }, 1, a->ranges, width);
        ops()->scale(FLOATS(a->out) + head * a->head_size, sums, 1 / total, NULL, a->head_size);
    }
}
