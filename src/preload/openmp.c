/* openmp.c - order among the threads of an OpenMP program.
 *
 * An OpenMP runtime makes its threads wait for each other by atomics, which threads.c cannot see.
 * But it offers itself to tools: it asks for ompt_start_tool() when it starts, and then calls back
 * where parallel regions, barriers, locks and tasks begin and end (OpenMP 5.0, chapter 4). LLVM's
 * runtime does, which is the one of hipcc; GNU's does not. There are no headers of it here: what is
 * needed of the interface is declared below.
 *
 * A region's data word stands for the region: who opens it releases it, each of its threads
 * acquires it when it begins. A barrier is released by all that come to it and then acquired by
 * all; a thread counts those that it has passed, so that each is an object of its own. So is a
 * task, from where it is made to where it runs; where it ends it releases the tasks of its region,
 * which whoever waits for tasks acquires: that orders no less than the rules do. */
#include <stddef.h>

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

/* Objects are numbers that no address is. A region has a range of them: itself, its tasks, and its
 * barriers, by turns. */
enum { REGION_TASKS = 1, REGION_BARRIERS = 2, REGION_NUMBERS = 32 };
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
