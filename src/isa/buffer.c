/* buffer.c - MUBUF and MTBUF: memory through a buffer descriptor.
 *
 *   dwords 0, 1   base[47:0] stride[61:48] cache_swizzle[62] swizzle[63]
 *   dword 2       num_records: bytes if stride is 0, else elements
 *   dword 3       index_stride[22:21] (8, 16, 32, 64) add_tid[23], formats
 *
 * An access beyond num_records does nothing: a load gives 0, a store and an atomic are left out.
 *
 * gfx90a reaches scratch this way: a swizzled buffer of dwords whose index is the lane (add_tid).
 * Everything that such a buffer reaches must lie in the wave's own scratch. */
#include "isa/action.h"
#include "isa/floats.h"
#include "isa/texel.h"

enum { ELEMENT = 4 }; /* bytes that stay together when a buffer is swizzled */

struct buffer {
    uint64_t base;
    uint32_t stride, records, index_stride;
    bool swizzled, add_tid;
};

static struct buffer buffer_of(const struct isa_wave *w, const struct isa_insn *i) {
    const uint32_t *d = &w->sgpr[i->src[1]];
    return (struct buffer){ .base = d[0] | (uint64_t)(d[1] & 0xffff) << 32,
                            .stride = d[1] >> 16 & 0x3fff,
                            .records = d[2],
                            .index_stride = 8u << (d[3] >> 21 & 3),
                            .swizzled = d[1] >> 31,
                            .add_tid = d[3] >> 23 & 1 };
}

struct place {
    uint64_t address;
    bool inside; /* within num_records */
};

/* Where `bytes` at offset of element index are. scalar is the offset in an SGPR: it moves the whole
 * buffer, and counts for the limit only of a plain one. */
static struct place place_of(const struct buffer *b, uint32_t index, uint32_t offset,
                             uint32_t scalar, unsigned bytes) {
    struct place p;
    if (b->swizzled && (b->stride || b->add_tid)) {
        uint64_t block = (uint64_t)(index / b->index_stride) * b->stride;
        p.address = b->base + scalar + (block + offset / ELEMENT * ELEMENT) * b->index_stride +
                    (uint64_t)(index % b->index_stride) * ELEMENT + offset % ELEMENT;
        p.inside = index < b->records;
        return p;
    }
    p.address = b->base + scalar + (uint64_t)index * b->stride + offset;
    p.inside = b->stride ? index < b->records : (uint64_t)scalar + offset + bytes <= b->records;
    return p;
}

/* The lanes' indices and offsets. */
static void read_operands(struct isa_wave *w, const struct isa_insn *i, const struct buffer *b,
                          uint32_t index[ISA_LANES], uint32_t offset[ISA_LANES]) {
    static const uint32_t zeros[ISA_LANES];
    const uint32_t(*v)[ISA_LANES] = (const uint32_t(*)[ISA_LANES])isa_rows_at(w, i->src[0]);
    bool indexed = i->memory & ISA_MEM_IDXEN, offen = i->memory & ISA_MEM_OFFEN;
    const uint32_t *from = indexed ? v[0] : zeros, lanes = b->add_tid ? ISA_LANES - 1 : 0;
    for (uint32_t l = 0; l < ISA_LANES; l++)
        index[l] = from[l] + (l & lanes);
    isa_reach_offsets(offset, offen ? v[indexed] : zeros, (uint32_t)i->imm);
}

static bool is_scratch(const struct buffer *b) {
    return b->swizzled && b->add_tid;
}

static enum isa_result check_scratch(const struct isa_access *a,
                                     const uint64_t address[ISA_LANES]) {
    const struct isa_wave *w = a->wave;
    uint64_t size = (uint64_t)w->scratch_bytes * ISA_LANES;
    for (ISA_EACH_LANE(l, a->lanes))
        if (address[l] < w->scratch_base || address[l] - w->scratch_base > size ||
            size - (address[l] - w->scratch_base) < a->bytes)
            return isa_stop_fault(a, (unsigned)l, address[l], "outside the wave's scratch");
    return ISA_CONTINUE;
}

/* One action at index[lane], offset[lane]; lanes outside the buffer get 0. */
static enum isa_result act_at(struct isa_wave *w, const struct isa_insn *i,
                              const struct isa_action *act, const struct isa_data *r,
                              const struct buffer *b, const uint32_t index[ISA_LANES],
                              const uint32_t offset[ISA_LANES]) {
    struct isa_access a = { .wave = w,
                            .insn = i,
                            .space = is_scratch(b) ? ISA_SPACE_SCRATCH : ISA_SPACE_GLOBAL,
                            .kind = act->kind,
                            .bytes = act->bytes };
    uint64_t address[ISA_LANES];
    void *host[ISA_LANES];
    uint32_t scalar = isa_scalar32(w, i, i->src[2]);
    for (ISA_EACH_LANE(l, ISA_WAVE_EXEC(w))) {
        struct place p = place_of(b, index[l], offset[l], scalar, act->bytes);
        address[l] = p.address;
        if (p.inside)
            a.lanes |= UINT64_C(1) << l;
        else if (r->dst)
            for (unsigned d = 0; d < (act->bytes + 3u) / 4; d++)
                r->dst[d][l] = 0;
        if (p.inside && act->kind == ISA_ATOMIC && p.address % act->bytes)
            return isa_stop_fault(&a, (unsigned)l, p.address, "misaligned atomic");
    }
    enum isa_result result = is_scratch(b) ? check_scratch(&a, address) : ISA_CONTINUE;
    if (result == ISA_CONTINUE)
        result = isa_reach(&a, address, host);
    if (result == ISA_CONTINUE)
        act->apply(r, a.lanes, host, true);
    return result;
}

/* The way compilers reach scratch, which needs no check per lane; false if this access is of
 * another kind. */
static bool act_scratch(struct isa_wave *w, const struct isa_insn *i, const struct isa_action *act,
                        const struct isa_data *r, const struct buffer *b,
                        const uint32_t offset[ISA_LANES]) {
    struct isa_access a = { .wave = w,
                            .insn = i,
                            .space = ISA_SPACE_SCRATCH,
                            .kind = act->kind,
                            .bytes = act->bytes,
                            .lanes = ISA_WAVE_EXEC(w) };
    uint32_t swizzled[ISA_LANES];
    if (!is_scratch(b) || b->index_stride != ISA_LANES || b->records < ISA_LANES ||
        i->memory & ISA_MEM_IDXEN)
        return false;
    uint64_t base = b->base + isa_scalar32(w, i, i->src[2]);
    if (w->memory->frame && base == w->scratch_base)
        w->memory->frame(w->memory->context, &a, offset);
    if (!act->apply_near)
        return false;
    uint8_t *near = isa_reach_scratch_near(&a, base, offset, swizzled);
    if (near)
        act->apply_near(r, a.lanes, near, swizzled);
    return near;
}

static enum isa_result act_one(struct isa_wave *w, const struct isa_insn *i,
                               const struct isa_action *act, const struct isa_data *r,
                               const struct buffer *b, const uint32_t index[ISA_LANES],
                               const uint32_t offset[ISA_LANES]) {
    if (!ISA_WAVE_EXEC(w) || act_scratch(w, i, act, r, b, offset))
        return ISA_CONTINUE;
    return act_at(w, i, act, r, b, index, offset);
}

/* ---- between memory and LDS[M0 + offset + 4 * lane] ---- */

static enum isa_result act_lds(struct isa_wave *w, const struct isa_insn *i,
                               const struct isa_action *act, const struct isa_data *r) {
    struct isa_access a = { .wave = w,
                            .insn = i,
                            .space = ISA_SPACE_LDS,
                            .kind = act->kind,
                            .bytes = act->bytes,
                            .lanes = ISA_WAVE_EXEC(w) };
    uint32_t place[ISA_LANES];
    void *host[ISA_LANES];
    for (uint32_t l = 0; l < ISA_LANES; l++)
        place[l] = (ISA_WAVE_M0(w) & 0xffff) + (uint32_t)i->imm + 4 * l;
    enum isa_result result = isa_reach_lds(&a, place, host);
    if (result == ISA_CONTINUE)
        act->apply(r, a.lanes, host, false);
    return result;
}

static enum isa_result run_to_lds(struct isa_wave *w, const struct isa_insn *i,
                                  const struct isa_action *act) {
    struct buffer b = buffer_of(w, i);
    uint32_t index[ISA_LANES], offset[ISA_LANES], loaded[1][ISA_LANES];
    struct isa_data in = { .dst = loaded };
    struct isa_data out = { .data = (const uint32_t(*)[ISA_LANES])loaded };
    if (act->kind != ISA_LOAD || act->bytes > 4)
        return isa_stop_unsupported(w, i, "reserved: lds is for loads of up to a dword");
    if (!ISA_WAVE_EXEC(w))
        return ISA_CONTINUE;
    read_operands(w, i, &b, index, offset);
    enum isa_result result = act_at(w, i, act, &in, &b, index, offset);
    return result == ISA_CONTINUE ? act_lds(w, i, &isa_action_store_dword, &out) : result;
}

static enum isa_result buffer_store_lds_dword(struct isa_wave *w, const struct isa_insn *i) {
    struct buffer b = buffer_of(w, i);
    uint32_t index[ISA_LANES], offset[ISA_LANES], loaded[1][ISA_LANES];
    struct isa_data in = { .dst = loaded };
    struct isa_data out = { .data = (const uint32_t(*)[ISA_LANES])loaded };
    if (!ISA_WAVE_EXEC(w))
        return ISA_CONTINUE;
    read_operands(w, i, &b, index, offset);
    enum isa_result result = act_lds(w, i, &isa_action_load_dword, &in);
    return result == ISA_CONTINUE ? act_at(w, i, &isa_action_store_dword, &out, &b, index, offset)
                                  : result;
}

static enum isa_result run(struct isa_wave *w, const struct isa_insn *i,
                           const struct isa_action *act) {
    struct buffer b = buffer_of(w, i);
    struct isa_data r = isa_data_of(w, i, act, i->dst);
    uint32_t index[ISA_LANES], offset[ISA_LANES];
    bool many = act->bytes > ELEMENT && act->kind != ISA_ATOMIC;
    if (i->memory & ISA_MEM_LDS)
        return run_to_lds(w, i, act);
    read_operands(w, i, &b, index, offset);
    if (!many)
        return act_one(w, i, act, &r, &b, index, offset);
    /* Dwords are checked against the limit, and swizzled, one by one. */
    const struct isa_action *one =
        act->kind == ISA_LOAD ? &isa_action_load_dword : &isa_action_store_dword;
    enum isa_result result = ISA_CONTINUE;
    for (unsigned d = 0; d < act->bytes / 4u && result == ISA_CONTINUE; d++) {
        result = act_one(w, i, one, &r, &b, index, offset);
        for (unsigned l = 0; l < ISA_LANES; l++)
            offset[l] += 4;
        if (r.dst)
            r.dst++;
        if (r.data)
            r.data++;
    }
    return result;
}

/* ---- formatted: an element is converted as the descriptor or the instruction says ---- */

enum {
    HALVES = 8,
    UPPER = 16
}; /* flags beside a count of channels: D16, and D16 in the upper half */
enum { IN_ORDER = 4 | 5 << 3 | 6 << 6 | 7 << 9 }; /* selects of an instruction: x, y, z, w */

static bool texel_of(const struct isa_wave *w, const struct isa_insn *i, struct isa_texel *t) {
    uint32_t format = w->sgpr[i->src[1] + 3];
    if (isa_info[i->op].encoding == ISA_ENC_MTBUF)
        return isa_texel_of(i->ext & 15, i->ext >> 4 & 7, IN_ORDER, t);
    return isa_texel_of(format >> 15 & 0xf, format >> 12 & 7, format & 0xfff, t);
}

/* Channel c of a lane: a register, or half of one. */
static void put_channel(uint32_t (*rows)[ISA_LANES], uint64_t l, unsigned c, unsigned how,
                        uint32_t value, bool is_float) {
    if (!(how & HALVES)) {
        rows[c][l] = value;
        return;
    }
    uint32_t half = (is_float ? isa_to_half(isa_float(value)) : value) & 0xffff;
    unsigned shift = how & UPPER || c % 2 ? 16 : 0;
    rows[c / 2][l] = (rows[c / 2][l] & ~(0xffffu << shift)) | half << shift;
}

static uint32_t get_channel(uint32_t (*rows)[ISA_LANES], uint64_t l, unsigned c, unsigned how,
                            const struct isa_texel *t) {
    if (!(how & HALVES))
        return rows[c][l];
    uint32_t half = rows[c / 2][l] >> (how & UPPER || c % 2 ? 16 : 0) & 0xffff;
    if (isa_texel_is_float(t))
        return isa_bits(isa_from_half(half));
    return t->number == ISA_SINT ? (uint32_t)(int16_t)half : half;
}

static void move_format(const struct isa_texel *t, uint32_t (*rows)[ISA_LANES], uint64_t l,
                        unsigned how, enum isa_access_kind kind, void *memory) {
    uint32_t value[4] = { 0 };
    if (kind == ISA_LOAD && memory)
        isa_texel_load(t, memory, value);
    for (unsigned c = 0; c < (how & 7); c++)
        if (kind == ISA_LOAD)
            put_channel(rows, l, c, how, value[c], isa_texel_is_float(t));
        else
            value[c] = get_channel(rows, l, c, how, t);
    if (kind == ISA_STORE)
        isa_texel_store(t, value, memory);
}

/* how: a count of channels, and flags. */
static enum isa_result run_format(struct isa_wave *w, const struct isa_insn *i, unsigned how,
                                  enum isa_access_kind kind) {
    struct buffer b = buffer_of(w, i);
    uint32_t scalar = isa_scalar32(w, i, i->src[2]);
    uint32_t index[ISA_LANES], offset[ISA_LANES];
    uint32_t(*rows)[ISA_LANES] = isa_rows_at(w, i->dst);
    uint64_t address[ISA_LANES];
    void *host[ISA_LANES];
    struct isa_texel t;
    if (is_scratch(&b) || i->memory & ISA_MEM_LDS || !texel_of(w, i, &t) ||
        (kind == ISA_STORE && !isa_texel_can_store(&t)))
        return isa_stop_unsupported(w, i, "buffer format");
    struct isa_access a = { .wave = w,
                            .insn = i,
                            .space = ISA_SPACE_GLOBAL,
                            .kind = (uint8_t)kind,
                            .bytes = isa_texel_bytes(&t) };
    read_operands(w, i, &b, index, offset);
    for (ISA_EACH_LANE(l, ISA_WAVE_EXEC(w))) {
        struct place p = place_of(&b, index[l], offset[l], scalar, a.bytes);
        address[l] = p.address;
        a.lanes |= (uint64_t)p.inside << l;
        if (!p.inside && kind == ISA_LOAD)
            move_format(&t, rows, l, how, kind, NULL);
    }
    enum isa_result result = a.lanes ? isa_reach(&a, address, host) : ISA_CONTINUE;
    for (ISA_EACH_LANE(l, result == ISA_CONTINUE ? a.lanes : 0))
        move_format(&t, rows, l, how, kind, host[l]);
    return result;
}

#define FORMAT(name, how)                                                                          \
    static enum isa_result load_format_##name(struct isa_wave *w, const struct isa_insn *i) {      \
        return run_format(w, i, how, ISA_LOAD);                                                    \
    }                                                                                              \
    static enum isa_result store_format_##name(struct isa_wave *w, const struct isa_insn *i) {     \
        return run_format(w, i, how, ISA_STORE);                                                   \
    }
FORMAT(x, 1)
FORMAT(xy, 2)
FORMAT(xyz, 3)
FORMAT(xyzw, 4)
FORMAT(d16_x, 1 | HALVES)
FORMAT(d16_xy, 2 | HALVES)
FORMAT(d16_xyz, 3 | HALVES)
FORMAT(d16_xyzw, 4 | HALVES)
FORMAT(d16_hi_x, 1 | HALVES | UPPER)

static enum isa_result nothing(struct isa_wave *w, const struct isa_insn *i) {
    (void)w, (void)i;
    return ISA_CONTINUE;
}

#define RUN(name)                                                                                  \
    static enum isa_result run_##name(struct isa_wave *w, const struct isa_insn *i) {              \
        return run(w, i, &isa_action_##name);                                                      \
    }
ISA_LOADS(RUN)
ISA_STORES(RUN)
ISA_INTEGER_ATOMICS(RUN)
ISA_FLOAT_ATOMICS(RUN)

#define UNTYPED(name)                                                                              \
    [ISA_OP_buffer_load_format_##name] = load_format_##name,                                       \
    [ISA_OP_buffer_store_format_##name] = store_format_##name,
#define FORMATS(name)                                                                              \
    UNTYPED(name)                                                                                  \
    [ISA_OP_tbuffer_load_format_##name] = load_format_##name,                                      \
    [ISA_OP_tbuffer_store_format_##name] = store_format_##name,
#define ENTRY(name) [ISA_OP_buffer_##name] = run_##name,
/* clang-format off */
const isa_exec_fn isa_group_buffer[ISA_OP_COUNT] = {
    ISA_LOADS(ENTRY) ISA_STORES(ENTRY) ISA_INTEGER_ATOMICS(ENTRY) ISA_FLOAT_ATOMICS(ENTRY)
    FORMATS(x) FORMATS(xy) FORMATS(xyz) FORMATS(xyzw)
    FORMATS(d16_x) FORMATS(d16_xy) FORMATS(d16_xyz) FORMATS(d16_xyzw)
    UNTYPED(d16_hi_x)
    [ISA_OP_buffer_store_lds_dword] = buffer_store_lds_dword,
    [ISA_OP_buffer_wbl2] = nothing, [ISA_OP_buffer_invl2] = nothing, [ISA_OP_buffer_inv] = nothing,
    [ISA_OP_buffer_wbinvl1] = nothing, [ISA_OP_buffer_wbinvl1_vol] = nothing,
};
/* clang-format on */
