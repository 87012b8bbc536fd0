#include "support/soft_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "hip/hip_load.h"

enum { SEEDS = SOFT_TSAN ? 20 : SOFT_ASAN ? 30 : 100, LAZY_RUNS = 5 };
enum { JOBS_MAX = 64, LIMIT_S = 120 };
enum { EXIT_RIGHT = 0, EXIT_FAILED = 1, EXIT_WRONG = 42 };

/* The first finding ends a child, also without tests/run; and a child does not sleep at its end. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "halt_on_error=1:atexit_sleep_ms=0";
}

static struct hip_runtime runtime;
const struct hip_api *hip = &runtime.api;
void *soft_library;
int soft_abi;

/* ---- children ------------------------------------------------------------------------------ */

struct child {
    pid_t pid;
    int output; /* a memory file */
    char settings[160];
};

static void set_environment(const char *settings) {
    static const char *const known[] = {
        "GRETA_SOFT_SCHEDULE",  "GRETA_SOFT_FAULT",   "GRETA_SOFT_DEVICES", "GRETA_SOFT_MEMORY",
        "GRETA_SOFT_CHECK",     "GRETA_SOFT_THREADS", "GRETA_SOFT_PIN",     "HIP_VISIBLE_DEVICES",
        "AMD_SERIALIZE_KERNEL", "AMD_SERIALIZE_COPY", "HIP_LAUNCH_BLOCKING"
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        unsetenv(known[i]);
    char copy[160], *rest = copy;
    snprintf(copy, sizeof copy, "%s", settings);
    for (char *word; (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = '\0';
        setenv(word, value, 1);
    }
}

static void child_main(soft_program program, const struct child *c) __attribute__((noreturn));
static void child_main(soft_program program, const struct child *c) {
    struct rlimit no_core = { 0, 0 };
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(c->output, STDOUT_FILENO);
    dup2(c->output, STDERR_FILENO);
    alarm(LIMIT_S);
    set_environment(c->settings);
    bool right = program();
    fflush(NULL);
    _exit(right ? EXIT_RIGHT : EXIT_WRONG);
}

static void start(struct child *c, soft_program program) {
    c->output = memfd_create("output", MFD_CLOEXEC);
    if (c->output < 0)
        fail_msg("memfd_create: %s", strerror(errno));
    fflush(NULL);
    c->pid = fork();
    if (c->pid < 0)
        fail_msg("fork: %s", strerror(errno));
    if (c->pid == 0)
        child_main(program, c);
}

/* The child that waitpid(pid) found ended. */
static struct soft_outcome finish(struct child *c, int status) {
    struct soft_outcome o = { .status = status };
    ssize_t n = pread(c->output, o.output, sizeof o.output - 1, 0);
    o.output[n > 0 ? n : 0] = '\0';
    close(c->output);
    o.right = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_RIGHT;
    o.wrong = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_WRONG;
    c->pid = 0;
    return o;
}

static struct soft_outcome await(struct child *c) {
    int status = 0;
    while (waitpid(c->pid, &status, 0) < 0)
        if (errno != EINTR)
            fail_msg("waitpid: %s", strerror(errno));
    return finish(c, status);
}

static const char *how_it_ended(const struct soft_outcome *o, char text[64]) {
    if (WIFSIGNALED(o->status) && WTERMSIG(o->status) == SIGALRM)
        snprintf(text, 64, "did not end in %d s", LIMIT_S);
    else if (WIFSIGNALED(o->status))
        snprintf(text, 64, "ended by signal %d", WTERMSIG(o->status));
    else if (o->right || o->wrong)
        snprintf(text, 64, "saw a %s result", o->right ? "right" : "wrong");
    else
        snprintf(text, 64, "failed");
    return text;
}

/* What a run must be. */
enum wanted { WANT_RIGHT, WANT_WRONG, WANT_EITHER };

static bool is_wanted(const struct soft_outcome *o, enum wanted wanted) {
    return (o->right && wanted != WANT_WRONG) || (o->wrong && wanted != WANT_RIGHT);
}

/* ---- many runs ----------------------------------------------------------------------------- */

struct schedule {
    const char *name; /* with a %u for the seed */
    unsigned runs;
    enum wanted wanted;
};

struct batch {
    soft_program program;
    const char *settings;
    struct child child[JOBS_MAX];
    enum wanted wanted[JOBS_MAX];
    unsigned jobs, running;
    char problem[9000]; /* the first one; then nothing more is started */
};

static void reap(struct batch *b) {
    int status;
    pid_t pid = waitpid(-1, &status, 0);
    for (unsigned i = 0; i < b->jobs; i++) {
        struct child *c = &b->child[i];
        if (c->pid != pid || pid <= 0)
            continue;
        struct soft_outcome o = finish(c, status);
        char ended[64];
        b->running--;
        if (!is_wanted(&o, b->wanted[i]) && !*b->problem)
            snprintf(b->problem, sizeof b->problem, "%s: the program %s%s%s", c->settings,
                     how_it_ended(&o, ended), *o.output ? ":\n" : "", o.output);
    }
}

static void launch_one(struct batch *b, const struct schedule *s, unsigned seed) {
    while (b->running == b->jobs)
        reap(b);
    unsigned i = 0;
    while (b->child[i].pid)
        i++;
    struct child *c = &b->child[i];
    char name[40];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(name, sizeof name, s->name, seed);
#pragma GCC diagnostic pop
    snprintf(c->settings, sizeof c->settings, "GRETA_SOFT_SCHEDULE=%s %s", name,
             b->settings ? b->settings : "");
    b->wanted[i] = s->wanted;
    start(c, b->program);
    b->running++;
}

static void run_all(soft_program program, const char *settings, unsigned jobs,
                    const struct schedule *schedules, size_t count) {
    static struct batch b;
    b = (struct batch){ .program = program,
                        .settings = settings,
                        .jobs = jobs < JOBS_MAX ? jobs : JOBS_MAX };
    for (size_t i = 0; i < count; i++)
        for (unsigned seed = 0; seed < schedules[i].runs && !*b.problem; seed++)
            launch_one(&b, &schedules[i], seed);
    while (b.running)
        reap(&b);
    if (*b.problem)
        fail_msg("%s", b.problem);
}

void soft_right_with(soft_program program, const char *settings, unsigned jobs) {
    static const struct schedule schedules[] = {
        { "fast", 3, WANT_RIGHT },
        { "eager", 2, WANT_RIGHT },
        { "lazy", 2, WANT_RIGHT },
        { "random:%u", SEEDS, WANT_RIGHT },
    };
    run_all(program, settings, jobs, schedules, sizeof schedules / sizeof *schedules);
}

void soft_right(soft_program program) {
    soft_right_with(program, NULL, SOFT_JOBS);
}

void soft_right_waiting(soft_program program) {
    soft_right_with(program, NULL, SOFT_JOBS_WAITING);
}

void soft_wrong_with(soft_program program, const char *settings) {
    static const struct schedule schedules[] = {
        { "lazy", LAZY_RUNS, WANT_WRONG },
        { "fast", 1, WANT_EITHER },
        { "eager", 1, WANT_EITHER },
        { "random:%u", 4, WANT_EITHER },
    };
    if (!SOFT_TSAN)
        run_all(program, settings, SOFT_JOBS, schedules, sizeof schedules / sizeof *schedules);
}

void soft_wrong(soft_program program) {
    soft_wrong_with(program, NULL);
}

struct soft_outcome soft_run(soft_program program, const char *settings) {
    struct child c = { 0 };
    snprintf(c.settings, sizeof c.settings, "%s", settings ? settings : "");
    start(&c, program);
    return await(&c);
}

void soft_expect(soft_program program, const char *settings) {
    struct soft_outcome o = soft_run(program, settings);
    char ended[64];
    if (!o.right)
        fail_msg("%s: the program %s%s%s", settings ? settings : "default settings",
                 how_it_ended(&o, ended), *o.output ? ":\n" : "", o.output);
}

/* ---- checks -------------------------------------------------------------------------------- */

void soft_fail(const char *file, int line, const char *fmt, ...) {
    char text[1024];
    int n = snprintf(text, sizeof text, "%s:%d: ", file, line);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", text);
    fflush(NULL);
    _exit(EXIT_FAILED);
}

void soft_check_call(const char *file, int line, const char *call, hipError_t expected,
                     hipError_t found) {
    if (found != expected)
        soft_fail(file, line, "%s: expected %s, found %s", call, hip_error_name(expected),
                  hip_error_name(found));
}

/* ---- memory, streams, events --------------------------------------------------------------- */

int *soft_device_ints(size_t count) {
    int *p;
    OK(hip->hipMalloc((void **)&p, count * sizeof *p));
    OK(hip->hipMemset(p, 0, count * sizeof *p));
    OK(hip->hipStreamSynchronize(NULL));
    return p;
}

int *soft_pinned_ints(size_t count) {
    int *p;
    OK(hip->hipHostMalloc((void **)&p, count * sizeof *p, hipHostMallocDefault));
    memset(p, 0, count * sizeof *p);
    return p;
}

int *soft_managed_ints(size_t count) {
    int *p;
    OK(hip->hipMallocManaged((void **)&p, count * sizeof *p, hipMemAttachGlobal));
    memset(p, 0, count * sizeof *p);
    return p;
}

/* A stream of its own, so that the copy waits for nothing; pageable, so that it is complete. */
int soft_peek(const int *device) {
    static _Thread_local hipStream_t own;
    int value = 0;
    if (!own)
        own = soft_free_stream();
    OK(hip->hipMemcpyAsync(&value, device, sizeof value, hipMemcpyDeviceToHost, own));
    return value;
}

SOFT_UNCHECKED int soft_racy_load(const int *at) {
    return *(const volatile int *)at;
}
SOFT_UNCHECKED void soft_racy_store(int *at, int value) {
    *(volatile int *)at = value;
}

hipStream_t soft_stream(unsigned flags) {
    hipStream_t s;
    OK(hip->hipStreamCreateWithFlags(&s, flags));
    return s;
}
hipStream_t soft_blocking_stream(void) {
    return soft_stream(hipStreamDefault);
}
hipStream_t soft_free_stream(void) {
    return soft_stream(hipStreamNonBlocking);
}

hipEvent_t soft_event(void) {
    hipEvent_t e;
    OK(hip->hipEventCreate(&e));
    return e;
}

/* ---- greta/soft.h by name ------------------------------------------------------------------ */

/* dlsym() gives a data pointer; the copy makes it one to a function. */
#define LOOK_UP(type, variable, name)                                                              \
    type variable;                                                                                 \
    do {                                                                                           \
        void *symbol = dlsym(soft_library, name);                                                  \
        if (!symbol)                                                                               \
            soft_fail(__FILE__, __LINE__, "%s: not exported", name);                               \
        memcpy(&variable, &symbol, sizeof symbol);                                                 \
    } while (0)

void soft_observe_faults(greta_soft_fault_observer observer, void *user) {
    typedef void (*function)(greta_soft_fault_observer, void *);
    LOOK_UP(function, f, "greta_soft_observe_faults");
    f(observer, user);
}

void soft_tag(uint64_t tag) {
    typedef void (*function)(uint64_t);
    LOOK_UP(function, f, "greta_soft_tag");
    f(tag);
}

void soft_observe_launches(const struct greta_soft_launch_observer *observer, void *user) {
    typedef void (*function)(const struct greta_soft_launch_observer *, void *);
    LOOK_UP(function, f, "greta_soft_observe_launches");
    f(observer, user);
}

void soft_set_threads(unsigned threads) {
    typedef void (*function)(unsigned);
    LOOK_UP(function, f, "greta_soft_set_threads");
    f(threads);
}

int soft_kernel_register(const struct greta_soft_kernel *kernel) {
    typedef int (*function)(const struct greta_soft_kernel *);
    LOOK_UP(function, f, "greta_soft_kernel_register");
    return f(kernel);
}

void soft_kernel_add(const struct greta_soft_kernel *kernel, const void *host) {
    if (soft_kernel_register(kernel))
        soft_fail(__FILE__, __LINE__, "%s: cannot register", kernel->name);
    hip->__hipRegisterFunction(NULL, host, NULL, kernel->name, 0, NULL, NULL, NULL, NULL, NULL);
}

/* ---- the whole table ----------------------------------------------------------------------- */

typedef hipError_t (*any_call)(long, long, long, long, long, long, long, long, long, long, long,
                               long, long, long, long, long);

static const struct {
    const char *name;
    enum hip_class cls;
    size_t slot;
    bool error; /* returns hipError_t */
} table[] = {
#define IS_hipError_t           true
#define IS_hiprtcResult         false
#define IS_hip_cstring          false
#define IS_hip_fatbin_handle    false
#define IS_int                  false
#define IS_bool                 false
#define IS_hipChannelFormatDesc false
#define HIP_FN(ret, name, params, args, cls, since)                                                \
    { #name, HIP_CLASS_##cls, offsetof(struct hip_api, name), IS_##ret },
#define HIP_VOID_FN(name, params, args, cls, since)
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
};

SOFT_UNCHECKED static hipError_t call_with(size_t slot, long a) {
    any_call call;
    memcpy(&call, (const char *)hip + slot, sizeof call);
    return call(a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a);
}

void soft_call_everything(void *argument, void (*check)(const char *name, hipError_t found)) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].error && table[i].cls != HIP_CLASS_ERROR &&
            strcmp(table[i].name, "hipDeviceReset") != 0)
            check(table[i].name, call_with(table[i].slot, (long)(intptr_t)argument));
}

/* ---- kernels ------------------------------------------------------------------------------- */

#define PARAM_POINTER(name)                                                                        \
    { name, sizeof(void *), GRETA_SOFT_POINTER }
#define PARAM_READS(name)                                                                          \
    { name, sizeof(void *), GRETA_SOFT_POINTER | GRETA_SOFT_READS }
#define PARAM_VALUE(name, type)                                                                    \
    { name, sizeof(type), GRETA_SOFT_VALUE }
#define ARG(type, i) (*(type *)args[i])

static void pass_time(unsigned microseconds) {
    uint64_t until = clock_now_ns() + microseconds * 1000ull;
    while (microseconds && clock_now_ns() < until)
        sched_yield();
}

static void run_nothing(const struct greta_soft_work *work, void *const *args) {
    (void)work, (void)args;
}

static void run_store(const struct greta_soft_work *work, void *const *args) {
    (void)work;
    pass_time(ARG(unsigned, 2));
    __atomic_store_n(ARG(int *, 0), ARG(int, 1), __ATOMIC_RELAXED);
}

static void run_move(const struct greta_soft_work *work, void *const *args) {
    (void)work;
    pass_time(ARG(unsigned, 2));
    __atomic_store_n(ARG(int *, 0), __atomic_load_n(ARG(const int *, 1), __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
}

static void run_fold(const struct greta_soft_work *work, void *const *args) {
    (void)work;
    unsigned old = (unsigned)__atomic_load_n(ARG(int *, 0), __ATOMIC_RELAXED);
    unsigned folded = old * (unsigned)ARG(int, 1) + (unsigned)ARG(int, 2);
    __atomic_store_n(ARG(int *, 0), (int)folded, __ATOMIC_RELAXED);
}

static void run_spin(const struct greta_soft_work *work, void *const *args) {
    (void)work;
    while (!__atomic_load_n(ARG(const int *, 0), __ATOMIC_ACQUIRE))
        sched_yield();
    __atomic_store_n(ARG(int *, 1), 1, __ATOMIC_RELAXED);
}

SOFT_UNCHECKED static void run_touch(const struct greta_soft_work *work, void *const *args) {
    (void)work;
    volatile char *at = (volatile char *)(ARG(uintptr_t, 0) + (uintptr_t)ARG(int64_t, 1));
    if (ARG(int, 2))
        *at = 1;
    else
        (void)*at;
}

static const struct greta_soft_param store_params[] = { PARAM_POINTER("to"),
                                                        PARAM_VALUE("value", int),
                                                        PARAM_VALUE("slow", unsigned) };
static const struct greta_soft_param move_params[] = { PARAM_POINTER("to"), PARAM_READS("from"),
                                                       PARAM_VALUE("slow", unsigned) };
static const struct greta_soft_param fold_params[] = { PARAM_POINTER("to"),
                                                       PARAM_VALUE("times", int),
                                                       PARAM_VALUE("plus", int) };
static const struct greta_soft_param spin_params[] = { PARAM_READS("flag"), PARAM_POINTER("done") };
static const struct greta_soft_param touch_params[] = { PARAM_POINTER("at"),
                                                        PARAM_VALUE("offset", int64_t),
                                                        PARAM_VALUE("write", int) };

#define KERNEL(kernel, fn, list)                                                                   \
    static const struct greta_soft_kernel kernel = { #kernel, fn, list,                            \
                                                     sizeof(list) / sizeof *(list) }
static const struct greta_soft_kernel test_nothing = { "test_nothing", run_nothing, NULL, 0 };
KERNEL(test_store, run_store, store_params);
KERNEL(test_move, run_move, move_params);
KERNEL(test_fold, run_fold, fold_params);
KERNEL(test_spin, run_spin, spin_params);
KERNEL(test_touch, run_touch, touch_params);

static hipError_t launch(const struct greta_soft_kernel *kernel, hipStream_t stream, void **args) {
    dim3 one = { 1, 1, 1 };
    return hip->hipLaunchKernel(kernel, one, one, args, 0, stream);
}

void soft_nothing(hipStream_t stream) {
    OK(launch(&test_nothing, stream, NULL));
}
void soft_store(hipStream_t stream, int *to, int value, unsigned slow) {
    OK(launch(&test_store, stream, (void *[]){ &to, &value, &slow }));
}
void soft_move(hipStream_t stream, int *to, const int *from, unsigned slow) {
    OK(launch(&test_move, stream, (void *[]){ &to, &from, &slow }));
}
void soft_fold(hipStream_t stream, int *to, int times, int plus) {
    OK(launch(&test_fold, stream, (void *[]){ &to, &times, &plus }));
}
void soft_spin(hipStream_t stream, const int *flag, int *done) {
    OK(launch(&test_spin, stream, (void *[]){ &flag, &done }));
}
hipError_t soft_touch_call(hipStream_t stream, void *at, int64_t offset, bool write) {
    int writes = write;
    return launch(&test_touch, stream, (void *[]){ &at, &offset, &writes });
}
void soft_touch(hipStream_t stream, void *at, int64_t offset, bool write) {
    OK(soft_touch_call(stream, at, offset, write));
}

/* ---- gates --------------------------------------------------------------------------------- */

static void wait_at_gate(void *user) {
    struct soft_gate *gate = user;
    atomic_store(&gate->entered, 1);
    while (!atomic_load(&gate->open))
        usleep(200);
}

void soft_gate_close(struct soft_gate *gate, hipStream_t stream) {
    OK(hip->hipLaunchHostFunc(stream, wait_at_gate, gate));
}
void soft_gate_open(struct soft_gate *gate) {
    atomic_store(&gate->open, 1);
}

/* ---- loading ------------------------------------------------------------------------------- */

int soft_fixture_load(void **state) {
    (void)state;
    struct err e = { 0 };
    if (hip_load(&runtime, "soft", &e) != RC_OK) {
        fprintf(stderr, "cannot load the software device: %s\n", e.msg);
        return -1;
    }
    soft_library = runtime.library;
    soft_abi = runtime.major;
    const struct greta_soft_kernel *const kernels[] = { &test_nothing, &test_store, &test_move,
                                                        &test_fold,    &test_spin,  &test_touch };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        soft_kernel_add(kernels[i], kernels[i]);
    return 0;
}
