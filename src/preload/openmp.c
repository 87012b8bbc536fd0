/* openmp.c - order among the threads of an OpenMP program.
 *
 * An OpenMP runtime makes its threads wait for each other by atomics, which threads.c cannot see.
 * But it has an interface for tools: it looks for ompt_start_tool() when it starts, and then calls
 * back where parallel regions, barriers, locks and tasks begin and end (OpenMP 5.0, chapter 4).
 * LLVM's runtime, which hipcc uses, has that interface; the parts of it that are needed are
 * declared below, so that no headers are needed. GNU's runtime lacks it, but code compiled by gcc
 * enters it through a few functions, which are exported here instead; tasks are not covered there.
 *
 * A region's data word stands for the region: the thread that opens it releases it, and each of its
 * threads acquires it at its start. A barrier is released by every thread that reaches it and
 * acquired by every thread that leaves it; threads count the barriers they have passed, so that
 * each is a separate object. So is a task, released where it is created and acquired where it runs.
 * When it ends it releases the tasks of its region, which a thread that waits for tasks acquires.
 * This orders at least as much as OpenMP does. */
#include <stddef.h>

#include "preload/next.h"
#include "preload/preload.h"
#include "preload/threads.h"

/* ---- the interface --------------------------------------------------------------------------- */

union data {
    uint64_t value;
    void *pointer;
};
typedef void (*callback)(void);
typedef callback (*lookup)(const char *name);
typedef int (*set_callback)(int event, callback function);

enum {
    PARALLEL_BEGIN = 3,
    TASK_CREATE = 5,
    TASK_SCHEDULE = 6,
    IMPLICIT_TASK = 7,
    MUTEX_RELEASED = 17,
    SYNC_REGION = 23,
    MUTEX_ACQUIRED = 27,
};
enum { SCOPE_BEGIN = 1, SCOPE_END = 2, TASK_INITIAL = 1, TASK_COMPLETE = 1 };
enum { SYNC_TASKWAIT = 5, SYNC_TASKGROUP = 6, SYNC_REDUCTION = 7 }; /* others are barriers */

struct start {
    int (*initialize)(lookup find, int device, union data *data);
    void (*finalize)(union data *data);
    union data data;
};

/* ---- callbacks ------------------------------------------------------------------------------- */

/* Objects are numbers that are never addresses. A region has a range of them: for itself, its
 * tasks, its end, and its barriers, whose numbers are reused in turn. */
enum { REGION_TASKS = 1, REGION_END = 2, REGION_BARRIERS = 3, REGION_NUMBERS = 32 };
static const uint64_t OPENMP = UINT64_C(1) << 60;
static _Atomic uint64_t last_number;
static __thread uint64_t region __attribute__((tls_model("initial-exec")));
static __thread uint64_t barriers __attribute__((tls_model("initial-exec")));

static const void *object(uint64_t number) {
    return (const void *)(uintptr_t)number; /* NOLINT(performance-no-int-to-ptr): a name */
}

static uint64_t new_numbers(void) {
    return OPENMP | (REGION_NUMBERS +
                     atomic_fetch_add_explicit(&last_number, REGION_NUMBERS, memory_order_relaxed));
}

static void on_parallel_begin(union data *task, const void *frame, union data *parallel,
                              unsigned threads, int flags, const void *caller) {
    (void)task, (void)frame, (void)threads, (void)flags;
    parallel->value = new_numbers();
    threads_release(object(parallel->value), caller);
}

static void on_implicit_task(int endpoint, union data *parallel, union data *task, unsigned threads,
                             unsigned index, int flags) {
    (void)task, (void)threads, (void)index;
    if (flags & TASK_INITIAL || endpoint != SCOPE_BEGIN || !parallel)
        return;
    region = parallel->value;
    barriers = 0;
    threads_acquire(object(region), NULL);
}

static void on_sync_region(int kind, int endpoint, union data *parallel, union data *task,
                           const void *caller) {
    (void)parallel, (void)task;
    bool tasks = kind == SYNC_TASKWAIT || kind == SYNC_TASKGROUP;
    if (!region || kind == SYNC_REDUCTION)
        return;
    uint64_t number =
        region +
        (tasks ? REGION_TASKS : REGION_BARRIERS + barriers % (REGION_NUMBERS - REGION_BARRIERS));
    if (endpoint == SCOPE_BEGIN && !tasks)
        threads_release(object(number), caller);
    if (endpoint == SCOPE_END)
        threads_acquire(object(number), caller);
    barriers += endpoint == SCOPE_END && !tasks;
}

static void on_mutex_acquired(int kind, uint64_t lock, const void *caller) {
    (void)kind;
    threads_acquire(object(lock), caller);
}

static void on_mutex_released(int kind, uint64_t lock, const void *caller) {
    (void)kind;
    threads_release(object(lock), caller);
}

static void on_task_create(union data *task, const void *frame, union data *made, int flags,
                           int dependences, const void *caller) {
    (void)task, (void)frame, (void)flags, (void)dependences;
    made->value = new_numbers();
    threads_release(object(made->value), caller);
}

static void on_task_schedule(union data *before, int status, union data *next) {
    if (status == TASK_COMPLETE && region)
        threads_release(object(region + REGION_TASKS), NULL);
    (void)before;
    if (next && next->value)
        threads_acquire(object(next->value), NULL);
}

/* ---- GNU's runtime --------------------------------------------------------------------------- */

typedef void (*body)(void *data);
struct gnu_region {
    body run;
    void *data;
    uint64_t number;
};

static struct gnu_region gnu_begin(body run, void *data, const void *caller) {
    struct gnu_region g = { run, data, new_numbers() };
    threads_release(object(g.number), caller);
    return g;
}

static void gnu_end(const struct gnu_region *g, const void *caller) {
    threads_acquire(object(g->number + REGION_END), caller);
}

/* What each thread of the region runs. The one that opened it then returns to the outer region. */
static void gnu_run(void *data) {
    const struct gnu_region *g = data;
    uint64_t outer = region, passed = barriers;
    region = g->number;
    barriers = 0;
    threads_acquire(object(region), NULL);
    g->run(g->data);
    threads_release(object(g->number + REGION_END), NULL);
    region = outer;
    barriers = passed;
}

#define CALLER __builtin_return_address(0)

#define GNU_PARALLEL(name, params, args)                                                           \
    PRELOAD_EXPORT void name params;                                                               \
    PRELOAD_EXPORT void name params {                                                              \
        struct gnu_region g = gnu_begin(run, data, CALLER);                                        \
        NEXT(name) args;                                                                           \
        gnu_end(&g, CALLER);                                                                       \
    }
#define GNU_LOOP(kind)                                                                             \
    GNU_PARALLEL(GOMP_parallel_loop_##kind,                                                        \
                 (body run, void *data, unsigned threads, long start, long end, long step,         \
                  long chunk, unsigned flags),                                                     \
                 (gnu_run, &g, threads, start, end, step, chunk, flags))
#define GNU_LOOP_RUNTIME(kind)                                                                     \
    GNU_PARALLEL(                                                                                  \
        GOMP_parallel_loop_##kind,                                                                 \
        (body run, void *data, unsigned threads, long start, long end, long step, unsigned flags), \
        (gnu_run, &g, threads, start, end, step, flags))
GNU_PARALLEL(GOMP_parallel, (body run, void *data, unsigned threads, unsigned flags),
             (gnu_run, &g, threads, flags))
GNU_PARALLEL(GOMP_parallel_sections,
             (body run, void *data, unsigned threads, unsigned count, unsigned flags),
             (gnu_run, &g, threads, count, flags))
GNU_LOOP(static)
GNU_LOOP(dynamic)
GNU_LOOP(guided)
GNU_LOOP(nonmonotonic_dynamic)
GNU_LOOP(nonmonotonic_guided)
GNU_LOOP_RUNTIME(runtime)
GNU_LOOP_RUNTIME(nonmonotonic_runtime)
GNU_LOOP_RUNTIME(maybe_nonmonotonic_runtime)

/* A barrier, or the end of a loop or of sections that is one. */
#define GNU_BARRIER(name)                                                                          \
    PRELOAD_EXPORT void name(void);                                                                \
    PRELOAD_EXPORT void name(void) {                                                               \
        const void *met =                                                                          \
            object(region + REGION_BARRIERS + barriers % (REGION_NUMBERS - REGION_BARRIERS));      \
        if (region)                                                                                \
            threads_release(met, CALLER);                                                          \
        NEXT(name)();                                                                              \
        if (region)                                                                                \
            threads_acquire(met, CALLER);                                                          \
        barriers++;                                                                                \
    }
GNU_BARRIER(GOMP_barrier)
GNU_BARRIER(GOMP_loop_end)
GNU_BARRIER(GOMP_sections_end)

/* Critical sections. All without a name share one lock, as do atomics compiled to calls. */
#define GNU_LOCK(start, end, params, args, lock)                                                   \
    PRELOAD_EXPORT void start params;                                                              \
    PRELOAD_EXPORT void start params {                                                             \
        NEXT(start) args;                                                                          \
        threads_acquire(lock, CALLER);                                                             \
    }                                                                                              \
    PRELOAD_EXPORT void end params;                                                                \
    PRELOAD_EXPORT void end params {                                                               \
        threads_release(lock, CALLER);                                                             \
        NEXT(end) args;                                                                            \
    }
GNU_LOCK(GOMP_critical_start, GOMP_critical_end, (void), (), object(OPENMP | 1))
GNU_LOCK(GOMP_atomic_start, GOMP_atomic_end, (void), (), object(OPENMP | 2))
GNU_LOCK(GOMP_critical_name_start, GOMP_critical_name_end, (void **name), (name), name)
GNU_LOCK(omp_set_lock, omp_unset_lock, (void *lock), (lock), lock)

/* ---- start ----------------------------------------------------------------------------------- */

static int initialize(lookup find, int device, union data *data) {
    (void)device, (void)data;
    set_callback set = (set_callback)find("ompt_set_callback");
    if (!set)
        return 0;
    set(PARALLEL_BEGIN, (callback)on_parallel_begin);
    set(IMPLICIT_TASK, (callback)on_implicit_task);
    set(SYNC_REGION, (callback)on_sync_region);
    set(MUTEX_ACQUIRED, (callback)on_mutex_acquired);
    set(MUTEX_RELEASED, (callback)on_mutex_released);
    set(TASK_CREATE, (callback)on_task_create);
    set(TASK_SCHEDULE, (callback)on_task_schedule);
    return 1;
}

static void finalize(union data *data) {
    (void)data;
}

PRELOAD_EXPORT struct start *ompt_start_tool(unsigned version, const char *runtime);
PRELOAD_EXPORT struct start *ompt_start_tool(unsigned version, const char *runtime) {
    static struct start start = { initialize, finalize, { 0 } };
    (void)version, (void)runtime;
    return &start;
}
