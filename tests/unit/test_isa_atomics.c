/* Every atomic - of device memory, images, LDS and scalar registers - against a model made from its
 * name: each pair of edge values, with lanes off, with and without the old value returned. */
#include "unit/isa_modelled.h"
#include "unit/isa_wave.h"

#include <math.h>

enum { V = ISA_VGPR0, DATA = 20, DATA1 = 28, RESULT = 12, EDGES = 16, STRIDE = 24, FIRST = 64 };
#define EXEC    UINT64_C(0xf0f3c1a5975e8001)
#define PATTERN 0x5eed0000u

/* ---- what a name says ------------------------------------------------------------------------ */

enum verb {
    SWAP,
    COMPARE,
    ADD,
    SUB,
    RSUB,
    MIN,
    MAX,
    AND,
    OR,
    XOR,
    INC,
    DEC,
    MASK_OR,
    WRAP,
    IF_TOP
};
enum number { UNSIGNED, SIGNED, FLOAT, HALVES, BFLOATS };

struct meaning {
    enum verb verb;
    enum number number;
    unsigned bits;
};

static bool starts(const char *text, const char *with) {
    return !strncmp(text, with, strlen(with));
}

/* Longer names come first: cmpswap, pk_add and smin stand before what they contain. */
static bool read_verb(const char *at, struct meaning *m) {
    static const struct {
        const char *text;
        enum verb verb;
        enum number number;
    } verbs[] = {
        { "swap", SWAP, UNSIGNED },       { "wrxchg_", SWAP, UNSIGNED },
        { "cmpswap", COMPARE, UNSIGNED }, { "cmpst", COMPARE, UNSIGNED },
        { "pk_add", ADD, HALVES },        { "add", ADD, UNSIGNED },
        { "sub", SUB, UNSIGNED },         { "rsub", RSUB, UNSIGNED },
        { "smin", MIN, SIGNED },          { "umin", MIN, UNSIGNED },
        { "smax", MAX, SIGNED },          { "umax", MAX, UNSIGNED },
        { "min", MIN, UNSIGNED },         { "max", MAX, UNSIGNED },
        { "and", AND, UNSIGNED },         { "or", OR, UNSIGNED },
        { "xor", XOR, UNSIGNED },         { "inc", INC, UNSIGNED },
        { "dec", DEC, UNSIGNED },         { "mskor", MASK_OR, UNSIGNED },
        { "wrap", WRAP, UNSIGNED },       { "condxchg32", IF_TOP, UNSIGNED },
    };
    for (size_t n = 0; n < sizeof verbs / sizeof *verbs; n++)
        if (starts(at, verbs[n].text)) {
            m->verb = verbs[n].verb;
            m->number = verbs[n].number;
            return true;
        }
    return false;
}

static bool ends(const char *text, const char *with) {
    size_t a = strlen(text), b = strlen(with);
    return a >= b && !strcmp(text + a - b, with);
}

/* False if the name is that of no atomic. */
static bool read_name(const struct isa_info *info, struct meaning *m) {
    const char *name = info->name, *at = strstr(name, "atomic_");
    bool lds = info->encoding == ISA_ENC_DS;
    if (!(lds ? read_verb(name + strlen("ds_"), m) : at && read_verb(at + strlen("atomic_"), m)))
        return false;
    m->bits = ends(name, "_x2") || ends(name, "64") ? 64 : 32;
    if (ends(name, "_f32") || ends(name, "_f64"))
        m->number = FLOAT;
    if (ends(name, "_i32") || ends(name, "_i64"))
        m->number = SIGNED;
    if (ends(name, "_bf16"))
        m->number = BFLOATS;
    return true;
}

/* ---- the model ------------------------------------------------------------------------------- */

static double real(uint64_t bits, unsigned width) {
    if (width == 64) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return (double)f;
}

static uint64_t bits_of(double d, unsigned width) {
    uint64_t wide;
    uint32_t narrow;
    float f = (float)d;
    memcpy(&wide, &d, sizeof wide);
    memcpy(&narrow, &f, sizeof narrow);
    return width == 64 ? wide : narrow;
}

/* A number of 16 bits with so many of them in the fraction. */
static double small_real(uint32_t bits, int fraction) {
    int exponents = 1 << (15 - fraction), bias = exponents / 2 - 1;
    int exponent = (int)(bits >> fraction) % exponents, part = (int)(bits % (1u << fraction));
    double sign = bits >> 15 & 1 ? -1 : 1;
    if (exponent == exponents - 1)
        return part ? NAN : sign * INFINITY;
    int whole = exponent ? (1 << fraction) + part : part;
    return sign * ldexp(whole, (exponent ? exponent : 1) - bias - fraction);
}

/* The nearest such number, of two the even one: found by walking up from zero. */
static uint32_t small_bits(double d, int fraction) {
    uint32_t sign = signbit(d) ? 0x8000 : 0, infinity = 0x7fff >> fraction << fraction, low = 0;
    double size = fabs(d);
    if (isnan(d))
        return infinity + 1;
    if (isinf(d))
        return sign + infinity;
    for (uint32_t step = 0x4000; step; step /= 2)
        if (low + step < infinity && small_real(low + step, fraction) <= size)
            low += step;
    double ulp = small_real(low, fraction) - (low ? small_real(low - 1, fraction) : 0);
    double next =
        low + 1 < infinity ? small_real(low + 1, fraction) : small_real(low, fraction) + ulp;
    double below = size - small_real(low, fraction), above = next - size;
    return sign + low + (above < below || (above == below && low % 2));
}

static uint64_t add_small(uint64_t it, uint64_t data, int fraction) {
    uint32_t sum = 0;
    for (int part = 0; part < 32; part += 16)
        sum |= small_bits(small_real(it >> part & 0xffff, fraction) +
                              small_real(data >> part & 0xffff, fraction),
                          fraction)
               << part;
    return sum;
}

/* Whether a is less, as numbers of that kind: -0 below 0. */
static bool is_less(const struct meaning *m, uint64_t a, uint64_t b) {
    uint64_t top = UINT64_C(1) << (m->bits - 1);
    if (m->number == UNSIGNED)
        return a < b;
    if (m->number == SIGNED)
        return (a ^ top) < (b ^ top);
    double x = real(a, m->bits), y = real(b, m->bits);
    return x < y || (x == y && signbit(x) && !signbit(y));
}

static bool is_nan(const struct meaning *m, uint64_t a) {
    return m->number == FLOAT && isnan(real(a, m->bits));
}

static uint64_t extreme(const struct meaning *m, uint64_t it, uint64_t data) {
    if (is_nan(m, it) || is_nan(m, data))
        return is_nan(m, data) ? it : data;
    bool keep = m->verb == MIN ? is_less(m, it, data) : is_less(m, data, it);
    return keep ? it : data;
}

static uint64_t sum(const struct meaning *m, uint64_t it, uint64_t data) {
    if (m->number == HALVES || m->number == BFLOATS)
        return add_small(it, data, m->number == HALVES ? 10 : 7);
    return m->number == FLOAT ? bits_of(real(it, m->bits) + real(data, m->bits), m->bits)
                              : it + data;
}

static uint64_t replaced(uint64_t it, uint64_t data) {
    uint64_t top = 0x80000000u;
    return (data & top ? data - top : it) & 0xffffffffu;
}

/* What is in memory afterwards. `other` is the value that is compared with, or a second operand. */
static uint64_t model(const struct meaning *m, uint64_t it, uint64_t data, uint64_t other) {
    uint64_t all = m->bits == 64 ? UINT64_MAX : UINT32_MAX;
    bool equal = m->number == FLOAT ? real(it, m->bits) == real(other, m->bits) : it == other;
    switch (m->verb) {
    case SWAP:
        return data;
    case COMPARE:
        return equal ? data : it;
    case ADD:
        return sum(m, it, data) & all;
    case SUB:
        return (it + ~data + 1) & all;
    case RSUB:
        return (data + ~it + 1) & all;
    case MIN:
    case MAX:
        return extreme(m, it, data);
    case AND:
        return ~(~it | ~data) & all;
    case OR:
        return ~(~it & ~data) & all;
    case XOR:
        return (it & ~data) | (data & ~it);
    case INC:
        return it < data ? it + 1 : 0;
    case DEC:
        return it && it <= data ? it - 1 : data;
    case MASK_OR:
        return ((it | data) ^ data) | other;
    case WRAP:
        return (it < data ? it + other : it - data) & all;
    case IF_TOP:
        return replaced(it & UINT32_MAX, data & UINT32_MAX) | replaced(it >> 32, data >> 32) << 32;
    }
    return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint64_t edge(const struct meaning *m, unsigned n) {
    static const uint64_t whole[EDGES] = { 0,          1,          2,          3,
                                           5,          0x7f,       0x80,       0xffff,
                                           0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001,
                                           0xfffffffe, 0xffffffff, 0x12345678, 0xfedcba98 };
    static const double numbers[EDGES] = { 0.0,
                                           -0.0,
                                           1,
                                           -1,
                                           1.5,
                                           3,
                                           0x1p-126,
                                           0x1p-149,
                                           -0x1p-149,
                                           0x1.fffffep127,
                                           -0x1.fffffep127,
                                           INFINITY,
                                           -INFINITY,
                                           NAN,
                                           0x1.000002p0,
                                           -0x1p-24 };
    static const uint32_t halves[EDGES] = { 0,          0x80008000, 0x3c003c00, 0xbc003c00,
                                            0x00010001, 0x83ff0400, 0x7bff7bff, 0xfbff7bff,
                                            0x7c003c01, 0xfc007c00, 0x7e003c00, 0x3c011400,
                                            0x13ff1000, 0x4c007bff, 0x00018001, 0x10000c01 };
    static const uint32_t bfloats[EDGES] = { 0,          0x80008000, 0x3f803f80, 0xbf803f80,
                                             0x00010001, 0x80ff0080, 0x7f7f7f7f, 0xff7f7f7f,
                                             0x7f803f81, 0xff807f80, 0x7fc03f80, 0x3f813b80,
                                             0x3b7f3b80, 0x42007f7f, 0x00018001, 0x3c003b01 };
    switch (m->number) {
    case FLOAT:
        return bits_of(numbers[n], m->bits);
    case HALVES:
        return halves[n];
    case BFLOATS:
        return bfloats[n];
    default: /* of 64 bits also where the upper half decides */
        return m->bits == 64 && n % 2 ? whole[n] << 32 | whole[(n + 5) % EDGES] : whole[n];
    }
}

/* Operands of a lane in a round: all pairs of edges in EDGES * EDGES / ISA_LANES rounds. */
struct operands {
    uint64_t it, data, other;
};

static struct operands operands_of(const struct meaning *m, unsigned round, unsigned lane) {
    unsigned pair = round * ISA_LANES + lane;
    uint64_t it = edge(m, pair % EDGES), third = edge(m, (pair / EDGES + pair) % EDGES);
    return (struct operands){ it, edge(m, pair / EDGES),
                              m->verb == COMPARE && pair % 3 ? it : third };
}

static bool same(const struct meaning *m, uint64_t a, uint64_t b) {
    if (m->number == HALVES || m->number == BFLOATS) { /* any NaN is as good as another */
        int fraction = m->number == HALVES ? 10 : 7;
        for (int part = 0; part < 32; part += 16) {
            uint32_t x = a >> part & 0xffff, y = b >> part & 0xffff;
            if (x != y && !(isnan(small_real(x, fraction)) && isnan(small_real(y, fraction))))
                return false;
        }
        return true;
    }
    return a == b || (is_nan(m, a) && is_nan(m, b));
}

/* ---- one instruction ------------------------------------------------------------------------- */

/* Where the cell of a lane is: in LDS or in device memory. */
static uint8_t *cell(const struct isa_info *info, const struct meaning *m, unsigned lane) {
    if (info->encoding == ISA_ENC_MIMG)
        return memory + (size_t)m->bits / 8 * lane;
    return (info->encoding == ISA_ENC_DS ? lds : memory) + FIRST + (size_t)STRIDE * lane;
}

static void put(unsigned reg, unsigned lane, uint64_t value, unsigned bits) {
    vgpr(reg)[lane] = (uint32_t)value;
    if (bits == 64)
        vgpr(reg + 1)[lane] = (uint32_t)(value >> 32);
}

static uint64_t get(unsigned reg, unsigned lane, unsigned bits) {
    return vgpr(reg)[lane] | (bits == 64 ? (uint64_t)vgpr(reg + 1)[lane] << 32 : 0);
}

static void describe(uint8_t encoding, unsigned bits) {
    uint64_t base = encoding == ISA_ENC_MIMG ? MEMORY_BASE >> 8 : MEMORY_BASE;
    memset(&wave->sgpr[16], 0, 8 * sizeof wave->sgpr[0]);
    isa_write64(wave, 16, base);
    if (encoding != ISA_ENC_MIMG) {
        wave->sgpr[18] = MEMORY_BYTES;
        return;
    }
    wave->sgpr[17] |= (bits == 64 ? 11u : 4u) << 20 | 4u << 26; /* 32 or 32_32, UINT */
    wave->sgpr[18] = 15 | 3 << 14;                              /* 16 by 4 texels */
    wave->sgpr[19] = 4 | 5 << 3 | 6 << 6 | 7 << 9 | 9u << 28;
    wave->sgpr[20] = 15 << 13;
}

/* Registers, memory and the instruction itself for one round. Operands of compare-and-swap follow
 * each other: the new value, then the one to compare with; DS has them in two operands, the other
 * way round. */
static struct isa_insn prepare(enum isa_op op, const struct meaning *m, unsigned round, bool glc) {
    const struct isa_info *info = &isa_info[op];
    bool in_lds = info->encoding == ISA_ENC_DS,
         by_offset = in_lds || info->encoding == ISA_ENC_MUBUF;
    bool in_place = info->encoding == ISA_ENC_MUBUF || info->encoding == ISA_ENC_MIMG;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        struct operands o = operands_of(m, round, l);
        bool swapped = in_lds && m->verb == COMPARE;
        memcpy(cell(info, m, l), &o.it, m->bits / 8);
        set_address(0, l, (by_offset ? 0 : MEMORY_BASE) + FIRST + STRIDE * (uint64_t)l);
        if (info->encoding == ISA_ENC_MIMG)
            set_address(0, l, l % 16 | (uint64_t)(l / 16) << 32);
        put(DATA, l, swapped ? o.other : o.data, m->bits);
        put(in_lds ? DATA1 : DATA + m->bits / 32, l, swapped ? o.data : o.other, m->bits);
        put(RESULT, l, PATTERN * (UINT64_C(1) << 32 | 1) + l, 64);
    }
    describe(info->encoding, m->bits);
    if (in_place)
        return (struct isa_insn){
            .op = (uint16_t)op,
            .dst = V + DATA,
            .src = { V + 0, 16, info->encoding == ISA_ENC_MIMG ? 24 : ISA_INT_0 },
            .ext = info->encoding == ISA_ENC_MIMG,
            .memory = (uint16_t)((by_offset ? ISA_MEM_OFFEN : 0) | (glc ? ISA_MEM_GLC : 0))
        };
    return (struct isa_insn){ .op = (uint16_t)op,
                              .dst = V + RESULT,
                              .src = { V + 0, V + DATA, in_lds ? V + DATA1 : ISA_OFF },
                              .memory = glc && !in_lds ? ISA_MEM_GLC : 0 };
}

/* The register that a result goes to, and what it holds otherwise. */
static void check_result(const struct isa_info *info, const struct meaning *m, struct isa_insn i,
                         unsigned lane, struct operands o, bool returned) {
    unsigned reg = i.dst - V;
    uint64_t wanted = reg == DATA ? o.data : PATTERN * (UINT64_C(1) << 32 | 1) + lane;
    wanted = returned && EXEC >> lane & 1 ? o.it : wanted;
    if (m->bits == 32)
        wanted &= UINT32_MAX;
    if (get(reg, lane, m->bits) != wanted)
        fail_msg("%s: lane %u has %#lx and should have %#lx", info->name, lane,
                 (unsigned long)get(reg, lane, m->bits), (unsigned long)wanted);
}

static void check_round(enum isa_op op, const struct meaning *m, unsigned round, bool glc) {
    static uint8_t before[MEMORY_BYTES + LDS_BYTES];
    const struct isa_info *info = &isa_info[op];
    struct isa_insn i = prepare(op, m, round, glc);
    bool returned = info->encoding == ISA_ENC_DS ? info->type[0] != ISA_TYPE_NONE : glc;
    memcpy(before, memory, MEMORY_BYTES);
    memcpy(before + MEMORY_BYTES, lds, LDS_BYTES);
    ISA_WAVE_EXEC(wave) = EXEC;
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++) {
        struct operands o = operands_of(m, round, l);
        uint64_t is = 0, wanted = EXEC >> l & 1 ? model(m, o.it, o.data, o.other) : o.it;
        memcpy(&is, cell(info, m, l), m->bits / 8);
        if (!same(m, is, wanted))
            fail_msg("%s: %#lx with %#lx and %#lx gives %#lx and should give %#lx", info->name,
                     (unsigned long)o.it, (unsigned long)o.data, (unsigned long)o.other,
                     (unsigned long)is, (unsigned long)wanted);
        check_result(info, m, i, l, o, returned);
        memcpy(cell(info, m, l), &o.it, m->bits / 8);
    }
    if (memcmp(before, memory, MEMORY_BYTES) || memcmp(before + MEMORY_BYTES, lds, LDS_BYTES))
        fail_msg("%s writes where no lane's cell is", info->name);
}

/* A scalar atomic has one cell; its data and its result are scalar registers. */
static void check_scalar(enum isa_op op, const struct meaning *m, unsigned pair, bool glc) {
    const struct isa_info *info = &isa_info[op];
    struct operands o = operands_of(m, pair / ISA_LANES, pair % ISA_LANES);
    struct isa_insn i = { .op = (uint16_t)op,
                          .dst = 8,
                          .src = { 16, ISA_OFF, ISA_OFF },
                          .imm = FIRST,
                          .memory = (uint16_t)(ISA_MEM_IMM | (glc ? ISA_MEM_GLC : 0)) };
    uint64_t is = 0, wanted = model(m, o.it, o.data, o.other);
    describe(info->encoding, m->bits);
    memcpy(memory + FIRST, &o.it, m->bits / 8);
    isa_write64(wave, 8, m->bits == 64 ? o.data : o.data | o.other << 32);
    isa_write64(wave, 10, o.other);
    uint64_t after = m->bits == 64 ? wave->sgpr64[5] : wave->sgpr[9];
    assert_int_equal(execute(i), ISA_CONTINUE);
    memcpy(&is, memory + FIRST, m->bits / 8);
    uint64_t result = m->bits == 64 ? wave->sgpr64[4] : wave->sgpr[8];
    if (is != wanted || result != (glc ? o.it : o.data) ||
        after != (m->bits == 64 ? wave->sgpr64[5] : wave->sgpr[9]))
        fail_msg("%s: %#lx with %#lx and %#lx gives %#lx and should give %#lx", info->name,
                 (unsigned long)o.it, (unsigned long)o.data, (unsigned long)o.other,
                 (unsigned long)is, (unsigned long)wanted);
}

static void check_atomic(enum isa_op op, struct meaning m) {
    const struct isa_info *info = &isa_info[op];
    wave_open(info->gpus & 1 << ISA_GFX90A ? ISA_GFX90A : ISA_GFX942);
    for (unsigned pair = 0; pair < EDGES * EDGES; pair++)
        for (int glc = 0; glc < 2; glc++)
            if (info->encoding == ISA_ENC_SMEM)
                check_scalar(op, &m, pair, glc);
            else if (pair % ISA_LANES == 0)
                check_round(op, &m, pair / ISA_LANES, glc);
}

static void every_atomic_does_what_its_name_says(void **state) {
    (void)state;
    unsigned checked = 0;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
        const struct isa_info *info = &isa_info[op];
        struct meaning m = { 0 };
        if (!isa_is_atomic(info))
            continue;
        if (!read_name(info, &m))
            fail_msg("no model of %s", info->name);
        check_atomic(op, m);
        if (info->encoding == ISA_ENC_MIMG) /* texels of 32 bits, and of 64 */
            m.bits = 64, check_atomic(op, m);
        checked++;
    }
    wave_close();
    assert_true(checked > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_atomic_does_what_its_name_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
