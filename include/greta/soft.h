/* greta/soft.h - what the software HIP device offers beyond the HIP API.
 *
 * The software device is a libamdhip64.so made of the CPU. This header is for code that may run on
 * it: kernels in host code, and observers of device faults. Every function is exported by that
 * library and by no other, so portable code looks it up with dlsym() and does without it on ROCm.
 * All functions may be called from any thread. */
#ifndef GRETA_SOFT_H
#define GRETA_SOFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRETA_SOFT_API __attribute__((visibility("default")))

/* ---- native kernels ------------------------------------------------------------------------ */

/* The part of a launch that one call of a native kernel does: the blocks first <= b < last of the
 * grid, counted x fastest, then y, then z. Several calls run at the same time on several cores;
 * together they cover each block once. */
struct greta_soft_work {
    uint32_t grid[3];         /* blocks */
    uint32_t block[3];        /* threads per block */
    uint64_t first, last;     /* this call's blocks */
    uint32_t worker, workers; /* this core's number, and how many take part */
    uint32_t shared_bytes;    /* dynamic shared memory asked for at launch */
    /* Device memory as kernels reach it lies at a fixed distance from the addresses the program
     * sees; greta_soft_reach() applies it to pointers found inside the kernel's own data. */
    uintptr_t device_base, device_span;
    ptrdiff_t device_alias;
};

/* args[i] points at the launch's own copy of argument i. A parameter that is described as a pointer
 * has been translated already. A bad access (SIGSEGV, SIGBUS) ends the launch as a device fault, a
 * trap (SIGILL, SIGFPE) as one that failed. */
typedef void (*greta_soft_kernel_fn)(const struct greta_soft_work *work, void *const *args);

enum {
    GRETA_SOFT_VALUE = 0,   /* plain bytes */
    GRETA_SOFT_POINTER = 1, /* the argument's first 8 bytes are a device pointer */
    GRETA_SOFT_READS = 2,   /* with POINTER: the kernel only reads through it */
    /* with POINTER: which bytes the kernel reaches through it follows from its arguments, and
     * whoever records launches knows how. The device then need not look at the slack of that block
     * after each launch, only when it is freed and at the end. */
    GRETA_SOFT_FOOTPRINT = 4,
};

struct greta_soft_param {
    const char *name;
    uint16_t size; /* bytes */
    uint16_t flags;
};

struct greta_soft_kernel {
    const char *name; /* the name hipModuleGetFunction and __hipRegisterFunction know it by */
    greta_soft_kernel_fn run;
    const struct greta_soft_param *params;
    uint32_t param_count;
};

/* An image for hipModuleLoadData with no code of its own: a module in which hipModuleGetFunction
 * finds the native kernels. */
#define GRETA_SOFT_NATIVE_IMAGE "GRETASFT"

/* Makes a kernel launchable by name, from every module. The struct and what it points to must stay
 * valid for the rest of the process. A name that is already registered is replaced.
 * Returns 0, or -1 if the description is malformed or memory ran out. */
GRETA_SOFT_API int greta_soft_kernel_register(const struct greta_soft_kernel *kernel);

/* The kernel of that name as it was registered, or NULL. */
GRETA_SOFT_API const struct greta_soft_kernel *greta_soft_kernel_find(const char *name);

/* A program address as a native kernel reaches it. Addresses outside device memory come back as
 * they are: pinned host memory is the same on both sides. */
static inline void *greta_soft_reach(const struct greta_soft_work *work, const void *address) {
    uintptr_t a = (uintptr_t)address;
    return (void *)(a - work->device_base < work->device_span ? a + (uintptr_t)work->device_alias
                                                              : a);
}

/* ---- faults -------------------------------------------------------------------------------- */

enum greta_soft_fault_kind {
    GRETA_SOFT_FAULT_READ = 1,
    GRETA_SOFT_FAULT_WRITE = 2,
    GRETA_SOFT_FAULT_UNKNOWN = 3, /* read or write: the CPU did not say which */
    GRETA_SOFT_FAULT_TRAP = 4,    /* no access: a trap, or an instruction that cannot be executed */
};

/* Marks the handle of a graph's node where otherwise the tag of a captured call stands. */
#define GRETA_SOFT_NODE_ADDED (UINT64_C(1) << 63)

/* What the device knows about the access that stopped it. Strings live until the observer
 * returns. */
struct greta_soft_fault {
    uint64_t tag;          /* greta_soft_tag() of the thread that queued the operation, or 0 */
    uint64_t address;      /* as the program sees it */
    const char *operation; /* kernel name, or the HIP function that queued the copy or set */
    int argument; /* kernel argument nearest below the address, else nearest above, or -1 */
    const char *argument_name;
    int kind; /* enum greta_soft_fault_kind */
    int device;
    void *stream;
    /* The allocation the address lies in or nearest to: [base, base + size), freed or live. */
    uint64_t allocation_base, allocation_size;
    int allocation_freed;
    /* Of machine code: the instruction's address, the workgroup, and the work-item in it. */
    uint64_t pc;
    uint32_t block[3], thread[3];
    const char *detail; /* one line of further detail; NULL: none */
    const char *place;  /* "saxpy at saxpy.hip:12", of code compiled with -g; NULL: not known */
    /* Of a graph: greta_soft_tag() of the thread that captured the operation; of a node that was
     * added by hand, its handle | GRETA_SOFT_NODE_ADDED. Otherwise 0. */
    uint64_t node;
    /* enum greta_soft_space: where address is an offset in LDS or scratch, LDS or SCRATCH, and how
     * much a workgroup or a work-item has of it; HEAP and what follows it; else 0. */
    int space;
    uint32_t space_bytes;
    /* Of machine code: mnemonic and operands of the instruction, "global_load_dword v2, v[0:1],
     * off"; NULL: there is none, or nothing decodes it. */
    const char *instruction;
    uint32_t bytes; /* of memory that one work-item was to access; 0: not known */
};

typedef void (*greta_soft_fault_observer)(const struct greta_soft_fault *fault, void *user);

/* Calls observer on the device's thread before the fault becomes visible to any HIP call (and
 * before abort() where GRETA_SOFT_FAULT=abort). NULL removes it. */
GRETA_SOFT_API void greta_soft_observe_faults(greta_soft_fault_observer observer, void *user);

/* Marks whatever this thread queues from now on, so that a fault can be traced to the call. */
GRETA_SOFT_API void greta_soft_tag(uint64_t tag);

/* ---- statements about launches ------------------------------------------------------------- */

/* How the accesses of a kernel are checked when it runs here. */
enum greta_soft_checked {
    GRETA_SOFT_CHECKED_NOTHING = 0,      /* it does not run, or is not checked */
    GRETA_SOFT_CHECKED_GUARDS = 1,       /* native code between guard pages */
    GRETA_SOFT_CHECKED_EVERY_ACCESS = 3, /* interpreted, byte by byte */
};

/* The slack of a block is what lies between it and its guards, on either side. Memory that the
 * program made itself and registered has neither guards nor a pattern. */
struct greta_soft_check {
    int how;                /* enum greta_soft_checked */
    uint64_t before, after; /* the most bytes of slack that a block can have: guards begin there */
    int pattern;            /* slack is filled with a pattern, so that writes to it show */
    /* Of machine code, whether these are looked for in it: values that nothing has defined, data
     * races within the launch, barriers that not all reach. */
    int init, races, barriers;
    int could; /* GRETA_SOFT_CHECK keeps the device from checking more of machine code */
};

/* What the device will check in a launch of this function: a hipFunction_t, or the host address of
 * a __global__ function. Returns 0, or -1 if it does not know the function. */
GRETA_SOFT_API int greta_soft_check_of(const void *function, struct greta_soft_check *out);

/* Why a launch that was queued did not run. One that cannot even be queued, such as machine code
 * for another GPU without a native twin, fails at the call and is not reported to the observer. */
enum greta_soft_not_run {
    GRETA_SOFT_NOT_RUN_NO_NATIVE_TWIN = 1, /* machine code that the device cannot run */
    GRETA_SOFT_NOT_RUN_DEVICE_FAILED = 2,  /* an earlier operation had faulted */
    GRETA_SOFT_NOT_RUN_STOPPED = 5,        /* an instruction the device does not know */
};

/* Bytes of a block's slack that have lost their pattern. good and bad are tags of launches: after
 * `good` the slack was still whole (0: never looked at since the block was made), after `bad` it
 * was not (0: noticed at a free, or at the end). What did it is among the launches in between,
 * `bad` included, or is the host, where the host reaches the block. */
struct greta_soft_slack {
    uint64_t base, size;     /* the block */
    uint64_t address, bytes; /* from the first to the last byte that differs, on one side */
    uint64_t good, bad;
    uint64_t launches; /* that ran on any stream between the two looks */
};

/* How a launch of machine code touched bytes. */
enum greta_soft_touch_kind {
    GRETA_SOFT_TOUCH_READ = 1, /* before the launch itself had written them; atomics read, too */
    GRETA_SOFT_TOUCH_WRITE = 2,
    GRETA_SOFT_TOUCH_ATOMIC = 3, /* written by atomics, perhaps by plain stores too */
};

/* Bytes at equal distances: `slices` times, `slice` bytes apart, `rows` rows of `bytes` bytes that
 * are `pitch` bytes apart. One range has one row and one slice. */
struct greta_soft_touch {
    uint64_t address, bytes;
    int kind;    /* enum greta_soft_touch_kind */
    int at_most; /* an upper bound: nothing outside of these bytes */
    uint64_t pitch, rows, slice, slices;
};

/* What a check found wrong in a kernel, which continues to run. */
enum greta_soft_caught_kind {
    GRETA_SOFT_CAUGHT_RACE = 1,              /* at[0] and at[1] access the same bytes unordered */
    GRETA_SOFT_CAUGHT_BARRIER_PARTIAL = 2,   /* a wave waits with `count` of `all` of its threads */
    GRETA_SOFT_CAUGHT_BARRIER_DIFFERENT = 3, /* waves wait at different barriers */
    GRETA_SOFT_CAUGHT_UNDEFINED_ADDRESS = 5, /* what nothing has defined became an address, */
    GRETA_SOFT_CAUGHT_UNDEFINED_BRANCH = 6,  /* decided a branch, */
    GRETA_SOFT_CAUGHT_UNDEFINED_STORE = 7,   /* was stored to device memory */
    /* Nothing wrong: the search for races in this launch was given up before its end, because it
       would have cost too much. */
    GRETA_SOFT_CAUGHT_RACES_UNFOLLOWED = 8,
    /* An access at `address` through pointer argument number `count`, which points to another live
     * allocation, or to another part of this one (greta_soft_name_range()): `bytes` past the end of
     * that, or before its start if `all` is 1. */
    GRETA_SOFT_CAUGHT_ASTRAY = 9,
    /* Nothing wrong: as RACE, but the launch left the same bytes in other orders too, and what its
     * loads got was only compared. The first one of a launch is told. */
    GRETA_SOFT_CAUGHT_RACE_HARMLESS = 10,
    /* At the end of the program: `count` blocks, `bytes` together, that malloc() in this kernel
     * returned at at[0] are not freed. */
    GRETA_SOFT_CAUGHT_LEAK = 11,
    /* An instruction that is for one variable of the kernel's stack only has come into two: now at
     * `address` of the thread's scratch, before in one that is further on if `all` is 1.
     * at[1].place names both, "a[40] = b[0]". */
    GRETA_SOFT_CAUGHT_ARRAYS = 12,
};
enum greta_soft_space {
    GRETA_SOFT_SPACE_GLOBAL = 1,
    GRETA_SOFT_SPACE_LDS = 2,
    GRETA_SOFT_SPACE_SCRATCH = 3,
    GRETA_SOFT_SPACE_VGPR = 4,
    GRETA_SOFT_SPACE_SGPR = 5,
    /* Of a fault: the allocation is a block of malloc() in device code, live or freed, or one that
     * a kernel frees again. */
    GRETA_SOFT_SPACE_HEAP = 6,
    GRETA_SOFT_SPACE_HEAP_FREED = 7,
    GRETA_SOFT_SPACE_HEAP_TWICE = 8,
    GRETA_SOFT_SPACE_HOST = 9,        /* memory of the host that the device does not reach */
    GRETA_SOFT_SPACE_MISALIGNED = 10, /* an atomic of space_bytes, not aligned to them */
};

/* One of the places in the kernel that take part. */
struct greta_soft_caught_at {
    uint64_t pc;
    uint32_t block[3], thread[3];
    int kind;          /* enum greta_soft_touch_kind; 0: no access */
    const char *place; /* "saxpy at saxpy.hip:12"; NULL: not known */
};

struct greta_soft_caught {
    uint64_t tag;
    const char *kernel;
    int kind;  /* enum greta_soft_caught_kind */
    int space; /* enum greta_soft_space of the bytes, or of the undefined value's origin */
    uint64_t
        address; /* of a race; of the origin: address, offset in LDS, or number of a register */
    uint64_t bytes;
    uint64_t allocation_base; /* of global memory, or 0 */
    uint32_t count, all;
    struct greta_soft_caught_at at[2]; /* at[1].pc 0: there is no second one */
    uint64_t node;                     /* as in struct greta_soft_fault */
};

/* How the instructions of a launch of machine code were executed. Counts are of wave instructions;
 * names are mnemonics, separated by blanks, "" if there are none. */
struct greta_soft_executed {
    uint64_t tag;
    const char *kernel;
    uint64_t exact;       /* bit for bit as documented */
    uint64_t precise;     /* within the documented error */
    uint64_t approximate; /* up to what is not documented */
    const char *exact_names, *precise_names, *approximate_names;
    int followed;        /* approximate values were followed through registers */
    int address, branch; /* one of them became an address; decided a branch */
};

/* Called on the device's threads. tag: greta_soft_tag() of the thread that queued the operation. */
struct greta_soft_launch_observer {
    /* The device did not run `launches` launches of the operation with that tag. */
    void (*not_run)(uint64_t tag, const char *kernel, int reason, uint64_t launches, void *user);
    void (*slack)(const struct greta_soft_slack *damage, void *user);
    /* A launch of machine code ran to its end and touched these bytes, and no others. node: as in
     * struct greta_soft_fault. May be NULL: then touched bytes are not tracked. */
    void (*touched)(uint64_t tag, uint64_t node, const char *kernel,
                    const struct greta_soft_touch *touched, size_t count, void *user);
    /* A check found something; each place is reported once per launch. May be NULL: then it is
     * reported on standard error. */
    void (*caught)(const struct greta_soft_caught *caught, void *user);
    /* A launch of machine code has ended, with success or not. May be NULL: then instructions are
     * not counted. */
    void (*executed)(const struct greta_soft_executed *executed, void *user);
    /* A stream's wait for a value in memory has ended. It could have done so since the write with
     * the tag `write`, and not before: what that replaced did not end it, and every value that
     * streams wrote there since then would have. Not told where something else wrote there, too.
     * May be NULL. */
    void (*value_met)(uint64_t wait, uint64_t write, void *user);
};

/* From here on slack has a pattern, and is looked at after each launch that has the block among its
 * arguments, when the block is freed, in hipDeviceReset, and by greta_soft_look_at_slack(). The
 * struct must stay valid until it is replaced. NULL removes it: then nothing is looked at. */
GRETA_SOFT_API void greta_soft_observe_launches(const struct greta_soft_launch_observer *observer,
                                                void *user);

/* A number for a stream that no other stream of the process has, before or after; 0 if the handle
 * is none. The default streams (NULL, hipStreamLegacy, hipStreamPerThread) are the device's and the
 * calling thread's own. */
GRETA_SOFT_API uint64_t greta_soft_stream_number(const void *stream, int device);

/* How many launches of that stream the device is done with, in the order in which they were queued,
 * those of graphs included. Still answers for a stream that was destroyed, until its memory is used
 * again, which takes a thousand streams that end after it; then 0. */
GRETA_SOFT_API uint64_t greta_soft_launches_done(uint64_t stream_number);

/* Looks at the patterns beside all allocations now; what is damaged goes to the observer. */
GRETA_SOFT_API void greta_soft_look_at_slack(void);

/* Declares [address, address + bytes), a part of a block, to be one object, such as a tensor in an
 * arena. Machine code that gets a pointer into it as an argument is expected to stay in it (see
 * GRETA_SOFT_CAUGHT_ASTRAY). bytes 0 takes the name back, and so does the end of the block. A range
 * that overlaps another one, but does not start where it does, is left out. */
GRETA_SOFT_API void greta_soft_name_range(const void *address, uint64_t bytes);

/* ---- counting what machine code does ------------------------------------------------------- */

/* What the waves of interpreted launches did. A line is 128 bytes of device memory. */
struct greta_soft_count {
    /* Instructions: vector arithmetic, matrix, scalar, branches and waits, loads of scalars, LDS,
     * device memory and scratch. */
    uint64_t vector, matrix, scalar, control, scalar_memory, lds, memory;
    uint64_t products[3];               /* of matrices: elements of 1, 2, and 4 bytes or more */
    uint64_t bytes;                     /* that lanes asked for, of the program's memory */
    uint64_t half_lines;                /* 64-byte halves of lines, of each instruction, added up */
    uint64_t lines;                     /* different lines that were touched */
    uint64_t lds_cycles, lds_conflicts; /* of 32 banks; how many of them conflicts cost */
};

/* Starts and stops counting; launches that are counted run slowly. */
GRETA_SOFT_API void greta_soft_count_start(void);
GRETA_SOFT_API void greta_soft_count_stop(struct greta_soft_count *out);

/* ---- host memory --------------------------------------------------------------------------- */

/* Called on threads that run copies and fills, for host memory that the device would otherwise
 * touch where the program sees it: copies `bytes` bytes from memory to host (writes) or from host
 * to memory, past the protection of host's pages, and returns 1; or returns 0, and the device
 * touches the memory itself. For tools that protect host pages. NULL removes it. */
typedef int (*greta_soft_host_mover)(uint64_t host, void *memory, uint64_t bytes, int writes,
                                     void *user);
GRETA_SOFT_API void greta_soft_move_host_by(greta_soft_host_mover mover, void *user);

/* 1 if the calling thread is running a kernel or a copy, else 0. For signal handlers. */
GRETA_SOFT_API int greta_soft_is_running(void);

/* ---- settings ------------------------------------------------------------------------------ */

/* Version of the software device, e.g. "0.1.0". Its presence tells the software device from
 * ROCm. */
GRETA_SOFT_API const char *greta_soft_version(void);

/* How many cores one kernel may use from the next launch on; 0 means all. */
GRETA_SOFT_API void greta_soft_set_threads(unsigned threads);

#ifdef __cplusplus
}
#endif
#endif
