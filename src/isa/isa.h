/* isa.h - runs waves of gfx90a and gfx942 machine code: registers and a memory callback.
 *
 * Nothing here knows HIP, streams, allocations or threads. The caller owns everything: it opens the
 * code, makes a workgroup and its waves, sets the registers as the kernel descriptor asks, and
 * calls isa_run() for one wave after the other until each has ended. Memory is the caller's: it is
 * asked for the host address of every access, wave by wave, and must check the access before it
 * answers.
 *
 * An isa_code may be used by many threads at once. A wave, its group and the callbacks belong to
 * one thread at a time. */
#ifndef ISA_ISA_H
#define ISA_ISA_H

#include "base/err.h"
#include "isa/insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA_LANES 64
#define ISA_SGPRS 128 /* by operand code: also VCC, TTMPs, M0, EXEC */
#define ISA_VGPRS 512 /* 256 VGPRs, then 256 AGPRs */

/* ---- code ---- */

/* Machine code at a device address, decoded page by page when a wave first comes there. */
struct isa_code;

/* The bytes are copied. RC_RANGE if address or size is not a multiple of 4. */
NODISCARD enum rc isa_code_open(struct isa_code **out, enum isa_gpu gpu, const void *bytes,
                                size_t size, uint64_t address, struct err *e);
void isa_code_close(struct isa_code **c);
enum isa_gpu isa_code_gpu(const struct isa_code *c);

/* ---- memory ---- */

enum isa_space { ISA_SPACE_GLOBAL, ISA_SPACE_LDS, ISA_SPACE_SCRATCH };
enum isa_access_kind { ISA_LOAD, ISA_STORE, ISA_ATOMIC };

/* One memory instruction of one wave. */
struct isa_access {
    struct isa_wave *wave;
    const struct isa_insn *insn;
    uint8_t space, kind; /* enum isa_space, enum isa_access_kind */
    bool scalar;         /* SMEM: one access for the whole wave */
    uint32_t bytes;      /* per lane, contiguous: 1, 2, 4, 8, 12, 16; scalar: up to 64 */
    uint64_t lanes;      /* those that take part; 1 if scalar */
};

struct isa_memory {
    void *context;
    /* The host address of `bytes` bytes at a device address if every one of them may be accessed
     * like that, in one check; NULL if not, or if finding out costs too much: lanes() decides then.
     * May be NULL: lanes() is asked always. Lanes may lie anywhere within the span. */
    void *(*span)(void *context, const struct isa_access *a, uint64_t address, uint64_t bytes);
    /* The same for a row: all 64 lanes, their elements one after the other, so that every byte of
     * it is accessed. May be NULL: lanes() is asked. */
    void *(*row)(void *context, const struct isa_access *a, uint64_t address, uint64_t bytes);
    /* The host addresses of every lane in a->lanes. Returns true, or false for a fault after
     * setting *lane and *at to the first lane and byte that may not be accessed. */
    bool (*lanes)(void *context, const struct isa_access *a, const uint64_t address[ISA_LANES],
                  void *host[ISA_LANES], unsigned *lane, uint64_t *at);
    /* Accesses of scratch instructions, after bounds were checked: offsets in the lane's scratch.
     * May be NULL. */
    void (*scratch)(void *context, const struct isa_access *a, const uint32_t offset[ISA_LANES]);
    /* The same of every access to scratch, also by way of a buffer, before bounds are checked. May
     * be NULL. */
    void (*frame)(void *context, const struct isa_access *a, const uint32_t offset[ISA_LANES]);
    /* LDS accesses, after bounds were checked; address is relative to the group's LDS. May be NULL.
     * false is a fault as above. */
    bool (*lds)(void *context, const struct isa_access *a, const uint32_t address[ISA_LANES],
                unsigned *lane, uint64_t *at);
};

/* ---- workgroup ---- */

/* Semaphores of global wave sync, shared by the groups of a launch that are resident together. All
 * zeros before the first wave. */
enum { ISA_SEMAPHORES = 64 };
struct isa_semaphores {
    uint32_t count[ISA_SEMAPHORES], waiting[ISA_SEMAPHORES];
};

struct isa_group {
    uint8_t *lds;
    uint32_t lds_bytes;                /* allocated: access beyond it is a fault */
    uint32_t id[3];                    /* workgroup ids, for messages */
    struct isa_semaphores *semaphores; /* NULL: the launch has none; using them stops the wave */
    void *context;                     /* the caller's */
};

/* ---- wave ---- */

/* What else a wave needs from outside. */
struct isa_host {
    void *context;
    /* s_sendmsg: message and M0. ISA_CONTINUE, or what stops the wave. May be NULL: ignored. */
    enum isa_result (*message)(void *context, struct isa_wave *w, uint32_t message, uint32_t m0);
    /* s_memtime and s_memrealtime (real is true, 100 MHz). May be NULL: the count of instructions.
     */
    uint64_t (*clock)(void *context, bool real);
};

/* Why isa_run() returned, where the result alone does not say it. */
struct isa_stop {
    uint64_t pc;         /* of the instruction that stopped the wave */
    uint32_t raw[2];     /* its encoding */
    uint16_t op;         /* enum isa_op */
    uint8_t space, kind; /* ISA_FAULT: of the access */
    uint32_t bytes;      /* ISA_FAULT: per lane */
    unsigned lane;       /* ISA_FAULT */
    uint64_t address;    /* ISA_FAULT: first byte that may not be accessed */
    uint32_t code;       /* ISA_TRAP: its number */
    const char *why;     /* ISA_FAULT, ISA_UNSUPPORTED: more, or NULL */
};

/* MODE: rounding, denormals, and the flags compilers set. */
enum isa_mode {
    ISA_MODE_ROUND_32 = 3 << 0,  /* 0 nearest even, 1 up, 2 down, 3 zero */
    ISA_MODE_ROUND_64 = 3 << 2,  /* also f16 */
    ISA_MODE_DENORM_32 = 3 << 4, /* bit 0: inputs allowed, bit 1: outputs allowed */
    ISA_MODE_DENORM_64 = 3 << 6,
    ISA_MODE_DX10_CLAMP = 1 << 8, /* clamp turns NaN into 0 */
    ISA_MODE_IEEE = 1 << 9,       /* signalling NaNs become quiet in min, max, med, clamp */
    ISA_MODE_FP16_OVFL = 1 << 23, /* f16 results that overflow become the largest number */
    ISA_MODE_VSKIP = 1 << 28,
    ISA_MODE_GPR_IDX = 1 << 27,
};
#define ISA_MODE_DEFAULT                                                                           \
    0x3f0u /* what HIP kernels start with: nearest, denormals, DX10_CLAMP, IEEE */

struct isa_page;

/* 132 KB: make few, and reuse them. Everything is set by the caller before the first isa_run(),
 * after isa_wave_reset(). */
struct isa_wave {
    union { /* by operand code 0 to 127; 64-bit operands are at even codes */
        uint32_t sgpr[ISA_SGPRS];
        uint64_t sgpr64[ISA_SGPRS / 2];
    };
    const struct isa_insn *ip; /* the next instruction; set by isa_wave_jump() */
    struct isa_page *page;     /* that ip points into */
    struct isa_code *code;
    struct isa_group *group;
    const struct isa_memory *memory;
    const struct isa_host *host;
    uint32_t scc; /* 0 or 1 */
    uint32_t mode;
    uint32_t trapsts, hw_id;            /* hardware registers that s_getreg reads */
    uint64_t shared_base, private_base; /* apertures of flat addresses; the low 32 bits are 0 */
    uint64_t scratch_base; /* scratch instructions: device address of the wave's swizzled scratch */
    uint32_t scratch_bytes; /* per lane */
    uint32_t index;         /* of the wave in its group, for messages */
    uint64_t executed;      /* instructions so far */
    bool waits;             /* for a semaphore, since before the last isa_run() */
    uint64_t *used;         /* [ISA_OP_COUNT], how often each operation was executed, or NULL */
    void *context;          /* the caller's */
    struct isa_stop stop;
    _Alignas(64) uint32_t vgpr[ISA_VGPRS][ISA_LANES]; /* register, lane */
};

#define ISA_WAVE_VCC(w)  ((w)->sgpr64[ISA_VCC / 2])
#define ISA_WAVE_EXEC(w) ((w)->sgpr64[ISA_EXEC / 2])
#define ISA_WAVE_M0(w)   ((w)->sgpr[ISA_M0])

/* Zeroes registers and counters, and sets MODE, code, group, memory and host; EXEC is all lanes. */
void isa_wave_reset(struct isa_wave *w, struct isa_code *code, struct isa_group *group,
                    const struct isa_memory *memory, const struct isa_host *host);
/* The same, but of the vector registers only the first vgprs and agprs are zeroed: those that the
 * kernel has. For a small kernel, zeroing all of them would be most of the work. */
void isa_wave_restart(struct isa_wave *w, struct isa_code *code, struct isa_group *group,
                      const struct isa_memory *memory, const struct isa_host *host, unsigned vgprs,
                      unsigned agprs);

/* Sets the program counter: ISA_CONTINUE, or ISA_BAD_PC (w->stop says where). */
enum isa_result isa_wave_jump(struct isa_wave *w, uint64_t address);

/* The program counter: the device address of the next instruction. */
uint64_t isa_wave_pc(const struct isa_wave *w);

/* Runs until something other than the next instruction must happen, at most about `budget`
 * instructions. After ISA_BARRIER, ISA_GRID_BARRIER and ISA_SLEEP it may be called again. After
 * anything else the wave is over; w->stop says more. The host's floating-point environment must be
 * the default one.
 */
enum isa_result isa_run(struct isa_wave *w, uint64_t budget);

/* Products of elements that a matrix instruction adds up, and bytes of an element; 0 of others. */
unsigned isa_matrix_products(enum isa_op op, unsigned *bytes);

/* Room for the text of an instruction. */
enum { ISA_TEXT_BYTES = 256 };

/* Mnemonic and operands of the instruction that stopped the wave: "global_load_dword v2, v[0:1],
 * off"; empty if there is none: the wave jumped to where no code is, or nothing decodes it. As
 * snprintf(). */
int isa_stop_instruction(const struct isa_wave *w, enum isa_result r, char *out, size_t size);

/* One line for people: "v_add_f32 at 0x1040: ...", of a wave that stopped. As snprintf(). */
int isa_stop_print(const struct isa_wave *w, enum isa_result r, char *out, size_t size);

#endif
