/* mm_rows.h - the functions of mm.h that read 16 rows as they are in the file, written once over
 * the vectors of a vec_*.h and the walks of mm_walk.h; part of mm_panel.h.
 *
 * A slab of 16 rows is brought into the order of pack.def in a buffer that stays in the L1 cache,
 * and walked over there like a packed one, so that the sums have the same bits. The sections of a
 * block say what is to be transposed; pack.c does the same row by row, and tests compare the two.
 *
 * Sections other than WORDS are shorter than 16 bytes. Those of a block lie close together: 16
 * bytes of each row, its head, are loaded for all that are in them. */

/* Bytes: of a head, and of a packed slab of Q8_0, the largest. */
enum { HEAD = 16, MOST_PACKED = MM_SLAB / 32 * 34 * PACK_ROWS };

/* Where in a block of the file the head begins that has the section. */
INLINE size_t head_of(struct pack_section s, size_t block_bytes) {
    const size_t at = s.at / HEAD * HEAD;
    return at + HEAD <= block_bytes ? at : block_bytes - HEAD;
}

/* Bytes `at` to `at` + 3 of a head, of 16 rows; past its end anything. */
INLINE vi head_word(const vi head[4], size_t at) {
    if (at % 4 == 0)
        return head[at / 4];
    vi low = vi_right_words(head[at / 4], 16);
    return at / 4 == 3 ? low : vi_or(low, vi_left_words(head[at / 4 + 1], 16));
}

/* Bit 4q + c of every word to bit 8c + q. */
INLINE vi sort_bits(vi v) {
    v = vi_swap(v, 14, 0x0000cccc);
    v = vi_swap(v, 7, 0x00aa00aa);
    v = vi_swap(v, 2, 0x0c0c0c0c);
    return vi_swap(v, 1, 0x22222222);
}

/* Bytes a, b, c, d of every word and of another, 4 bits each, to a|b, A|B, c|d, C|D. */
INLINE vi join_nibbles(vi v, vi other) {
    v = vi_and(vi_or(v, vi_right(v, 4)), 0x00ff);
    other = vi_and(vi_or(other, vi_right(other, 4)), 0x00ff);
    return vi_or(v, vi_left(other, 8));
}

/* join_nibbles() stored in the order a|b, c|d, A|B, C|D. */
INLINE void store_joined(uint8_t *to, vi v, vi other) {
    vi_store_bytes(to, vi_swap(join_nibbles(v, other), 8, 0x0000ff00));
}

INLINE void pack_k4(const vi head[4], size_t at, uint8_t *to) {
    vi scale = head_word(head, at), min = head_word(head, at + 4);
    vi_store_bytes(to, vi_or(vi_and(scale, 0x0f0f), vi_left(vi_and(min, 0x0f0f), 4)));
    vi_store_bytes(to + 4 * PACK_ROWS, head_word(head, at + 8));
    vi low = vi_or(vi_and(vi_right(scale, 4), 0x0303), vi_and(vi_right(min, 2), 0x0c0c));
    vi high = vi_or(vi_and(vi_right(scale, 6), 0x0303), vi_and(vi_right(min, 4), 0x0c0c));
    store_joined(to + 8 * PACK_ROWS, low, high);
}

INLINE void pack_k3(const vi head[4], size_t at, uint8_t *to) {
    vi a = head_word(head, at), b = head_word(head, at + 4), high = head_word(head, at + 8);
    store_joined(to, vi_and(a, 0x0f0f), vi_and(b, 0x0f0f));
    store_joined(to + 4 * PACK_ROWS, vi_and(vi_right(a, 4), 0x0f0f),
                 vi_and(vi_right(b, 4), 0x0f0f));
    vi_store_bytes(to + 8 * PACK_ROWS, vi_swap(vi_swap(high, 12, 0x0000f0f0), 6, 0x00cc00cc));
}

INLINE void pack_xs(const vi head[4], size_t at, uint8_t *to) {
    uint8_t high[4 * PACK_ROWS]; /* two of its four bytes count */
    vi_store_bytes(to, head_word(head, at + 2));
    vi_store_bytes(high, head_word(head, at));
    memcpy(to + 4 * PACK_ROWS, high, 2 * PACK_ROWS);
}

INLINE void pack_words(const uint8_t *p, size_t stride, size_t bytes, uint8_t *to) {
    UNROLL for (size_t i = 0; i < bytes; i += HEAD) {
        vi word[4];
        vi_turn(p + i, stride, word);
        UNROLL for (size_t w = 0; w < 4; w++) vi_store(to + (i + 4 * w) * PACK_ROWS, word[w]);
    }
}

INLINE void pack_from_head(struct pack_section s, const vi head[4], size_t at, uint8_t *to) {
    switch (s.kind) {
    case PACK_KIND_HALVES:
        vi_store_halves(to, head_word(head, at));
        break;
    case PACK_KIND_BITS:
        vi_store(to, sort_bits(head_word(head, at)));
        break;
    case PACK_KIND_BYTES:
        UNROLL for (size_t w = 0; w < 4; w++) vi_store_bytes(to + 4 * w * PACK_ROWS, head[w]);
        break;
    case PACK_KIND_K4:
        pack_k4(head, at, to);
        break;
    case PACK_KIND_K3:
        pack_k3(head, at, to);
        break;
    case PACK_KIND_XS:
        pack_xs(head, at, to);
        break;
    default:
        break;
    }
}

/* One block of 16 rows, packed. */
INLINE void pack_block(enum tensor_type type, size_t block_bytes, const uint8_t *p, size_t stride,
                       uint8_t *to) {
    const struct pack_layout layout = pack_layout(type);
    size_t loaded = SIZE_MAX; /* where the head begins that is loaded */
    vi head[4];
    UNROLL for (int i = 0; i < PACK_SECTIONS; i++) {
        const struct pack_section s = pack_sections[type][i];
        if (s.kind == PACK_KIND_NONE || s.kind == PACK_KIND_WORDS)
            continue;
        const size_t from = head_of(s, block_bytes);
        if (from != loaded)
            vi_turn(p + from, stride, head);
        loaded = from;
        pack_from_head(s, head, s.at - from, to + layout.at[i]);
    }
    UNROLL for (int i = 0; i < PACK_SECTIONS; i++) {
        const struct pack_section s = pack_sections[type][i];
        if (s.kind == PACK_KIND_WORDS)
            pack_words(p + s.at, stride, s.bytes, to + layout.at[i]);
    }
}

/* The rows lie one after the other: while these are read, the next 16 are fetched, as one stream.
 */
INLINE void prefetch_next_rows(const uint8_t *next, size_t bytes) {
    UNROLL for (size_t i = 0; i < bytes; i += LINE) __builtin_prefetch(next + i, 0, 2);
}

#define MM_TYPE(type, ...)                                                                         \
    static void pack_##type(const uint8_t *p, size_t stride, size_t blocks, const uint8_t *next,   \
                            uint8_t *to) {                                                         \
        const struct pack_layout layout = pack_layout(TENSOR_TYPE_##type);                         \
        const size_t bytes = layout.bytes / PACK_ROWS;                                             \
        for (size_t b = 0; b < blocks; b++) {                                                      \
            prefetch_next_rows(next + b * layout.bytes, layout.bytes);                             \
            pack_block(TENSOR_TYPE_##type, bytes, p + b * bytes, stride, to + b * layout.bytes);   \
        }                                                                                          \
    }
MM_TYPES
#undef MM_TYPE

/* Blocks of 16 rows; from `next` on as many bytes are fetched as are packed. */
static NOINLINE void pack_blocks(enum tensor_type type, const void *rows, size_t stride,
                                 size_t blocks, const void *next, void *to) {
    switch (type) {
#define MM_TYPE(type, ...)                                                                         \
    case TENSOR_TYPE_##type:                                                                       \
        pack_##type(rows, stride, blocks, next, to);                                               \
        break;
        MM_TYPES
#undef MM_TYPE
    default:
        break;
    }
}

static void pack(enum tensor_type type, const void *rows, size_t stride, size_t blocks, void *to) {
    pack_blocks(type, rows, stride, blocks, (const uint8_t *)rows + PACK_ROWS * stride, to);
}

/* Packing and multiplying are separate functions: of a loop that has both, compilers made poor code
 * (AVX2, Q4_K: 128 KB of it, at a quarter of the speed). */
static void dot_rows(enum tensor_type type, const void *rows, size_t stride, size_t n,
                     const int8_t *x, const struct mm_ready *ready, unsigned run,
                     float out[PACK_ROWS]) {
    const struct tensor_type_info *t = tensor_type_find(type);
    const uint8_t *p = rows, *next = p + PACK_ROWS * stride;
    _Alignas(64) uint8_t room[MOST_PACKED];
    for (size_t at = 0; at == 0 || at < n; at += MM_SLAB) { /* no columns: zero */
        const size_t count = n - at < MM_SLAB ? n - at : MM_SLAB, first = at / t->block_elements;
        pack_blocks(type, p + first * t->block_bytes, stride, count / t->block_elements,
                    next + first * t->block_bytes * PACK_ROWS, room);
        dot_slabs(type, room, count, x + at, ready + at / MM_SLAB, run, (struct mm_ahead){ 0, 0 },
                  at > 0, out);
    }
}
