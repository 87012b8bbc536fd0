/* exec.h - for the files that execute groups of instructions; not for users of the library.
 *
 * A group is a table indexed by enum isa_op (NULL where another group is in charge); dispatch.c
 * joins them. A new group is a new file and a line in ISA_GROUPS below, nothing else. */
#ifndef ISA_EXEC_H
#define ISA_EXEC_H

#include "isa/isa.h"

#include <string.h>

#define ISA_GROUPS(G)                                                                              \
    G(isa_group_salu)                                                                              \
    G(isa_group_smem)                                                                              \
    G(isa_group_flat)                                                                              \
    G(isa_group_buffer)                                                                            \
    G(isa_group_image)                                                                             \
    G(isa_group_ds)                                                                                \
    G(isa_group_matrix)                                                                            \
    G(isa_group_program)                                                                           \
    G(isa_group_lanes)

#define ISA_GROUP_DECLARE(name) extern const isa_exec_fn name[ISA_OP_COUNT];
ISA_GROUPS(ISA_GROUP_DECLARE)
#undef ISA_GROUP_DECLARE

/* The slot after the last of a page: leads on to the next one (code.h). */
enum isa_result isa_exec_next_page(struct isa_wave *w, const struct isa_insn *i);

/* Stops of an instruction: fill w->stop and return the result. */
enum isa_result isa_stop_unsupported(struct isa_wave *w, const struct isa_insn *i, const char *why);
enum isa_result isa_stop_fault(const struct isa_access *a, unsigned lane, uint64_t address,
                               const char *why);

/* A scalar source: SGPRs, special registers, constants, literal. Code must be below ISA_VGPR0.
 * Those that are no SGPRs come by isa_constant32() and isa_constant64(). */
uint32_t isa_constant32(const struct isa_wave *w, const struct isa_insn *i, unsigned code);
static inline uint32_t isa_scalar32(const struct isa_wave *w, const struct isa_insn *i,
                                    unsigned code) {
    return code < ISA_SGPRS ? w->sgpr[code] : isa_constant32(w, i, code);
}

/* The same, but a float constant is an f16. */
uint32_t isa_scalar16(const struct isa_wave *w, const struct isa_insn *i, unsigned code);

/* The same for 64-bit operands. An integer constant is sign-extended, a float constant is a double;
 * a literal is the upper half of an F64, sign-extended for I64, zero-extended otherwise. */
uint64_t isa_constant64(const struct isa_wave *w, const struct isa_insn *i, unsigned code,
                        enum isa_type type);
static inline uint64_t isa_scalar64(const struct isa_wave *w, const struct isa_insn *i,
                                    unsigned code, enum isa_type type) {
    uint64_t value;
    if (code >= ISA_SGPRS - 1)
        return isa_constant64(w, i, code, type);
    memcpy(&value, &w->sgpr[code], sizeof value);
    return value;
}

static inline void isa_write32(struct isa_wave *w, unsigned code, uint32_t value) {
    w->sgpr[code] = value;
}
static inline void isa_write64(struct isa_wave *w, unsigned code, uint64_t value) {
    memcpy(&w->sgpr[code], &value, sizeof value);
}

/* The row of a VGPR or AGPR by operand code. Rows of consecutive registers are consecutive. */
static inline uint32_t *isa_row(struct isa_wave *w, unsigned code) {
    return w->vgpr[code - ISA_VGPR0];
}

/* Lane by lane an address of 64 bits from two rows, or of 32 bits from one (high is NULL), and a
 * number. */
void isa_reach_addresses(uint64_t address[ISA_LANES], const uint32_t *low, const uint32_t *high,
                         uint64_t add);

/* The upper half of the addresses of those lanes, of which there is one at least; false if they
 * differ in it. */
bool isa_reach_upper(const uint64_t address[ISA_LANES], uint64_t lanes, uint64_t *upper);

/* The lower halves. */
void isa_reach_lower(uint32_t low[ISA_LANES], const uint64_t address[ISA_LANES]);

/* Device addresses of a global access to host addresses: one span() if the lanes are contiguous or
 * close together, lanes() otherwise. On ISA_CONTINUE host[l] is set for all lanes in a->lanes. */
enum isa_result isa_reach(const struct isa_access *a, const uint64_t address[ISA_LANES],
                          void *host[ISA_LANES]);

/* The host address of the first lane's element if all 64 lanes take part, their elements lie one
 * after the other, and row() allows them all; NULL otherwise: ask isa_reach(). */
void *isa_reach_row(const struct isa_access *a, const uint64_t address[ISA_LANES]);

/* The host address of the lowest lane's element, and how far after it those of a->lanes are (the
 * offsets of other lanes are meaningless), if they lie close together and span() allows them all;
 * NULL otherwise: ask isa_reach(). There is one lane at least. */
void *isa_reach_near(const struct isa_access *a, const uint64_t address[ISA_LANES],
                     uint32_t offset[ISA_LANES]);

/* One dword per lane at base + offset[l], which is below 2 GiB, in those lanes only; there is one
 * at least. Rows of dwords side by side take one copy. Where several lanes store to one place, the
 * highest wins. Pairs of dwords go to two rows, and each is read at once. */
void isa_reach_load(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes);
void isa_reach_load_pairs(uint32_t *d, const uint8_t *base, const uint32_t *offset, uint64_t lanes);
void isa_reach_store(uint8_t *base, const uint32_t *offset, const uint32_t *s, uint64_t lanes);
void isa_reach_store_pairs(uint8_t *base, const uint32_t *offset, const uint32_t *s,
                           uint64_t lanes);

/* Elements of all lanes one after the other: dwords by the number of rows, bytes and halves. */
void isa_reach_load_row(uint32_t *d, const uint8_t *base, unsigned dwords);
void isa_reach_store_row(uint8_t *base, const uint32_t *s, unsigned dwords);
void isa_reach_load_small(uint32_t *d, const uint8_t *base, unsigned bytes, bool sign);
void isa_reach_store_small(uint8_t *base, const uint32_t *s, unsigned bytes);

/* offset[l] = s[l] + add, in whole rows: a later read of a whole row would otherwise stall. */
void isa_reach_offsets(uint32_t offset[ISA_LANES], const uint32_t *s, uint32_t add);

/* d[l] = s[from[l]] for lanes that are on, 0 if that one is not. from[l] is taken modulo 64. */
void isa_reach_exchange(uint32_t *d, const uint32_t *s, const uint32_t from[ISA_LANES],
                        uint64_t lanes);
/* The same of lane byte[l] / 4. */
void isa_reach_exchange_bytes(uint32_t *d, const uint32_t *s, const uint32_t byte[ISA_LANES],
                              uint64_t lanes);

/* The group's LDS if all elements of a load or store lie in it and no callback has to see them;
 * NULL otherwise: ask isa_reach_lds(). */
uint8_t *isa_reach_lds_near(const struct isa_access *a, const uint32_t offset[ISA_LANES]);

/* isa_reach() for LDS: a->bytes at each lane's offset, within what the group has allocated. Atomics
 * have to be aligned. */
enum isa_result isa_reach_lds(const struct isa_access *a, const uint32_t offset[ISA_LANES],
                              void *host[ISA_LANES]);

/* Loads and stores of up to a dword in the wave's scratch, which starts at the device address base:
 * the host address of that, and where each lane's element is from there, if all of them lie inside,
 * none crosses a dword, and no callback has to see them. NULL otherwise: look at each lane. */
uint8_t *isa_reach_scratch_near(const struct isa_access *a, uint64_t base,
                                const uint32_t offset[ISA_LANES], uint32_t swizzled[ISA_LANES]);

#endif
