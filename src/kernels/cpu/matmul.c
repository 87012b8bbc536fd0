/* matmul.c - the kernels that multiply with weights, over the inner loops of mm.h, and those that
 * prepare either side for it.
 *
 * A block of the grid is a panel of 32 rows of a weight. One token streams through the packed rows;
 * more tokens share them: a slab of 256 columns is unpacked and multiplied with all tokens before
 * the next. A panel's result does not depend on how panels are divided among cores. */
#include <string.h>

#include "kernels/cpu/levels.h"
#include "kernels/cpu/mm.h"
#include "kernels/cpu/native.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/way.h"
#include "model/quant/quant.h"

#define FLOATS(view) ((float *)(view).ptr)
#define INTS(view)   ((const int32_t *)(view).ptr)

_Static_assert((int)KERN_PANEL == (int)MM_PANEL, "kern.h and mm.h must agree");

struct weight {
    enum tensor_type type;
    const char *bytes;
    uint64_t n, k;
    size_t row_bytes;
    bool packed;
};

static struct weight weight_of(const struct kern_view *v, uint32_t n, uint32_t k, uint32_t packed) {
    enum tensor_type type = (enum tensor_type)v->type;
    const struct tensor_type_info *t = tensor_type_find(type);
    k -= k % t->block_elements; /* GCORE_ENFORCE=0 lets a wrong k through */
    size_t row = (size_t)(k / t->block_elements) * t->block_bytes;
    return (struct weight){ type, v->ptr, n, k, row, packed && pack_is_possible(type) };
}

struct product {
    struct weight w;
    float *out;
    const float *bias; /* NULL: none */
    bool added;
    uint64_t origin; /* the row that out begins with */
    size_t stride;   /* rows of a token in out; 0: all */
};

/* What the weights are multiplied with. */
struct input {
    const float *x;
    void *levels; /* quantised or split, see run */
    size_t tokens;
    unsigned run;
    const struct mm_ready *ready; /* prepared for these weights; NULL: turn by turn */
    struct way way;               /* how to go through them */
};

void cpu_quantize(const struct greta_soft_work *work, const struct kern_quantize *a) {
    for (uint64_t t = work->first; t < work->last; t++)
        levels_put(a->levels.ptr, a->tokens, a->k, a->run, t, FLOATS(a->x) + t * a->k);
}

/* ---- weights -------------------------------------------------------------------------------- */

static size_t blocks_of(const struct weight *w) {
    return w->k / tensor_type_find(w->type)->block_elements;
}

/* Elements [at, at + count) of the rows from `row` on as a packed group: where they are if the
 * weight is packed, else made in room. */
static const void *group_at(const struct weight *w, uint64_t row, size_t at, size_t count,
                            void *room) {
    const struct tensor_type_info *t = tensor_type_find(w->type);
    const size_t first = at / t->block_elements, blocks = count / t->block_elements;
    const char *rows = w->bytes + row * w->row_bytes;
    const uint64_t left = w->n - row;
    if (w->packed && left >= PACK_ROWS)
        return rows + first * t->block_bytes * PACK_ROWS;
    rows += first * t->block_bytes;
    if (left >= PACK_ROWS)
        mm()->pack(w->type, rows, w->row_bytes, blocks, room);
    else
        pack_group(w->type, rows, w->row_bytes, (unsigned)left, blocks, room);
    return room;
}

void cpu_repack(const struct greta_soft_work *work, const struct kern_repack *a) {
    const struct weight w = weight_of(&a->weight, a->n, a->k, 1);
    if (!w.packed)
        return;
    const size_t bytes = w.row_bytes * PACK_ROWS;
    void *room = scratch_need(SCRATCH_WEIGHTS, bytes);
    for (uint64_t row = work->first * MM_PANEL; row < work->last * MM_PANEL; row += PACK_ROWS) {
        if (row + PACK_ROWS > w.n)
            break;
        char *rows = (char *)a->weight.ptr + row * w.row_bytes;
        mm()->pack(w.type, rows, w.row_bytes, blocks_of(&w), room);
        memcpy(rows, room, bytes);
    }
}

void cpu_embed(const struct greta_soft_work *work, const struct kern_embed *a) {
    const struct weight w = weight_of(&a->table, a->vocab, a->dim, a->packed);
    void *room = scratch_need(SCRATCH_WEIGHTS, w.row_bytes);
    for (uint64_t t = work->first; t < work->last; t++) {
        uint32_t id = (uint32_t)INTS(a->ids)[t];
        float *out = FLOATS(a->out) + t * a->dim;
        if (id >= a->vocab) {
            memset(out, 0, a->dim * sizeof *out);
            continue;
        }
        const void *row = w.bytes + id * w.row_bytes;
        uint32_t first = id / PACK_ROWS * PACK_ROWS;
        if (w.packed && first + PACK_ROWS <= a->vocab) {
            pack_row(w.type, w.bytes + first * w.row_bytes, id - first, blocks_of(&w), room);
            row = room;
        }
        ops()->decode(w.type, row, out, a->dim);
        if (a->scale != 0)
            ops()->scale(out, out, a->scale, NULL, a->dim);
    }
}

/* ---- panels --------------------------------------------------------------------------------- */

static size_t out_stride(const struct product *p) {
    return p->stride ? p->stride : p->w.n;
}

static float *out_at(const struct product *p, uint64_t token, uint64_t row) {
    return p->out + token * out_stride(p) + row - p->origin;
}

/* Rows [row, row + count) of a token: bias and what was there, as the launch asks. */
static void put(const struct product *p, uint64_t token, uint64_t row, size_t count,
                const float *values) {
    float *restrict out = out_at(p, token, row);
    if (!p->added)
        memcpy(out, values, count * sizeof *out);
    for (size_t i = 0; p->added && i < count; i++)
        out[i] += values[i];
    for (size_t i = 0; p->bias && i < count; i++)
        out[i] += p->bias[row + i];
}

/* out[t * 16 + r] = row `row` + r . x of token t, for sixteen rows of floats. Of rows after the
 * last full sixteen, each is passed as sixteen copies of itself, because dot_floats() takes no
 * fewer. */
static void float_group(const struct weight *w, uint64_t row, const struct input *in, float *out) {
    const struct mm_stream by = in->way.stream;
    const size_t tokens = in->tokens;
    uint64_t left = w->n - row;
    if (left >= PACK_ROWS) {
        mm()->dot_floats(w->type, w->bytes + row * w->row_bytes, w->row_bytes, w->k, in->x, tokens,
                         by, out);
        return;
    }
    for (uint64_t i = 0; i < left; i++) {
        float rows[MM_FEW * PACK_ROWS];
        mm()->dot_floats(w->type, w->bytes + (row + i) * w->row_bytes, 0, w->k, in->x, tokens, by,
                         rows);
        for (size_t t = 0; t < tokens; t++)
            out[t * PACK_ROWS + i] = rows[t * PACK_ROWS];
    }
}

/* out[r] = row `row` + r . the only token, of sixteen rows of levels. */
static void level_group(const struct weight *w, uint64_t row, const struct input *in, float *out) {
    const int8_t *x = levels_row(in->levels, 1, w->k, 0, 0).level;
    if (!w->packed && w->n - row >= PACK_ROWS) {
        mm()->dot_rows(w->type, w->bytes + row * w->row_bytes, w->row_bytes, w->k, x, in->ready,
                       in->run, out);
        return;
    }
    void *room = scratch_need(SCRATCH_WEIGHTS, w->row_bytes * PACK_ROWS);
    way_set(&in->way)->dot(w->type, group_at(w, row, 0, w->k, room), w->k, x, in->ready, in->run,
                           in->way.ahead, out);
}

/* Both groups of a whole panel at once, if that is the way. */
static bool pair_for_one(const struct product *p, const struct input *in, uint64_t from,
                         uint64_t to) {
    const struct weight *w = &p->w;
    float out[MM_PANEL];
    if (in->way.groups < 2 || to - from < MM_PANEL || !w->packed || !mm()->dot_pair)
        return false;
    mm()->dot_pair(w->type, w->bytes + from * w->row_bytes, w->k,
                   levels_row(in->levels, 1, w->k, 0, 0).level, in->ready, in->run, in->way.ahead,
                   out);
    put(p, 0, from, MM_PANEL, out);
    return true;
}

static void panel_for_one(const struct product *p, const struct input *in, uint64_t from,
                          uint64_t to) {
    const struct weight *w = &p->w;
    if (pair_for_one(p, in, from, to))
        return;
    for (uint64_t row = from; row < to; row += PACK_ROWS) {
        float out[PACK_ROWS];
        if (tensor_type_is_float(w->type))
            float_group(w, row, in, out);
        else
            level_group(w, row, in, out);
        put(p, 0, row, to - row < PACK_ROWS ? to - row : PACK_ROWS, out);
    }
}

/* Sixteen rows of floats. */
struct float_rows {
    const char *bytes;
    size_t stride;
};

/* From column `at` on; rows past the last are read as the last one. These are put into room. */
static struct float_rows float_rows_at(const struct weight *w, uint64_t row, size_t at,
                                       size_t count, float room[PACK_ROWS][MM_SLAB]) {
    const size_t size = tensor_type_find(w->type)->block_bytes;
    const char *rows = w->bytes + at * size;
    if (row + PACK_ROWS <= w->n)
        return (struct float_rows){ rows + row * w->row_bytes, w->row_bytes };
    for (uint64_t r = 0; r < PACK_ROWS; r++) {
        uint64_t from = row + r < w->n ? row + r : w->n - 1;
        memcpy(room[r], rows + from * w->row_bytes, count * size);
    }
    return (struct float_rows){ (const char *)room, sizeof room[0] };
}

static void panel_of_floats(const struct product *p, const struct input *in, uint64_t from,
                            float *sums) {
    const struct weight *w = &p->w;
    struct mm_float_tile *tiles = scratch_need(SCRATCH_TILES, MM_GROUPS * sizeof *tiles);
    float room[PACK_ROWS][MM_SLAB];
    for (size_t at = 0; at < w->k; at += MM_SLAB) {
        size_t count = w->k - at < MM_SLAB ? w->k - at : MM_SLAB;
        for (unsigned g = 0; g < MM_GROUPS; g++) {
            struct float_rows rows = float_rows_at(w, from + g * PACK_ROWS, at, count, room);
            mm()->unpack_floats(w->type, rows.bytes, rows.stride, count, &tiles[g]);
        }
        mm()->multiply_floats(tiles, count, in->x + at, w->k, in->tokens, sums);
    }
}

static void panel_of_parts(const struct product *p, const struct input *in, uint64_t from,
                           float *sums) {
    const struct weight *w = &p->w;
    struct mm_parts_tile *tiles = scratch_need(SCRATCH_TILES, MM_GROUPS * sizeof *tiles);
    float room[PACK_ROWS][MM_SLAB];
    for (size_t slab = 0; slab < levels_slabs(w->k); slab++) {
        size_t at = slab * MM_SLAB, count = w->k - at < MM_SLAB ? w->k - at : MM_SLAB;
        for (unsigned g = 0; g < MM_GROUPS; g++) {
            struct float_rows rows = float_rows_at(w, from + g * PACK_ROWS, at, count, room);
            mm()->unpack_parts(w->type, rows.bytes, rows.stride, count, &tiles[g]);
        }
        size_t stride;
        const struct mm_line *x = levels_lines(in->levels, in->tokens, slab, 0, &stride);
        mm()->multiply_parts(tiles, count, x, in->tokens, sums);
    }
}

/* Several tokens go through the weights as the way says (way.def). With turns, a slab of so many
 * tokens stays in the L1 cache while all panels of the pass are multiplied with it, and all
 * activations come from the L2 cache or from beyond it once per pass. Without turns, one unpacked
 * panel stays in the L1 cache, where several would not fit, weights are two streams that are easily
 * fetched in time, and the slabs of all tokens, 448 bytes each with their prepared factors, have to
 * stay in the L2 cache. */

/* Bytes of a slab of a group of rows. */
static size_t slab_bytes(const struct weight *w) {
    const struct tensor_type_info *t = tensor_type_find(w->type);
    return MM_SLAB / t->block_elements * t->block_bytes * PACK_ROWS;
}

/* Bytes from the slab at column `at` of a packed panel to the one that is unpacked `later` slabs
 * after it, in the same panel or in the next one. */
static unsigned distance(const struct weight *w, size_t at, size_t later) {
    const size_t slab = slab_bytes(w), slabs = levels_slabs(w->k);
    if (at / MM_SLAB + later < slabs)
        return (unsigned)(later * slab);
    return (unsigned)(MM_PANEL * w->row_bytes - (later < slabs ? slabs - later : 0) * slab);
}

/* What to fetch while that slab is unpacked: for few tokens. More tokens leave time to fetch while
 * they are multiplied (flow_of_turn). */
static struct mm_ahead ahead_of(const struct weight *w, size_t at, const struct input *in) {
    if (!in->ready)
        return (struct mm_ahead){ 0, 0 };
    return (struct mm_ahead){ distance(w, at, 4), distance(w, at, 1) };
}

/* Elements [at, at + count) of a panel. */
static void unpack_panel(const struct mm_set *set, const struct weight *w, uint64_t from, size_t at,
                         size_t count, struct mm_ahead ahead, struct mm_tile tiles[MM_GROUPS]) {
    void *room = scratch_need(SCRATCH_WEIGHTS, w->row_bytes * PACK_ROWS);
    for (unsigned g = 0; g < MM_GROUPS; g++) {
        uint64_t row = from + g * PACK_ROWS; /* a panel without a second group has it twice */
        const void *group = group_at(w, row < w->n ? row : from, at, count, room);
        set->unpack(w->type, group, 0, count, ahead, &tiles[g]);
    }
}

/* Slabs of activations that follow each other, prepared for a weight. */
static const struct mm_ready *prepare(const struct input *in, const struct weight *w,
                                      const struct mm_row *act, size_t slabs) {
    struct mm_ready *ready = scratch_need(SCRATCH_READY, slabs * sizeof *ready);
    mm()->prepare(w->type, act, slabs, in->run, ready);
    return ready;
}

/* Whether the sums of a panel's last slab can go where they are wanted at once. */
static bool is_direct(const struct product *p, uint64_t row) {
    return !p->bias && row + MM_PANEL <= p->w.n;
}

/* A pass of panels from row `from` on, and a slab of it. */
struct pass {
    uint64_t from;
    size_t panels, slab, slab_bytes;
    bool last; /* slab */
};

/* Tokens [t, t + some) of a slab, for any panel: while they are multiplied, their share of what is
 * unpacked next is fetched. */
static struct mm_flow flow_of_turn(const struct product *p, const struct input *in,
                                   const struct pass *pass, size_t t, size_t some) {
    const size_t from = pass->slab_bytes * t / in->tokens / 64 * 64;
    const size_t to = pass->slab_bytes * (t + some) / in->tokens;
    return (struct mm_flow){ .first = pass->slab == 0,
                             .added = p->added,
                             .out_stride = out_stride(p),
                             .fetch = { p->w.bytes + from },
                             .fetch_bytes = to - from };
}

/* The same for a panel, whose next slab is fetched, or the first one of the next pass. */
static struct mm_flow flow_of_panel(const struct product *p, const struct input *in,
                                    const struct pass *pass, struct mm_flow flow, size_t panel,
                                    size_t t) {
    const struct weight *w = &p->w;
    const uint64_t row = pass->from + panel * MM_PANEL;
    const uint64_t next = pass->last ? row + pass->panels * MM_PANEL : row;
    const size_t slab = pass->last ? 0 : pass->slab + 1;
    if (pass->last && is_direct(p, row))
        flow.out = out_at(p, t, row);
    if (!w->packed || in->ready || next + MM_PANEL > w->n) {
        flow.fetch_bytes = 0;
        return flow;
    }
    flow.fetch[0] += next * w->row_bytes + slab * pass->slab_bytes;
    flow.fetch[1] = flow.fetch[0] + PACK_ROWS * w->row_bytes;
    return flow;
}

/* sums[panel][token][32 rows] of the panels of a pass; those of direct ones are put already. */
static void panels_of_levels(const struct product *p, const struct input *in, struct pass pass,
                             float *sums) {
    const struct weight *w = &p->w;
    const struct mm_set *set = way_set(&in->way);
    const size_t turn = in->way.turn ? in->way.turn : in->tokens, slabs = levels_slabs(w->k);
    struct mm_tile *tiles = scratch_need(SCRATCH_TILES, pass.panels * MM_GROUPS * sizeof *tiles);
    pass.slab_bytes = slab_bytes(w);
    for (; pass.slab < slabs; pass.slab++) {
        const size_t at = pass.slab * MM_SLAB, count = w->k - at < MM_SLAB ? w->k - at : MM_SLAB;
        const struct mm_ahead ahead = ahead_of(w, at, in);
        pass.last = pass.slab + 1 == slabs;
        for (size_t i = 0; i < pass.panels; i++)
            unpack_panel(set, w, pass.from + i * MM_PANEL, at, count, ahead, tiles + i * MM_GROUPS);
        for (size_t t = 0; t < in->tokens; t += turn) {
            const struct mm_row act = levels_row(in->levels, in->tokens, w->k, pass.slab, t);
            size_t some = in->tokens - t < turn ? in->tokens - t : turn;
            const struct mm_flow all = flow_of_turn(p, in, &pass, t, some);
            const struct mm_ready *ready =
                in->ready ? in->ready + pass.slab * in->tokens + t : prepare(in, w, &act, some);
            for (size_t i = 0; i < pass.panels; i++) {
                const struct mm_flow flow = flow_of_panel(p, in, &pass, all, i, t);
                set->multiply(tiles + i * MM_GROUPS, act.level, ready, in->run, some, &flow,
                              sums + (i * in->tokens + t) * MM_PANEL);
            }
        }
    }
}

/* A few tokens of floats, done like one: reading the weights takes as long as multiplying. */
static void panels_of_few_floats(const struct product *p, const struct input *in, uint64_t from,
                                 uint64_t to) {
    for (uint64_t row = from; row < to; row += PACK_ROWS) {
        const size_t count = to - row < PACK_ROWS ? to - row : PACK_ROWS;
        float out[MM_FEW * PACK_ROWS];
        float_group(&p->w, row, in, out);
        for (size_t t = 0; t < in->tokens; t++)
            put(p, t, row, count, out + t * PACK_ROWS);
    }
}

/* A few tokens of levels, without unpacking first, if this is there for the type. Weights are
 * fetched as was measured for one token, or else a little ahead. */
static bool panel_of_few_levels(const struct product *p, const struct input *in, uint64_t from,
                                uint64_t to) {
    const struct weight *w = &p->w;
    const int8_t *x = levels_row(in->levels, in->tokens, w->k, 0, 0).level;
    struct way one = { .ahead = { 4096, 1024 } };
    float out[MM_SHARED * PACK_ROWS];
    if (!in->way.shared || in->tokens > MM_SHARED || !in->ready || !mm()->dot_few)
        return false;
    way_chosen(w->type, 1, &one);
    for (uint64_t row = from; row < to; row += PACK_ROWS) {
        const size_t count = to - row < PACK_ROWS ? to - row : PACK_ROWS;
        void *room = scratch_need(SCRATCH_WEIGHTS, w->row_bytes * PACK_ROWS);
        if (!mm()->dot_few(w->type, group_at(w, row, 0, w->k, room), w->k, x, in->ready, in->run,
                           in->tokens, one.ahead, out))
            return false;
        for (size_t t = 0; t < in->tokens; t++)
            put(p, t, row, count, out + t * PACK_ROWS);
    }
    return true;
}

/* For more tokens than one. */
static void do_some_panels(const struct product *p, const struct input *in, uint64_t first,
                           size_t panels) {
    const size_t each = in->tokens * MM_PANEL;
    const uint64_t from = first * MM_PANEL, n = p->w.n;
    const uint64_t to = from + panels * MM_PANEL < n ? from + panels * MM_PANEL : n;
    const bool split = in->run == KERN_SPLIT && mm()->split;
    if (tensor_type_is_float(p->w.type) && in->tokens <= MM_FEW && !split) {
        panels_of_few_floats(p, in, from, to);
        return;
    }
    if (panel_of_few_levels(p, in, from, to))
        return;
    const bool floats = tensor_type_is_float(p->w.type);
    float *sums = scratch_need(SCRATCH_SUMS, panels * each * sizeof *sums);
    if (floats || !p->w.k)
        memset(sums, 0, panels * each * sizeof *sums);
    else
        panels_of_levels(p, in, (struct pass){ .from = from, .panels = panels }, sums);
    for (size_t i = 0; i < panels; i++) {
        const uint64_t row = from + i * MM_PANEL;
        float *own = sums + i * each;
        if (floats && split)
            panel_of_parts(p, in, row, own);
        else if (floats)
            panel_of_floats(p, in, row, own);
        else if (p->w.k && is_direct(p, row))
            continue;
        for (size_t t = 0; t < in->tokens; t++)
            put(p, t, row, n - row < MM_PANEL ? n - row : MM_PANEL, own + t * MM_PANEL);
    }
}

/* The input, prepared for a weight of levels. */
static struct input prepare_all(const struct input *in, const struct weight *w) {
    const struct mm_row act = levels_row(in->levels, in->tokens, w->k, 0, 0);
    struct input out = *in;
    out.ready = prepare(in, w, &act, levels_slabs(w->k) * in->tokens);
    return out;
}

/* How to go through panels [from, to), and whether that is measured: way_end() ends it. Packed
 * weights and floats are one stream for one token; for several, a piece of packed weights that has
 * a whole pass of every way is measured. */
static struct way way_of(const struct weight *w, size_t tokens, uint64_t from, uint64_t to,
                         bool *measured) {
    const size_t panel = MM_PANEL * w->row_bytes;
    const uint64_t least = tokens > 1 ? WAY_PANELS : 1;
    const bool floats = tensor_type_is_float(w->type);
    struct way way = way_usual(w->type, tokens);
    *measured = (w->packed || (floats && tokens == 1)) && from + least <= to;
    if (*measured)
        way = way_begin(w->type, tokens, w->bytes + from * panel, (to - from) * panel);
    if (floats) {
        way.panels = WAY_PANELS;
        way.turn = 1;
    }
    return way;
}

/* Panels [from, to) of a product. */
static void do_panels(const struct product *p, const struct input *in, uint64_t from, uint64_t to) {
    struct input own = *in;
    bool measured;
    own.way = way_of(&p->w, in->tokens, from, to, &measured);
    if (!own.way.turn)
        own = prepare_all(&own, &p->w);
    for (uint64_t panel = from, some; panel < to; panel += some) {
        const uint64_t row = panel * MM_PANEL, n = p->w.n;
        some = in->tokens > 1 ? own.way.panels : 1;
        some = to - panel < some ? to - panel : some;
        if (in->tokens == 1)
            panel_for_one(p, &own, row, n - row < MM_PANEL ? n : row + MM_PANEL);
        else
            do_some_panels(p, &own, panel, some);
    }
    if (measured)
        way_end();
}

/* ---- the kernels ---------------------------------------------------------------------------- */

void cpu_matmul(const struct greta_soft_work *work, const struct kern_matmul *a) {
    const struct product p = { .w = weight_of(&a->weight, a->n, a->k, a->packed),
                               .out = FLOATS(a->out),
                               .bias = a->biased ? FLOATS(a->bias) : NULL,
                               .added = a->added };
    const struct input in = { FLOATS(a->x), a->levels.ptr, a->tokens, a->run, NULL, { 0 } };
    do_panels(&p, &in, work->first, work->last);
}

/* The panels of several products one after another. */
static void do_products(const struct greta_soft_work *work, const struct product *p, unsigned count,
                        const struct input *in) {
    uint64_t first = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t last = first + KERN_PANELS(p[i].w.n);
        uint64_t from = work->first > first ? work->first : first;
        uint64_t to = work->last < last ? work->last : last;
        if (from < to)
            do_panels(&p[i], in, from - first, to - first);
        first = last;
    }
}

void cpu_matmul_qkv(const struct greta_soft_work *work, const struct kern_matmul_qkv *a) {
    const struct product p[] = {
        { .w = weight_of(&a->q_weight, a->q_n, a->dim, a->packed),
          .out = FLOATS(a->q),
          .bias = a->q_biased ? FLOATS(a->q_bias) : NULL },
        { .w = weight_of(&a->k_weight, a->kv_n, a->dim, a->packed),
          .out = FLOATS(a->k),
          .bias = a->k_biased ? FLOATS(a->k_bias) : NULL },
        { .w = weight_of(&a->v_weight, a->kv_n, a->dim, a->packed),
          .out = FLOATS(a->v),
          .bias = a->v_biased ? FLOATS(a->v_bias) : NULL },
    };
    const struct input in = { FLOATS(a->x), a->levels.ptr, a->tokens, a->run, NULL, { 0 } };
    do_products(work, p, 3, &in);
}

/* What becomes of a gate and what it is multiplied with. */
struct activation {
    void *levels;
    uint32_t hidden, gelu, ungated, run;
};

/* Panels [from, to) of a gate, of what it is multiplied with, and activated. Without a buffer of
 * its own, the latter is not kept. */
static void activate_panels(const struct activation *a, const struct product *gate,
                            const struct product *up, const struct input *in, uint64_t from,
                            uint64_t to) {
    const uint64_t row = from * MM_PANEL, end = to * MM_PANEL;
    const size_t count = (end < a->hidden ? end : a->hidden) - row;
    const size_t stride = up->out ? a->hidden : count;
    struct product other = *up;
    do_panels(gate, in, from, to);
    if (!a->ungated && !up->out) {
        other.origin = row;
        other.stride = count;
        other.out = scratch_need(SCRATCH_HEADS, in->tokens * count * sizeof *other.out);
    }
    if (!a->ungated)
        do_panels(&other, in, from, to);
    for (size_t t = 0; t < in->tokens; t++) {
        float *out = gate->out + t * a->hidden + row;
        const float *by = a->ungated ? NULL : other.out + t * stride + (up->out ? row : 0);
        (a->gelu ? ops()->geglu : ops()->swiglu)(out, out, by, count);
        if (a->run)
            levels_put_part(a->levels, in->tokens, a->hidden, a->run, t, row, out, count);
    }
}

void cpu_matmul_gate_up(const struct greta_soft_work *work, const struct kern_matmul_gate_up *a) {
    const struct product p[] = {
        { .w = weight_of(&a->gate_weight, a->hidden, a->dim, a->packed),
          .out = FLOATS(a->gate),
          .bias = a->biased ? FLOATS(a->bias) : NULL },
        { .w = weight_of(&a->up_weight, a->hidden, a->dim, a->packed), .out = FLOATS(a->up) },
    };
    const struct input in = { FLOATS(a->x), a->levels.ptr, a->tokens, a->run, NULL, { 0 } };
    const struct activation activation = { a->out_levels.ptr, a->hidden, a->gelu, a->ungated,
                                           a->out_run };
    if (a->activated)
        activate_panels(&activation, &p[0], &p[1], &in, work->first, work->last);
    else
        do_products(work, p, a->ungated ? 1 : 2, &in);
}

/* One token streams through all panels of the gate and then through those of the other weight; for
 * more tokens the sums of a few panels stay in the cache until they are activated. */
void cpu_matmul_activate(const struct greta_soft_work *work, const struct kern_matmul_activate *a) {
    const struct product gate = { .w = weight_of(&a->gate_weight, a->hidden, a->dim, a->packed),
                                  .out = FLOATS(a->out),
                                  .bias = a->biased ? FLOATS(a->bias) : NULL };
    const struct product up = { .w = weight_of(&a->up_weight, a->hidden, a->dim, a->packed) };
    const struct input in = { FLOATS(a->x), a->levels.ptr, a->tokens, a->run, NULL, { 0 } };
    const struct activation activation = { a->out_levels.ptr, a->hidden, a->gelu, a->ungated,
                                           a->out_run };
    const uint64_t step = a->tokens == 1 ? work->last - work->first : WAY_PANELS;
    for (uint64_t panel = work->first; panel < work->last; panel += step)
        activate_panels(&activation, &gate, &up, &in, panel,
                        work->last - panel < step ? work->last : panel + step);
}
