#include "codeobj/descriptor.h"

#include <string.h>

/* Offsets in the descriptor. */
enum {
    AT_GROUP = 0,
    AT_PRIVATE = 4,
    AT_KERNARG = 8,
    AT_ENTRY = 16,
    AT_RSRC3 = 44,
    AT_RSRC1 = 48,
    AT_RSRC2 = 52,
    AT_PROPERTIES = 56,
    AT_PRELOAD = 58,
};

/* Granules of gfx90a and gfx942. */
enum {
    VGPR_GRANULE = 8,
    SGPR_GRANULE = 16,
    ACCUM_GRANULE = 4,
    PRELOAD_SKIP = 256,
    SGPRS_MAX = 102
};

static uint32_t bits(uint32_t word, int low, int count) {
    return word >> low & ((1u << count) - 1);
}

static uint32_t word_at(const unsigned char *bytes, int offset) {
    uint32_t v;
    memcpy(&v, bytes + offset, sizeof v);
    return v;
}

static void read_rsrc1(struct codeobj_descriptor *d, uint32_t w) {
    d->vgprs = (bits(w, 0, 6) + 1) * VGPR_GRANULE;
    d->sgprs = (bits(w, 6, 4) / 2 + 1) * SGPR_GRANULE;
    d->priority = (uint8_t)bits(w, 10, 2);
    /* MODE: rounding and denormals of both kinds (8 bits), DX10_CLAMP 8, IEEE 9, FP16_OVFL 23. */
    d->mode = bits(w, 12, 8) | bits(w, 21, 1) << 8 | bits(w, 23, 1) << 9 | bits(w, 26, 1) << 23;
    d->privileged = bits(w, 20, 1);
    d->debug = bits(w, 22, 1);
    d->bulky = bits(w, 24, 1);
}

static void read_rsrc2(struct codeobj_descriptor *d, uint32_t w) {
    d->has_private = bits(w, 0, 1);
    d->user_sgprs = (uint8_t)bits(w, 1, 5);
    d->trap_handler = bits(w, 6, 1);
    for (int i = 0; i < 3; i++)
        d->group_id[i] = bits(w, 7 + i, 1);
    d->group_info = bits(w, 10, 1);
    d->work_item_ids = (uint8_t)bits(w, 11, 2);
    d->traps_address_watch = bits(w, 13, 1);
    d->traps_memory = bits(w, 14, 1);
    d->lds_granules = (uint16_t)bits(w, 15, 9);
    d->exceptions = (uint8_t)bits(w, 24, 7);
}

void codeobj_descriptor_read(struct codeobj_descriptor *d,
                             const unsigned char bytes[CODEOBJ_DESCRIPTOR_BYTES]) {
    *d = (struct codeobj_descriptor){
        .group_bytes = word_at(bytes, AT_GROUP),
        .private_bytes = word_at(bytes, AT_PRIVATE),
        .kernarg_bytes = word_at(bytes, AT_KERNARG),
    };
    memcpy(&d->entry, bytes + AT_ENTRY, sizeof d->entry);
    read_rsrc1(d, word_at(bytes, AT_RSRC1));
    read_rsrc2(d, word_at(bytes, AT_RSRC2));
    uint32_t rsrc3 = word_at(bytes, AT_RSRC3);
    d->accum_offset = (bits(rsrc3, 0, 6) + 1) * ACCUM_GRANULE;
    d->tg_split = bits(rsrc3, 16, 1);
    uint32_t w = word_at(bytes, AT_PROPERTIES);
    d->private_buffer = bits(w, 0, 1);
    d->dispatch_ptr = bits(w, 1, 1);
    d->queue_ptr = bits(w, 2, 1);
    d->kernarg_ptr = bits(w, 3, 1);
    d->dispatch_id = bits(w, 4, 1);
    d->flat_scratch_init = bits(w, 5, 1);
    d->private_size = bits(w, 6, 1);
    d->wavefront32 = bits(w, 10, 1);
    d->dynamic_stack = bits(w, 11, 1);
    d->preload_count = (uint8_t)bits(w, 16, 7);
    d->preload_offset = (uint16_t)bits(w, 23, 9);
}

/* The next `count` registers if they are wanted, else -1. */
static int8_t next(unsigned *at, bool wanted, unsigned count) {
    if (!wanted)
        return -1;
    *at += count;
    return (int8_t)(*at - count);
}

enum rc codeobj_descriptor_start(struct codeobj_start *out, const struct codeobj_descriptor *d,
                                 enum codeobj_processor processor, struct err *e) {
    unsigned at = 0;
    /* gfx942 keeps the scratch of a wave in a register of its own. */
    bool architected = processor == CODEOBJ_GFX942;
    struct codeobj_start s = { 0 };
    s.private_buffer = next(&at, d->private_buffer && !architected, CODEOBJ_SGPRS_PRIVATE_BUFFER);
    s.dispatch_ptr = next(&at, d->dispatch_ptr, CODEOBJ_SGPRS_POINTER);
    s.queue_ptr = next(&at, d->queue_ptr, CODEOBJ_SGPRS_POINTER);
    s.kernarg_ptr = next(&at, d->kernarg_ptr, CODEOBJ_SGPRS_POINTER);
    s.dispatch_id = next(&at, d->dispatch_id, CODEOBJ_SGPRS_POINTER);
    s.flat_scratch_init = next(&at, d->flat_scratch_init && !architected, CODEOBJ_SGPRS_POINTER);
    s.private_size = next(&at, d->private_size, CODEOBJ_SGPRS_PRIVATE_SIZE);
    s.preload = next(&at, d->preload_count > 0, d->preload_count);
    if (at > d->user_sgprs)
        return err_set(e, RC_FORMAT, "a kernel descriptor asks for %u user SGPRs and has %u", at,
                       d->user_sgprs);
    at = d->user_sgprs;
    for (int i = 0; i < 3; i++)
        s.group_id[i] = next(&at, d->group_id[i], 1);
    s.group_info = next(&at, d->group_info, 1);
    s.scratch_offset = next(&at, d->has_private && !architected, 1);
    if (at > SGPRS_MAX)
        return err_set(e, RC_FORMAT, "a kernel descriptor asks for %u SGPRs", at);
    s.count = (uint8_t)at;
    s.entry_skip = d->preload_count ? PRELOAD_SKIP : 0;
    *out = s;
    return RC_OK;
}

void codeobj_private_buffer(uint32_t out[4], uint64_t base, uint64_t bytes) {
    enum { SWIZZLE = 31, NUM_FORMAT = 12, DATA_FORMAT = 15, INDEX_STRIDE = 21, ADD_TID = 23 };
    out[0] = (uint32_t)base;
    out[1] = (uint32_t)(base >> 32 & 0xffff) | 1u << SWIZZLE;
    out[2] = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    /* x, y, z and w as they are; 32-bit unsigned; a stride of 64 lanes. */
    out[3] = 4u | 5u << 3 | 6u << 6 | 7u << 9 | 4u << NUM_FORMAT | 4u << DATA_FORMAT |
             3u << INDEX_STRIDE | 1u << ADD_TID;
}
