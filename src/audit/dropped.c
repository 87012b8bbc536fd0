/* dropped.c - does a caller ignore the result of a call?
 *
 * The instructions after the call are followed until one reads rax, overwrites it, or calls another
 * function. Only the few that compilers emit there are known. At any other, at a conditional branch
 * and at a return the result counts as used, so that no caller is wrongly accused. */
#include "audit/dropped.h"

#include <stdint.h>
#include <string.h>

#ifdef __x86_64__

enum { STEPS = 24, RAX = 0, RSP = 4 };
enum { REX_W = 8, REX_R = 4, REX_X = 2, REX_B = 1 };
enum answer { LOOKED, DROPPED, GOES_ON };

/* An instruction with a ModRM byte. */
struct operands {
    unsigned reg, rm; /* registers; rm only if it is one */
    bool is_memory;
    bool reads_rax;  /* for an address */
    unsigned length; /* of ModRM, SIB and displacement */
};

static struct operands read_operands(const unsigned char *at, unsigned rex) {
    unsigned mod = at[0] >> 6, rm = at[0] & 7;
    struct operands o = { .reg = (at[0] >> 3 & 7) | (rex & REX_R ? 8 : 0),
                          .rm = rm | (rex & REX_B ? 8 : 0),
                          .is_memory = mod != 3,
                          .length = 1 };
    if (!o.is_memory)
        return o;
    bool sib = rm == RSP;
    unsigned base = sib ? at[1] & 7 : rm, index = sib ? at[1] >> 3 & 7 : RSP;
    bool no_base = base == 5 && mod == 0; /* a 32-bit address, or one relative to the next byte */
    o.length += sib + (mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0);
    o.reads_rax = (base == RAX && !(rex & REX_B)) || (sib && index == RAX && !(rex & REX_X));
    return o;
}

/* mov, lea, movzx: reg is overwritten, the other one read. */
static enum answer load(const struct operands *o) {
    if (o->reads_rax || (!o->is_memory && o->rm == RAX))
        return LOOKED;
    return o->reg == RAX ? DROPPED : GOES_ON;
}

static enum answer store(const struct operands *o) {
    if (o->reads_rax || o->reg == RAX)
        return LOOKED;
    return !o->is_memory && o->rm == RAX ? DROPPED : GOES_ON;
}

static enum answer store_number(const struct operands *o) {
    if (o->reads_rax)
        return LOOKED;
    return !o->is_memory && o->rm == RAX ? DROPPED : GOES_ON;
}

/* Reads both. A register that is xored with itself is cleared. */
static enum answer combine(const struct operands *o, bool is_xor) {
    if (is_xor && !o->is_memory && o->reg == RAX && o->rm == RAX)
        return DROPPED;
    return o->reads_rax || o->reg == RAX || (!o->is_memory && o->rm == RAX) ? LOOKED : GOES_ON;
}

/* Those of two bytes: nop, movzx, movsx; endbr64 and moves of vectors with their prefixes. */
static enum answer step_two(const unsigned char **at, unsigned rex, bool prefixed) {
    const unsigned char *p = *at + 2;
    unsigned op = (*at)[1];
    if (prefixed && op == 0x1e && p[0] == 0xfa) {
        *at = p + 1;
        return GOES_ON;
    }
    struct operands o = read_operands(p, rex);
    *at = p + o.length;
    if (op == 0x1f)
        return GOES_ON;
    if (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf)
        return load(&o);
    if (op == 0x10 || op == 0x11 || op == 0x28 || op == 0x29 || op == 0x57 || op == 0xef)
        return o.reads_rax ? LOOKED : GOES_ON; /* reg is a vector register */
    return LOOKED;
}

static enum answer step_modrm(const unsigned char **at, unsigned rex) {
    unsigned op = (*at)[0];
    struct operands o = read_operands(*at + 1, rex);
    *at += 1 + o.length;
    switch (op) {
    case 0x8b: /* mov reg, r/m */
    case 0x8d: /* lea */
    case 0x63: /* movsxd */
        return load(&o);
    case 0x89: /* mov r/m, reg */
        return store(&o);
    case 0xc7: /* mov r/m, number */
    case 0xc6:
        *at += op == 0xc7 ? 4 : 1;
        return store_number(&o);
    case 0x31: /* xor */
    case 0x33:
        return combine(&o, true);
    case 0x01: /* add, sub, cmp, test */
    case 0x03:
    case 0x29:
    case 0x2b:
    case 0x39:
    case 0x3b:
    case 0x85:
        return combine(&o, false);
    case 0x83: /* add, cmp and others with a number */
    case 0x81:
        *at += op == 0x81 ? 4 : 1;
        return o.reads_rax || (!o.is_memory && o.rm == RAX) ? LOOKED : GOES_ON;
    case 0xff: /* call r/m */
        return (o.reg & 7) == 2 && !o.reads_rax && (o.is_memory || o.rm != RAX) ? DROPPED : LOOKED;
    default:
        return LOOKED;
    }
}

static enum answer jump(const unsigned char **at) {
    int32_t far;
    if ((*at)[0] == 0xeb) {
        *at += 2 + (signed char)(*at)[1];
        return GOES_ON;
    }
    memcpy(&far, *at + 1, sizeof far);
    *at += 5 + far;
    return GOES_ON;
}

static enum answer step(const unsigned char **at) {
    unsigned rex = 0;
    bool prefixed = false;
    while (**at == 0x66 || **at == 0xf2 || **at == 0xf3) {
        prefixed = true;
        ++*at;
    }
    if ((**at & 0xf0) == 0x40)
        rex = *(*at)++ & 15u;
    unsigned op = **at, low = (op & 7) | (rex & REX_B ? 8 : 0);
    if (op == 0x0f)
        return step_two(at, rex, prefixed);
    if (op == 0xe9 || op == 0xeb)
        return jump(at);
    if (op == 0xe8) /* call */
        return DROPPED;
    if (op >= 0xb8 && op <= 0xbf) { /* mov reg, number */
        *at += rex & REX_W ? 9 : 5;
        return low == RAX ? DROPPED : GOES_ON;
    }
    if (op >= 0x50 && op <= 0x5f) { /* push, pop */
        *at += 1;
        return low != RAX ? GOES_ON : op >= 0x58 ? DROPPED : LOOKED;
    }
    if (op == 0x90 || op == 0xc9) { /* nop, leave */
        *at += 1;
        return GOES_ON;
    }
    return prefixed && op != 0x8b && op != 0x89 ? LOOKED : step_modrm(at, rex);
}

bool dropped_answer(const void *after) {
    const unsigned char *at = after;
    enum answer answer = GOES_ON;
    for (int i = 0; at && i < STEPS && answer == GOES_ON; i++)
        answer = step(&at);
    return answer == DROPPED;
}

#else

bool dropped_answer(const void *after) {
    (void)after;
    return false;
}

#endif
