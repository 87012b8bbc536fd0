/* The inner loops: every function of every instruction set against its scalar twin, at all small
 * lengths, unaligned, beside numbers that must not be touched, and on NaN and infinity. */
#include "test.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/ops.h"
#include "model/quant/quant.h"

enum { ROOM = 700, LONGEST = 300, SHIFTS = 3 };

static uint32_t seed;

static uint32_t bits(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed ^ seed >> 15;
}

static float noise(void) {
    return (float)(int32_t)bits() / 2147483648.0f;
}

static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = noise();
}

static const float nasty[] = { 0.0f,    -0.0f,   INFINITY, -INFINITY, NAN,    1e-40f, -1e-45f,
                               FLT_MAX, FLT_MIN, -FLT_MAX, 88.9f,     -88.9f, 104.5f, -104.5f,
                               127,     -127,    65504,    65520,     -1e-7f, 6e-8f };

static void fill_nasty(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = nasty[bits() % (sizeof nasty / sizeof *nasty)];
}

/* `relative` of the expected number and, for what is almost 0, of `size`. */
static bool is_close(float found, float expected, float relative, float size) {
    if (isnan(expected) || isnan(found))
        return isnan(expected) && isnan(found);
    if (found == expected)
        return true;
    return fabsf(found - expected) <= relative * fmaxf(fabsf(expected), size);
}

static void assert_all_close(const struct ops *set, const char *what, size_t n, const float *found,
                             const float *expected, size_t count, float relative, float size) {
    for (size_t i = 0; i < count; i++)
        if (!is_close(found[i], expected[i], relative, size))
            fail_msg("%s %s(%zu)[%zu]: found %.9g, expected %.9g", set->name, what, n, i,
                     (double)found[i], (double)expected[i]);
}

/* Runs a check for every set but scalar. */
static void for_each_set(void (*check)(const struct ops *set)) {
    seed = 7;
    for (unsigned i = 0; ops_at(i); i++)
        check(ops_at(i));
}

/* ---- types ----------------------------------------------------------------------------------- */

static void check_decode(const struct ops *set) {
    const struct tensor_type_info *t = NULL;
    while ((t = tensor_type_next(t))) {
        if (t->use != TENSOR_TYPE_COMPUTE)
            continue;
        float in[512], out[512], expected[512];
        unsigned char bytes[512 * 4];
        fill(in, 512);
        assert_int_equal(quant_encode_row(t->type, in, bytes, 512, QUANT_FAST, NULL), RC_OK);
        set->decode(t->type, bytes, out, 512);
        ops_scalar.decode(t->type, bytes, expected, 512);
        assert_memory_equal(out, expected, sizeof out);
    }
}

static void every_type_is_decoded_to_the_same_bits(void **state) {
    (void)state;
    for_each_set(check_decode);
}

static void check_halves(const struct ops *set) {
    uint16_t halves[256], again[256], twin[256];
    float out[256], expected[256];
    for (unsigned high = 0; high < 256; high++) {
        for (unsigned low = 0; low < 256; low++)
            halves[low] = (uint16_t)(high << 8 | low);
        size_t n = 256 - high % 17; /* lengths that are no multiples, too */
        memset(out, 0, sizeof out);
        memset(expected, 0, sizeof expected);
        set->decode(TENSOR_TYPE_F16, halves, out, n);
        ops_scalar.decode(TENSOR_TYPE_F16, halves, expected, n);
        assert_memory_equal(out, expected, sizeof out);
        memset(again, 0, sizeof again);
        set->encode_f16(out, again, n);
        ops_scalar.encode_f16(out, twin, n);
        assert_memory_equal(again, twin, n * sizeof *again);
        assert_true(n == 256 || again[n] == 0);
    }
}

static void check_rounding(const struct ops *set) {
    for (int round = 0; round < 200; round++) {
        float x[100];
        uint16_t out[100], expected[100];
        for (size_t i = 0; i < 100; i++) {
            uint32_t b = bits(); /* any float, more often than not one that a half can be near to */
            if (round % 2)
                b = (b & 0x8fffffff) | 0x30000000;
            memcpy(&x[i], &b, sizeof b);
        }
        set->encode_f16(x, out, 100);
        ops_scalar.encode_f16(x, expected, 100);
        assert_memory_equal(out, expected, sizeof out);
    }
}

static void halves_have_the_same_bits(void **state) {
    (void)state;
    for_each_set(check_halves);
    for_each_set(check_rounding);
}

/* ---- element by element ---------------------------------------------------------------------- */

static void check_norm(const struct ops *set) {
    float x[ROOM], w[ROOM], out[ROOM], expected[ROOM];
    for (size_t n = 0; n < LONGEST; n++) {
        for (size_t at = 0; at < SHIFTS; at++) {
            fill(x, ROOM);
            fill(w, ROOM);
            double sum = ops_scalar.sum_squares(x + at, n);
            assert_true(fabs(set->sum_squares(x + at, n) - sum) <= 1e-12 * sum);
            assert_true(fabs(set->sum(x + at, n) - ops_scalar.sum(x + at, n)) <= 1e-12 * sum);
            if (n % 3 == 2)
                fill_nasty(x, ROOM);
            memcpy(out, w, sizeof out);
            memcpy(expected, w, sizeof out);
            set->scale(out + at, x, 0.37f, w + 2, n);
            ops_scalar.scale(expected + at, x, 0.37f, w + 2, n);
            assert_all_close(set, "scale", n, out, expected, ROOM, 0, 0);
            set->scale(out, x + at, 0.37f, NULL, n);
            ops_scalar.scale(expected, x + at, 0.37f, NULL, n);
            assert_all_close(set, "scale without weight", n, out, expected, ROOM, 0, 0);
            set->add(out + at, x, -0.81f, out + at, n);
            ops_scalar.add(expected + at, x, -0.81f, expected + at, n);
            assert_all_close(set, "add", n, out, expected, ROOM, 0, 0);
            set->add(out, x + at, 0.37f, NULL, n);
            ops_scalar.add(expected, x + at, 0.37f, NULL, n);
            assert_all_close(set, "add one number", n, out, expected, ROOM, 0, 0);
        }
    }
}

static void norms_agree(void **state) {
    (void)state;
    for_each_set(check_norm);
}

static void check_swiglu(const struct ops *set) {
    float gate[ROOM], up[ROOM], out[ROOM], expected[ROOM];
    for (size_t n = 0; n < LONGEST; n++) {
        fill(gate, ROOM);
        fill(up, ROOM);
        fill(out, ROOM);
        memcpy(expected, out, sizeof out);
        for (size_t i = 0; i < ROOM; i++)
            gate[i] *= 30;
        if (n % 3 == 2)
            fill_nasty(gate, ROOM);
        size_t at = n % SHIFTS;
        set->swiglu(out + at, gate + 1, up, n);
        ops_scalar.swiglu(expected + at, gate + 1, up, n);
        assert_all_close(set, "swiglu", n, out, expected, ROOM, 1e-6f, 1e-36f);
        memcpy(expected, gate, sizeof gate); /* in place */
        set->swiglu(gate, gate, up, n);
        ops_scalar.swiglu(expected, expected, up, n);
        assert_all_close(set, "swiglu in place", n, gate, expected, ROOM, 1e-6f, 1e-36f);
    }
}

static void swiglu_agrees(void **state) {
    (void)state;
    for_each_set(check_swiglu);
}

/* What is almost 0 may differ in its last bits: an exponent of 80 has an error of 1e-5. */
static void check_geglu(const struct ops *set) {
    float gate[ROOM], up[ROOM], out[ROOM], expected[ROOM];
    for (size_t n = 0; n < LONGEST; n++) {
        fill(gate, ROOM);
        fill(up, ROOM);
        fill(out, ROOM);
        memcpy(expected, out, sizeof out);
        for (size_t i = 0; i < ROOM; i++)
            gate[i] *= n % 2 ? 3 : 30;
        if (n % 3 == 2)
            fill_nasty(gate, ROOM);
        const float *with = n % 4 ? up : NULL;
        size_t at = n % SHIFTS;
        set->geglu(out + at, gate + 1, with, n);
        ops_scalar.geglu(expected + at, gate + 1, with, n);
        assert_all_close(set, "geglu", n, out, expected, ROOM, 1e-6f, 0.1f);
        memcpy(expected, gate, sizeof gate); /* in place */
        set->geglu(gate, gate, with, n);
        ops_scalar.geglu(expected, expected, with, n);
        assert_all_close(set, "geglu in place", n, gate, expected, ROOM, 1e-6f, 0.1f);
        set->swiglu(out, up, NULL, n);
        ops_scalar.swiglu(expected, up, NULL, n);
        assert_all_close(set, "swiglu without up", n, out, expected, n, 1e-6f, 1e-36f);
    }
}

/* By its definition, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), in double. */
static void check_gelu_by_definition(const struct ops *set) {
    for (int i = -800; i <= 800; i++) {
        float x = (float)i / 64, out;
        double u = sqrt(2 / M_PI) * ((double)x + 0.044715 * pow((double)x, 3));
        double expected = 0.5 * (double)x * (1 + tanh(u));
        set->geglu(&out, &x, NULL, 1);
        if (fabs((double)out - expected) > 4e-7 * fmax(fabs(expected), 1))
            fail_msg("%s gelu(%g): found %.9g, expected %.9g", set->name, (double)x, (double)out,
                     expected);
    }
}

static void geglu_agrees(void **state) {
    (void)state;
    for_each_set(check_geglu);
    for_each_set(check_gelu_by_definition);
}

static void check_soft_cap(const struct ops *set) {
    float x[ROOM], expected[ROOM];
    for (size_t n = 0; n < LONGEST; n++) {
        float cap = n % 2 ? 30 : 50;
        fill(x, ROOM);
        for (size_t i = 0; i < ROOM; i++)
            x[i] *= powf(10, (float)(i % 7) - 4); /* from almost linear to far beyond the cap */
        if (n % 3 == 2)
            fill_nasty(x, ROOM);
        memcpy(expected, x, sizeof x);
        set->soft_cap(x + n % SHIFTS, cap, n);
        for (size_t i = n % SHIFTS; i < n + n % SHIFTS; i++)
            expected[i] = (float)((double)cap * tanh((double)(expected[i] / cap)));
        assert_all_close(set, "soft_cap", n, x, expected, ROOM, 6e-7f, 1e-36f);
    }
}

static void soft_caps_agree(void **state) {
    (void)state;
    for_each_set(check_soft_cap);
}

static void check_rotations(const struct ops *set) {
    float x[ROOM], y[ROOM], c[ROOM], s[ROOM];
    for (size_t pairs = 0; pairs < 150; pairs++)
        for (int halves = 0; halves < 2; halves++) {
            fill(x, ROOM);
            fill(c, ROOM);
            fill(s, ROOM);
            memcpy(y, x, sizeof x);
            if (halves) {
                set->rotate_halves(x + 1, c, s + 1, pairs);
                ops_scalar.rotate_halves(y + 1, c, s + 1, pairs);
            } else {
                set->rotate_neighbours(x + 1, c, s + 1, pairs);
                ops_scalar.rotate_neighbours(y + 1, c, s + 1, pairs);
            }
            assert_all_close(set, "rotate", pairs, x, y, ROOM, 3e-7f, 1);
        }
}

static void rotations_agree(void **state) {
    (void)state;
    for_each_set(check_rotations);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* What lies between the rows is NaN: using it would show. */
static struct ops_matrix matrix(float *room, size_t floats, size_t rows, size_t columns,
                                size_t stride) {
    for (size_t i = 0; i < floats; i++)
        room[i] = NAN;
    for (size_t i = 0; i < rows; i++)
        fill(room + i * stride, columns);
    return (struct ops_matrix){ room, stride };
}

static void check_decode_rows(const struct ops *set) {
    static const enum tensor_type types[] = { TENSOR_TYPE_F32, TENSOR_TYPE_F16, TENSOR_TYPE_Q8_0,
                                              TENSOR_TYPE_Q4_0 };
    enum { ROWS = 5, WIDTH = 96, STRIDE = 101 };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        float in[WIDTH], out[ROWS * STRIDE], expected[ROWS * STRIDE];
        unsigned char bytes[ROWS * (WIDTH * sizeof(float) + 8)];
        struct ops_rows rows = { types[t], bytes, tensor_type_row_bytes(types[t], WIDTH) + 8 };
        for (size_t r = 0; r < ROWS; r++) {
            fill(in, WIDTH);
            quant_encoder(types[t])(in, bytes + r * rows.bytes, WIDTH, QUANT_FAST);
        }
        fill(out, ROWS * STRIDE);
        memcpy(expected, out, sizeof out);
        set->decode_rows((struct ops_matrix){ out, STRIDE }, rows, ROWS, WIDTH);
        ops_scalar.decode_rows((struct ops_matrix){ expected, STRIDE }, rows, ROWS, WIDTH);
        assert_memory_equal(out, expected, sizeof out);
    }
}

static void rows_are_decoded_to_the_same_bits(void **state) {
    (void)state;
    for_each_set(check_decode_rows);
}

static void check_transpose(const struct ops *set) {
    enum { FLOATS = 80 * 80 };
    static float from[FLOATS], to[FLOATS], expected[FLOATS];
    for (size_t unit = 1; unit <= OPS_LANES; unit *= 2)
        for (size_t rows = 0; rows * unit < 70; rows += rows < 20 ? 1 : 11)
            for (size_t columns = 0; columns * unit < 70; columns += columns < 10 ? 1 : 7) {
                struct ops_matrix F =
                    matrix(from, FLOATS, rows, columns * unit, columns * unit + bits() % 3);
                struct ops_matrix T = matrix(to, FLOATS, columns, rows * unit, rows * unit + 7);
                memcpy(expected, to, sizeof to);
                set->transpose(T, F, rows, columns, unit);
                ops_scalar.transpose((struct ops_matrix){ expected, T.stride }, F, rows, columns,
                                     unit);
                assert_memory_equal(to, expected, sizeof to);
            }
}

static void transpose_agrees(void **state) {
    (void)state;
    for_each_set(check_transpose);
}

/* Numbers of rows that the steps of attention take. */
static const size_t row_counts[] = { 1, 2, 4, 8, 16, 32, 48 };
enum { ROW_COUNTS = sizeof row_counts / sizeof *row_counts };

/* As queries lie, by definition: the scalar twin is compared with it, too. */
static float score_of(const float *queries, const float *key, size_t rows, size_t r, size_t width) {
    size_t share = OPS_SHARE(rows);
    double sum = 0;
    for (size_t i = 0; i < width; i++)
        sum += (double)queries[(i / share * rows + r) * share + i % share] * (double)key[i];
    return (float)sum;
}

static void check_score(const struct ops *set) {
    enum { POSITIONS = 48, WIDTH = 96, ROWS = 48, AFTER = 16 };
    static float keys[POSITIONS * (WIDTH + 2)], queries[ROWS * WIDTH];
    static float scores[POSITIONS * ROWS + AFTER], before[POSITIONS * ROWS + AFTER];
    for (size_t c = 0; c < ROW_COUNTS; c++)
        for (size_t positions = 16; positions <= POSITIONS; positions += 16)
            for (size_t width = 16; width <= WIDTH; width += 16) {
                size_t rows = row_counts[c], count = positions * rows;
                struct ops_matrix K =
                    matrix(keys, POSITIONS * (WIDTH + 2), positions, width, width + bits() % 3);
                fill(queries, ROWS * WIDTH);
                fill(scores, POSITIONS * ROWS + AFTER);
                memcpy(before, scores, sizeof scores);
                set->score(scores, queries, K, rows, positions, width);
                assert_memory_equal(scores + count, before + count, AFTER * sizeof *scores);
                for (size_t i = 0; i < count; i++)
                    before[i] =
                        score_of(queries, K.at + i / rows * K.stride, rows, i % rows, width);
                assert_all_close(set, "score", rows, scores, before, count, 1e-6f, (float)width);
            }
}

static void scores_agree(void **state) {
    (void)state;
    for_each_set(check_score);
}

/* What the rows' lanes hold before a step: the same highest score in all lanes of a row. */
struct lanes {
    float highest[48], total[48], shrink[48];
};

static void fill_lanes(struct lanes *l, size_t rows, size_t round) {
    for (size_t i = 0; i < 48; i++) {
        bool again = i >= rows && rows < OPS_LANES;
        l->highest[i] = again ? l->highest[i - rows] : round % 2 ? -FLT_MAX : noise() * 20;
        l->total[i] = 1 + noise();
        l->shrink[i] = noise();
    }
}

static void check_soften(const struct ops *set) {
    enum { FLOATS = 64 * 48 + 16 };
    static float x[FLOATS], y[FLOATS];
    for (size_t c = 0; c < ROW_COUNTS; c++)
        for (size_t round = 0; round < 32; round++) {
            size_t rows = row_counts[c], positions = 16 * (1 + round % 4);
            size_t lanes = rows < OPS_LANES ? OPS_LANES : rows;
            struct lanes l, twin;
            for (size_t i = 0; i < FLOATS; i++)
                x[i] = noise() * 20;
            if (round % 8 == 7)
                fill_nasty(x, FLOATS);
            for (size_t i = 0; round % 4 == 1 && i < FLOATS; i += 7)
                x[i] = i % 2 ? NAN : -INFINITY;
            fill_lanes(&l, rows, round);
            twin = l;
            memcpy(y, x, sizeof x);
            set->soften(x, l.highest, l.total, l.shrink, rows, positions);
            ops_scalar.soften(y, twin.highest, twin.total, twin.shrink, rows, positions);
            assert_memory_equal(l.highest, twin.highest, sizeof l.highest);
            assert_all_close(set, "soften", rows, x, y, FLOATS, 3e-7f, 1e-37f);
            assert_all_close(set, "soften: shrink", rows, l.shrink, twin.shrink, lanes, 3e-7f,
                             1e-37f);
            assert_all_close(set, "soften: total", rows, l.total, twin.total, 48, 2e-6f, 1e-37f);
        }
}

/* Against double: within 2 units of the last place, 1.2e-7 each, wherever floats have all of it. */
static void check_exp(const struct ops *set) {
    for (int i = 0; i < 104 * 64; i++) {
        float x[16], from[16], highest[16] = { 0 }, total[16] = { 0 }, shrink[16];
        for (int j = 0; j < 16; j++)
            from[j] = x[j] = -((float)i + noise()) / 64;
        from[0] = x[0] = 0;
        set->soften(x, highest, total, shrink, 1, 16);
        for (int j = 0; j < 16; j++) {
            double e = exp((double)from[j] - (double)highest[0]);
            if (fabs((double)x[j] - e) > fmax(2.4e-7 * e, 3e-45))
                fail_msg("%s exp(%.9g): found %.9g, expected %.9g", set->name, (double)from[j],
                         (double)x[j], e);
        }
    }
}

static void exponentials_agree(void **state) {
    (void)state;
    for_each_set(check_soften);
    for_each_set(check_exp);
}

static void check_add_weighted(const struct ops *set, bool halves) {
    enum { ROWS = 20, POSITIONS = 40, WIDTH = 112, FLOATS = POSITIONS * (WIDTH + 3) };
    static float v[FLOATS], w[FLOATS], sums[FLOATS], expected[FLOATS], shrink[ROWS];
    static uint16_t half[FLOATS];
    for (size_t rows = 0; rows <= ROWS; rows++)
        for (size_t positions = 0; positions < POSITIONS; positions += positions < 3 ? 1 : 13)
            for (size_t width = 16; width <= WIDTH; width += 16) {
                struct ops_matrix values = matrix(v, FLOATS, positions, width, width + bits() % 3);
                struct ops_matrix weights = matrix(w, FLOATS, positions, rows, rows + bits() % 3);
                struct ops_matrix out = matrix(sums, FLOATS, rows, width, width + 1);
                struct ops_rows from = { TENSOR_TYPE_F32, v, values.stride * sizeof *v };
                if (halves) {
                    quant_encoder(TENSOR_TYPE_F16)(v, half, FLOATS, QUANT_FAST);
                    from = (struct ops_rows){ TENSOR_TYPE_F16, half, values.stride * sizeof *half };
                }
                fill(shrink, ROWS);
                memcpy(expected, sums, sizeof sums);
                set->add_weighted(out, shrink, weights, from, rows, positions, width);
                ops_scalar.add_weighted((struct ops_matrix){ expected, out.stride }, shrink,
                                        weights, from, rows, positions, width);
                assert_all_close(set, "add_weighted", rows, sums, expected, FLOATS, 2e-6f,
                                 (float)(positions + 1));
            }
}

static void check_sums(const struct ops *set) {
    check_add_weighted(set, false);
    check_add_weighted(set, true);
}

static void weighted_sums_agree(void **state) {
    (void)state;
    for_each_set(check_sums);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_decoded_to_the_same_bits),
        cmocka_unit_test(halves_have_the_same_bits),
        cmocka_unit_test(norms_agree),
        cmocka_unit_test(swiglu_agrees),
        cmocka_unit_test(geglu_agrees),
        cmocka_unit_test(soft_caps_agree),
        cmocka_unit_test(rotations_agree),
        cmocka_unit_test(rows_are_decoded_to_the_same_bits),
        cmocka_unit_test(transpose_agrees),
        cmocka_unit_test(scores_agree),
        cmocka_unit_test(exponentials_agree),
        cmocka_unit_test(weighted_sums_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
