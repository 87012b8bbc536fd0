/* info.c - gfx9.def as a table. */
#include "isa/insn.h"

/* The words of gfx9.def. */
enum {
    GFX90A = 1 << ISA_GFX90A,
    GFX942 = 1 << ISA_GFX942,
    ALL = GFX90A | GFX942,
    E64 = ISA_FORM_E64,
    SDWA = ISA_FORM_SDWA,
    DPP = ISA_FORM_DPP,
    SDST = ISA_FORM_SDST,
    ACC = ISA_FORM_ACC,
    LIT = ISA_FORM_LIT,
    LOAD = ISA_FORM_LOAD,
    STORE = ISA_FORM_STORE,
    ATOMIC = ISA_FORM_ATOMIC,
    TOLDS = ISA_FORM_TOLDS,
    OPSEL = ISA_FORM_OPSEL,
    K1 = ISA_FORM_K1,
    HALF = ISA_FORM_HALF,
    PAIR = ISA_FORM_PAIR,
    GWS = ISA_FORM_GWS,
    SPARSE = ISA_FORM_SPARSE,
    READS_SCC = ISA_FORM_READS_SCC,
    SETS_SCC = ISA_FORM_SETS_SCC,
    SETS_EXEC = ISA_FORM_SETS_EXEC,
    COMPARE = ISA_FORM_COMPARE,
    BITWISE = ISA_FORM_BITWISE,
    AND = ISA_FORM_AND,
    OR = ISA_FORM_OR,
    NEGATED = ISA_FORM_NEGATED,
    SCALE = ISA_FORM_SCALE,
    BRANCH = ISA_FORM_BRANCH,
    OPAQUE = ISA_FORM_OPAQUE,
    MOVE = ISA_FORM_MOVE,
};

const struct isa_info isa_info[ISA_OP_COUNT] = {
    [ISA_OP_NONE] = { .name = "", .semantics = "" },
#define INSN(mnemonic, enc, op, gpu_set, d, s0, s1, s2, form_set, exact, words)                    \
    [ISA_OP_##mnemonic] = { .name = #mnemonic,                                                     \
                            .semantics = (words),                                                  \
                            .opcode = (op),                                                        \
                            .forms = (form_set),                                                   \
                            .encoding = ISA_ENC_##enc,                                             \
                            .gpus = (gpu_set),                                                     \
                            .type = { ISA_TYPE_##d, ISA_TYPE_##s0, ISA_TYPE_##s1, ISA_TYPE_##s2 }, \
                            .exactness = ISA_##exact },
#include "isa/gfx9.def"
#undef INSN
};

enum isa_exactness isa_exactness_on(enum isa_gpu gpu, unsigned op) {
    enum isa_exactness e = isa_info[op].exactness;
    if (e != ISA_EXACT_GFX942)
        return e;
    return gpu == ISA_GFX942 ? ISA_EXACT : ISA_APPROXIMATE;
}

const uint8_t isa_type_sizes[ISA_TYPE_COUNT] = {
    [ISA_TYPE_NONE] = 0,  [ISA_TYPE_B16] = 1,    [ISA_TYPE_I16] = 1,   [ISA_TYPE_U16] = 1,
    [ISA_TYPE_F16] = 1,   [ISA_TYPE_V2I16] = 1,  [ISA_TYPE_V2U16] = 1, [ISA_TYPE_V2F16] = 1,
    [ISA_TYPE_MIX] = 1,   [ISA_TYPE_B32] = 1,    [ISA_TYPE_I32] = 1,   [ISA_TYPE_U32] = 1,
    [ISA_TYPE_F32] = 1,   [ISA_TYPE_B64] = 2,    [ISA_TYPE_I64] = 2,   [ISA_TYPE_U64] = 2,
    [ISA_TYPE_F64] = 2,   [ISA_TYPE_V2F32] = 2,  [ISA_TYPE_V2B32] = 2, [ISA_TYPE_M64] = 2,
    [ISA_TYPE_B96] = 3,   [ISA_TYPE_B128] = 4,   [ISA_TYPE_B160] = 5,  [ISA_TYPE_B256] = 8,
    [ISA_TYPE_B512] = 16, [ISA_TYPE_B1024] = 32,
};

static const char *const gpu_names[ISA_GPU_COUNT] = { "gfx90a", "gfx942" };

const char *isa_gpu_name(enum isa_gpu gpu) {
    return gpu_names[gpu];
}
