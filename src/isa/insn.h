/* insn.h - instructions as data: what gfx9.def says of each, and one decoded from machine code.
 *
 * Machine code is decoded once, when a wave first reaches its page; the decoded form names operands
 * and modifiers in one way for all encodings: code that executes or prints an instruction never
 * looks at bits. Thread-safe: everything here is constant after it was made. */
#ifndef ISA_INSN_H
#define ISA_INSN_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum isa_gpu { ISA_GFX90A, ISA_GFX942, ISA_GPU_COUNT };

enum isa_op {
    ISA_OP_NONE, /* not an instruction of this GPU */
#define INSN(name, enc, op, gpus, d, s0, s1, s2, forms, exactness, semantics) ISA_OP_##name,
#include "isa/gfx9.def"
#undef INSN
    ISA_OP_COUNT
};

enum isa_encoding {
    ISA_ENC_NONE,
    ISA_ENC_SOP2,
    ISA_ENC_SOPK,
    ISA_ENC_SOP1,
    ISA_ENC_SOPC,
    ISA_ENC_SOPP,
    ISA_ENC_SMEM,
    ISA_ENC_VOP2,
    ISA_ENC_VOP1,
    ISA_ENC_VOPC,
    ISA_ENC_VOP3,
    ISA_ENC_VOP3P,
    ISA_ENC_MAI, /* the matrix part of VOP3P */
    ISA_ENC_DS,
    ISA_ENC_FLAT,
    ISA_ENC_GLOBAL,
    ISA_ENC_SCRATCH,
    ISA_ENC_MUBUF,
    ISA_ENC_MTBUF,
    ISA_ENC_MIMG,
    ISA_ENC_COUNT
};

/* What an operand holds. The type says the width in registers, what an inline constant such as 0.5
 * is, and how modifiers (neg, abs, clamp, op_sel, SDWA) treat it. */
enum isa_type {
    ISA_TYPE_NONE,
    ISA_TYPE_B16,
    ISA_TYPE_I16,
    ISA_TYPE_U16,
    ISA_TYPE_F16,
    ISA_TYPE_V2I16,
    ISA_TYPE_V2U16,
    ISA_TYPE_V2F16,
    ISA_TYPE_MIX, /* f32, or a half of two f16, as op_sel_hi says (v_fma_mix_*) */
    ISA_TYPE_B32,
    ISA_TYPE_I32,
    ISA_TYPE_U32,
    ISA_TYPE_F32,
    ISA_TYPE_B64,
    ISA_TYPE_I64,
    ISA_TYPE_U64,
    ISA_TYPE_F64,
    ISA_TYPE_V2F32,
    ISA_TYPE_V2B32,
    ISA_TYPE_M64, /* one bit per lane, in two SGPRs */
    ISA_TYPE_B96,
    ISA_TYPE_B128,
    ISA_TYPE_B160,
    ISA_TYPE_B256,
    ISA_TYPE_B512,
    ISA_TYPE_B1024,
    ISA_TYPE_COUNT
};

enum isa_exactness { ISA_EXACT, ISA_PRECISION, ISA_APPROXIMATE, ISA_EXACT_GFX942 };

/* The column `forms` of gfx9.def. */
enum isa_forms {
    ISA_FORM_E64 = 1 << 0,
    ISA_FORM_SDWA = 1 << 1,
    ISA_FORM_DPP = 1 << 2,
    ISA_FORM_SDST = 1 << 3,
    ISA_FORM_ACC = 1 << 4,
    ISA_FORM_LIT = 1 << 5,
    ISA_FORM_LOAD = 1 << 6,
    ISA_FORM_STORE = 1 << 7,
    ISA_FORM_ATOMIC = 1 << 8,
    ISA_FORM_TOLDS = 1 << 9,
    ISA_FORM_OPSEL = 1 << 10,
    ISA_FORM_K1 = 1 << 11,
    ISA_FORM_HALF = 1 << 12,
    ISA_FORM_PAIR = 1 << 13,
    ISA_FORM_GWS = 1 << 14,
    ISA_FORM_SPARSE = 1 << 15,
    ISA_FORM_READS_SCC = 1 << 16,
    ISA_FORM_SETS_SCC = 1 << 17,
    ISA_FORM_SETS_EXEC = 1 << 18,
    ISA_FORM_COMPARE = 1 << 19,
    ISA_FORM_BITWISE = 1 << 20,
    ISA_FORM_AND = 1 << 21,
    ISA_FORM_OR = 1 << 22,
    ISA_FORM_NEGATED = 1 << 23,
    ISA_FORM_SCALE = 1 << 24,
    ISA_FORM_BRANCH = 1 << 25,
    ISA_FORM_OPAQUE = 1 << 26,
    ISA_FORM_MOVE = 1 << 27,
};

/* A line of gfx9.def. */
struct isa_info {
    const char *name;      /* mnemonic without _e32, _e64, _sdwa, _dpp */
    const char *semantics; /* in words */
    uint32_t forms;        /* set of enum isa_forms */
    uint16_t opcode;       /* within its encoding */
    uint8_t encoding;      /* enum isa_encoding */
    uint8_t gpus;          /* bit 1 << enum isa_gpu */
    uint8_t type[4];       /* enum isa_type of dst, src0, src1, src2 */
    uint8_t exactness;     /* enum isa_exactness; isa_exactness_on() knows the GPU as well */
};
extern const struct isa_info isa_info[ISA_OP_COUNT]; /* by enum isa_op; [ISA_OP_NONE] is empty */

/* ISA_EXACT, ISA_PRECISION or ISA_APPROXIMATE: how far results of op can be trusted on that GPU. */
enum isa_exactness isa_exactness_on(enum isa_gpu gpu, unsigned op);

/* Registers (dwords) of an operand of that type; 0 for ISA_TYPE_NONE. */
extern const uint8_t isa_type_sizes[ISA_TYPE_COUNT];
static inline unsigned isa_type_dwords(enum isa_type t) {
    return isa_type_sizes[t];
}

/* Operand codes: the numbers that encodings use, and AGPRs after the VGPRs.
 * 0 to 127 are also the indices of isa_wave.sgpr. */
enum isa_operand {
    ISA_SGPR0 = 0, /* to 101 */
    ISA_FLAT_SCRATCH = 102,
    ISA_XNACK_MASK = 104,
    ISA_VCC = 106,
    ISA_TTMP0 = 108,
    ISA_M0 = 124,
    ISA_EXEC = 126,
    ISA_INT_0 = 128, /* 128 to 192: 0 to 64; 193 to 208: -1 to -16 */
    ISA_INT_M1 = 193,
    ISA_INT_M16 = 208,
    ISA_SHARED_BASE = 235,
    ISA_SHARED_LIMIT = 236,
    ISA_PRIVATE_BASE = 237,
    ISA_PRIVATE_LIMIT = 238,
    ISA_FLOAT_0_5 = 240, /* 0.5 -0.5 1 -1 2 -2 4 -4 1/(2 pi) */
    ISA_FLOAT_1_2PI = 248,
    ISA_SDWA = 249, /* never in a decoded instruction: the source that it stands for is there */
    ISA_DPP = 250,
    ISA_VCCZ = 251,
    ISA_EXECZ = 252,
    ISA_SCC = 253,
    ISA_LDS_DIRECT = 254,
    ISA_LITERAL = 255,
    ISA_VGPR0 = 256, /* to 511 */
    ISA_AGPR0 = 512, /* to 767 */
    ISA_OFF = 0xffff /* no register: "off" of global and scratch addresses, no soffset of SMEM */
};

/* The encoding an instruction was found in, where several carry the same operation. */
enum isa_form { ISA_E32, ISA_E64, ISA_AS_SDWA, ISA_AS_DPP };

/* Modifiers of vector instructions. */
enum isa_modifier {
    ISA_MOD_NEG = 1 << 0,       /* to 1 << 2: neg of src0 to src2; neg_lo in VOP3P */
    ISA_MOD_ABS = 1 << 3,       /* to 1 << 5: abs; in VOP3P neg_hi is in ISA_MOD_NEG_HI instead */
    ISA_MOD_NEG_HI = 1 << 6,    /* to 1 << 8 */
    ISA_MOD_OPSEL = 1 << 9,     /* to 1 << 12: op_sel of src0 to src2 and dst */
    ISA_MOD_OPSEL_HI = 1 << 13, /* to 1 << 15 */
    ISA_MOD_CLAMP = 1 << 16,
    ISA_MOD_OMOD = 1 << 17, /* to 1 << 18: 0, * 2, * 4, / 2 */
    ISA_MOD_SEXT = 1 << 19, /* to 1 << 20: sext of src0, src1 (SDWA) */
};
#define ISA_MOD_OMOD_SHIFT     17
#define ISA_MOD_OPSEL_SHIFT    9
#define ISA_MOD_OPSEL_HI_SHIFT 13

/* Bits of memory instructions, under the names of gfx90a (gfx942: GLC is sc0, SLC is nt, SCC is
 * sc1). */
enum isa_memory_bits {
    ISA_MEM_GLC = 1 << 0, /* of atomics: return the value before */
    ISA_MEM_SLC = 1 << 1,
    ISA_MEM_SCC = 1 << 2,
    ISA_MEM_LDS = 1 << 3,
    ISA_MEM_GDS = 1 << 4,
    ISA_MEM_OFFEN = 1 << 5,
    ISA_MEM_IDXEN = 1 << 6,
    ISA_MEM_TFE = 1 << 7,
    ISA_MEM_IMM = 1 << 8, /* SMEM: imm is part of the address */
    ISA_MEM_NV = 1 << 9,
    ISA_MEM_ACC = 1 << 10, /* data in AGPRs; the operand codes say so already */
};

struct isa_wave;
struct isa_insn;

/* The result of an instruction, and of isa_run(). */
enum isa_result {
    ISA_CONTINUE = 0, /* never returned by isa_run() */
    ISA_END,          /* s_endpgm: the wave is done */
    ISA_BARRIER,      /* s_barrier: continue when all waves of the group are here */
    ISA_GRID_BARRIER, /* ds_gws_barrier: the same for the waves of all groups that come to it */
    ISA_SLEEP,        /* s_sleep, or the budget of isa_run() is used up: continue after others */
    ISA_FAULT,        /* the memory callback refused: wave->stop has lane, address and access */
    ISA_UNKNOWN,      /* not an instruction of this GPU: wave->stop has the encoding */
    ISA_UNSUPPORTED,  /* an instruction that gfx9.def knows and nothing executes in this form */
    ISA_TRAP,         /* s_trap, s_sethalt: wave->stop.code has its number */
    ISA_BAD_PC,       /* the program counter left the code object */
};

typedef enum isa_result (*isa_exec_fn)(struct isa_wave *w, const struct isa_insn *i);
typedef void (*isa_any_fn)(void); /* cast to what it is before it is called */

/* One decoded instruction.
 *
 * dst, src   operand codes. By encoding:
 *   SOP*, VOP*   as gfx9.def says. SOPK: dst. VOPC: dst is where the mask goes (ISA_VCC in E32).
 *                VOP2 with a mask as src2: src[2] is ISA_VCC in E32.
 *   SMEM         dst data, src[0] base, src[1] offset register or ISA_OFF, imm (if ISA_MEM_IMM)
 *   DS           dst returned, src[0] address, src[1] data 0, src[2] data 1, imm both offsets
 *   FLAT etc.    dst returned, src[0] address or ISA_OFF, src[1] data, src[2] SGPR or ISA_OFF, imm
 *   MUBUF, MTBUF dst data, src[0] address, src[1] descriptor (4 SGPRs), src[2] offset, imm
 *   MIMG         dst data, src[0] address, src[1] descriptor, src[2] sampler
 *   MAI          dst, src[0] A, src[1] B, src[2] C or indices
 * sdst           the mask of VOP2 and VOP3 with SDST
 * imm            K of SOPK and SOPP, offsets (signed where the encoding is)
 * literal        the constant of ISA_LITERAL, or K of LIT instructions
 * ext            SDWA and DPP: the second dword, raw; MAI: cbsz | abid << 4 | blgp << 8 */
struct isa_insn {
    isa_exec_fn exec;  /* never NULL */
    isa_any_fn kernel; /* for exec's use */
    uint16_t op;       /* enum isa_op */
    uint8_t words;     /* length in dwords, 1 or 2 */
    uint8_t form;      /* enum isa_form */
    uint16_t dst, sdst;
    uint16_t src[3];
    uint16_t memory;    /* set of enum isa_memory_bits */
    uint32_t modifiers; /* set of enum isa_modifier */
    int32_t imm;
    uint32_t literal;
    uint32_t ext;
    uint32_t raw[2]; /* as encoded; raw[1] also if words is 1 and there is another dword */
};

/* Decodes the instruction at words[0]; `left` is how many dwords there are, at least 1. Always
 * fills *out; out->op is ISA_OP_NONE, and out->words 1, if this GPU has no such instruction.
 * out->exec and out->kernel are left for isa_bind(). */
void isa_decode(enum isa_gpu gpu, const uint32_t *words, size_t left, struct isa_insn *out);

/* Sets exec and kernel of a decoded instruction, for this processor. */
void isa_bind(struct isa_insn *i);

/* Whether isa_bind() finds something that executes the operation. */
int isa_is_executable(enum isa_op op);

/* Writes the instruction as llvm-objdump does ("v_add_f32_e32 v0, s1, v2"), without the address; an
 * unknown one as ".long 0x...". Returns the length, as snprintf() does. Branch targets are written
 * as llvm-mc does: as the signed or unsigned distance. */
int isa_print(enum isa_gpu gpu, const struct isa_insn *i, char *out, size_t size);

/* "gfx90a" or "gfx942". */
const char *isa_gpu_name(enum isa_gpu gpu);

#endif
