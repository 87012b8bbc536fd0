/* memory.h - device addresses: ranges, blocks, their guards and their history.
 *
 * The table owns every struct soft_block; a pointer to one stays valid until its free has been
 * followed by many others. Thread-safe, except for soft_memory_init(). */
#ifndef SOFT_RUNTIME_MEMORY_H
#define SOFT_RUNTIME_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "hip/hip_types.h"

enum soft_block_kind {
    SOFT_DEVICE,     /* hipMalloc and relatives */
    SOFT_MANAGED,    /* both sides see it at the same address */
    SOFT_PINNED,     /* hipHostMalloc */
    SOFT_REGISTERED, /* hipHostRegister: the program's own memory */
    SOFT_GLOBAL,     /* a module's variable */
    SOFT_VIRTUAL,    /* hipMemMap: pages that virtual.c has mapped */
    SOFT_IMPORTED,   /* hipIpcOpenMemHandle: another process's block */
};

enum soft_block_state {
    SOFT_PENDING, /* hipMallocAsync returned it, its stream has not reached it: not accessible */
    SOFT_LIVE,
    SOFT_FREED, /* in the history: the address range stays inaccessible */
};

/* Hints about managed memory, which only hipMemRangeGetAttribute gives back. Devices as HIP numbers
 * them: hipCpuDeviceId is the host, hipInvalidDeviceId none. */
struct soft_advice {
    bool read_mostly, coarse;
    int preferred, accessed_by, prefetched;
};

struct soft_block {
    uint64_t addr, size;    /* what the program sees; size as it asked */
    uint64_t map, map_size; /* whole pages that hold it, program addresses */
    uint64_t offset;        /* SOFT_IMPORTED: of addr in them */
    enum soft_block_kind kind;
    enum soft_block_state state;
    int device;      /* ordinal */
    unsigned flags;  /* of the HIP call that made it */
    void *pool;      /* hipMemPool_t, or NULL */
    bool claimed;    /* being freed: waits for the device or for a stream */
    bool keep;       /* belongs to a module: hipDeviceReset leaves it */
    bool shared;     /* soft_memory_share() */
    bool of_graph;   /* freed, it waits for the graph's next launch: graph_block.h */
    bool handed_out; /* of_graph: a launch of the graph has given it to the program */
    bool in_history; /* freed, and owned by the history alone */
    struct soft_block *next_freed, *prev_freed; /* history, oldest first */
    struct soft_advice advice;                  /* managed blocks */
    /* slack.c; under the table's lock */
    bool has_pattern;
    uint8_t damages;              /* that were told */
    uint64_t good_tag, good_runs; /* the last look that found it whole: after which launch */
};

/* What is kept beside the table about its blocks (slack.h, defined.h). */
struct soft_slacks;
struct soft_memory_beside {
    void (*fill)(struct soft_block *block);
    void (*look)(struct soft_block *block, uint64_t tag, struct soft_slacks *out);
    void (*tell)(const struct soft_slacks *found);
    void (*forget)(uint64_t address);
};

/* Reserves the address ranges; called once. What is beside the table is kept. */
enum rc soft_memory_init(const struct soft_memory_beside *beside, struct err *e);

/* A new block of size > 0 bytes; *out is its address. hipErrorOutOfMemory when the device is full.
 * pending: reserve only, soft_memory_commit() makes it accessible later. */
hipError_t soft_memory_alloc(int device, enum soft_block_kind kind, uint64_t size, unsigned flags,
                             bool pending, struct soft_block **out);
/* Which kernels the program has decides where blocks lie. Accesses of native kernels are checked by
 * guard pages, so that blocks end where a page ends. Those of machine code are checked byte by
 * byte: from the first of it on, and in a program that has no kernels, blocks begin at a page, as
 * aligned as those of a GPU. */
void soft_memory_note_machine_code(void);
void soft_memory_note_native_kernels(void);
/* Whether blocks end where their pages end. */
bool soft_memory_is_right_aligned(void);
/* Makes a pending block accessible. */
hipError_t soft_memory_commit(struct soft_block *block);
/* Unmaps. The struct is the table's from now on, which forgets it after many others. */
void soft_memory_free(struct soft_block *block);
/* The block that starts at addr and is of one of the kinds (bits 1 << kind), if the program may
 * free it and no other thread is doing so; else NULL. The caller must free it or give it back. */
struct soft_block *soft_memory_claim(uint64_t addr, unsigned kinds);
void soft_memory_unclaim(struct soft_block *block);
/* Blocks of graphs, by the address at which they begin; those that are no longer a graph's are left
 * alone. alloc reserves one. hand_out notes that a launch gives it to the program, and answers
 * whether the program did not have it yet; take_back notes that a launch frees it, and answers
 * whether it had. commit makes it accessible, withdraw and soft_memory_free() make it wait for the
 * next launch. leave: the graph is gone, and so is the block unless the program has it. */
hipError_t soft_memory_alloc_for_graph(int device, uint64_t size, uint64_t *addr);
bool soft_memory_hand_out(uint64_t addr);
bool soft_memory_take_back(uint64_t addr);
hipError_t soft_memory_commit_for_graph(uint64_t addr);
void soft_memory_withdraw(uint64_t addr);
void soft_memory_leave_graph(uint64_t addr);
/* Bytes of graphs that are accessible on a device, and the most that there were. */
void soft_memory_graph_usage(int device, uint64_t *now, uint64_t *high);
void soft_memory_graph_forget_high(int device);
hipError_t soft_memory_register(void *host, uint64_t size, unsigned flags);
/* A range of addresses for hipMemMap, aligned to `align`, a power of two; 0 if there is none left.
 * Nobody else gets it, also later. */
uint64_t soft_memory_reserve(uint64_t size, uint64_t align);
/* Enters pages of such a range, which the caller has mapped at soft_reach(), as one live block; and
 * takes it out again, the pages being the caller's. NULL: no memory. */
struct soft_block *soft_memory_adopt(int device, uint64_t addr, uint64_t size);
void soft_memory_disown(struct soft_block *block);
/* Makes the bytes of a live device block reachable for other processes: *file holds them from now
 * on, from `offset` of the block's first byte. The caller sees to it that nothing works on it. */
hipError_t soft_memory_share(struct soft_block *block, int *file, uint64_t *offset);
/* A new block with the bytes of another process's file. */
hipError_t soft_memory_import(int device, int file, uint64_t offset, uint64_t size,
                              struct soft_block **out);
/* Frees everything of a device but module variables (hipDeviceReset). */
void soft_memory_reset(int device);

/* A copy of the block that contains addr and is not freed; false if there is none. */
bool soft_memory_find(uint64_t addr, struct soft_block *out);
/* The block that starts at addr, in any state but freed; NULL if none. */
struct soft_block *soft_memory_at(uint64_t addr);
/* Replaces the advice about a block that is not freed. */
void soft_memory_advise(uint64_t addr, const struct soft_advice *advice);
/* The block nearest to addr, freed ones included, for fault reports; false if there is none. */
bool soft_memory_nearest(uint64_t addr, struct soft_block *out);
/* True for every address of the device ranges, allocated or not. */
bool soft_memory_is_device_address(uint64_t addr);
void soft_memory_info(int device, uint64_t *free_bytes, uint64_t *total);

/* The address at which host code (kernels, copies) reaches a program address. */
static inline void *soft_reach(uint64_t addr);
/* The inverse, for fault addresses. */
uint64_t soft_program_address(uint64_t reached);

struct soft_layout {
    uint64_t base, span; /* program addresses of all devices: [base, base + span) */
    uint64_t device_span;
    uint64_t alias; /* added to a program address to reach it */
};
extern struct soft_layout soft_layout;

static inline void *soft_reach(uint64_t addr) {
    return (void *)(uintptr_t)(addr - soft_layout.base < soft_layout.span ? addr + soft_layout.alias
                                                                          : addr);
}

#endif
