/* The decoder and the printer against LLVM's, over every line of gfx9.def in every form.
 *
 * For each line, each GPU and each form the test makes encodings with several operands and
 * modifiers. llvm-mc disassembles them; what it writes must be what isa_print() writes. Encodings
 * that llvm-mc rejects are no legal form; every line must have one that it accepts. What
 * isa_print() wrote is then assembled by llvm-mc again, which must give back the same words. */
#include "isa/insn.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct sample {
    uint32_t word[2];
    uint32_t canonical[2]; /* as LLVM would encode it: ignored fields are 0 */
    uint16_t op;
    uint8_t words;
    uint8_t accepted;
    char text[200]; /* LLVM's */
};

struct samples {
    enum isa_gpu gpu;
    size_t count, room;
    struct sample *all;
};

static uint64_t random_state;

static uint32_t random_below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

/* An even VGPR number that leaves room for 32 registers. */
static uint32_t vgpr(void) {
    return 2 * random_below(110);
}

static uint32_t sgpr(void) {
    return 4 * random_below(20);
}

/* Sources that every type has: VGPR, SGPR, integers, floats. */
static uint32_t source(int variant, enum isa_type type) {
    static const uint16_t constants[] = { 128, 129, 192, 193, 208, 240, 241, 242, 247, 248 };
    if (type == ISA_TYPE_M64)
        return variant & 1 ? ISA_VCC : sgpr();
    switch (variant % 4) {
    case 0:
    case 1:
        return ISA_VGPR0 + vgpr();
    case 2:
        return sgpr();
    default:
        return constants[random_below(10)];
    }
}

/* A scalar source; literals are added by the caller. */
static uint32_t scalar_source(int variant) {
    static const uint16_t others[] = { 102,
                                       106,
                                       108,
                                       126,
                                       128,
                                       192,
                                       193,
                                       208,
                                       240,
                                       247,
                                       248,
                                       ISA_SHARED_BASE,
                                       ISA_PRIVATE_LIMIT,
                                       ISA_VCCZ,
                                       ISA_EXECZ,
                                       ISA_SCC };
    return variant % 3 == 2 ? others[random_below(sizeof others / sizeof *others)] : sgpr();
}

static void add(struct samples *s, enum isa_op op, uint32_t w0, uint32_t w1, int words) {
    if (s->count == s->room) {
        s->room = s->room ? 2 * s->room : 4096;
        s->all = realloc(s->all, s->room * sizeof *s->all);
        assert_non_null(s->all);
    }
    s->all[s->count++] = (struct sample){ .word = { w0, w1 }, .op = op, .words = (uint8_t)words };
}

static void make_scalar(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    uint32_t dst = f->type[0] == ISA_TYPE_NONE ? 0 : v % 4 == 3 ? ISA_VCC : sgpr();
    uint32_t s0 = f->type[1] == ISA_TYPE_NONE ? 0 : scalar_source(v);
    uint32_t s1 = f->type[2] == ISA_TYPE_NONE ? 0 : scalar_source(v + 1);
    uint32_t literal = v == 3 ? 0x12345678 : v == 4 ? 0x3f800000 : v == 5 ? 7 : 0xfffffff3;
    int words = 1;
    if (v >= 3 && v < 7 && f->type[1] != ISA_TYPE_NONE) {
        s0 = ISA_LITERAL;
        words = 2;
    }
    switch (f->encoding) {
    case ISA_ENC_SOP2:
        add(s, op, 0x80000000 | (uint32_t)f->opcode << 23 | dst << 16 | s1 << 8 | s0, literal,
            words);
        break;
    case ISA_ENC_SOP1:
        add(s, op, 0xbe800000 | dst << 16 | (uint32_t)f->opcode << 8 | s0, literal, words);
        break;
    case ISA_ENC_SOPC:
        if (op == ISA_OP_s_set_gpr_idx_on)
            s1 = random_below(16);
        add(s, op, 0xbf000000 | (uint32_t)f->opcode << 16 | s1 << 8 | s0, literal, words);
        break;
    case ISA_ENC_SOPK:
        literal = v & 1 ? 0x1234 : 5;
        words = op == ISA_OP_s_setreg_imm32_b32 ? 2 : 1;
        add(s, op,
            0xb0000000 | (uint32_t)f->opcode << 23 | dst << 16 |
                (v < 4 ? random_below(0x10000) : random_below(80)),
            literal, words);
        break;
    default: { /* SOPP */
        uint32_t k = v == 0 ? 0 : v < 4 ? random_below(0x10000) : random_below(80);
        add(s, op, 0xbf800000 | (uint32_t)f->opcode << 16 | k, 0, 1);
    }
    }
}

static void make_smem(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    uint32_t w0 = 0xc0000000 | (uint32_t)f->opcode << 18, w1 = 0;
    if (f->type[0] != ISA_TYPE_NONE || op == ISA_OP_s_atc_probe || op == ISA_OP_s_atc_probe_buffer)
        w0 |= sgpr() << 6;
    if (f->type[1] != ISA_TYPE_NONE) {
        w0 |= sgpr() / 2;
        switch (v % 4) {
        case 0:
            w0 |= 1u << 17;
            w1 = random_below(0x1fffff);
            break;
        case 1:
            w1 = sgpr();
            break;
        case 2:
            w0 |= 1u << 17 | 1u << 14;
            w1 = random_below(0x1fffff) | sgpr() << 25;
            break;
        default:
            w0 |= 1u << 14;
            w1 = sgpr() << 25;
        }
        if (v & 4)
            w0 |= 1u << 16;
    }
    add(s, op, w0, w1, 2);
}

static void make_e32(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    uint32_t s0 = f->type[1] == ISA_TYPE_NONE ? 0 : source(v, f->type[1]);
    uint32_t d = f->type[0] == ISA_TYPE_NONE ? 0 : vgpr(), s1 = vgpr();
    uint32_t literal = v == 5 ? 0x12345678 : v == 6 ? 0x3f800000 : 20;
    int words = f->forms & ISA_FORM_LIT ? 2 : 1;
    if (op == ISA_OP_v_swap_b32 || op == ISA_OP_v_readfirstlane_b32 ||
        op == ISA_OP_v_accvgpr_mov_b32) { /* VGPRs only; llvm-mc stops at anything else */
        add(s, op, 0x7e000000 | d % 100 << 17 | (uint32_t)f->opcode << 9 | ISA_VGPR0 | s1, 0, 1);
        return;
    }
    if (v >= 5 && f->type[1] != ISA_TYPE_NONE && words == 1) {
        s0 = ISA_LITERAL;
        words = 2;
    }
    if (f->encoding == ISA_ENC_VOP1)
        add(s, op, 0x7e000000 | d << 17 | (uint32_t)f->opcode << 9 | s0, literal, words);
    else if (f->encoding == ISA_ENC_VOPC)
        add(s, op, 0x7c000000 | (uint32_t)f->opcode << 17 | s1 << 9 | s0, literal, words);
    else
        add(s, op, (uint32_t)f->opcode << 25 | d << 17 | s1 << 9 | s0, literal, words);
}

/* The first dword of SDWA and DPP. */
static uint32_t first_dword(const struct isa_info *f, uint32_t s0) {
    uint32_t d = f->type[0] == ISA_TYPE_NONE ? 0 : vgpr(), s1 = vgpr();
    if (f->encoding == ISA_ENC_VOP1)
        return 0x7e000000 | d << 17 | (uint32_t)f->opcode << 9 | s0;
    if (f->encoding == ISA_ENC_VOPC)
        return 0x7c000000 | (uint32_t)f->opcode << 17 | s1 << 9 | s0;
    return (uint32_t)f->opcode << 25 | d << 17 | s1 << 9 | s0;
}

static void make_sdwa(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    uint32_t x = f->type[1] == ISA_TYPE_NONE ? 0 : vgpr();
    x |= random_below(7) << 16;
    if (f->encoding != ISA_ENC_VOP1)
        x |= random_below(7) << 24;
    if (f->encoding == ISA_ENC_VOPC)
        x |= v & 1 ? 0 : (0x80 | sgpr()) << 8;
    else
        x |= random_below(7) << 8 | random_below(3) << 11;
    if (v >= 2) /* modifiers: sext of integers, neg and abs of floats; LLVM says which are legal */
        x |= 1u << (19 + random_below(3)) | (v & 1) << 13;
    if (v >= 4 && f->encoding != ISA_ENC_VOP1)
        x |= 1u << (27 + random_below(3));
    if (v == 6)
        x |= 1u << 23;
    if (v == 7 && f->encoding != ISA_ENC_VOPC)
        x |= (1 + random_below(3)) << 14;
    add(s, op, first_dword(f, ISA_SDWA), x, 2);
}

static void make_dpp(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    static const uint16_t ctrl[] = { 0xe4,  0x1b,  0x101, 0x11f, 0x125, 0x130, 0x134, 0x138,
                                     0x13c, 0x140, 0x141, 0x142, 0x143, 0x153, 0x15f };
    uint32_t x = f->type[1] == ISA_TYPE_NONE ? 0 : vgpr();
    x |= (uint32_t)ctrl[(v * 5 + (int)op) % 15] << 8 | random_below(256) << 24;
    if (v & 1)
        x |= 1u << 19;
    if (v >= 2)
        x |= random_below(4) << 20;
    if (v >= 4 && f->encoding != ISA_ENC_VOP1)
        x |= random_below(4) << 22;
    add(s, op, first_dword(f, ISA_DPP), x, 2);
}

static void make_vop3(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    static const uint16_t base[ISA_ENC_COUNT] = { [ISA_ENC_VOP2] = 0x100, [ISA_ENC_VOP1] = 0x140 };
    uint32_t w0 = 0xd0000000 | (uint32_t)(f->opcode + base[f->encoding]) << 16, w1 = 0;
    int n = 0;
    if (f->encoding == ISA_ENC_VOPC || op == ISA_OP_v_readlane_b32)
        w0 |= v & 1 ? ISA_VCC : sgpr();
    else if (f->type[0] != ISA_TYPE_NONE)
        w0 |= vgpr();
    for (; n < 3 && f->type[n + 1] != ISA_TYPE_NONE; n++)
        w1 |= source(n == 0 || random_below(2) ? v : 0, f->type[n + 1]) << 9 * n;
    if (op == ISA_OP_v_readlane_b32 || op == ISA_OP_v_writelane_b32)
        w1 = (op == ISA_OP_v_readlane_b32 ? ISA_VGPR0 + vgpr() : sgpr()) | (v & 1 ? 133 : sgpr())
                                                                               << 9;
    if (f->forms & ISA_FORM_SDST)
        w0 |= (v & 1 ? (uint32_t)ISA_VCC : sgpr()) << 8;
    else if (v >= 2 && v < 6)
        w0 |= random_below(1u << n) << 8;
    if (v >= 3 && v < 6)
        w1 |= random_below(1u << n) << 29;
    if (v == 6 || v == 4)
        w0 |= 1u << 15;
    if (v == 5)
        w1 |= (1 + random_below(3)) << 27;
    if (v == 7 && !(f->forms & ISA_FORM_SDST))
        w0 |= (random_below(1u << n) | random_below(2) << 3) << 11;
    add(s, op, w0, w1, 2);
}

static void make_vop3p(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    uint32_t w0 = 0xd3800000 | (uint32_t)f->opcode << 16 | vgpr(), w1 = 0;
    int n = 0;
    for (; n < 3 && f->type[n + 1] != ISA_TYPE_NONE; n++)
        w1 |= source(n == 0 || random_below(2) ? v : 0, f->type[n + 1]) << 9 * n;
    uint32_t mask = (1u << n) - 1, hi = v < 2 ? mask : random_below(mask + 1);
    w1 |= (hi & 3) << 27;
    w0 |= (hi >> 2) << 14;
    if (v >= 3)
        w0 |= random_below(mask + 1) << 11;
    if (v >= 4) {
        w0 |= random_below(mask + 1) << 8;
        w1 |= random_below(mask + 1) << 29;
    }
    if (v == 6)
        w0 |= 1u << 15;
    add(s, op, w0, w1, 2);
}

static void make_mai(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    uint32_t w0 = 0xd3800000 | (uint32_t)f->opcode << 16 | vgpr(), w1 = ISA_VGPR0 + vgpr();
    int smfmac = strncmp(f->name, "v_smfmac", 8) == 0, accvgpr = strstr(f->name, "accvgpr") != NULL;
    if (accvgpr) {
        w1 = f->opcode == 0x58 ? w1 | 1u << 27 : v % 3 == 2 ? 129 + random_below(20) : w1;
        w0 |= 1u << 14;
        if (f->opcode == 0x59)
            w0 |= 0; /* acc_cd does not matter */
        add(s, op, w0, w1, 2);
        add(s, op, w0 & ~(1u << 14), w1, 2);
        return;
    }
    w1 |= (ISA_VGPR0 + vgpr()) << 9 | (v == 3 && !smfmac ? 128u : ISA_VGPR0 + vgpr()) << 18;
    if (v & 1)
        w0 |= 1u << 15;
    w1 |= random_below(4) << 27;
    if (v >= 4)
        w0 |= random_below(4) << 8 | random_below(4) << 11;
    if (v >= 6)
        w1 |= random_below(8) << 29;
    add(s, op, w0, w1, 2);
}

static void make_ds(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    uint32_t w0 = 0xd8000000 | (uint32_t)f->opcode << 17, w1 = 0;
    w1 |= f->type[1] ? vgpr() : 0;
    w1 |= f->type[2] ? vgpr() << 8 : 0;
    w1 |= f->type[3] ? vgpr() << 16 : 0;
    w1 |= f->type[0] ? vgpr() << 24 : 0;
    if (v >= 1 && op != ISA_OP_ds_nop)
        w0 |= random_below(0x10000);
    if (v == 3)
        w0 = (w0 & 0xffff0000) | 0x8000 | random_below(256); /* swizzles have names */
    if (v == 4)
        w0 = (w0 & 0xffff0000) | 0x1f | 1u << (10 + random_below(5));
    if (v == 5)
        w0 |= 1u << 25;
    if (v >= 6)
        w0 |= 1u << 16;
    add(s, op, w0, w1, 2);
}

static void make_flat(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    static const uint8_t segment[ISA_ENC_COUNT] = { [ISA_ENC_SCRATCH] = 1, [ISA_ENC_GLOBAL] = 2 };
    uint32_t w0 = 0xdc000000 | (uint32_t)f->opcode << 18 | (uint32_t)segment[f->encoding] << 14;
    uint32_t w1 = vgpr() | (f->type[2] ? vgpr() << 8 : 0), saddr = 0x7f;
    int returns = f->type[0] && (!(f->forms & ISA_FORM_ATOMIC) || v & 1);
    if (returns)
        w1 |= vgpr() << 24;
    if (f->forms & ISA_FORM_ATOMIC && v & 1)
        w0 |= 1u << 16;
    if (f->encoding == ISA_ENC_FLAT)
        saddr = 0;
    else if (v % 4 >= 2)
        saddr = sgpr();
    if (f->encoding == ISA_ENC_SCRATCH) {
        if (s->gpu == ISA_GFX942 && v % 3 != 0)
            w0 |= 1u << 13;
        else if (s->gpu == ISA_GFX942 || saddr != 0x7f)
            w1 &= ~0xffu; /* no VGPR in the address */
    }
    w0 |= v < 2 ? 0 : random_below(f->encoding == ISA_ENC_FLAT ? 0x1000 : 0x2000);
    if (v >= 4)
        w0 |= random_below(2) << 17 | random_below(2) << 25;
    if (v == 6)
        w1 |= 1u << 23;
    if (!(f->forms & ISA_FORM_ATOMIC) && v == 5)
        w0 |= 1u << 16;
    add(s, op, w0, w1 | saddr << 16, 2);
}

static void make_buffer(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    int typed = f->encoding == ISA_ENC_MTBUF, bare = f->type[0] == ISA_TYPE_NONE;
    uint32_t w0 = typed ? 0xe8000000 | (uint32_t)f->opcode << 15 | random_below(128) << 19
                        : 0xe0000000 | (uint32_t)f->opcode << 18;
    uint32_t w1 = 0;
    if (f->forms & ISA_FORM_TOLDS) {
        w0 |= 1u << 16 | random_below(0x1000);
        w1 = random_below(20) << 16 | sgpr() << 24;
    } else if (!bare) {
        uint32_t mode = (uint32_t)v % 4;
        w0 |= mode << 12 | (v >= 2 ? random_below(0x1000) : 0);
        w1 = (mode ? vgpr() : 0) | vgpr() << 8 | random_below(20) << 16;
        w1 |= (v & 1 ? 128 + random_below(65) : sgpr()) << 24;
        if (v >= 4)
            w0 |= random_below(2) << 14;
        if (v == 5 && !typed)
            w0 |= 1u << 17;
        if (v == 6)
            w1 |= 1u << 23;
        if (v == 7 && !typed)
            w0 |= 1u << 15;
    } else if (v >= 4)
        w0 |= random_below(2) << 14 | random_below(2) << 15 | random_below(2) << 17;
    add(s, op, w0, w1, 2);
}

static void make_mimg(struct samples *s, enum isa_op op, const struct isa_info *f, int v) {
    uint32_t sampler = strstr(f->name, "sample") ? random_below(20) << 21 : 0;
    (void)v;
    add(s, op, 0xf0000000 | (uint32_t)f->opcode << 18 | 0x100,
        vgpr() | vgpr() << 8 | random_below(16) << 16 | sampler, 2);
}

static void make(struct samples *s, enum isa_op op) {
    const struct isa_info *f = &isa_info[op];
    for (int v = 0; v < 8; v++) {
        switch (f->encoding) {
        case ISA_ENC_SMEM:
            make_smem(s, op, f, v);
            break;
        case ISA_ENC_VOP1:
        case ISA_ENC_VOP2:
        case ISA_ENC_VOPC:
            make_e32(s, op, f, v);
            if (f->forms & ISA_FORM_E64)
                make_vop3(s, op, f, v);
            if (f->forms & ISA_FORM_SDWA)
                make_sdwa(s, op, f, v);
            if (f->forms & ISA_FORM_DPP)
                make_dpp(s, op, f, v);
            break;
        case ISA_ENC_VOP3:
            make_vop3(s, op, f, v);
            break;
        case ISA_ENC_VOP3P:
            make_vop3p(s, op, f, v);
            break;
        case ISA_ENC_MAI:
            make_mai(s, op, f, v);
            break;
        case ISA_ENC_DS:
            make_ds(s, op, f, v);
            break;
        case ISA_ENC_FLAT:
        case ISA_ENC_GLOBAL:
        case ISA_ENC_SCRATCH:
            make_flat(s, op, f, v);
            break;
        case ISA_ENC_MUBUF:
        case ISA_ENC_MTBUF:
            make_buffer(s, op, f, v);
            break;
        case ISA_ENC_MIMG:
            make_mimg(s, op, f, v);
            break;
        default:
            make_scalar(s, op, f, v);
        }
    }
}

/* ---- llvm-mc ---- */

static const char *llvm_mc(void) {
    static const char *const names[] = { "llvm-mc-19", "llvm-mc-20", "llvm-mc-21" };
    static char command[64];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", names[n]);
        if (system(command) == 0)
            return names[n];
    }
    return NULL;
}

/* Runs llvm-mc on a file; its output is another. */
static void run_llvm(const char *arguments, enum isa_gpu gpu, const char *in, const char *out) {
    char command[1200];
    snprintf(command, sizeof command,
             "%s -triple=amdgcn -mcpu=%s %s -show-encoding %s >%s 2>%s.err", llvm_mc(),
             isa_gpu_name(gpu), arguments, in, out, out);
    int status = system(command);
    (void)status; /* 1 where something was rejected, which the caller sees */
}

static void write_bytes(FILE *f, const uint32_t *words, int n) {
    for (int b = 0; b < 4 * n; b++)
        fprintf(f, "0x%02x%c", words[b / 4] >> 8 * (b % 4) & 0xff, b == 4 * n - 1 ? '\n' : ' ');
}

/* The encoding that -show-encoding wrote at the end of a line; the line is cut before it. */
static int take_encoding(char *line, uint32_t words[4]) {
    char *at = strstr(line, "; encoding: [");
    int bytes = 0;
    if (!at)
        return -1;
    memset(words, 0, 4 * sizeof *words);
    for (char *p = at + 13; *p && *p != ']' && bytes < 16; bytes++) {
        words[bytes / 4] |= (uint32_t)strtoul(p, &p, 16) << 8 * (bytes % 4);
        if (*p == ',')
            p++;
    }
    while (at > line && isspace((unsigned char)at[-1]))
        at--;
    *at = '\0';
    return bytes / 4;
}

/* Samples to LLVM's text. After each stands an s_nop with its number, so that what was rejected, or
 * was taken for several instructions, does not shift the rest; twice, because the last dword of
 * what was rejected may take the first for its own. */
static void disassemble(struct samples *s, const char *folder) {
    char in[300], out[300], line[1024];
    snprintf(in, sizeof in, "%s/in", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    FILE *f = fopen(in, "w");
    assert_non_null(f);
    for (size_t n = 0; n < s->count; n++) {
        uint32_t nop = 0xbf800000 | (uint32_t)(n & 0xffff);
        write_bytes(f, s->all[n].word, s->all[n].words);
        write_bytes(f, &nop, 1);
        write_bytes(f, &nop, 1);
    }
    fclose(f);
    run_llvm("-disassemble", s->gpu, in, out);
    f = fopen(out, "r");
    assert_non_null(f);
    size_t n = 0;
    int seen = 0;
    while (n < s->count && fgets(line, sizeof line, f)) {
        uint32_t words[4];
        int length = take_encoding(line, words);
        if (length < 0)
            continue;
        if (length == 1 && n && !seen && words[0] == (0xbf800000 | (uint32_t)((n - 1) & 0xffff)))
            continue;
        if (length == 1 && words[0] == (0xbf800000 | (uint32_t)(n & 0xffff)) &&
            !(s->all[n].op == ISA_OP_s_nop && !seen && s->all[n].word[0] == words[0])) {
            n++;
            seen = 0;
            continue;
        }
        if (!seen++ && length == s->all[n].words && words[0] >> 25 == s->all[n].word[0] >> 25 &&
            !strstr(line, "/*")) { /* a remark of LLVM's on what is wrong */
            s->all[n].accepted = 1;
            memcpy(s->all[n].canonical, words, sizeof s->all[n].canonical);
            snprintf(s->all[n].text, sizeof s->all[n].text, "%s", line + strspn(line, " \t"));
        }
    }
    fclose(f);
    if (n != s->count)
        print_error("lost at %zu: %08x %08x\n", n, s->all[n].word[0], s->all[n].word[1]);
    assert_int_equal(n, s->count);
}

/* What isa_print() writes, assembled again, gives the same words. */
static size_t assemble(const struct samples *s, const char *folder) {
    char in[300], out[300], line[1024], text[256];
    snprintf(in, sizeof in, "%s/in.s", folder);
    snprintf(out, sizeof out, "%s/out.s", folder);
    FILE *f = fopen(in, "w");
    assert_non_null(f);
    for (size_t n = 0; n < s->count; n++) {
        struct isa_insn i;
        if (!s->all[n].accepted || s->all[n].op == ISA_OP_s_nop ||
            isa_info[s->all[n].op].encoding == ISA_ENC_MIMG)
            continue;
        isa_decode(s->gpu, s->all[n].word, s->all[n].words, &i);
        isa_print(s->gpu, &i, text, sizeof text);
        fprintf(f, "s_nop 0x%x\n%s\n", (unsigned)(n & 0xffff), text);
    }
    fclose(f);
    run_llvm("", s->gpu, in, out);
    f = fopen(out, "r");
    assert_non_null(f);
    size_t same = 0, n = 0;
    while (fgets(line, sizeof line, f)) {
        uint32_t words[4];
        int length = take_encoding(line, words);
        if (length == 1 && words[0] >> 16 == 0xbf80) {
            while (n < s->count && (n & 0xffff) != (words[0] & 0xffff))
                n++;
            continue;
        }
        if (length > 0 && n < s->count)
            same += length == s->all[n].words && words[0] == s->all[n].canonical[0] &&
                    (length == 1 || words[1] == s->all[n].canonical[1]);
    }
    fclose(f);
    return same;
}

/* A literal that equals an inline constant, bits of counters and offsets that mean nothing, and the
 * second way to name an offset register of SMEM are encoded otherwise: they do not come back. */
#define SHARE_THAT_COMES_BACK 0.88

static size_t compare(const struct samples *s, size_t *accepted) {
    size_t wrong = 0;
    *accepted = 0;
    for (size_t n = 0; n < s->count; n++) {
        const struct sample *x = &s->all[n];
        struct isa_insn i;
        char text[256];
        if (!x->accepted)
            continue;
        ++*accepted;
        isa_decode(s->gpu, x->word, x->words, &i);
        isa_print(s->gpu, &i, text, sizeof text);
        if (isa_info[x->op].encoding == ISA_ENC_MIMG) /* images are decoded by name only */
            text[strcspn(text, " ")] = '\0';
        size_t length = isa_info[x->op].encoding == ISA_ENC_MIMG ? strlen(text) : sizeof text;
        if (strncmp(text, x->text, length) == 0 && i.words == x->words)
            continue;
        if (wrong++ < 40)
            print_error("%s %08x %08x\n  llvm: %s\n  isa:  %s\n", isa_gpu_name(s->gpu), x->word[0],
                        x->word[1], x->text, text);
    }
    return wrong;
}

static int is_on(enum isa_op op, enum isa_gpu gpu) {
    return isa_info[op].gpus >> gpu & 1;
}

static void check_gpu(enum isa_gpu gpu) {
    struct samples s = { .gpu = gpu };
    char folder[] = "/tmp/test_isa_llvm.XXXXXX", command[64];
    if (!llvm_mc()) {
        print_message("llvm-mc-19 is not installed: nothing to compare with\n");
        skip();
    }
    assert_non_null(mkdtemp(folder));
    random_state = 1;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++)
        if (is_on(op, gpu))
            make(&s, op);
    disassemble(&s, folder);
    size_t accepted, wrong = compare(&s, &accepted), missing = 0;
    uint8_t seen[ISA_OP_COUNT] = { 0 };
    for (size_t n = 0; n < s.count; n++)
        seen[s.all[n].op] |= s.all[n].accepted;
    for (enum isa_op op = 1; op < ISA_OP_COUNT; op++)
        if (is_on(op, gpu) && !seen[op] && ++missing)
            print_error("no sample of %s is legal\n", isa_info[op].name);
    size_t same = assemble(&s, folder);
    print_message("%s: %zu samples, %zu legal, %zu differ; %zu assemble to the same words\n",
                  isa_gpu_name(gpu), s.count, accepted, wrong, same);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    free(s.all);
    assert_int_equal(wrong, 0);
    assert_int_equal(missing, 0);
    assert_true((double)same > SHARE_THAT_COMES_BACK * (double)accepted);
}

static void gfx90a_is_printed_as_llvm_does(void **state) {
    (void)state;
    check_gpu(ISA_GFX90A);
}

static void gfx942_is_printed_as_llvm_does(void **state) {
    (void)state;
    check_gpu(ISA_GFX942);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gfx90a_is_printed_as_llvm_does),
        cmocka_unit_test(gfx942_is_printed_as_llvm_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
