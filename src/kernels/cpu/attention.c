/* attention.c - attention as a softmax that streams over tiles of keys and values.
 *
 * A block of work is a key head, a few tokens, and their context, or one range of it. Every tile of
 * keys and values is decoded once for all tokens; for each of them, the queries of the heads that
 * share the key head are the rows of a small matrix (in chunks, if there are many):
 *
 *   scores[tile, rows]    = keys[tile, head_size] . queries[rows, head_size]
 *   scores                = exp(scores - the highest so far of each row)
 *   sums[rows, head_size] = sums, shrunk if the highest rose, + scores . values[tile, head_size]
 *
 * A whole row of scores never exists at once. Scores of positions that a token may not see are
 * masked, and their values are left out of the sums, so a NaN later in the batch does no harm.
 *
 * A token's result is the same, bit for bit, whatever else is in the batch, unless fresh keys and
 * values are asked for, which are not rounded as those of the cache are. To that end, tiles and
 * ranges begin at multiples of their size, blocks of the cache give the same sums as one piece,
 * ranges are joined from the first to the last, here or by attention_merge, and no token's rows are
 * computed together with another's. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/levels.h"
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
_Static_assert(TILE % KERN_BLOCK == 0 && KERN_BLOCK % OPS_LANES == 0, "tiles are whole blocks");
_Static_assert(KERN_RANGE % TILE == 0 && TILE % OPS_LANES == 0, "tiles do not cross ranges");

/* Tokens of the batch whose positions follow each other. */
struct run {
    uint64_t token, count; /* the first one's number in the batch */
    uint64_t pos;          /* the first one's */
    const int32_t *table;  /* the sequence's blocks of the cache */
    uint64_t fresh;        /* position from which on keys and values are taken from the batch … */
    uint64_t fresh_token;  /* … from this token on */
};

/* What a thread works on: one run's queries for one key head, and a tile of its context. Chunk c
 * has queries of token c / chunks of the run. */
struct job {
    const struct kern_attention *a;
    const struct ops *o;
    struct run run;
    const float *turned;                /* [group, head_size]: queries, if not those of a */
    uint32_t kv_head, group;            /* group: query heads that share it */
    size_t width;                       /* head_size, rounded up: what is beyond it is 0 */
    size_t chunks, lanes, span;         /* of a token; rows of a chunk, also at least OPS_LANES */
    float *queries;                     /* [chunk, lanes * width], as ops.h has them */
    float *sums;                        /* [chunk, lanes, width] */
    float *highest, *total, *shrink;    /* [chunk, span] */
    float *joined;                      /* [chunk, lanes, part]: all ranges so far */
    float *scores;                      /* [TILE, CHUNK] */
    struct ops_matrix keys, value_room; /* [TILE, width] */
    struct ops_rows values[TILE / KERN_BLOCK]; /* in value_room or in the cache: pieces … */
    size_t piece;                              /* … of so many positions */
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

/* The number of lanes for a chunk of n rows: what ops.h calls rows. */
static size_t lanes_for(size_t n) {
    size_t lanes = 1;
    while (lanes < n)
        lanes *= 2;
    return lanes;
}

/* ---- where things are ------------------------------------------------------------------------ */

static bool follows(const struct kern_attention *a, uint64_t token) {
    return token > 0 && INTS(a->seqs)[token] == INTS(a->seqs)[token - 1] &&
           INTS(a->pos)[token] == INTS(a->pos)[token - 1] + 1;
}

/* The run that begins with a token and ends before `last` at the latest. */
static struct run find_run(const struct kern_attention *a, uint64_t token, uint64_t last) {
    struct run r = { .token = token, .count = 1, .pos = (uint64_t)INTS(a->pos)[token] };
    r.table = INTS(a->tables) + (size_t)INTS(a->seqs)[token] * a->table_width;
    while (token + r.count < last && follows(a, token + r.count))
        r.count++;
    r.fresh = a->fresh ? r.pos : UINT64_MAX;
    for (r.fresh_token = token; a->fresh && follows(a, r.fresh_token); r.fresh_token--)
        r.fresh--;
    return r;
}

/* The first position that the token at a position sees; the last is its own. */
static uint64_t first_seen(const struct job *j, uint64_t pos) {
    return j->a->window && pos + 1 > j->a->window ? pos + 1 - j->a->window : 0;
}

static uint64_t end_of(const struct run *r) {
    return r->pos + r->count;
}

static size_t chunk_count(const struct job *j) {
    return j->run.count * j->chunks;
}

static size_t rows_of(const struct job *j, size_t chunk) {
    return least(CHUNK, j->group - chunk % j->chunks * CHUNK);
}

/* The number of a chunk's first query, and of its result, in the batch. */
static uint64_t head_of(const struct job *j, size_t chunk) {
    uint64_t token = j->run.token + chunk / j->chunks;
    return token * j->a->heads + j->kv_head * j->group + chunk % j->chunks * CHUNK;
}

/* One head's keys or values from a position on, as far as its block goes. */
static struct ops_rows find_rows(const struct job *j, const struct kern_view *cache, uint64_t pos) {
    enum tensor_type type = (enum tensor_type)cache->type;
    size_t size = j->a->head_size, bytes = tensor_type_row_bytes(type, j->a->kv_heads * size);
    int64_t block = j->run.table[pos / KERN_BLOCK];
    int64_t row = block * KERN_BLOCK + (int64_t)(pos % KERN_BLOCK);
    const char *at = (const char *)cache->ptr + row * (int64_t)bytes;
    return (struct ops_rows){ type, at + tensor_type_row_bytes(type, j->kv_head * size), bytes };
}

/* How many positions from the beginning of a block on, of `count`, follow each other in memory. */
static uint64_t find_stretch(const struct job *j, uint64_t pos, uint64_t count) {
    const int32_t *block = j->run.table + pos / KERN_BLOCK;
    uint64_t stretch = KERN_BLOCK;
    for (; stretch < count && block[1] == block[0] + 1; block++)
        stretch += KERN_BLOCK;
    return least(stretch, count);
}

/* One head's keys or values from the batch. */
static struct ops_rows find_fresh(const struct job *j, const struct kern_view *batch,
                                  uint64_t pos) {
    size_t size = j->a->head_size, all = j->a->kv_heads * size;
    const float *at = FLOATS(*batch) + (j->run.fresh_token + pos - j->run.fresh) * all;
    return (struct ops_rows){ TENSOR_TYPE_F32, at + j->kv_head * size, all * sizeof *at };
}

/* The rows of a tile as floats, with zeros up to the next multiple of OPS_LANES. */
static struct ops_rows load_rows(const struct job *j, const struct kern_view *cache,
                                 const struct kern_view *batch, uint64_t tile, uint64_t count,
                                 struct ops_matrix to) {
    size_t size = j->a->head_size;
    uint64_t old = least(most(j->run.fresh, tile), tile + count) - tile;
    for (uint64_t at = 0, n; at < old; at += n) {
        n = find_stretch(j, tile + at, old - at);
        j->o->decode_rows((struct ops_matrix){ to.at + at * to.stride, to.stride },
                          find_rows(j, cache, tile + at), n, size);
    }
    if (old < count)
        j->o->decode_rows((struct ops_matrix){ to.at + old * to.stride, to.stride },
                          find_fresh(j, batch, tile + old), count - old, size);
    for (uint64_t i = 0; size < j->width && i < count; i++)
        memset(to.at + i * to.stride + size, 0, (j->width - size) * sizeof *to.at);
    memset(to.at + count * to.stride, 0, (pad(count) - count) * to.stride * sizeof *to.at);
    return (struct ops_rows){ TENSOR_TYPE_F32, to.at, to.stride * sizeof *to.at };
}

static bool is_weighed_directly(const struct job *j) {
    return j->a->values.type == TENSOR_TYPE_F16 && !j->a->fresh &&
           j->run.count * j->group <= DIRECT_ROWS && j->a->head_size == j->width;
}

/* ---- a tile ---------------------------------------------------------------------------------- */

static void strike(float *scores, size_t lanes, size_t from, size_t to) {
    for (size_t i = from * lanes; i < to * lanes; i++)
        scores[i] = -INFINITY;
}

/* Adds positions [from, to) of the tile, piece by piece: the same additions as in one piece. */
static void add_values(const struct job *j, size_t c, struct ops_matrix sums, const float *shrink,
                       struct ops_matrix weights, size_t from, size_t to) {
    static const float stay[CHUNK] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    for (size_t at = from, end; at < to; at = end, shrink = stay) {
        struct ops_rows values = j->values[at / j->piece];
        end = least((at / j->piece + 1) * j->piece, to);
        values.at = (const char *)values.at + at % j->piece * values.bytes;
        j->o->add_weighted(sums, shrink, weights, values, rows_of(j, c), end - at, j->width);
        weights.at += (end - at) * weights.stride;
    }
}

/* Prefetches rows of the cache that are needed soon. */
static void send_for(const struct job *j, const struct kern_view *cache, uint64_t pos,
                     uint64_t count) {
    size_t bytes = tensor_type_row_bytes((enum tensor_type)cache->type, j->a->head_size);
    for (uint64_t done = 0, n; done < count; done += n) {
        struct ops_rows rows = find_rows(j, cache, pos + done);
        n = find_stretch(j, pos + done, count - done);
        for (uint64_t i = 0; i < n; i++)
            for (size_t at = 0; at < bytes; at += 64)
                __builtin_prefetch((const char *)rows.at + i * rows.bytes + at);
    }
}

/* The keys of the tile after this one. */
static void send_for_next(const struct job *j, uint64_t tile) {
    const uint64_t next = tile + TILE, end = end_of(&j->run);
    if (next < end)
        send_for(j, &j->a->keys, next, least(TILE, end - next));
}

/* A chunk of queries, and those positions of a tile that its token sees. */
static void attend_chunk(const struct job *j, size_t c, uint64_t tile) {
    const uint64_t pos = j->run.pos + c / j->chunks;
    const size_t from = most(first_seen(j, pos), tile) - tile;
    const size_t to = least(most(pos + 1, tile), tile + TILE) - tile;
    if (from >= to)
        return;
    const size_t start = from / OPS_LANES * OPS_LANES, positions = pad(to - start);
    struct ops_matrix keys = { j->keys.at + start * j->keys.stride, j->keys.stride };
    j->o->score(j->scores, j->queries + c * j->lanes * j->width, keys, j->lanes, positions,
                j->width);
    if (c == 0)
        send_for_next(j, tile);
    if (j->a->cap != 0)
        j->o->soft_cap(j->scores, j->a->cap, j->lanes * positions);
    strike(j->scores, j->lanes, 0, from - start);
    strike(j->scores, j->lanes, to - start, positions);
    float *shrink = j->shrink + c * j->span;
    j->o->soften(j->scores, j->highest + c * j->span, j->total + c * j->span, shrink, j->lanes,
                 positions);
    struct ops_matrix sums = { j->sums + c * j->lanes * j->width, j->width };
    struct ops_matrix weights = { j->scores + (from - start) * j->lanes, j->lanes };
    add_values(j, c, sums, shrink, weights, from, to);
}

static void place_values(struct job *j, uint64_t tile, uint64_t count) {
    j->piece = TILE;
    if (!is_weighed_directly(j)) {
        j->values[0] = load_rows(j, &j->a->values, &j->a->v, tile, count, j->value_room);
        return;
    }
    if (find_stretch(j, tile, count) < count)
        j->piece = KERN_BLOCK;
    for (uint64_t at = 0; at < count; at += j->piece)
        j->values[at / j->piece] = find_rows(j, &j->a->values, tile + at);
}

/* The values of this tile are prefetched while scores are computed, and the keys of the next while
 * values are added up: a processor has room for some 190 loads in flight, and both at once would be
 * 256 loads for heads of 64. */
static void attend_tile(struct job *j, uint64_t tile, uint64_t count) {
    load_rows(j, &j->a->keys, &j->a->k, tile, count, j->keys);
    send_for(j, &j->a->values, tile, count);
    place_values(j, tile, count);
    for (size_t c = 0; c < chunk_count(j); c++)
        attend_chunk(j, c, tile);
}

/* ---- a range --------------------------------------------------------------------------------- */

static void attend_range(struct job *j, uint64_t range) {
    const size_t chunks = chunk_count(j);
    const uint64_t first = first_seen(j, j->run.pos) / TILE * TILE;
    const uint64_t end = least((range + 1) * KERN_RANGE, end_of(&j->run));
    memset(j->sums, 0, chunks * j->lanes * j->width * sizeof *j->sums);
    memset(j->total, 0, chunks * j->span * sizeof *j->total);
    for (size_t i = 0; i < chunks * j->span; i++)
        j->highest[i] = -FLT_MAX; /* as long as no position has been seen */
    for (uint64_t tile = most(range * KERN_RANGE, first); tile < end; tile += TILE)
        attend_tile(j, tile, least(TILE, end - tile));
}

/* The sum of a row's weights: where there are few rows, it is in several lanes. */
static float find_total(const struct job *j, size_t c, size_t row) {
    float total = 0;
    for (size_t l = 0; l < OPS_SHARE(j->lanes); l++)
        total += j->total[c * j->span + row + l * j->lanes];
    return total;
}

/* A part: a row's sums, its highest score, its sum of weights. */
static void put_part(const struct job *j, size_t c, size_t row, float *part) {
    memcpy(part, j->sums + (c * j->lanes + row) * j->width, j->width * sizeof *part);
    part[j->width] = j->highest[c * j->span + row];
    part[j->width + 1] = find_total(j, c, row);
    memset(part + j->width + 2, 0, (KERN_LANES - 2) * sizeof *part); /* as on a GPU */
}

/* Adds the part of the next range to those before it. Where nothing is seen the weights are 0. */
static void join(float *joined, const float *part, size_t width) {
    if (part[width + 1] == 0)
        return;
    if (joined[width + 1] == 0) {
        memcpy(joined, part, (width + 2) * sizeof *part);
        return;
    }
    float top = fmaxf(joined[width], part[width]);
    float by = expf(joined[width] - top), more = expf(part[width] - top);
    for (size_t i = 0; i < width; i++)
        joined[i] = joined[i] * by + part[i] * more;
    joined[width] = top;
    joined[width + 1] = joined[width + 1] * by + part[width + 1] * more;
}

/* ---- a block of work ------------------------------------------------------------------------- */

static float *take(float **room, size_t floats) {
    float *at = *room;
    *room += pad(floats);
    return at;
}

static const float *find_query(const struct job *j, size_t c, size_t row) {
    const struct kern_attention *a = j->a;
    return j->turned ? j->turned + (c % j->chunks * CHUNK + row) * a->head_size
                     : FLOATS(a->q) + (head_of(j, c) + row) * a->head_size;
}

/* The queries of a chunk, scaled. */
static void load_queries(const struct job *j, size_t c, float *room) {
    const struct kern_attention *a = j->a;
    size_t rows = rows_of(j, c), width = j->width, share = OPS_SHARE(j->lanes);
    if (rows < j->lanes || a->head_size < width)
        memset(room, 0, j->lanes * width * sizeof *room);
    for (size_t i = 0; i < rows; i++)
        j->o->scale(room + i * width, find_query(j, c, i), a->scale, NULL, a->head_size);
    j->o->transpose((struct ops_matrix){ j->queries + c * j->lanes * width, j->lanes * share },
                    (struct ops_matrix){ room, width }, j->lanes, width / share, share);
}

/* Room for a run, the queries in it. */
static void begin_job(struct job *j) {
    const size_t width = j->width, rows = chunk_count(j) * j->lanes;
    const size_t states = chunk_count(j) * j->span, part = KERN_PART(j->a->head_size);
    size_t floats = rows * (2 * width + part) + 3 * states + CHUNK * TILE + 2 * TILE * width;
    float *room = scratch_need(SCRATCH_HEADS, (floats + 9 * OPS_LANES) * sizeof *room);
    j->queries = take(&room, rows * width);
    j->sums = take(&room, rows * width);
    j->joined = take(&room, rows * part);
    j->highest = take(&room, states);
    j->total = take(&room, states);
    j->shrink = take(&room, states);
    j->scores = take(&room, CHUNK * TILE);
    j->keys = (struct ops_matrix){ take(&room, TILE * width), width };
    j->value_room = (struct ops_matrix){ take(&room, TILE * width), width };
    for (size_t c = 0; c < chunk_count(j); c++)
        load_queries(j, c, j->keys.at);
}

/* One range of several: its parts are joined when all are there. */
static void attend_part(struct job *j, uint32_t range) {
    const struct kern_attention *a = j->a;
    const size_t size = KERN_PART(a->head_size);
    attend_range(j, range);
    for (size_t c = 0; c < chunk_count(j); c++)
        for (size_t r = 0; r < rows_of(j, c); r++)
            put_part(j, c, r, FLOATS(a->parts) + ((head_of(j, c) + r) * a->ranges + range) * size);
}

static void attend_whole(struct job *j) {
    const struct kern_attention *a = j->a;
    const size_t size = KERN_PART(a->head_size);
    float *part = j->keys.at;
    memset(j->joined, 0, chunk_count(j) * j->lanes * size * sizeof *j->joined);
    uint64_t range = first_seen(j, j->run.pos) / KERN_RANGE;
    for (; range * KERN_RANGE < end_of(&j->run); range++) {
        attend_range(j, range);
        for (size_t c = 0; c < chunk_count(j); c++)
            for (size_t r = 0; r < rows_of(j, c); r++) {
                put_part(j, c, r, part);
                join(j->joined + (c * j->lanes + r) * size, part, j->width);
            }
    }
    for (size_t c = 0; c < chunk_count(j); c++)
        for (size_t r = 0; r < rows_of(j, c); r++) {
            const float *all = j->joined + (c * j->lanes + r) * size;
            j->o->scale(FLOATS(a->out) + (head_of(j, c) + r) * a->head_size, all,
                        1 / all[j->width + 1], NULL, a->head_size);
        }
}

static struct job make_job(const struct kern_attention *a) {
    struct job j = { .a = a, .o = ops(), .group = a->heads / a->kv_heads };
    j.width = KERN_PART_SUMS(a->head_size);
    j.chunks = (j.group + CHUNK - 1) / CHUNK;
    j.lanes = lanes_for(least(j.group, CHUNK));
    j.span = most(j.lanes, OPS_LANES);
    return j;
}

/* Blocks are counted from the last tokens on: those have the most to do. The heads of one range
 * follow each other, as their keys and values do in memory. */
void cpu_attention(const struct greta_soft_work *work, const struct kern_attention *a) {
    struct job j = make_job(a);
    for (uint64_t b = work->first; b < work->last; b++) {
        uint32_t range = (uint32_t)(b / a->kv_heads % a->ranges);
        uint64_t tokens = KERN_TOKEN_BLOCKS(a->tokens) - 1 - b / a->ranges / a->kv_heads;
        uint64_t last = least((tokens + 1) * KERN_TOKENS, a->tokens);
        j.kv_head = (uint32_t)(b % a->kv_heads);
        for (uint64_t t = tokens * KERN_TOKENS; t < last; t += j.run.count) {
            j.run = find_run(a, t, last);
            begin_job(&j);
            if (a->ranges > 1)
                attend_part(&j, range);
            else
                attend_whole(&j);
        }
    }
}

/* All ranges of a query head. */
static void merge_head(float *out, const float *parts, uint32_t ranges, size_t head_size) {
    const size_t size = KERN_PART(head_size), width = KERN_PART_SUMS(head_size);
    float *joined = scratch_need(SCRATCH_HEADS, size * sizeof *joined);
    memset(joined, 0, size * sizeof *joined);
    for (uint32_t r = 0; r < ranges; r++)
        join(joined, parts + r * size, width);
    ops()->scale(out, joined, 1 / joined[width + 1], NULL, head_size);
}

void cpu_attention_merge(const struct greta_soft_work *work, const struct kern_attention_merge *a) {
    const size_t all = a->ranges * KERN_PART(a->head_size);
    for (uint64_t head = work->first * a->heads; head < work->last * a->heads; head++)
        merge_head(FLOATS(a->out) + head * a->head_size, FLOATS(a->parts) + head * all, a->ranges,
                   a->head_size);
}

/* ---- a step: attention with what comes before and after it ----------------------------------- */

/* A head of a token, normalised if there is a norm, and rotated. */
static void turn_head(const struct kern_attention_step *s, uint64_t t, const float *norm,
                      float *x) {
    const size_t pairs = s->rope_dims / 2;
    const float *turns = FLOATS(s->turns) + t * s->rope_dims;
    if (s->normed) {
        double mean = ops()->sum_squares(x, s->head_size) / s->head_size;
        ops()->scale(x, x, (float)(1 / sqrt(mean + (double)s->eps)), norm, s->head_size);
    }
    (s->halves ? ops()->rotate_halves : ops()->rotate_neighbours)(x, turns, turns + pairs, pairs);
}

/* The key and the value of a token's head, into its row of the cache. */
static void store_head(const struct kern_attention_step *s, const struct job *j) {
    const uint64_t t = j->run.token, head = t * s->kv_heads + j->kv_head;
    float *k = FLOATS(s->k) + head * s->head_size, *v = FLOATS(s->v) + head * s->head_size;
    turn_head(s, t, FLOATS(s->k_norm), k);
    struct ops_rows key = find_rows(j, &s->keys, j->run.pos);
    struct ops_rows value = find_rows(j, &s->values, j->run.pos);
    cache_encode(key.type, k, (void *)(uintptr_t)key.at, s->head_size);
    cache_encode(value.type, v, (void *)(uintptr_t)value.at, s->head_size);
}

/* Whether all other ranges of a token's key head are finished; what they wrote is visible then. */
static bool is_last_range(const struct kern_attention_step *s, const struct job *j) {
    int32_t *count = (int32_t *)s->counts.ptr + j->run.token * s->kv_heads + j->kv_head;
    if (__atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL) + 1 != (int32_t)s->ranges)
        return false;
    __atomic_store_n(count, 0, __ATOMIC_RELAXED);
    return true;
}

/* Joins the ranges of the heads that share a key head. */
static void merge_group(const struct kern_attention_step *s, const struct job *j) {
    const size_t all = s->ranges * KERN_PART(s->head_size);
    const uint64_t first = j->run.token * s->heads + (uint64_t)j->kv_head * j->group;
    for (uint64_t head = first; head < first + j->group; head++)
        merge_head(FLOATS(s->out) + head * s->head_size, FLOATS(s->parts) + head * all, s->ranges,
                   s->head_size);
}

/* One token, key head and range. */
static void do_step(const struct kern_attention_step *s, struct job *j, uint32_t range) {
    const size_t floats = (size_t)j->group * s->head_size, at = j->kv_head * floats;
    const uint64_t t = j->run.token, width = (uint64_t)s->heads * s->head_size;
    float *queries = scratch_need(SCRATCH_SUMS, floats * sizeof *queries);
    memcpy(queries, FLOATS(s->q) + t * width + at, floats * sizeof *queries);
    for (uint32_t h = 0; h < j->group; h++)
        turn_head(s, t, FLOATS(s->q_norm), queries + (size_t)h * s->head_size);
    j->turned = queries;
    if (s->ranges == 1 || range == j->run.pos / KERN_RANGE)
        store_head(s, j);
    begin_job(j);
    if (s->ranges == 1) {
        attend_whole(j);
    } else {
        attend_part(j, range);
        if (!is_last_range(s, j))
            return;
        merge_group(s, j);
    }
    if (s->run)
        levels_put_part(s->levels.ptr, s->tokens, width, s->run, t, at,
                        FLOATS(s->out) + t * width + at, floats);
}

void cpu_attention_step(const struct greta_soft_work *work, const struct kern_attention_step *s) {
    const struct kern_attention a = { .out = s->out,
                                      .parts = s->parts,
                                      .q = s->q,
                                      .k = s->k,
                                      .v = s->v,
                                      .keys = s->keys,
                                      .values = s->values,
                                      .pos = s->pos,
                                      .seqs = s->seqs,
                                      .tables = s->tables,
                                      .tokens = s->tokens,
                                      .heads = s->heads,
                                      .kv_heads = s->kv_heads,
                                      .head_size = s->head_size,
                                      .rows = s->rows,
                                      .sequences = s->sequences,
                                      .table_width = s->table_width,
                                      .window = s->window,
                                      .ranges = s->ranges,
                                      .fresh = s->fresh,
                                      .scale = s->scale,
                                      .cap = s->cap };
    struct job j = make_job(&a);
    for (uint64_t b = work->first; b < work->last; b++) {
        uint64_t t = s->tokens - 1 - b / s->kv_heads / s->ranges;
        j.kv_head = (uint32_t)(b % s->kv_heads);
        j.run = find_run(&a, t, t + 1);
        do_step(s, &j, (uint32_t)(b / s->kv_heads % s->ranges));
    }
}
