/* image.c - MIMG: images through an image descriptor, and a sampler.
 *
 *   image     base >> 8 [39:0]  min_lod[51:40] data_format[57:52] number_format[61:58]
 *             width-1 [77:64] height-1 [91:78]
 *             selects[107:96] base_level[111:108] last_level[115:112] swizzle[120:116]
 *             type[127:124] depth-1, or last slice [140:128] pitch-1 in elements [156:141]
 *             first slice [172:160]
 *   sampler   clamp x, y, z [2:0] [5:3] [8:6] unnormalised[15] magnifying filter[85:84]
 *             border type[127:126]
 *
 * Images are linear and have one level. As on hardware, a texel outside is read as 0 and not
 * written, and coordinates are rounded to 8 bits of fraction. */
#include "isa/action.h"
#include "isa/floats.h"
#include "isa/texel.h"

#include <math.h>

enum image_type { TYPE_1D = 8, TYPE_2D = 9, TYPE_3D = 10, TYPE_1D_ARRAY = 12, TYPE_2D_ARRAY = 13 };
enum clamp {
    CLAMP_WRAP,
    CLAMP_MIRROR,
    CLAMP_EDGE,
    CLAMP_MIRROR_ONCE,
    CLAMP_HALF_BORDER,
    CLAMP_MIRROR_ONCE_HALF_BORDER,
    CLAMP_BORDER,
    CLAMP_MIRROR_ONCE_BORDER,
};
enum { UNNORMALISED = 1 << 12, LINEAR = 1 };
#define FRACTION 256.0f
#define D16      (1u << 31) /* of the second dword */

struct image {
    uint64_t base;
    struct isa_texel texel;
    uint32_t size[3]; /* width, height, depth; 1 for those it has not */
    uint32_t slices;  /* of an array, else 1 */
    uint32_t first_slice;
    uint32_t pitch; /* elements from row to row */
    unsigned dims;  /* coordinates besides the slice */
    bool array;
};

static const char *read_image(const struct isa_wave *w, const struct isa_insn *i, struct image *m) {
    const uint32_t *d = &w->sgpr[i->src[1]];
    unsigned type = d[3] >> 28;
    *m = (struct image){ .base = ((uint64_t)(d[1] & 0xff) << 32 | d[0]) << 8,
                         .size = { (d[2] & 0x3fff) + 1, 1, 1 },
                         .slices = 1,
                         .first_slice = d[5] & 0x1fff,
                         .pitch = (d[4] >> 13 & 0xffff) + 1 };
    if (!isa_texel_of(d[1] >> 20 & 0x3f, d[1] >> 26 & 0xf, d[3] & 0xfff, &m->texel))
        return "image format";
    if (d[3] >> 20 & 0x1f)
        return "image that is not linear";
    switch (type) {
    case TYPE_1D_ARRAY:
    case TYPE_1D:
        m->dims = 1;
        break;
    case TYPE_2D_ARRAY:
    case TYPE_2D:
        m->dims = 2;
        break;
    case TYPE_3D:
        m->dims = 3;
        m->size[2] = (d[4] & 0x1fff) + 1;
        break;
    default:
        return "image type";
    }
    if (m->dims > 1)
        m->size[1] = (d[2] >> 14 & 0x3fff) + 1;
    m->array = type >= TYPE_1D_ARRAY;
    if (m->array)
        m->slices = (d[4] & 0x1fff) + 1;
    return NULL;
}

/* The address of a texel; false outside the image. z is the slice of an array. */
static bool texel_address(const struct image *m, const uint32_t at[3], uint32_t slice,
                          uint64_t *address) {
    if (at[0] >= m->size[0] || at[1] >= m->size[1] || at[2] >= m->size[2] ||
        slice + m->first_slice >= m->slices)
        return false;
    uint64_t row = (uint64_t)(m->array ? slice + m->first_slice : at[2]) * m->size[1] + at[1];
    *address = m->base + (row * m->pitch + at[0]) * isa_texel_bytes(&m->texel);
    return true;
}

static struct isa_access access_of(struct isa_wave *w, const struct isa_insn *i,
                                   const struct image *m, enum isa_access_kind kind) {
    return (struct isa_access){ .wave = w,
                                .insn = i,
                                .space = ISA_SPACE_GLOBAL,
                                .kind = (uint8_t)kind,
                                .bytes = isa_texel_bytes(&m->texel) };
}

/* Integer coordinates in consecutive registers: those of the image, then the slice. */
static void read_coordinates(struct isa_wave *w, const struct isa_insn *i, const struct image *m,
                             struct isa_access *a, uint64_t address[ISA_LANES]) {
    const uint32_t(*v)[ISA_LANES] = (const uint32_t(*)[ISA_LANES])isa_rows_at(w, i->src[0]);
    for (ISA_EACH_LANE(l, ISA_WAVE_EXEC(w))) {
        uint32_t at[3] = { 0 };
        for (unsigned d = 0; d < m->dims; d++)
            at[d] = v[d][l];
        if (texel_address(m, at, m->array ? v[m->dims][l] : 0, &address[l]))
            a->lanes |= UINT64_C(1) << l;
    }
}

/* The channels that dmask names, in consecutive registers; with D16 as f16, two in a register. */
static void write_result(struct isa_wave *w, const struct isa_insn *i, uint64_t lane,
                         const uint32_t result[4], bool is_float) {
    uint32_t(*dst)[ISA_LANES] = isa_rows_at(w, i->dst);
    unsigned n = 0;
    for (unsigned c = 0; c < 4; c++) {
        if (!(i->ext >> c & 1))
            continue;
        if (!(i->raw[1] & D16)) {
            dst[n++][lane] = result[c];
            continue;
        }
        uint32_t half = is_float ? isa_to_half(isa_float(result[c])) : result[c] & 0xffff;
        uint32_t *to = &dst[n / 2][lane];
        *to = n % 2 ? (*to & 0xffff) | half << 16 : half;
        n++;
    }
}

static enum isa_result image_load(struct isa_wave *w, const struct isa_insn *i) {
    static const uint32_t nothing[4];
    struct image m;
    uint64_t address[ISA_LANES] = { 0 };
    void *host[ISA_LANES];
    const char *why = read_image(w, i, &m);
    if (why)
        return isa_stop_unsupported(w, i, why);
    struct isa_access a = access_of(w, i, &m, ISA_LOAD);
    read_coordinates(w, i, &m, &a, address);
    enum isa_result r = a.lanes ? isa_reach(&a, address, host) : ISA_CONTINUE;
    if (r != ISA_CONTINUE)
        return r;
    for (ISA_EACH_LANE(l, ISA_WAVE_EXEC(w))) {
        uint32_t result[4];
        bool inside = a.lanes >> l & 1;
        if (inside)
            isa_texel_load(&m.texel, host[l], result);
        write_result(w, i, l, inside ? result : nothing, isa_texel_is_float(&m.texel));
    }
    return ISA_CONTINUE;
}

/* The n-th channel that a lane stores: a register, or with D16 half of one. */
static uint32_t stored(const struct isa_insn *i, const struct image *m,
                       const uint32_t (*data)[ISA_LANES], unsigned n, uint64_t l) {
    if (!(i->raw[1] & D16))
        return data[n][l];
    uint32_t half = data[n / 2][l] >> n % 2 * 16 & 0xffff;
    if (isa_texel_is_float(&m->texel))
        return isa_bits(isa_from_half(half));
    return m->texel.number == ISA_SINT ? (uint32_t)(int16_t)half : half;
}

static enum isa_result image_store(struct isa_wave *w, const struct isa_insn *i) {
    struct image m;
    uint64_t address[ISA_LANES] = { 0 };
    void *host[ISA_LANES];
    const uint32_t(*data)[ISA_LANES] = (const uint32_t(*)[ISA_LANES])isa_rows_at(w, i->dst);
    const char *why = read_image(w, i, &m);
    if (!why && !isa_texel_can_store(&m.texel))
        why = "image format";
    if (why)
        return isa_stop_unsupported(w, i, why);
    struct isa_access a = access_of(w, i, &m, ISA_STORE);
    read_coordinates(w, i, &m, &a, address);
    enum isa_result r = a.lanes ? isa_reach(&a, address, host) : ISA_CONTINUE;
    for (ISA_EACH_LANE(l, r == ISA_CONTINUE ? a.lanes : 0)) {
        uint32_t value[4] = { 0 };
        for (unsigned c = 0, n = 0; c < 4; c++)
            if (i->ext >> c & 1)
                value[c] = stored(i, &m, data, n++, l);
        isa_texel_store(&m.texel, value, host[l]);
    }
    return r;
}

/* ---- texels as they are: dwords of memory, no conversion ---- */

static enum isa_result move_packed(struct isa_wave *w, const struct isa_insn *i,
                                   enum isa_access_kind kind, bool sign) {
    struct image m;
    uint64_t address[ISA_LANES] = { 0 };
    void *host[ISA_LANES];
    uint32_t(*rows)[ISA_LANES] = isa_rows_at(w, i->dst);
    const char *why = read_image(w, i, &m);
    if (why)
        return isa_stop_unsupported(w, i, why);
    unsigned bytes = isa_texel_bytes(&m.texel), dwords = (bytes + 3) / 4;
    struct isa_access a = access_of(w, i, &m, kind);
    read_coordinates(w, i, &m, &a, address);
    enum isa_result r = a.lanes ? isa_reach(&a, address, host) : ISA_CONTINUE;
    for (ISA_EACH_LANE(l, r == ISA_CONTINUE ? ISA_WAVE_EXEC(w) : 0)) {
        uint32_t value[4] = { 0 };
        bool inside = a.lanes >> l & 1;
        if (inside)
            memcpy(value, host[l], bytes);
        if (sign && bytes < 4)
            value[0] = bytes == 1 ? (uint32_t)(int8_t)value[0] : (uint32_t)(int16_t)value[0];
        for (unsigned d = 0, n = 0; d < 4; d++)
            if (i->ext >> d & 1 && kind == ISA_LOAD)
                rows[n++][l] = value[d];
            else if (i->ext >> d & 1 && d < dwords)
                value[d] = rows[n++][l];
        if (inside && kind == ISA_STORE)
            memcpy(host[l], value, bytes);
    }
    return r;
}

static enum isa_result image_load_pck(struct isa_wave *w, const struct isa_insn *i) {
    return move_packed(w, i, ISA_LOAD, false);
}
static enum isa_result image_load_pck_sgn(struct isa_wave *w, const struct isa_insn *i) {
    return move_packed(w, i, ISA_LOAD, true);
}
static enum isa_result image_store_pck(struct isa_wave *w, const struct isa_insn *i) {
    return move_packed(w, i, ISA_STORE, false);
}

/* ---- atomics: texels of 32 bits, or of 64 ---- */

static enum isa_result run_atomic(struct isa_wave *w, const struct isa_insn *i,
                                  const struct isa_action *on_32, const struct isa_action *on_64) {
    struct image m;
    uint64_t address[ISA_LANES] = { 0 };
    void *host[ISA_LANES];
    uint32_t(*rows)[ISA_LANES] = isa_rows_at(w, i->dst);
    const char *why = read_image(w, i, &m);
    unsigned bytes = why ? 0 : isa_texel_bytes(&m.texel);
    if (why || (bytes != 4 && bytes != 8))
        return isa_stop_unsupported(w, i, why ? why : "atomic of an image of this format");
    const struct isa_action *act = bytes == 4 ? on_32 : on_64;
    struct isa_data r = { .dst = i->memory & ISA_MEM_GLC ? rows : NULL,
                          .data = (const uint32_t(*)[ISA_LANES])rows,
                          .data1 = (const uint32_t(*)[ISA_LANES])rows + bytes / 4 };
    struct isa_access a = access_of(w, i, &m, ISA_ATOMIC);
    read_coordinates(w, i, &m, &a, address);
    for (ISA_EACH_LANE(l, r.dst ? ISA_WAVE_EXEC(w) & ~a.lanes : 0))
        for (unsigned d = 0; d < bytes / 4; d++)
            rows[d][l] = 0;
    enum isa_result result = a.lanes ? isa_reach(&a, address, host) : ISA_CONTINUE;
    if (result == ISA_CONTINUE && a.lanes)
        act->apply(&r, a.lanes, host, true);
    return result;
}

#define ATOMICS(A)                                                                                 \
    A(swap)                                                                                        \
    A(cmpswap) A(add) A(sub) A(smin) A(umin) A(smax) A(umax) A(and) A(or) A(xor) A(inc) A(dec)
#define RUN_ATOMIC(name)                                                                           \
    static enum isa_result image_atomic_##name(struct isa_wave *w, const struct isa_insn *i) {     \
        return run_atomic(w, i, &isa_action_atomic_##name, &isa_action_atomic_##name##_x2);        \
    }
ATOMICS(RUN_ATOMIC)

/* ---- sampling ---- */

struct sampler {
    unsigned clamp[3];
    bool normalised, linear;
    float border[4];
};

static void read_sampler(const struct isa_wave *w, const struct isa_insn *i, struct sampler *s) {
    const uint32_t *d = &w->sgpr[i->src[2]];
    unsigned border = d[3] >> 30;
    *s = (struct sampler){ .clamp = { d[0] & 7, d[0] >> 3 & 7, d[0] >> 6 & 7 },
                           .normalised = !(d[0] >> 15 & 1) && !(i->raw[0] & UNNORMALISED),
                           .linear = d[2] >> 20 & LINEAR };
    if (border == 1 || border == 2) /* opaque black, opaque white */
        s->border[3] = 1.0f;
    for (unsigned c = 0; c < 3 && border == 2; c++)
        s->border[c] = 1.0f;
}

/* A coordinate that may be outside, brought in as the sampler says; false: the border. */
static bool bring_in(unsigned clamp, int64_t at, uint32_t size, uint32_t *out) {
    int64_t n = size, period;
    switch (clamp) {
    case CLAMP_WRAP:
        *out = (uint32_t)((at % n + n) % n);
        return true;
    case CLAMP_MIRROR:
        period = (at % (2 * n) + 2 * n) % (2 * n);
        *out = (uint32_t)(period < n ? period : 2 * n - 1 - period);
        return true;
    case CLAMP_MIRROR_ONCE:
        at = at < 0 ? -1 - at : at;
        *out = (uint32_t)(at < n ? at : n - 1);
        return true;
    case CLAMP_EDGE:
        *out = (uint32_t)(at < 0 ? 0 : at < n ? at : n - 1);
        return true;
    case CLAMP_MIRROR_ONCE_BORDER:
    case CLAMP_MIRROR_ONCE_HALF_BORDER:
        at = at < 0 ? -1 - at : at;
        break;
    default:
        break;
    }
    *out = (uint32_t)at;
    return at >= 0 && at < n;
}

/* What one lane reads along each dimension: one texel, or two with a weight for the second. */
struct footprint {
    int64_t first[3];
    float weight[3];
    uint32_t slice;
};

/* Far outside every image, and NaN, which is at 0. */
static float tame(float u) {
    return u > -1e9f ? u < 1e9f ? u : 1e9f : u <= -1e9f ? -1e9f : 0.0f;
}

static void read_footprint(struct isa_wave *w, const struct isa_insn *i, const struct image *m,
                           const struct sampler *s, uint64_t lane, struct footprint *f) {
    const uint32_t(*v)[ISA_LANES] = (const uint32_t(*)[ISA_LANES])isa_rows_at(w, i->src[0]);
    *f = (struct footprint){ .slice = 0 };
    for (unsigned d = 0; d < m->dims; d++) {
        float u = isa_float(v[d][lane]);
        u = tame(s->normalised ? u * (float)m->size[d] : u);
        u = rintf(u * FRACTION) / FRACTION - (s->linear ? 0.5f : 0.0f);
        f->first[d] = (int64_t)floorf(u);
        f->weight[d] = s->linear ? u - floorf(u) : 0.0f;
    }
    if (m->array) {
        float slice = rintf(tame(isa_float(v[m->dims][lane])));
        float last = (float)(m->slices - m->first_slice) - 1.0f;
        f->slice = slice > 0 ? (uint32_t)(slice < last ? slice : last) : 0;
    }
}

/* Texel number `corner` of every lane: bit d says first or second along dimension d. */
static enum isa_result read_corner(struct isa_wave *w, const struct isa_insn *i,
                                   const struct image *m, const struct sampler *s,
                                   const struct footprint f[ISA_LANES], unsigned corner,
                                   uint32_t texels[ISA_LANES][4]) {
    struct isa_access a = access_of(w, i, m, ISA_LOAD);
    uint64_t address[ISA_LANES] = { 0 };
    void *host[ISA_LANES];
    for (ISA_EACH_LANE(l, ISA_WAVE_EXEC(w))) {
        uint32_t at[3] = { 0 };
        bool inside = true;
        for (unsigned d = 0; d < m->dims; d++)
            inside &= bring_in(s->clamp[d], f[l].first[d] + (corner >> d & 1), m->size[d], &at[d]);
        if (inside && texel_address(m, at, f[l].slice, &address[l]))
            a.lanes |= UINT64_C(1) << l;
    }
    enum isa_result r = a.lanes ? isa_reach(&a, address, host) : ISA_CONTINUE;
    for (ISA_EACH_LANE(l, r == ISA_CONTINUE ? ISA_WAVE_EXEC(w) : 0))
        if (a.lanes >> l & 1)
            isa_texel_load(&m->texel, host[l], texels[l]);
        else
            for (unsigned c = 0; c < 4; c++)
                texels[l][c] =
                    isa_texel_is_float(&m->texel) ? isa_bits(s->border[c]) : (uint32_t)s->border[c];
    return r;
}

static float corner_weight(const struct image *m, const struct footprint *f, unsigned corner) {
    float weight = 1.0f;
    for (unsigned d = 0; d < m->dims; d++)
        weight *= corner >> d & 1 ? f->weight[d] : 1.0f - f->weight[d];
    return weight;
}

static enum isa_result image_sample(struct isa_wave *w, const struct isa_insn *i) {
    struct image m;
    struct sampler s;
    struct footprint f[ISA_LANES];
    uint32_t texels[ISA_LANES][4];
    float sums[ISA_LANES][4] = { { 0 } };
    const char *why = read_image(w, i, &m);
    if (why)
        return isa_stop_unsupported(w, i, why);
    read_sampler(w, i, &s);
    s.linear &= isa_texel_is_float(&m.texel);
    for (ISA_EACH_LANE(l, ISA_WAVE_EXEC(w)))
        read_footprint(w, i, &m, &s, l, &f[l]);
    for (unsigned corner = 0; corner < (s.linear ? 1u << m.dims : 1); corner++) {
        enum isa_result r = read_corner(w, i, &m, &s, f, corner, texels);
        if (r != ISA_CONTINUE)
            return r;
        for (ISA_EACH_LANE(l, s.linear ? ISA_WAVE_EXEC(w) : 0)) {
            float weight = corner_weight(&m, &f[l], corner);
            for (unsigned c = 0; c < 4 && weight != 0.0f; c++)
                sums[l][c] += weight * isa_float(texels[l][c]);
        }
    }
    for (ISA_EACH_LANE(l, ISA_WAVE_EXEC(w))) {
        for (unsigned c = 0; c < 4 && s.linear; c++)
            texels[l][c] = isa_bits(sums[l][c]);
        write_result(w, i, l, texels[l], isa_texel_is_float(&m.texel));
    }
    return ISA_CONTINUE;
}

/* Width, height, depth or slices, levels. */
static enum isa_result image_get_resinfo(struct isa_wave *w, const struct isa_insn *i) {
    struct image m;
    const char *why = read_image(w, i, &m);
    if (why)
        return isa_stop_unsupported(w, i, why);
    uint32_t result[4] = { m.size[0], m.size[1], m.size[2], 1 };
    if (m.array)
        result[m.dims] = m.slices;
    for (ISA_EACH_LANE(l, ISA_WAVE_EXEC(w)))
        write_result(w, i, l, result, false);
    return ISA_CONTINUE;
}

/* The level is not looked at: images have one. */
#define ENTRY_ATOMIC(name) [ISA_OP_image_atomic_##name] = image_atomic_##name,
/* clang-format off */
const isa_exec_fn isa_group_image[ISA_OP_COUNT] = {
    [ISA_OP_image_load] = image_load, [ISA_OP_image_load_mip] = image_load,
    [ISA_OP_image_store] = image_store, [ISA_OP_image_store_mip] = image_store,
    [ISA_OP_image_load_pck] = image_load_pck, [ISA_OP_image_load_mip_pck] = image_load_pck,
    [ISA_OP_image_load_pck_sgn] = image_load_pck_sgn,
    [ISA_OP_image_load_mip_pck_sgn] = image_load_pck_sgn,
    [ISA_OP_image_store_pck] = image_store_pck, [ISA_OP_image_store_mip_pck] = image_store_pck,
    [ISA_OP_image_sample] = image_sample, [ISA_OP_image_get_resinfo] = image_get_resinfo,
    ATOMICS(ENTRY_ATOMIC)
};
/* clang-format on */
