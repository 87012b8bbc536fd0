/* Every load, store and exchange of LDS, and every load and store of scalar registers, against a
 * model made from its name, byte by byte: at addresses of any alignment, with lanes off. */
#include "unit/isa_modelled.h"
#include "unit/isa_wave.h"

#include <stdio.h>

enum { V = ISA_VGPR0, DATA = 20, DATA1 = 30, RESULT = 40, DWORDS = 4, S = 8 };
#define EXEC UINT64_C(0xf0f3c1a5975e8001)

/* What a name says: ds_(read|write|wrxchg)[2|2st64][_rtn][_addtid]_WIDTH[_d16[_hi]]. */
struct meaning {
    bool reads, writes, by_lane; /* addtid: the lane's number is the address */
    bool is_signed, is_half, is_high;
    unsigned bytes, places, unit;
};

static struct meaning meaning_of(const char *name) {
    struct meaning m = { .places = 1, .unit = 1 };
    const char *at = name + strlen("ds_");
    unsigned bits = 0;
    m.reads = !strncmp(at, "read", 4) || !strncmp(at, "wrxchg", 6);
    m.writes = !strncmp(at, "wr", 2);
    m.by_lane = strstr(at, "_addtid") != NULL;
    if (strstr(at, "2_") == at + strcspn(at, "0123456789") || strstr(at, "2st64")) {
        m.places = 2;
        m.unit = strstr(at, "st64") ? 64 : 1;
    }
    m.is_half = strstr(at, "_d16") != NULL;
    m.is_high = strstr(at, "_hi") != NULL;
    static const char *const kinds[] = { "_b", "_u", "_i" };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !bits; k++)
        for (const char *x = at; (x = strstr(x, kinds[k])) && !bits; x++)
            if (sscanf(x + 2, "%u", &bits) == 1)
                m.is_signed = kinds[k][1] == 'i';
    m.bytes = bits / 8;
    return m;
}

/* Where a byte of a lane's place is; places of different lanes do not overlap. Exchanges are
 * atomics and have to be aligned. */
enum { OFFSET = 6, SECOND = 200, SECOND_FAR = 4, M0 = 32 };

static unsigned lds_base(const struct meaning *m, unsigned lane) {
    bool exchange = m->reads && m->writes;
    return exchange ? 8 + 8 * lane : 3 + (m->places == 1 ? 19 : 9) * lane;
}

static unsigned lds_offset(const struct meaning *m, unsigned lane, unsigned place) {
    if (m->by_lane)
        return M0 + OFFSET + 4 * lane;
    if (m->places == 1)
        return lds_base(m, lane) + OFFSET;
    unsigned second = m->unit == 64 ? SECOND_FAR : SECOND;
    return lds_base(m, lane) + (place ? second : 0) * m->bytes * m->unit;
}

static struct isa_insn prepare(enum isa_op op, const struct meaning *m) {
    int second = m->unit == 64 ? SECOND_FAR : SECOND;
    ISA_WAVE_EXEC(wave) = EXEC;
    ISA_WAVE_M0(wave) = M0;
    for (unsigned l = 0; l < ISA_LANES; l++) {
        vgpr(0)[l] = lds_base(m, l);
        for (unsigned d = 0; d < DWORDS; d++) {
            vgpr(DATA + d)[l] = 0x8091a2b3 + 0x01020304 * d + 0x00010001 * l;
            vgpr(DATA1 + d)[l] = 0xc4d5e6f7 - 0x01020304 * d + 0x00010001 * l;
            vgpr(RESULT + d)[l] = 0x1a2b3c00 + 1000 * d + l;
        }
    }
    return (struct isa_insn){ .op = (uint16_t)op,
                              .dst = V + RESULT,
                              .src = { V + 0, V + DATA, V + DATA1 },
                              .imm = m->places == 1 ? OFFSET : second << 8 };
}

/* Dword d of the result of a place. */
static uint32_t loaded(const struct meaning *m, const uint8_t *at, unsigned d, uint32_t before) {
    uint32_t value = 0, most = m->bytes == 1 ? 0x80 : 0x8000;
    for (unsigned n = 4 * d; n < m->bytes && n < 4 * d + 4; n++)
        value += (uint32_t)at[n] << 8 * (n % 4);
    if (m->is_signed && value >= most)
        value -= 2 * most;
    if (!m->is_half)
        return value;
    return m->is_high ? (before & 0xffff) + (value << 16) : before / 65536 * 65536 + value % 65536;
}

static void check_results(const char *name, const struct meaning *m, const uint8_t *before) {
    unsigned each = (m->bytes + 3) / 4;
    for (unsigned l = 0; l < ISA_LANES; l++)
        for (unsigned d = 0; d < DWORDS; d++) {
            uint32_t was = 0x1a2b3c00 + 1000 * d + l, wanted = was;
            if (m->reads && EXEC >> l & 1 && d < each * m->places)
                wanted = loaded(m, before + lds_offset(m, l, d / each), d % each, was);
            if (vgpr(RESULT + d)[l] != wanted)
                fail_msg("%s: dword %u of lane %u is %#x and should be %#x", name, d, l,
                         vgpr(RESULT + d)[l], wanted);
        }
}

static void check_ds(enum isa_op op) {
    static uint8_t before[LDS_BYTES], wanted[LDS_BYTES];
    struct meaning m = meaning_of(isa_info[op].name);
    struct isa_insn i = prepare(op, &m);
    assert_in_range(m.bytes, 1, 16);
    memcpy(before, lds, sizeof before);
    memcpy(wanted, lds, sizeof wanted);
    for (unsigned l = 0; m.writes && l < ISA_LANES; l++)
        for (unsigned n = 0; EXEC >> l & 1 && n < m.bytes * m.places; n++) {
            unsigned place = n / m.bytes, byte = n % m.bytes;
            uint32_t dword = vgpr((place ? DATA1 : DATA) + byte / 4)[l];
            wanted[lds_offset(&m, l, place) + byte] =
                (uint8_t)(dword >> (8 * (byte % 4) + (m.is_high ? 16 : 0)));
        }
    assert_int_equal(execute(i), ISA_CONTINUE);
    if (memcmp(wanted, lds, sizeof wanted))
        fail_msg("%s does not leave the bytes that its name says", isa_info[op].name);
    check_results(isa_info[op].name, &m, before);
}

static void every_load_and_store_of_lds_does_what_its_name_says(void **state) {
    (void)state;
    unsigned checked = 0;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++)
        if (isa_is_lds_move(&isa_info[op])) {
            wave_open(ISA_GFX90A);
            check_ds(op);
            checked++;
        }
    wave_close();
    assert_true(checked > 30);
}

/* ---- scalar registers ------------------------------------------------------------------------ */

/* s_[buffer_|scratch_](load|store)_dword[xN]: N dwords at a multiple of 4; the offset of scratch
 * counts in 64 bytes. */
static void check_scalar(enum isa_op op) {
    const char *name = isa_info[op].name, *dword = strstr(name, "dword");
    unsigned count = 1, offset = 20, at = 12 + (strstr(name, "scratch") ? 64 * offset : offset);
    uint32_t before[32], wanted[32];
    (void)sscanf(dword, "dwordx%u", &count);
    isa_write64(wave, 32, MEMORY_BASE);
    wave->sgpr[34] = MEMORY_BYTES;
    wave->sgpr[35] = 0;
    wave->sgpr[40] = offset;
    for (unsigned d = 0; d < 24; d++)
        wave->sgpr[S + d] = 0xabcd0000 + d;
    struct isa_insn i = {
        .op = (uint16_t)op, .dst = S, .src = { 32, 40, ISA_OFF }, .imm = 12, .memory = ISA_MEM_IMM
    };
    memcpy(before, memory + at, sizeof before);
    memcpy(wanted, before, sizeof wanted);
    bool load = strstr(name, "load") != NULL;
    for (unsigned d = 0; d < count && !load; d++)
        wanted[d] = wave->sgpr[S + d];
    assert_int_equal(execute(i), ISA_CONTINUE);
    if (memcmp(memory + at, wanted, sizeof wanted))
        fail_msg("%s does not leave the bytes that its name says", name);
    for (unsigned d = 0; d < 24; d++)
        if (wave->sgpr[S + d] != (load && d < count ? before[d] : 0xabcd0000 + d))
            fail_msg("%s: dword %u is %#x", name, d, wave->sgpr[S + d]);
}

static void every_scalar_load_and_store_does_what_its_name_says(void **state) {
    (void)state;
    unsigned checked = 0;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++)
        if (isa_is_scalar_move(&isa_info[op])) {
            wave_open(ISA_GFX90A);
            check_scalar(op);
            checked++;
        }
    wave_close();
    assert_int_equal(checked, 22);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_load_and_store_of_lds_does_what_its_name_says),
        cmocka_unit_test(every_scalar_load_and_store_does_what_its_name_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
