/* Every load and store of device memory and scratch against a model made from its name,
 * ENCODING_(load|store)_WIDTH[_d16[_hi]]: byte by byte, at addresses of any alignment, with lanes
 * off. */
#include "unit/isa_modelled.h"
#include "unit/isa_wave.h"

#include <stdio.h>

enum { V = ISA_VGPR0, DATA = 20, DWORDS = 4 };
#define EXEC UINT64_C(0xf0f3c1a5975e8001)

/* What a name says: bytes of memory, signed or not, which half of a register. */
struct width {
    unsigned bytes;
    bool is_signed, is_half, is_high;
};

static bool width_of(const char *name, struct width *out) {
    const char *at = strstr(name, "load_");
    at = at ? at + strlen("load_") : strstr(name, "store_") + strlen("store_");
    out->is_signed = *at == 's' && strncmp(at, "short", 5) != 0;
    at += out->is_signed || *at == 'u';
    unsigned count = 1;
    if (!strncmp(at, "dword", 5))
        (void)sscanf(at, "dwordx%u", &count);
    out->bytes = !strncmp(at, "byte", 4) ? 1 : !strncmp(at, "short", 5) ? 2 : 4 * count;
    out->is_half = strstr(at, "_d16") != NULL;
    out->is_high = strstr(at, "_hi") != NULL;
    return !strncmp(at, "byte", 4) || !strncmp(at, "short", 5) || !strncmp(at, "dword", 5);
}

/* ---- where a byte is ------------------------------------------------------------------------- */

static uint64_t offset_of(uint8_t encoding, unsigned lane) {
    return encoding == ISA_ENC_SCRATCH ? 5 + lane % 7 * 3 : 100 + 37 * (uint64_t)lane;
}

static uint8_t *byte_at(uint8_t encoding, unsigned lane, unsigned n) {
    uint64_t at = offset_of(encoding, lane) + n;
    if (encoding == ISA_ENC_SCRATCH) /* dwords of the lanes side by side */
        return memory + MEMORY_BYTES / 2 + (at / 4 * ISA_LANES + lane) * 4 + at % 4;
    return memory + at;
}

static struct isa_insn insn_of(enum isa_op op) {
    uint8_t encoding = isa_info[op].encoding;
    bool buffer = encoding == ISA_ENC_MUBUF;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        uint64_t base = buffer || encoding == ISA_ENC_SCRATCH ? 0 : MEMORY_BASE;
        set_address(0, l, base + offset_of(encoding, l));
    }
    if (!buffer)
        return (struct isa_insn){ .op = (uint16_t)op,
                                  .dst = V + DATA,
                                  .src = { V + 0, V + DATA, ISA_OFF } };
    wave->sgpr[16] = (uint32_t)MEMORY_BASE;
    wave->sgpr[17] = (uint32_t)(MEMORY_BASE >> 32);
    wave->sgpr[18] = MEMORY_BYTES;
    wave->sgpr[19] = 0;
    return (struct isa_insn){ .op = (uint16_t)op,
                              .dst = V + DATA,
                              .src = { V + 0, 16, ISA_INT_0 },
                              .memory = ISA_MEM_OFFEN };
}

/* ---- the model ------------------------------------------------------------------------------- */

/* Dword d of a register after a load. */
static uint32_t loaded(const struct width *w, uint8_t encoding, unsigned lane, unsigned d,
                       uint32_t before) {
    uint32_t value = 0;
    for (unsigned n = 0; n < 4 && 4 * d + n < w->bytes; n++)
        value += (uint32_t)*byte_at(encoding, lane, 4 * d + n) << 8 * n;
    uint32_t most = w->bytes == 1 ? 0x80 : 0x8000;
    if (w->is_signed && value >= most)
        value -= 2 * most;
    if (!w->is_half)
        return value;
    return w->is_high ? (before & 0xffff) + (value << 16) : before / 65536 * 65536 + value % 65536;
}

static void check_load(enum isa_op op, const struct width *w) {
    const struct isa_info *info = &isa_info[op];
    struct isa_insn i = insn_of(op);
    assert_int_equal(execute(i), ISA_CONTINUE);
    for (unsigned l = 0; l < ISA_LANES; l++)
        for (unsigned d = 0; d < DWORDS; d++) {
            uint32_t before = 0x1a2b3c00 + 1000 * d + l, wanted = before;
            if (EXEC >> l & 1 && 4 * d < w->bytes)
                wanted = loaded(w, info->encoding, l, d, before);
            if (vgpr(DATA + d)[l] != wanted)
                fail_msg("%s: dword %u of lane %u is %#x and should be %#x", info->name, d, l,
                         vgpr(DATA + d)[l], wanted);
        }
}

static void check_store(enum isa_op op, const struct width *w) {
    const struct isa_info *info = &isa_info[op];
    static uint8_t wanted[MEMORY_BYTES];
    struct isa_insn i = insn_of(op);
    memcpy(wanted, memory, sizeof wanted);
    for (unsigned l = 0; l < ISA_LANES; l++)
        for (unsigned n = 0; EXEC >> l & 1 && n < w->bytes; n++) {
            uint32_t dword = vgpr(DATA + n / 4)[l];
            wanted[byte_at(info->encoding, l, n) - memory] =
                (uint8_t)(dword >> (8 * (n % 4) + (w->is_high ? 16 : 0)));
        }
    assert_int_equal(execute(i), ISA_CONTINUE);
    if (memcmp(wanted, memory, sizeof wanted))
        fail_msg("%s does not write the bytes that its name says", info->name);
}

static void every_load_and_store_does_what_its_name_says(void **state) {
    (void)state;
    unsigned count = 0;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++) {
        struct width w;
        if (!isa_is_plain_move(&isa_info[op]))
            continue;
        if (!width_of(isa_info[op].name, &w))
            fail_msg("there is no model of %s", isa_info[op].name);
        wave_open(ISA_GFX942);
        ISA_WAVE_EXEC(wave) = EXEC;
        for (unsigned l = 0; l < ISA_LANES; l++)
            for (unsigned d = 0; d < DWORDS; d++)
                vgpr(DATA + d)[l] = 0x1a2b3c00 + 1000 * d + l;
        if (isa_info[op].forms & ISA_FORM_LOAD)
            check_load(op, &w);
        else
            check_store(op, &w);
        wave_close();
        count++;
    }
    assert_true(count >= 4 * 22); /* 14 loads and 8 stores of each encoding */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_load_and_store_does_what_its_name_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
