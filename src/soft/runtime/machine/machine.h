/* machine.h - kernels that are machine code: from a launch to waves of the interpreter (src/isa).
 *
 *   machine_launch.c  the launch: kernarg segment, dispatch packet, workgroups on all cores
 *   machine_worker.c  what a thread needs to run workgroups
 *   machine_again.c   runs a launch again in other orders, to see whether a race matters
 *   machine_copies.c  copies of device memory for these runs
 *   machine_turns.c   workgroups that take turns, because they wait for each other
 *   machine_group.c   one workgroup: its waves' first registers, LDS, scratch, barriers
 *   machine_memory.c  which memory a wave may access, byte by byte
 *   machine_heap.c    malloc() and free() in device code
 *   machine_check.c   what checks find in a kernel: races, barriers
 *   machine_follow.c  which pointer argument each instruction of a kernel goes through
 *   machine_through.c accesses through an argument that leave its memory
 *   machine_frame.c   accesses to the stack that leave one variable for another
 *   machine_touch.c   which bytes a launch has read and written
 *   machine_used.c    how the instructions of a launch were executed
 *   machine_count.c   instructions, bytes and cache lines, for reports on kernels
 *
 * All functions are thread-safe. */
#ifndef SOFT_RUNTIME_MACHINE_H
#define SOFT_RUNTIME_MACHINE_H

#include "base/spin.h"
#include "codeobj/descriptor.h"
#include "codeobj/kernarg.h"
#include "hip/hip_types.h"
#include "isa/isa.h"
#include "isa/race.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/op.h"
#include "soft/runtime/pool.h"

/* A kernel of a loaded code object. Belongs to its module and does not change. */
struct soft_machine {
    struct isa_code *code; /* of the whole module */
    const struct codeobj_kernel *kernel;
    struct codeobj_descriptor descriptor;
    struct codeobj_start start;
    uint64_t object; /* device address of the descriptor */
    uint64_t entry;  /* and of the first instruction */
    enum codeobj_processor processor;
    /* Per dword of its code the pointer argument that the instruction goes through, from 1 (see
     * isa/through.h); NULL: nothing is known. */
    uint8_t *through;
    size_t through_words;
    struct soft_frame *frame; /* variables on its stack; NULL: nothing is known */
};

/* Why a launch ended early: the first stop of any of its waves. */
struct soft_machine_stop {
    enum isa_result result;
    struct isa_stop where;
    uint32_t group[3];                 /* the workgroup */
    uint32_t thread[3];                /* the work-item in it, of a fault; else the wave's first */
    uint32_t lds_bytes, scratch_bytes; /* of a group; of a lane */
    char text[512];
    char instruction[ISA_TEXT_BYTES]; /* mnemonic and operands; empty: none */
};

/* Bytes that soft_machine_pack() writes: the kernarg segment as far as the program fills it. */
uint32_t soft_machine_argument_bytes(const struct soft_machine *m);
/* The program's arguments, from pointers to each or from one buffer of at least that many bytes. */
hipError_t soft_machine_pack(const struct soft_machine *m, void **params, void **extra,
                             unsigned char *out);

/* Fills `through` of a kernel whose code ends at that device address; frees it. */
void soft_machine_find_through(struct soft_machine *m, uint64_t end);
void soft_machine_forget_through(struct soft_machine *m);
/* The same for `frame`, from the debug information of the code object. */
void soft_machine_find_frame(struct soft_machine *m, uint64_t end, const void *image, size_t bytes);
void soft_machine_forget_frame(struct soft_machine *m);

/* Runs the launch on all cores; false if a wave was stopped. */
bool soft_machine_run(const struct soft_op *op, const struct soft_machine *m,
                      struct soft_machine_stop *stop);

/* ---- between the parts ----------------------------------------------------------------------- */

enum {
    MACHINE_WAVES_MAX = 16,
    MACHINE_LDS_MAX = 64 << 10,
    MACHINE_RANGES = 64, /* a kernel of physics has dozens of arrays */
    MACHINE_HINTS = 128,
    MACHINE_TOLD_MAX = 16,
    MACHINE_SUSPECTS_MAX = 64
};

/* Apertures: flat addresses that are LDS and scratch. No host address looks like them. */
#define MACHINE_SHARED_BASE  UINT64_C(0x1000000000000)
#define MACHINE_PRIVATE_BASE UINT64_C(0x2000000000000)

/* Memory that was found accessible, so that it need not be looked up again within a launch. */
struct machine_range {
    uint64_t start, bytes;
    unsigned char *host;
    struct machine_touch *touch; /* NULL: accesses are not recorded */
    bool is_the_programs;        /* not the runtime's own */
};

/* The memory that a pointer argument points into; bytes 0: none. */
struct machine_own {
    uint64_t start, bytes;
};

/* Where a wave is, and a group: RUNS if any of its waves does. */
enum machine_turn { MACHINE_RUNS, MACHINE_WAITS, MACHINE_WAITS_FOR_GRID, MACHINE_ENDED };

/* What one thread needs to run workgroups; kept from launch to launch. */
struct machine_worker {
    struct machine_worker *next; /* of those that nobody uses */
    struct isa_wave *waves[MACHINE_WAVES_MAX];
    enum machine_turn turns[MACHINE_WAVES_MAX];
    unsigned wave_count; /* of the group */
    unsigned used_up;    /* how often waves of the group have used up their budget */
    unsigned char *lds;
    struct soft_block *scratch; /* of all waves of a group; NULL: none yet */
    struct machine_range ranges[MACHINE_RANGES];
    unsigned range_count, next_range;
    uint8_t hints[MACHINE_HINTS]; /* by instruction: the range in which it was last */
    struct machine_range piece;   /* of a kernel's own heap, which may be freed at any time */
    struct isa_memory memory;
    struct isa_group group;
    struct machine_touches *touches; /* of the launch; NULL: not recorded */
    struct machine_launch *launch;
    struct machine_checks *checks; /* of the group it runs */
    uint64_t
        *used; /* [ISA_OP_COUNT], how often it executed each in this launch; NULL: not counted */
};

/* Workgroups that have not begun. */
struct machine_left {
    uint64_t first, last;
};

struct machine_copies;

/* Another run of a launch that has ended, on copies of the memory as it was before. */
struct machine_again {
    const struct isa_race *race; /* of the first run */
    struct machine_copies *copies;
    bool reversed;    /* the last wave of a group first */
    bool interleaved; /* turns of a few instructions */
    bool follows;     /* what loads at these instructions get from bytes that the launch wrote: */
    uint64_t load[MACHINE_SUSPECTS_MAX];
    unsigned loads;
    bool reached; /* it was stored, or became an address */
};

/* The launch as its workgroups see it. */
struct machine_launch {
    const struct soft_machine *machine;
    uint32_t grid[3], block[3];        /* workgroups; work-items of each */
    uint32_t lds_bytes, scratch_bytes; /* of a group; of a lane */
    uint64_t kernarg, packet, queue;   /* device addresses */
    int device;
    bool cooperative;                /* all groups at once */
    uint64_t deadline_ns;            /* the watchdog's; 0: none */
    struct machine_touches *touches; /* NULL: accesses are not recorded */
    const struct soft_op *op;
    struct isa_semaphores semaphores; /* of a cooperative launch */
    _Atomic bool some_aside;          /* some group was put aside: the others begin in turns */
    struct machine_worker *aside;     /* those groups, and those that are left */
    struct machine_left *left;
    size_t left_count;
    struct machine_own *own;  /* of arguments, by number; NULL: not checked */
    uint64_t *used;           /* [ISA_OP_COUNT], of the workers that are done; NULL: not counted */
    _Atomic unsigned reached; /* 1 << enum isa_taint_use: what approximate values became */
    struct isa_race *race;    /* NULL: races are not looked for */
    struct isa_race_found suspects[MACHINE_SUSPECTS_MAX]; /* races that were found */
    unsigned suspect_count;
    _Atomic bool
        asks_host; /* a wave has sent a message: running it again would repeat its effect */
    struct machine_again *again;     /* NULL: the launch itself */
    uint64_t told[MACHINE_TOLD_MAX]; /* instructions that were reported already */
    _Atomic bool stopped;
    struct spin lock; /* of stop, told, suspects, aside and left */
    struct soft_machine_stop *stop;
};

/* Fills worker->memory: checks against the device's blocks, and keeps account of what is touched if
 * the launch wants it. */
void machine_memory_begin(struct machine_worker *worker, struct machine_launch *l);
/* Forgets what it found: another launch may find it freed. */
void machine_memory_forget(struct machine_worker *worker);

/* Makes workgroup `index` (x fastest) ready; false if that stopped the launch. */
bool machine_group_start(struct machine_launch *l, struct machine_worker *worker, uint64_t index);
/* One turn of each of its waves. The result says what comes next: another step; a release, because
 * all remaining waves wait for other groups; or nothing, because it has ended or the launch is
 * stopped. */
enum machine_turn machine_group_step(struct machine_launch *l, struct machine_worker *worker);
void machine_group_release(struct machine_worker *worker);
/* Runs workgroup `index` to its end, or until the launch is stopped. False if it runs so long that
 * it may be waiting for another group: then others should have a turn. */
bool machine_group_run(struct machine_launch *l, struct machine_worker *worker, uint64_t index);
/* A group that has ended, or will not be run further. */
void machine_group_end(struct machine_launch *l, struct machine_worker *worker,
                       enum machine_turn turn);

/* A worker that is ready for groups of the launch; NULL after the launch was stopped because there
 * is no memory. Gives it back. */
struct machine_worker *machine_worker_take(struct machine_launch *l);
void machine_worker_give(struct machine_launch *l, struct machine_worker *w);
/* Device memory of the runtime's own, which hipDeviceReset leaves; NULL: there is none. */
struct soft_block *machine_worker_memory(int device, uint64_t bytes);
/* Stops the launch unless it is stopped. */
void machine_launch_stop(struct machine_launch *l, const char *text);
/* Runs fn for pieces of 0 to count on all cores. */
void machine_launch_job(struct machine_launch *l, soft_pool_fn fn, void *user, uint64_t count);

/* ---- machine_turns.c ---- */

/* All groups of a cooperative launch. */
void machine_turns_together(struct machine_launch *l, uint64_t count);
/* Keeps for later: a group with its worker, and groups that have not begun. */
void machine_turns_put(struct machine_launch *l, struct machine_worker *w);
void machine_turns_leave(struct machine_launch *l, uint64_t first, uint64_t last);
/* Runs what was kept to its end. */
void machine_turns_finish(struct machine_launch *l);

#endif
