/* replay.h - the run, told again event by event; shared by the files of this folder, not an API.
 *
 *   replay.c        reads the events in order and hands each to the file that understands it
 *   replay_state.c  processes, threads, missing events, failing calls: what all files ask
 *   space.c         memory: what is alive, freed, named
 *   before.c        streams and threads: what is before what (HIP's rules are there)
 *   before_event.c  HIP events: what they put before what
 *   event_state.c   what a HIP event stands for since its last record
 *   host_fn.c       host functions and callbacks: what is before and after them
 *   values.c        streams that wait for values in memory: what they may order
 *   values_late.c   waits whose value is written by an operation that is queued later
 *   graph.c         captures and graphs: operations that run later, again and again
 *   op.c            an event as an operation: which bytes it reads and writes
 *   bounds.c        do the ranges of an operation lie where they may?
 *   peers.c         kernels that use the memory of another device
 *   caught.c        what checks of the device found in kernels
 *   fidelity.c      how instructions of machine code were executed
 *   touched.c       which bytes the device saw a launch touch
 *   launches.c      what the device states about launches: did they run, what was checked?
 *   races.c         accesses to the same bytes in no order, reads of bytes that nobody wrote;
 *                   race.h lists its parts
 *   overlap.c       one copy whose source and destination overlap
 *   handover.c      memory that passes from one host thread to another
 *   resources.c     streams, events, graphs, modules, registrations that are never released
 *   errors.c        failing calls: which one reported what, and whether the program looked at it
 *   fault_cause.c   where the device says that it failed, and why
 *   host_fault.c    host code that touched the device's memory
 *   findings.c      collects what was found
 *   ends.c          where the history of each process ends, and how
 *   stale.c         is it the binary, and the model, that it is believed to be?
 *   judge.c         makes the verdict; judge.h names its parts
 *
 * A function that runs out of memory sets replay.no_memory and continues as if nothing had
 * happened; the replay stops at the next event. */
#ifndef VERDICT_REPLAY_H
#define VERDICT_REPLAY_H

#include "base/arena.h"
#include "hip/hip_api.h"
#include "verdict/space.h"
#include "verdict/verdict.h"

/* ---- lanes, streams, threads: before.c ------------------------------------------------------- */

struct lane {
    uint32_t last;  /* number of its last operation */
    uint64_t *seqs; /* their events, by number - 1 */
    uint32_t seqs_room;
};

struct node_list {
    uint32_t *at;
    uint32_t count, room;
};

struct stream {
    uint32_t id; /* definition; 0: one that the recording does not name */
    struct space *space;
    uint32_t device;
    uint32_t lane;
    bool is_null, is_blocking; /* the legacy default stream; one that synchronises with it */
    bool destroyed;
    bool dirty;          /* has work that the device's default stream has not taken in */
    struct vclock clock; /* all that will have happened when its last operation is done */
    uint64_t version;    /* changes with clock */
    /* What clock has taken in already: versions of the default stream and of a thread. */
    uint64_t seen_null, seen_thread_version;
    uint32_t seen_thread;
    /* A capture it takes part in, and the nodes its next operation will depend on. */
    struct capture *capture;
    struct node_list frontier;
    uint64_t launches;     /* kernels given to it, those of graphs included */
    uint64_t ran;          /* of them: done, as the device says */
    uint32_t last_launch;  /* number of the last one in its lane; 0: none */
    uint32_t *chain_lanes; /* of branches of graphs launched here */
    uint32_t chain_count;
};

struct thread {
    uint32_t id;
    uint32_t device; /* the current one */
    struct space *space;
    bool seen, calls;        /* it has events; it made HIP calls */
    struct vclock known;     /* what has happened, as far as this thread can know */
    uint64_t version;        /* changes with known */
    struct vclock submitted; /* what threads have submitted, as far as this one can know */
    uint32_t submissions;    /* its own */
    uint64_t known_ns;       /* when it learned the last of it */
    uint64_t last, last_ns;
    bool last_pending;
    uint32_t host_fn_lane, host_fn_number; /* the host function it runs; number 0: none */
    uint64_t host_fn_begin; /* where that began, until it calls HIP; EVENT_NO_SEQ: in none */
    uint64_t read;          /* the failing call whose error it has read after other work */
    uint64_t last_work;     /* event of the last work it queued; EVENT_NO_SEQ: none */
    bool configured;        /* its last call took the configuration of a <<<...>>> launch */
    size_t failure; /* 1 + index of a failing call that it has not shown a reaction to; 0: none */
    /* The safe copy it is in: calls from the same place belong to it. */
    uint64_t safe;
    uint32_t safe_site, safe_tensor;
    int64_t safe_step, safe_layer;
    uint64_t safe_dst, safe_src, safe_len;
    uint64_t safe_op;         /* its copy; EVENT_NO_SEQ: not yet */
    struct graph *node_graph; /* a node was added by hand and its operation comes next */
    uint32_t node;
    bool node_opaque; /* the graph was before that node came */
};

/* A host function that was queued and has not returned. */
struct host_fn {
    struct vclock before;
    uint32_t lane, number;
};

/* What an event (of HIP) stands for since its last record. */
struct event_state {
    uint64_t record; /* event number of the record */
    struct vclock clock;
    struct capture *capture; /* recorded in this capture; NULL: not captured */
    struct node_list nodes;
};

/* ---- operations: op.c ------------------------------------------------------------------------ */

enum { USE_READ = 1, USE_WRITE = 2 };
enum use_flag {
    USE_VAGUE = 1,   /* a pointer: where it goes from there is unknown */
    USE_GUESSED = 2, /* and it may not be a pointer at all */
    USE_SHAPED = 4,  /* bytes come from sizes multiplied: a shape */
    USE_HOST = 8,    /* the call names this the host side */
    USE_DEVICE = 16, /* the device side */
    USE_BOUND = 32,  /* at most these bytes, not surely all of them */
    USE_SEEN = 64,   /* the device saw it; reads: before the launch itself had written there */
};

/* Bytes that an operation touches: slices of rows. */
struct use {
    uint64_t start, bytes; /* bytes of a row */
    uint64_t pitch, rows;  /* rows >= 1 */
    uint64_t slice, slices;
    uint8_t access;   /* USE_READ | USE_WRITE, 0: unknown */
    uint8_t flags;    /* enum use_flag */
    uint8_t argument; /* of a kernel, or EVENT_NO_ARGUMENT */
};

enum { USES_MAX = 256, ASTRAY_MAX = 16 };

/* Bytes of memory that is no allocation. */
struct astray {
    uint64_t start, bytes;
    bool writes;
};

struct op {
    uint64_t seq;    /* its event */
    uint64_t launch; /* the graph launch that runs it; EVENT_NO_SEQ: none */
    uint64_t t_ns;
    uint64_t hash; /* of a kernel's arguments; 0: unknown */
    uint32_t site, name, stream, thread;
    enum hip_fn fn; /* HIP_FN_COUNT: none, or one this build does not know */
    uint16_t kind, status;
    uint8_t what;      /* enum shadow_what */
    uint8_t copy_kind; /* hipMemcpyKind */
    bool async;
    bool known;   /* a launch: at least its buffers are known */
    bool exact;   /* all its bytes are */
    bool bounded; /* the device saw all of them; of some it tells only the range that holds them */
    bool strays;  /* it touched memory that is no allocation, such as a module's variable */
    bool wanders; /* and of some of that not which bytes is known: the rest is in astray */
    unsigned astray_count;
    struct astray astray[ASTRAY_MAX];
    unsigned count;
    struct use use[USES_MAX];
};

/* ---- findings: findings.c -------------------------------------------------------------------- */

enum { EVIDENCE_MAX = 6 };

struct found {
    enum verdict_hypothesis_id hypothesis;
    uint32_t also;
    uint64_t culprit, other, messenger; /* events; EVENT_NO_SEQ: none */
    uint64_t order;                     /* when it took place: the later of the events it needs */
    int argument;                       /* of the culprit; -1: none */
    uint32_t argument_name, tensor;     /* strings; 0: none */
    uint32_t kernel;                    /* of a culprit that has no event; 0: none */
    bool fault;                         /* the device itself says so */
    bool failed;                        /* the culprit, or its messenger, returned an error */
    bool culprit_writes, other_writes;
    uint64_t address, len; /* the bytes in question */
    bool has_block;
    struct block block;
    uint32_t process;
    struct space_name name; /* tensor in the block; bytes 0: none */
    uint64_t evidence[EVIDENCE_MAX];
    unsigned evidence_count;
    uint64_t count, key;
    uint64_t last[2];               /* culprit and other of the case that was counted last */
    uint64_t last_order;            /* and when */
    const struct sentence *said;    /* what happened */
    const struct sentence *advised; /* what to do; NULL: what its hypothesis says */
    /* The graph launches that ran the culprit and the other; 0: none. */
    uint64_t replay, other_replay;
};

struct findings {
    struct found *at;
    size_t count, room, max;
    uint64_t left_out;
    struct table by_key;
    const struct sentence **remarks;
    size_t remark_count, remark_room;
};

/* ---- failing calls: errors.c ----------------------------------------------------------------- */

struct failure {
    uint64_t seq, end_ns;
    uint64_t safe; /* the copy of the safe copy it is part of; EVENT_NO_SEQ: none */
    uint32_t thread, site;
    struct space *space;
    enum hip_fn fn;
    uint16_t kind, status;
    bool sticky;
    bool explained;    /* a finding says why */
    bool looked;       /* the program asked what the error was */
    bool harmless;     /* of a kind that programs expect: only a later read of it is a mistake */
    bool asked;        /* the program asked for its text after that read */
    bool made_again;   /* the same function succeeded next */
    bool went_on;      /* the program queued more work without asking */
    bool voiceless;    /* a <<<...>>> launch: only hipGetLastError() tells its result */
    bool dropped;      /* the program's code does not look at what the call returned */
    uint64_t surfaced; /* event where it came up again; EVENT_NO_SEQ: nowhere */
    uint64_t retry;    /* the same call from the same place, which failed too; EVENT_NO_SEQ: none */
};

/* Bytes that a call was to write, and did not, because it failed. */
enum { LOST_WRITES_MAX = 16 };
struct lost_write {
    struct space *space;
    uint64_t start, end;
    size_t failure;
};

/* The device's own word on a fault, which becomes whole when its messenger is known. */
enum { FAULTS_MAX = 64 };
struct fault {
    struct space *space;
    uint64_t seq, t_ns;
    size_t found; /* 1 + index of the finding, 0: left out */
};

/* ---- all of it ------------------------------------------------------------------------------- */

/* What the device states about launches: launches.c. How many there are of a kind, and the kernel
 * of the first of them (a string). */
struct launch_count {
    uint64_t count;
    uint32_t kernel;
};
struct launch_facts {
    uint64_t total;
    uint64_t machine; /* of them, those of machine code with every access checked */
    struct launch_count not_run, unfinished; /* did not run; are not known to have */
    unsigned reason;                         /* of the first that did not run: DETAIL_REASON_* */
    struct launch_count unchecked;           /* nothing says that their accesses were checked */
    struct launch_count front, behind;       /* guards leave out bytes before a buffer, after it */
    uint64_t front_bytes, behind_bytes;
    bool unpatterned;           /* and writes there are not noticed either */
    struct launch_count inside; /* got tensors inside of a block, whose ends have no guards */
    struct launch_count vague;  /* which bytes they touch is not known */
    struct launch_count unraced, unbarred; /* machine code; races, barriers not watched */
    struct launch_count unraced_grids;     /* and whose races no check sees: cooperative launches */
    struct launch_count unfollowed;        /* whose races were looked for, but not to the end */
    struct launch_count cut_short;         /* that ended in a fault */
    struct launch_count harmless;          /* with races that other orders showed not to matter */
    struct launch_count could;             /* of which the device could have checked more */
    struct launch_count undefined; /* that read a few unwritten bytes, which were not followed */
    bool follows_init;             /* the last one: values that nothing has defined are followed */
};

/* A stream's wait for a value in memory: values.c. */
struct value_wait {
    struct space *space;
    uint32_t lane, number;
    uint64_t over;  /* the first event before which a thread knew that it was over */
    uint64_t write; /* 1 + the write that ended it, if that is queued later; 0: not known */
    uint64_t met;   /* that write, once it has come; 0: not yet */
};

/* Two operations in no order as far as is known, while such a write is still to come. */
struct value_pair;

/* Slots [first, end) are missing. */
struct gap {
    uint64_t first, end;
};

struct replay {
    const reader *r;
    void (*settle)(struct space *s, struct block *b, void *replay); /* for struct space */
    /* Enters a finding about two operations in no order, unless something may order them. */
    void (*enter)(struct replay *r, struct space *s, const struct vclock *clock, struct found *f);
    const struct verdict_options *options;
    bool no_memory;
    struct reader_event *event, *other; /* the current one; room for another */
    struct reader_event *said;          /* room for statements: touched.c */
    struct op *op;                      /* room for an operation */
    uint64_t now_ns;
    enum hip_fn fn[EVENT_FN_MAX + 1]; /* the recording's function numbers in this build's */
    struct space **spaces;
    size_t space_count;
    struct table space_of;  /* by process */
    struct thread *threads; /* by definition number; [0]: unknown */
    size_t thread_count;
    struct stream **streams; /* by definition number; [0] unused */
    size_t stream_count;
    struct lane *lanes;
    uint32_t lane_count, lane_room;
    uint32_t *idle_lanes; /* of destroyed streams */
    uint32_t idle_count, idle_room;
    struct arena arena; /* for what lives as long as the replay */
    struct arena words; /* sentences of the current event; findings_add() keeps what it enters */
    struct capture *captures;
    struct findings found;
    struct failure *failures;
    size_t failure_count, failure_room;
    uint64_t failures_left_out;
    struct verdict_coverage seen;
    uint64_t checked[HYPOTHESIS_COUNT];
    uint64_t doubts[HYPOTHESIS_COUNT]; /* cases that could be neither confirmed nor refuted */
    const struct sentence *undecided[HYPOTHESIS_COUNT]; /* why, the first of them */
    const struct sentence
        *order_doubt; /* a way to order things that is not understood was used; NULL: none */
    const struct sentence *unclear; /* what keeps a run without findings from being CLEAN: the first
                                     * pair that such a way may order, or other open case */
    struct value_wait *value_waits;
    size_t value_wait_count;
    size_t values_to_come; /* waits whose write is queued later and has not been seen yet */
    struct value_pair *value_pairs;
    struct table values;     /* by wait: 1 + the write after which it ended, as the device says */
    struct table writes;     /* by such a write: its struct vclock, or &unwritten before it */
    struct vclock unwritten; /* empty */
    bool values_are_known;   /* the tables have been made */
    uint64_t gap;     /* what came before this event and what comes after cannot be compared */
    struct gap *gaps; /* all of them, ascending */
    size_t gap_count, gap_room;
    uint64_t host_syncs;       /* HOST_RELEASE and HOST_ACQUIRE */
    uint64_t unknown_beside;   /* operations that ran beside launches nothing is known about */
    uint64_t registered_async; /* asynchronous copies with registered memory */
    uint64_t foreign;          /* addresses that were used and never allocated */
    bool strayed;              /* of those, launches that touched variables */
    const char *unfollowed;    /* a function whose work is not followed; NULL: none */
    bool partial;              /* the program also calls the runtime directly */
    struct launch_facts launches;
    struct table touched;  /* by launch: 1 + the number of its TOUCHED */
    bool touched_is_known; /* the table has been made */
    uint64_t touched_rows; /* of patterns in them, as far as they were applied row by row */
    uint64_t host_open;    /* operations that used host memory while the program went on */
    uint64_t host_first;   /* the first of them */
    bool no_room;          /* more host memory was in use than could be watched */
    struct fault faults[FAULTS_MAX];
    size_t fault_count;
    uint64_t faults_seen;
    struct fidelity {
        struct verdict_fidelity seen;
        struct name_list {
            const char **at; /* ascending; of `arena` */
            size_t count, room;
            struct table read; /* strings whose names are in it, by number */
        } names[VERDICT_EXACTNESS_COUNT];
    } fidelity;
    struct lost_write lost[LOST_WRITES_MAX];
    size_t lost_count;
    uint64_t calls;
};

/* Marks that memory ran out; returns false. */
static inline bool replay_no_memory(struct replay *r) {
    r->no_memory = true;
    return false;
}

/* Runs through the recording. */
void replay_run(struct replay *r);
void replay_free(struct replay *r);

/* ---- replay_state.c -------------------------------------------------------------------------- */

/* Counts an operation among those that were seen. */
void replay_count_work(struct replay *r, const struct op *op);
/* Counts the pinned memory of a copy that may outlast its call. */
void replay_count_host_memory(struct replay *r, const struct op *op, struct space *s);
/* The operation may still run when its call has returned; notes the host memory that it uses. */
void replay_note_host_use(struct replay *r, const struct op *op, struct space *s);
/* The failing call with that event, NULL if there is none. */
struct failure *replay_failure(struct replay *r, uint64_t seq);
/* Are events missing between the two, as far as the replay has come? */
bool replay_is_torn(const struct replay *r, uint64_t from, uint64_t to);

struct thread *replay_thread(struct replay *r, uint32_t id);
/* A variable of the device's is known from here on, unless it was before. */
void replay_symbol(struct replay *r, const struct reader_event *e, struct thread *t);

/* ---- peers.c --------------------------------------------------------------------------------- */

/* Any call: it may give access to the memory of another device. */
void peers_on_call(const struct replay *r, const struct reader_event *e, struct thread *t);
/* A launch on that stream: may its device reach what it uses? */
void peers_check(struct replay *r, const struct op *op, struct thread *t, const struct stream *s);

/* ---- fidelity.c ------------------------------------------------------------------------------ */

/* The device states how the instructions of a launch were executed. */
void fidelity_on_event(struct replay *r, const struct reader_event *e);
void fidelity_close(struct replay *r);

/* ---- caught.c -------------------------------------------------------------------------------- */

/* What a check of the device found in a kernel. */
void caught_on_event(struct replay *r, const struct reader_event *e, struct thread *t);

/* ---- touched.c ------------------------------------------------------------------------------- */

/* For a launch, or a graph's operation (op->launch), whose every access the device saw: replaces
 * what its arguments say by the bytes it touched. e is the call, or the call that was captured or
 * that added the node; handle that of the node, if it is known. Leaves the operation as it is where
 * the recording does not have them. */
void touched_apply(struct replay *r, const struct reader_event *e, struct op *op, uint64_t handle);

/* ---- before.c ------------------------------------------------------------------------------ */

/* The stream of that number; made from its definition when first met. Never NULL unless memory ran
 * out. t: the thread that uses it. */
struct stream *before_stream(struct replay *r, uint32_t id, struct thread *t);

/* A new lane; one of a destroyed stream is used again if t has waited for all of it. */
bool before_new_lane(struct replay *r, const struct thread *t, uint32_t *lane);

/* What comes next in the stream is after all that HIP's rules put before it: s->clock says what. */
void before_enter(struct replay *r, struct stream *s, struct thread *t);
/* It is an operation with this event; returns its number. */
uint32_t before_number(struct replay *r, uint32_t lane);
void before_done(struct replay *r, struct vclock *clock, uint32_t lane, uint64_t seq);
/* Marks that the stream has new work, for the default stream's rules. */
void before_changed(struct replay *r, struct stream *s);

/* The thread has waited: for all streams of a device (negative: of all), for a clock. end_ns: when.
 */
void before_wait_device(struct replay *r, struct thread *t, int device, uint64_t end_ns);
void before_wait_clock(struct replay *r, struct thread *t, const struct vclock *clock,
                       uint64_t end_ns);

/* True if the operation was over, by wall-clock time, when t made its present call, although
 * no order that the recording shows says so. clock then takes that in. */
bool before_by_time(struct replay *r, struct thread *t, struct vclock *clock, uint32_t lane,
                    uint32_t number);

/* A call that has not returned has no successor in its thread; if it has, its end is lost. */
bool before_succeeded(const struct event *e);

/* Events of these kinds. */
void before_on_stream_create(struct replay *r, const struct reader_event *e, struct thread *t);
void before_on_stream_destroy(struct replay *r, const struct reader_event *e, struct thread *t);
void before_on_sync(struct replay *r, const struct reader_event *e, struct thread *t);
void before_on_host(struct replay *r, const struct reader_event *e, struct thread *t);

/* before_event.c */
void before_on_event(struct replay *r, const struct reader_event *e, struct thread *t);
void before_on_host_fn(struct replay *r, const struct reader_event *e, struct thread *t);

/* ---- event_state.c ----------------------------------------------------------------------------
 */

/* A new event of the space under that handle; NULL without memory. */
struct event_state *event_state_new(struct replay *r, struct space *s, uint64_t handle);
void event_state_free(struct event_state *ev); /* ev may be NULL */
/* A node of a graph that runs, after what clock has: does it record an event or wait for one?
 * changed: the node was given another event since, which is not known. */
bool event_state_on_node(struct replay *r, const struct reader_event *e, bool changed,
                         struct space *s, struct vclock *clock);

/* ---- host_fn.c ------------------------------------------------------------------------------- */

/* The function of that event becomes the next operation of the lane; clock: what is before it. */
void host_fn_queued(struct replay *r, struct space *s, uint64_t seq, uint32_t lane,
                    const struct vclock *clock);
/* HOST_FN_BEGIN and HOST_FN_END. */
void host_fn_on_event(struct replay *r, const struct reader_event *e, struct thread *t);
/* Any event: a call of HIP from inside a host function? */
void host_fn_on_call(struct replay *r, const struct reader_event *e, struct thread *t);
/* The clock that the operation left here; NULL: none. */
const struct vclock *host_fn_clock_of(const struct space *s, const struct shadow_mark *op);
/* An operation, and all that is before it. */
void host_fn_note_op(struct replay *r, struct space *s, const struct op *op,
                     const struct shadow_mark *me, const struct vclock *clock);
/* Does t run a host function that the operation comes after? */
bool host_fn_is_before(const struct thread *t, const struct shadow_mark *op);
void host_fn_free_space(struct space *s);

/* ---- values.c -------------------------------------------------------------------------------- */

void values_on_wait(struct replay *r, const struct reader_event *e, struct thread *t);
/* After an operation that may be hipStreamWriteValue. */
void values_on_write(struct replay *r, const struct reader_event *e, struct thread *t);
void values_close(struct replay *r);

/* ---- values_late.c --------------------------------------------------------------------------- */

/* Such a write has come, and this is all that is before the waits for it. */
void values_late_met(struct replay *r, uint64_t write, const struct vclock *clock);
/* Keeps a finding about the operations `me`, which has clock before it, and `other` as long as such
 * writes are to come: they may put the two in order. Without `other` it is a read of the found
 * bytes, which nothing had written. False if no write is to come: nothing is kept. */
bool values_late_keep(struct replay *r, struct space *s, const struct found *f,
                      const struct shadow_mark *me, const struct vclock *clock,
                      const struct shadow_mark *other);
/* Nothing comes any more: what is kept is entered. */
void values_late_finish(struct replay *r);
void values_late_close(struct replay *r);
/* The thread queues an operation, or touches memory, at this event. */
void values_on_access(struct replay *r, const struct thread *t, uint64_t seq);
/* May a wait for a value be what puts the operation with event `first` before that with event
 * `last`, which has clock before it? clock NULL: that is not known. */
bool values_may_order(const struct replay *r, const struct space *s, const struct vclock *clock,
                      uint64_t first, uint64_t last);

/* ---- graph.c --------------------------------------------------------------------------------- */

void graph_on_event(struct replay *r, const struct reader_event *e, struct thread *t);
/* A captured operation. */
void graph_add_op(struct replay *r, const struct op *op, struct thread *t);
/* The event says what the node does that the thread has just added. */
void graph_set_node(struct thread *t, uint64_t seq);
/* A record or a wait that belongs to a capture; false if it does not. */
bool graph_on_record(struct replay *r, struct stream *s, struct event_state *ev);
bool graph_on_wait(struct replay *r, struct stream *s, struct event_state *ev);
/* Host memory was given back: perhaps that of a captured operation. */
void graph_on_host_free(struct replay *r, const struct reader_event *e, struct thread *t);
/* Which node of the launched graph the device means in a statement about the launch: the one that
 * it names (EXTRA_NODE), else one whose operation has that name, the one with memory nearest to the
 * address if there are several; its event, or EVENT_NO_SEQ. */
uint64_t graph_find_op(struct replay *r, struct space *s, const struct reader_event *said,
                       uint64_t launch, uint64_t address);
void graph_free(struct replay *r);
void graph_free_space(struct space *s);

/* ---- op.c ------------------------------------------------------------------------------------ */

/* Fills *op from an event of a kind that works on memory; false if it is none. */
bool op_read(const struct replay *r, const struct reader_event *e, struct op *op);
/* One past the last byte, 0 if that wraps. */
uint64_t use_end(const struct use *u);

/* ---- bounds.c -------------------------------------------------------------------------------- */

/* Checks all ranges of an operation that is about to run, or that failed. */
void bounds_check(struct replay *r, const struct op *op, struct thread *t);
/* A call that failed, and whose result alone says why; after the last event. */
void bounds_on_refusal(struct replay *r, const struct op *op, struct thread *t);
void bounds_on_free(struct replay *r, const struct reader_event *e, struct thread *t);
void bounds_on_refused(struct replay *r, const struct reader_event *e, struct thread *t);
/* host_fault.c: a bad access of host code. */
void host_fault_on_event(struct replay *r, const struct reader_event *e, struct thread *t);
/* Is this side of a copy plain host memory? */
bool bounds_is_pageable(struct replay *r, struct space *s, const struct use *u);

/* ---- launches.c ------------------------------------------------------------------------------ */

/* A launch is given to a stream; e has its extras. */
void launches_on_run(struct replay *r, const struct reader_event *e, const struct op *op,
                     struct thread *t, struct stream *s);
/* A launch was asked for and failed. */
void launches_on_failure(struct replay *r, const struct op *op, struct thread *t);
/* The device did not look for races to the end of a launch (CAUGHT). */
void launches_on_unfollowed(struct replay *r, const struct reader_event *e);
/* It found races in a launch that do not matter (CAUGHT). */
void launches_on_harmless(struct replay *r, const struct reader_event *e);
/* A launch ended in a fault; EVENT_NO_SEQ: it is not known which. */
void launches_on_fault(struct replay *r, uint64_t launch);
/* The launch that was last told of reads bytes that nothing has written, too few to be a finding.
 */
void launches_on_undefined(struct replay *r, const struct op *op);
/* RAN, NOT_RUN, SLACK. */
void launches_on_event(struct replay *r, const struct reader_event *e, struct thread *t);
/* After the last event. */
void launches_finish(struct replay *r);

/* ---- races.c --------------------------------------------------------------------------------- */

/* The operation runs as number of lane, with clock before it. */
void races_check(struct replay *r, const struct op *op, struct thread *t, uint32_t lane,
                 uint32_t number, struct vclock *clock);
/* Something runs as number of lane, and nothing is known about what it touches. */
void races_unknown(struct replay *r, uint64_t seq, struct thread *t, uint32_t lane, uint32_t number,
                   const struct vclock *clock);
/* A block comes into being or goes in the order of a stream. */
void races_on_async_memory(struct replay *r, const struct reader_event *e, struct thread *t,
                           struct block *b, bool frees);
/* race_host.c: the host reads, writes or gives back memory. */
void race_host_on_access(struct replay *r, const struct reader_event *e, struct thread *t);
/* race_vague.c: the block goes, and with it the wait for signs. For struct space. */
void race_vague_settle(struct space *s, struct block *b, void *replay);
/* race.c: for `enter`. */
void race_enter(struct replay *r, struct space *s, const struct vclock *clock, struct found *f);

/* ---- overlap.c ------------------------------------------------------------------------------- */

void overlap_check(struct replay *r, const struct op *op, struct thread *t);

/* ---- handover.c ------------------------------------------------------------------------------ */

/* THREAD_START, HOST_RELEASE, HOST_ACQUIRE. */
void handover_on_host(struct replay *r, const struct reader_event *e, struct thread *t);
void handover_on_host_fn(struct replay *r, const struct reader_event *e, struct thread *t);
/* The thread submits an operation. */
void handover_on_op(struct replay *r, const struct op *op, struct thread *t);

/* ---- resources.c ----------------------------------------------------------------------------- */

void resources_on_event(struct replay *r, const struct reader_event *e, struct thread *t);
/* After the last event. failed: the run ended on an error. */
void resources_finish(struct replay *r, bool failed);
void resources_free_space(struct space *s);

/* ---- errors.c -------------------------------------------------------------------------------- */

/* Every event of a call passes here once, before it is replayed. */
void errors_on_event(struct replay *r, const struct reader_event *e, struct thread *t);
void fault_on_event(struct replay *r, const struct reader_event *e, struct thread *t);
/* An operation ran: did it read what a failed call should have written? */
void errors_on_op(struct replay *r, const struct op *op, struct thread *t);
void errors_on_dropped(struct replay *r, const struct reader_event *e);
/* A call failed that would have written these bytes. */
void errors_lost_write(struct replay *r, const struct op *op, struct thread *t);
/* The device of the thread was reset, and its error is gone. */
void errors_on_reset(struct replay *r, struct thread *t);
/* After the last event: messengers for faults, unchecked errors. */
void errors_finish(struct replay *r);

/* ---- findings.c ------------------------------------------------------------------------------ */

/* Enters what was found, or counts it where the same was found at the same place. Returns the
 * entry, NULL if it is left out. f->said is filled by the caller. */
struct found *findings_add(struct replay *r, struct found *f);
void findings_evidence(struct found *f, uint64_t seq);
/* A call that failed by its own fault, at this address: it is culprit and messenger in one. */
struct found findings_of_call(const struct reader_event *e, enum verdict_hypothesis_id hypothesis,
                              uint64_t address);
/* Fills in block, tensor and process. */
void findings_set_block(struct replay *r, struct found *f, const struct space *s,
                        const struct block *b, uint64_t address);
void findings_free(struct findings *f);

/* A case of the hypothesis that cannot be decided, and why. */
void findings_undecided(struct replay *r, enum verdict_hypothesis_id id,
                        const struct sentence *why);
/* The same, where it is the program that leaves it open and not how little is known of its kernels:
 * such a run is not CLEAN. */
void findings_unclear(struct replay *r, enum verdict_hypothesis_id id, const struct sentence *why);
/* A sentence that is no finding. */
void findings_note(struct replay *r, const struct sentence *said);
/* Makes a sentence last as long as the replay. */
const struct sentence *findings_keep(struct replay *r, const struct sentence *said);

/* How an event is called in sentences; findings_op() names the graph launch that runs a captured
 * operation, too. */
const struct sentence *findings_event(struct replay *r, uint64_t seq);
const struct sentence *findings_op(struct replay *r, const struct op *op);
const struct sentence *findings_replayed(struct replay *r, uint64_t seq, uint64_t replay);
/* "tensor logits (4 KiB)", "a block of 4 KiB"; name may be NULL. */
const struct sentence *findings_memory(struct replay *r, const char *name, uint64_t bytes);
/* The same of a block, or "a device variable of 4 KiB". */
const struct sentence *findings_block(struct replay *r, const struct block *b);

/* ---- actors.c ---------------------------------------------------------------------------------
 * Plain data for the verdict, in its arena; on failure r->no_memory. */

/* Never NULL. */
const char *actors_text(struct replay *r, struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The name of a kernel's argument, by the string that is its symbol; NULL: unknown. */
const char *actors_argument(struct replay *r, struct arena *a, uint32_t kernel, int argument);
struct verdict_actor actors_make(struct replay *r, struct arena *a, uint64_t seq);
struct verdict_block actors_block(struct replay *r, struct arena *a, const struct block *b,
                                  uint32_t process, const struct space_name *name);
struct verdict_finding actors_finding(struct replay *r, struct arena *a, const struct found *f);

/* ---- ends.c ---------------------------------------------------------------------------------- */

/* Which processes came to their end, by all that the recording says. */
void ends_settle(struct replay *r);
/* How many calls there were, how the run ended, and where the history does. */
void ends_fill(struct replay *r, struct arena *a, struct verdict_coverage *c);

/* ---- stale.c --------------------------------------------------------------------------------- */

/* Compares what was expected with what the processes say; true if something differs. */
bool stale_check(struct replay *r);
/* What the recording says about its first program; "" where it does not. */
struct stale_facts {
    const char *commit, *build_id, *model_hash;
    bool dirty;
};
void stale_describe(const struct replay *r, struct stale_facts *out);

#endif
