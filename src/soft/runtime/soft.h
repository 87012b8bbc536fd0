/* soft.h - inside the software HIP device.
 *
 * The device is a queue of operations (struct soft_op) a stream and a scheduler that runs them in
 * an order HIP permits. A HIP function of the runtime, soft_hipXxx(), builds an operation, submits
 * it and, where HIP says so, waits for it. src/soft/entry exports soft_hipXxx as hipXxx; a function
 * of hip_api.def that has no soft_hipXxx answers hipErrorNotSupported there.
 *
 *   memory.c        address ranges, blocks, guards, history
 *   slack.c         patterns beside blocks, and who is told about launches
 *   alloc.c         the hipMalloc family
 *   schedule.c      the scheduler: dispatcher, watchdog, four policies
 *   stream.c        streams and their rules
 *   copy.c          copies and fills
 *   event.c         events
 *   launch.c        launches
 *   pool.c          one kernel on all cores
 *   fault_signal.c  SIGSEGV becomes a fault
 *   error.c         last and sticky errors
 *   start.c         the start, and forks
 *   device.c        properties
 *   module/         code objects, symbols
 *   graph/          capture and replay
 *
 * Lock order: stream registry, scheduler, memory table. No lock is held while an operation runs. */
#ifndef SOFT_RUNTIME_SOFT_H
#define SOFT_RUNTIME_SOFT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <greta/soft.h>

#include "base/err.h"
#include "hip/hip_api.h"
#include "hip/hip_types.h"

/* Every function the runtime may implement; see src/soft/entry for how missing ones answer. */
#define HIP_FN(ret, name, params, args, cls, since) ret soft_##name params;
#define HIP_VOID_FN(name, params, args, cls, since) void soft_##name params;
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

struct soft_op;
struct soft_stream;
struct soft_event;
struct soft_block;
struct soft_capture; /* capture.c */

/* ---- settings.c: GRETA_SOFT_* and friends, read once --------------------------------------- */

enum { SOFT_DEVICES_MAX = 16 };
enum { SOFT_SERIALIZE_BEFORE = 1, SOFT_SERIALIZE_AFTER = 2 };
enum soft_policy { SOFT_FAST, SOFT_EAGER, SOFT_LAZY, SOFT_RANDOM };
enum soft_arch {
#define ARCH(name, target) SOFT_ARCH_##name,
#include "soft/runtime/arch.def"
#undef ARCH
    SOFT_ARCHES
};

struct soft_settings {
    unsigned devices; /* visible devices: GRETA_SOFT_DEVICES filtered by HIP_VISIBLE_DEVICES */
    unsigned visible[SOFT_DEVICES_MAX]; /* ordinal -> physical number, for names and bus ids */
    uint64_t memory;                    /* bytes a device: GRETA_SOFT_MEMORY */
    bool checked;                       /* right-aligned blocks: GRETA_SOFT_CHECKED */
    enum soft_policy policy;
    uint64_t seed;                             /* of SOFT_RANDOM */
    bool fault_aborts;                         /* GRETA_SOFT_FAULT=abort */
    enum soft_arch arch;                       /* GRETA_SOFT_ARCH */
    unsigned serialize_kernel, serialize_copy; /* AMD_SERIALIZE_*: bit 0 before, bit 1 after */
    unsigned threads;                          /* GRETA_SOFT_THREADS; 0: all cores */
    bool pin;        /* a core for every worker of a pool that uses all: GRETA_SOFT_PIN */
    bool watch_host; /* somebody closes pages to the host: GCORE_WATCH_HOST */
};

/* Reads the environment, once, at start. RC_USAGE names the variable, what it may be and what it
 * is. */
NODISCARD enum rc soft_settings_read(struct err *e);
/* What was read. */
const struct soft_settings *soft_settings(void);
/* "gfx90a:sramecc+:xnack-": a GPU as bundles name it. */
const char *soft_arch_target(enum soft_arch arch);

/* ---- error.c ------------------------------------------------------------------------------- */

/* First and last step of every exported function (src/soft/entry). enter returns the sticky error
 * once a synchronising call has reported it; leave remembers result for hipGetLastError. */
hipError_t soft_enter(enum hip_fn fn);
hipError_t soft_leave(hipError_t result);
hipError_t soft_missing(enum hip_fn fn); /* says the name once; hipErrorNotSupported */

/* A device failed. It becomes visible to calls at the next soft_error_observe(). */
void soft_error_raise(int device, hipError_t error);
bool soft_error_raised(int device);
/* greta_soft_tag() of this thread. */
uint64_t soft_current_tag(void);
/* What a synchronising call ends with: hipSuccess, or the device error, from now on sticky. */
hipError_t soft_error_observe(void);
void soft_error_reset(int device);
/* A forked child: whatever failed was the parent's. */
void soft_error_forget(void);

/* This thread's current device. */
int soft_current_device(void);
void soft_set_current_device(int device);
/* hipSuccess, or hipErrorInvalidDevice */
hipError_t soft_check_device(int device);

/* ---- handle.c: handles that can be checked -------------------------------------------------- */

/* Objects handed to programs as opaque pointers come from a pool at fixed addresses that are never
 * unmapped, and a freed one is reused last, so that a stale or foreign handle is told from a live
 * one without following it. Every pooled struct starts with struct soft_handle. */
struct soft_handle {
    _Atomic uint32_t live; /* 1 while the program may use it */
    uint32_t index;
};

struct soft_handles;
enum { SOFT_HANDLES_MAX = 16 }; /* pools */
struct soft_handles *soft_handles_new(size_t object_size, size_t capacity);
/* Pool number i in order of creation, or NULL; and its lock. For forks. */
struct soft_handles *soft_handles_number(unsigned i);
pthread_mutex_t *soft_handles_lock(struct soft_handles *pool);
void *soft_handle_alloc(struct soft_handles *pool); /* zeroed, live; NULL when full */
void soft_handle_free(struct soft_handles *pool, void *object);
/* The two halves of free, for an object that outlives its handle: no longer valid; reusable. */
bool soft_handle_close(void *object); /* false if it was closed already */
void soft_handle_recycle(struct soft_handles *pool, void *object);
bool soft_handle_valid(const struct soft_handles *pool, const void *object);
/* The object with that index, live or not; NULL if none has been made. */
void *soft_handle_at(struct soft_handles *pool, size_t index);
/* Calls visit for every live object. */
void soft_handles_each(struct soft_handles *pool, void (*visit)(void *object, void *user),
                       void *user);

/* ---- memory.c ------------------------------------------------------------------------------ */

enum soft_block_kind {
    SOFT_DEVICE,     /* hipMalloc and relatives */
    SOFT_MANAGED,    /* both sides see it at the same address */
    SOFT_PINNED,     /* hipHostMalloc */
    SOFT_REGISTERED, /* hipHostRegister: the program's own memory */
    SOFT_GLOBAL,     /* a module's variable */
};

enum soft_block_state {
    SOFT_PENDING, /* hipMallocAsync returned it, its stream has not reached it: not accessible */
    SOFT_LIVE,
    SOFT_FREED, /* in the history: the address range stays inaccessible */
};

struct soft_block {
    uint64_t addr, size;    /* what the program sees; size as it asked */
    uint64_t map, map_size; /* whole pages that hold it, program addresses */
    enum soft_block_kind kind;
    enum soft_block_state state;
    int device;      /* ordinal */
    unsigned flags;  /* of the HIP call that made it */
    void *pool;      /* hipMemPool_t, or NULL */
    bool claimed;    /* somebody frees it: waits for the device or for a stream */
    bool keep;       /* belongs to a module: hipDeviceReset leaves it */
    bool in_history; /* freed, and nobody else's any more */
    struct soft_block *next_freed, *prev_freed; /* history, oldest first */
    /* slack.c; under the table's lock */
    bool has_pattern;
    uint8_t damages;              /* that were told */
    uint64_t good_tag, good_runs; /* the last look that found it whole: after which launch */
};

/* Reserves the address ranges; called once. */
enum rc soft_memory_init(struct err *e);

/* A new block of size > 0 bytes; *out is its address. hipErrorOutOfMemory when the device is full.
 * pending: reserve only, soft_memory_commit() makes it accessible later. */
hipError_t soft_memory_alloc(int device, enum soft_block_kind kind, uint64_t size, unsigned flags,
                             bool pending, struct soft_block **out);
/* Makes a pending block accessible. */
hipError_t soft_memory_commit(struct soft_block *block);
/* Unmaps. The struct is the table's from now on, which forgets it after many others. */
void soft_memory_free(struct soft_block *block);
/* The block that starts at addr and is of one of the kinds (bits 1 << kind), if the program may
 * free it and nobody does so yet; else NULL. It is the caller's to free, or to give back. */
struct soft_block *soft_memory_claim(uint64_t addr, unsigned kinds);
void soft_memory_unclaim(struct soft_block *block);
hipError_t soft_memory_register(void *host, uint64_t size, unsigned flags);
/* Frees everything of a device but module variables (hipDeviceReset). */
void soft_memory_reset(int device);

/* Changes whenever an answer of soft_memory_find() may have: who remembers answers asks this first.
 */
extern _Atomic uint64_t soft_memory_generation;
/* A copy of the block that contains addr and is not freed; false if there is none. */
bool soft_memory_find(uint64_t addr, struct soft_block *out);
/* The block that starts at addr, in any state but freed; NULL if none. */
struct soft_block *soft_memory_at(uint64_t addr);
/* The block nearest to addr, freed ones included, for fault reports; false if there is none. */
bool soft_memory_nearest(uint64_t addr, struct soft_block *out);
/* True for every address of the device ranges, allocated or not. */
bool soft_memory_is_device_address(uint64_t addr);
void soft_memory_info(int device, uint64_t *free_bytes, uint64_t *total);
/* Looks at the slack of the block in whose pages addr lies, after the launch with that tag. */
void soft_memory_look(uint64_t addr, uint64_t tag);
/* The same for all blocks (tag 0), or gives them a pattern if fill. */
void soft_memory_look_at_all(bool fill);

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

/* ---- slack.c: the bytes between a block and its guards ------------------------------------------
 */

struct soft_slacks { /* one for each side, at most */
    unsigned count;
    struct greta_soft_slack at[2];
};

/* Gives a block that was just mapped its pattern, if somebody wants to know. */
void soft_slack_fill(struct soft_block *block);
/* Looks at a block that is mapped, after the launch with that tag (0: none). Under the table's
 * lock, or where nobody else knows the block. What is damaged goes to *out and is repaired. */
void soft_slack_look(struct soft_block *block, uint64_t tag, struct soft_slacks *out);
/* The most slack that a block can have, and whether it has a pattern. */
void soft_slack_limits(struct greta_soft_check *out);
/* Tells the observer; without locks. */
void soft_slack_tell(const struct soft_slacks *found);
/* Whether a launch that gets this parameter is followed by a look at the block's slack. */
static inline bool soft_slack_is_looked_at(const struct greta_soft_param *p) {
    return (p->flags & (GRETA_SOFT_POINTER | GRETA_SOFT_FOOTPRINT)) == GRETA_SOFT_POINTER;
}
/* An operation is over: if it is a launch, it is counted, and its arguments' blocks are looked at.
 */
void soft_launch_done(const struct soft_op *op);
/* An operation was skipped, because its device has failed. */
void soft_launch_skipped(const struct soft_op *op);

/* ---- mempool.c ------------------------------------------------------------------------------ */

/* A block is given back: its pool, if it has one, no longer counts it. */
void soft_mempool_return(const struct soft_block *block);
/* hipDeviceReset: nothing of the device's pools is in use. */
void soft_mempool_reset(int device);

/* ---- operations ---------------------------------------------------------------------------- */

struct soft_dep {
    struct soft_stream *stream;
    uint64_t seq;
};

enum soft_op_kind {
    SOFT_OP_COPY,
    SOFT_OP_FILL,
    SOFT_OP_LAUNCH,
    SOFT_OP_HOST,    /* a host function: runs on a thread of its own, may block */
    SOFT_OP_RECORD,  /* event record */
    SOFT_OP_BARRIER, /* only waits for its dependencies */
    SOFT_OP_COMMIT,  /* hipMallocAsync */
    SOFT_OP_UNMAP,   /* hipFreeAsync */
};

/* Rectangles: a plain copy has height = depth = 1. Addresses are the program's. */
struct soft_copy {
    uint64_t dst, src;
    size_t width, height, depth; /* bytes, rows, slices */
    size_t dst_pitch, src_pitch; /* bytes from row to row */
    size_t dst_slice, src_slice; /* bytes from slice to slice */
};

struct soft_fill {
    uint64_t dst;
    size_t width, height, depth; /* elements, rows, slices */
    size_t pitch, slice;         /* bytes */
    uint32_t value, element;     /* element: 1, 2 or 4 bytes */
};

struct soft_function; /* module.c / launch.c */

struct soft_launch {
    struct soft_function *function;
    uint32_t grid[3], block[3]; /* blocks; threads a block */
    uint32_t shared_bytes;
};

struct soft_host_call {
    void (*fn)(void *user);                                              /* hipLaunchHostFunc */
    void (*callback)(hipStream_t stream, hipError_t status, void *user); /* hipStreamAddCallback */
    void *user;
    hipStream_t stream;
};

enum { SOFT_OP_DEPS = 4, SOFT_OP_BYTES = 256 };

/* One queued operation. Belongs to its builder until submitted, then to the scheduler; a graph node
 * keeps one as a template and submits copies. */
struct soft_op {
    struct soft_op *next;      /* in its stream */
    struct soft_op *host_next; /* among host functions whose turn has come */
    struct soft_stream *stream;
    uint64_t seq;     /* in its stream, from 1 */
    uint64_t tag;     /* greta_soft_tag of the submitting thread */
    const char *what; /* HIP function or kernel name, static or owned by the function */
    enum soft_op_kind kind;
    bool running;
    bool stuck;       /* running for so long that lazy goes on without it */
    bool pageable;    /* a copy with pageable host memory on one side */
    bool device_only; /* a copy or fill that touches device memory only */
    int device;       /* whose error it raises */

    uint32_t dep_count, dep_room;
    struct soft_dep *deps; /* deps_inline or on the heap */

    union {
        struct soft_copy copy;
        struct soft_fill fill;
        struct soft_launch launch;
        struct soft_host_call host;
        struct {
            struct soft_event *event;
            uint64_t generation;
        } record;
        struct soft_block *block;
    } u;

    uint32_t bytes;      /* of kernel arguments in data */
    unsigned char *data; /* data_inline or on the heap */

    /* Cleared up to here in a new operation: what follows is written before it is read. */
    struct soft_dep deps_inline[SOFT_OP_DEPS];
    unsigned char data_inline[SOFT_OP_BYTES];
};

struct soft_op *soft_op_new(enum soft_op_kind kind, const char *what); /* NULL: no memory */
struct soft_op *soft_op_clone(const struct soft_op *op); /* payload only, not the dependencies */
void soft_op_free(struct soft_op *op);
void soft_op_free_list(struct soft_op *first, struct soft_op *last); /* linked by next */
/* Room for n bytes in op->data; false without memory. */
bool soft_op_reserve(struct soft_op *op, uint32_t n);

/* Builders: check the arguments as HIP does and return the error a HIP call would; on success
 * *out is an operation ready for soft_submit(). */
hipError_t soft_op_copy(struct soft_op **out, const char *what, const struct soft_copy *copy,
                        hipMemcpyKind kind);
hipError_t soft_op_fill(struct soft_op **out, const char *what, const struct soft_fill *fill);
hipError_t soft_op_launch(struct soft_op **out, struct soft_function *function,
                          const uint32_t grid[3], const uint32_t block[3], uint32_t shared_bytes,
                          void **params, void **extra);
hipError_t soft_op_host(struct soft_op **out, const char *what, const struct soft_host_call *call);

/* The rectangle of a hipMemcpy3DParms without arrays. */
hipError_t soft_copy_from_3d(const hipMemcpy3DParms *params, struct soft_copy *out);

/* Runs one operation's payload on this thread (no dependencies, no queue). Faults are raised. */
void soft_op_run(struct soft_op *op);
/* Its parts; false with address and kind of a bad access. */
bool soft_copy_run(const struct soft_copy *copy, uint64_t *address, int *kind);
bool soft_fill_run(const struct soft_fill *fill, uint64_t *address, int *kind);
bool soft_launch_run(const struct soft_op *op, uint64_t *address, int *kind);

/* ---- stream.c ------------------------------------------------------------------------------ */

struct soft_stream {
    struct soft_handle handle;
    int device;
    unsigned flags; /* hipStreamNonBlocking */
    int priority;
    bool is_null;    /* the device's legacy default stream */
    bool per_thread; /* a thread's default stream */
    /* Queue, under the scheduler's lock. A stream that reuses a handle starts its seqs above all
     * that were used before, so that (stream, seq) names an operation for ever. */
    struct soft_op *head, *tail;
    struct soft_stream *next_active, *prev_active;
    bool active;
    uint64_t first; /* the seq before its first */
    uint64_t submitted;
    uint64_t allowed;     /* the schedule lets operations up to this seq run */
    uint64_t wanted;      /* lazy: somebody waits for operations up to this seq */
    struct soft_op *held; /* the first operation past allowed, or NULL */
    bool closed;          /* destroyed by the program, not yet empty */
    _Atomic uint64_t completed;
    _Atomic uint64_t launches;            /* completed; written by who completes them, in order */
    _Atomic uint64_t awaited;             /* the first seq that somebody sleeps for, or 0 */
    struct soft_capture *_Atomic capture; /* not NULL while capturing: capture.c */
};

/* The stream behind a handle: NULL and hipStreamLegacy are the current device's default stream,
 * hipStreamPerThread this thread's own. */
hipError_t soft_stream_resolve(hipStream_t handle, struct soft_stream **out);
struct soft_stream *soft_stream_null(int device);
struct soft_handles *soft_streams(void);

/* Queues op behind the stream's work and behind whatever the default-stream rules add; on a
 * capturing stream, adds it to the graph instead. Takes op over in any case. Then does what the
 * schedule says. *seq (may be NULL) is the operation's place; 0 when captured. */
hipError_t soft_submit(struct soft_stream *stream, struct soft_op *op, uint64_t *seq);

/* The queueing part of soft_submit for a caller that holds the scheduler's lock: adds the rules'
 * dependencies and pushes. On failure op is still the caller's. */
hipError_t soft_submit_locked(struct soft_stream *stream, struct soft_op *op);

/* soft_submit, then waits until it has run, and reports the device's state. Refused while the
 * stream captures. */
hipError_t soft_submit_and_wait(struct soft_stream *stream, struct soft_op *op);

/* Adds a dependency to an operation that is not yet submitted; false without memory. */
bool soft_op_depend(struct soft_op *op, struct soft_stream *stream, uint64_t seq);

/* ---- schedule.c ---------------------------------------------------------------------------- */

enum rc soft_schedule_init(struct err *e);
/* Puts op at the end of its stream's queue, with the dependencies it has. */
void soft_schedule_push(struct soft_stream *stream, struct soft_op *op);
void soft_schedule_lock(void);
void soft_schedule_unlock(void);
/* push for a caller that holds the lock, so that dependencies and place are decided together. */
void soft_schedule_push_locked(struct soft_stream *stream, struct soft_op *op);
/* The stream after `after` (NULL: the first) among those with queued work; under the lock. */
struct soft_stream *soft_schedule_next_active(struct soft_stream *after);
/* The policy's part of a submission, without the lock: wake, wait, or pick at random. */
void soft_schedule_submitted(struct soft_stream *stream, uint64_t seq);
/* Returns when the stream has completed seq. */
void soft_schedule_wait(struct soft_stream *stream, uint64_t seq);
/* One look: is it complete? A program that polls makes progress under every policy. */
bool soft_schedule_poll(struct soft_stream *stream, uint64_t seq);
/* Waits for all queued work of a device; negative: of all. */
void soft_schedule_drain(int device);
/* op was run outside the dispatcher (host.c) and is done. */
void soft_schedule_complete(struct soft_op *op);
/* A number from the schedule's random stream, for choices that HIP leaves open. */
uint64_t soft_schedule_random(void);

/* ---- thread.c ------------------------------------------------------------------------------ */

/* Starts a detached thread that leaves the program's signals alone; false if there is none. */
bool soft_thread_start(void *(*main)(void *), void *argument);

/* ---- host.c -------------------------------------------------------------------------------- */

/* Runs a host function whose turn has come on a thread where it may block. */
void soft_host_queue(struct soft_op *op);

/* ---- pool.c: one job on all cores ---------------------------------------------------------- */

/* Calls fn(user, first, last, worker, workers) until 0 <= i < count is covered, on this thread and
 * the pool's. Returns when all calls have returned. */
typedef void (*soft_pool_fn)(void *user, uint64_t first, uint64_t last, unsigned worker,
                             unsigned workers);
void soft_pool_run(soft_pool_fn fn, void *user, uint64_t count);
/* The same with every call of fn in a soft_fault_guard(); false if one made a bad access. */
bool soft_pool_run_guarded(soft_pool_fn fn, void *user, uint64_t count, uint64_t *address,
                           int *kind);
void soft_pool_set_threads(unsigned threads);

/* ---- fault_signal.c ---------------------------------------------------------------------- */

enum rc soft_fault_init(struct err *e);
/* Calls fn(user) so that a bad access inside it returns here: true if fn came to its end, else
 * false with the program address and enum greta_soft_fault_kind of the access. */
bool soft_fault_guard(void (*fn)(void *user), void *user, uint64_t *address, int *kind);
/* A pointer that no kernel may use, as one that faults wherever it is used. */
uint64_t soft_fault_poison(uint64_t pointer);
/* Tells the observer, or aborts, and raises hipErrorIllegalAddress on the operation's device. */
void soft_fault_report(const struct soft_op *op, uint64_t address, int kind);
/* The same for a launch of machine code that one of its waves ended. */
struct soft_machine_stop;
void soft_fault_report_stop(const struct soft_op *op, const struct soft_machine_stop *stop);

/* ---- event.c ------------------------------------------------------------------------------- */

struct soft_event {
    struct soft_handle handle;
    unsigned flags;
    int device;
    /* The last record, under the scheduler's lock; stream NULL: never recorded. */
    struct soft_stream *stream;
    uint64_t seq;
    uint64_t generation;      /* counts records */
    _Atomic uint64_t time_ns; /* of the last completed record */
    /* Recorded into a capture: capture.c */
    void *_Atomic capture_graph;
    void *capture_nodes;
};
struct soft_handles *soft_events(void);
void soft_event_completed(struct soft_event *event, uint64_t generation);
/* hipEventRecord and hipStreamWaitEvent on streams that do not capture. */
hipError_t soft_event_record(struct soft_event *event, struct soft_stream *stream);
/* The same with op, a new SOFT_OP_RECORD, for a caller that holds the scheduler's lock. On failure
 * op is still the caller's. */
hipError_t soft_event_record_locked(struct soft_event *event, struct soft_stream *stream,
                                    struct soft_op *op);
hipError_t soft_event_wait(struct soft_event *event, struct soft_stream *stream);

/* ---- module.c / launch.c ------------------------------------------------------------------- */

struct soft_function {
    struct soft_handle handle;
    char *name;
    const struct greta_soft_kernel *native; /* NULL: machine code only */
    bool looks; /* native: the slack of some arguments is looked at after a launch */
    const struct soft_machine *machine; /* NULL: native only; machine/machine.h */
    void *module;
    /* What the code object's metadata says, where there is one. */
    uint32_t kernarg_bytes, shared_bytes, private_bytes, max_threads;
};

/* Where an argument of `size` bytes goes in op->data when the ones before it end at `at`. */
static inline uint32_t soft_param_offset(uint32_t at, uint32_t size) {
    uint32_t lowest_bit = size & (~size + 1), align = lowest_bit < 8 ? lowest_bit : 8;
    return align ? (at + align - 1) / align * align : at;
}

/* The pool that all struct soft_function come from, native ones and those of modules: a
 * hipFunction_t is valid if soft_handle_valid() says so. Defined in module.c. */
struct soft_handles *soft_functions(void);
/* The function for a name, made on first use; *out stays valid for the process.
 * hipErrorNotFound if no native kernel has that name. */
hipError_t soft_function_native(const char *name, struct soft_function **out);
/* The function that __hipRegisterFunction tied to a host address. */
hipError_t soft_function_for_host(const void *host, struct soft_function **out);
const struct greta_soft_kernel *soft_kernel_find(const char *name);
/* The function's native twin is kernel; NULL: it has none. */
void soft_function_set_native(struct soft_function *f, const struct greta_soft_kernel *kernel);
/* The lock of the native kernels. For forks. */
pthread_mutex_t *soft_kernel_lock(void);

/* ---- graph.c ------------------------------------------------------------------------------- */

/* Makes room for graphs; called once, at the start. */
void soft_graph_prepare(void);

/* ---- capture.c ----------------------------------------------------------------------------- */

/* soft_submit's, hipEventRecord's and hipStreamWaitEvent's part on a capturing stream. add takes op
 * over. wait also serves a stream that does not capture yet and thereby joins. */
hipError_t soft_capture_add(struct soft_stream *stream, struct soft_op *op);
hipError_t soft_capture_record(struct soft_stream *stream, struct soft_event *event);
hipError_t soft_capture_wait(struct soft_stream *stream, struct soft_event *event);
/* A call that HIP forbids while stream captures: invalidates the capture, returns the error. */
hipError_t soft_capture_refuse(struct soft_stream *stream);
/* The same for calls that wait for a whole device: refused while one of its streams captures, else
 * hipSuccess. */
hipError_t soft_capture_refuse_sync(void);
/* The same for calls that HIP calls unsafe during capture (hipMalloc, hipFree, hipMemcpy ...), as
 * this thread's capture mode and the modes of the captures under way say. */
hipError_t soft_capture_refuse_unsafe(void);
/* The stream is being destroyed, or the event: forget it. */
void soft_capture_abandon(struct soft_stream *stream);
void soft_capture_forget(struct soft_event *event);

/* ---- start.c ------------------------------------------------------------------------------- */

/* Starts the runtime on the first call of any function; cheap afterwards. */
hipError_t soft_start(void);
/* True in a child that was forked when the runtime had started, or was starting: nothing works, and
 * no lock may be touched. */
bool soft_is_forked(void);
/* 5, 6 or 7: which ABI the exported library speaks (src/soft/entry). */
int soft_hip_major(void);

#endif
