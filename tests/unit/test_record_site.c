/* Call stacks of events: each is that of its own event, on all kinds of stacks. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "record/reader.h"
#include "record/unwind.h"
#include "record/writer.h"
#include "unit/test_record.h"

/* An address that must not become a jump: the frame has to stay. */
#define STAY() __asm__ volatile("" ::: "memory")
#if defined(__clang__)
#define DEEP      __attribute__((noinline))
#define NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define NO_UNROLL
#define DEEP __attribute__((noinline, noclone))
#endif

static writer *w;
static uint32_t seen[64];
static unsigned seen_count, interrupted; /* the first stack with a signal handler in it */

/* What a hook does: its caller's stack; and what the C library says it is. */
struct expected {
    void *frame[64];
    int count;
};
static struct expected expected[64];

DEEP static void hook(void) {
    void *self = __builtin_return_address(0);
    struct expected *x = &expected[seen_count];
    x->count = backtrace(x->frame, 64);
    int first = 0;
    while (first < x->count && x->frame[first] != self)
        first++;
    x->count -= first;
    memmove(x->frame, x->frame + first, (size_t)x->count * sizeof x->frame[0]);
    seen[seen_count++] = record_site(w, self);
    STAY();
}

static void begin(void) {
    w = open_writer(0);
    seen_count = 0;
    interrupted = UINT32_MAX;
}

/* Every stack is whole and is what backtrace() found. */
static void compare_all(unsigned count) {
    record_close(&w);
    reader *r = open_reader();
    assert_int_equal(seen_count, count);
    for (unsigned i = 0; i < seen_count; i++) {
        unsigned frames;
        bool whole = false;
        const struct site_frame *f = reader_site(r, seen[i], &frames, &whole);
        assert_true(whole);
        for (unsigned k = 0; k < frames && (int)k < expected[i].count; k++) {
            uintptr_t wanted = (uintptr_t)expected[i].frame[k];
            /* What a signal interrupted is recorded one byte past the instruction's start. */
            assert_in_range(f[k].address, wanted, wanted + (i >= interrupted));
        }
        /* Deep ones are cut: at 48 frames, or where the words of larger frames are used up. */
        assert_true((int)frames == expected[i].count || (frames >= 44 && frames <= 48));
    }
    reader_close(&r);
}

/* ---- one wrapper, many callers --------------------------------------------------------------- */

DEEP static void wrapper(void) {
    hook();
    STAY();
}

DEEP static void first_caller(void) {
    wrapper();
    STAY();
}

DEEP static void second_caller(void) {
    char room[64];
    __asm__ volatile("" ::"r"(room) : "memory");
    wrapper();
    STAY();
}

static void each_event_has_its_own_stack(void **state) {
    (void)state;
    begin();
    volatile int turns = 3; /* an unrolled loop would call from three places */
    NO_UNROLL
    for (int i = 0; i < turns; i++) {
        first_caller();
        second_caller();
        wrapper();
    }
    for (int i = 3; i < 9; i++)
        assert_int_equal(seen[i], seen[i - 3]);
    assert_int_not_equal(seen[0], seen[1]);
    assert_int_not_equal(seen[0], seen[2]);
    assert_int_not_equal(seen[1], seen[2]);
    compare_all(9);
}

/* ---- frames of unknown size ------------------------------------------------------------------ */

DEEP static void with_alloca(size_t bytes) {
    char *room = __builtin_alloca(bytes);
    memset(room, 0, bytes);
    STAY();
    hook();
    STAY();
}

DEEP static void with_alignment(void) {
    _Alignas(64) char room[128];
    __asm__ volatile("" ::"r"(room) : "memory");
    hook();
    STAY();
}

DEEP static void recursion(unsigned depth) {
    if (depth)
        recursion(depth - 1);
    else
        hook();
    STAY();
}

static void frames_of_any_size_are_passed(void **state) {
    (void)state;
    begin();
    for (size_t bytes = 16; bytes < 4096; bytes *= 4) {
        with_alloca(bytes);
        with_alloca(bytes);
    }
    with_alignment();
    for (unsigned depth = 0; depth < 60; depth += 7)
        recursion(depth);
    compare_all(8 + 1 + 9);
}

/* More stacks than a thread remembers. */
static void many_stacks_are_all_right(void **state) {
    (void)state;
    begin();
    uint32_t first[40];
    for (int turn = 0; turn < 30; turn++)
        for (unsigned depth = 0; depth < 40; depth++) {
            seen_count = 0;
            recursion(depth);
            with_alloca(depth * 32 + (unsigned)turn * 1024);
            if (!turn)
                first[depth] = seen[0];
            assert_int_equal(seen[0], first[depth]);
        }
    compare_all(2);
}

/* ---- other stacks ---------------------------------------------------------------------------- */

static void *thread_body(void *unused) {
    first_caller();
    second_caller();
    return unused;
}

static void handler(int number) {
    (void)number;
    first_caller();
}

static void on_alternate_stack(void) {
    static char room[64 << 10];
    stack_t mine = { .ss_sp = room, .ss_size = sizeof room }, before;
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK }, old;
    sigaltstack(&mine, &before);
    sigaction(SIGUSR1, &action, &old);
    raise(SIGUSR1);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &old, NULL);
    sigaltstack(&before, NULL);
}

static void stacks_of_threads_and_handlers(void **state) {
    (void)state;
    pthread_t id;
    begin();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&id, NULL, thread_body, NULL), 0);
        pthread_join(id, NULL);
    }
    interrupted = seen_count;
    on_alternate_stack();
    compare_all(8);
}

static ucontext_t main_context, other_context;

static void coroutine(void) {
    for (;;) {
        first_caller();
        swapcontext(&other_context, &main_context);
    }
}

/* The stack is unmapped, and a smaller one takes its place. */
static void coroutines_come_and_go(void **state) {
    (void)state;
    enum { LARGE = 256 << 10, SMALL = 64 << 10 };
    begin();
    char *place = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(place, MAP_FAILED);
    for (int turn = 0; turn < 6; turn++) {
        size_t bytes = turn % 2 ? SMALL : LARGE;
        assert_ptr_equal(mmap(place, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                         place);
        getcontext(&other_context);
        other_context.uc_stack.ss_sp = place;
        other_context.uc_stack.ss_size = bytes;
        other_context.uc_link = &main_context;
        makecontext(&other_context, coroutine, 0);
        swapcontext(&main_context, &other_context);
        swapcontext(&main_context, &other_context);
        mmap(place, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    munmap(place, LARGE);
    compare_all(12);
}

/* ---- code without tables --------------------------------------------------------------------- */

#if defined(__x86_64__)
/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char jit_code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };

static void *make_code(const unsigned char *code, size_t bytes) {
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    memcpy(at, code, bytes);
    assert_int_equal(mprotect(at, 4096, PROT_READ | PROT_EXEC), 0);
    return at;
}

DEEP static uintptr_t call_code(void *at) {
    void (*function)(void (*)(void));
    memcpy(&function, &at, sizeof function);
    function(wrapper);
    STAY();
    return (uintptr_t)__builtin_return_address(0);
}

static void generated_code_is_passed_by_its_frame_pointer(void **state) {
    (void)state;
    begin();
    void *at = make_code(jit_code, sizeof jit_code);
    uintptr_t above = call_code(at);
    record_close(&w);
    reader *r = open_reader();
    unsigned count;
    const struct site_frame *f = reader_site(r, seen[0], &count, NULL);
    assert_true(count >= 5);
    assert_int_equal(f[1].address, (uintptr_t)at + 6); /* wrapper, code, call_code, this */
    assert_int_equal(f[1].module, 0);
    assert_int_equal(f[3].address, above);
    reader_close(&r);
    munmap(at, 4096);
}

/* xor %ebp,%ebp and the like: a frame pointer that leads nowhere ends the stack and not the
 * program. push %rbp; mov $value,%rbp; call *%rdi; pop %rbp; ret */
static void frame_pointer_into_nothing_ends_the_stack(void **state) {
    (void)state;
    static const uint32_t values[] = { 0, 8, 0x1000, 0x7fffffff };
    begin();
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        unsigned char code[] = { 0x55, 0x48, 0xc7, 0xc5, 0, 0, 0, 0, 0xff, 0xd7, 0x5d, 0xc3 };
        memcpy(code + 4, &values[i], 4);
        void *at = make_code(code, sizeof code);
        call_code(at);
        call_code(at);
        munmap(at, 4096);
    }
    record_close(&w);
    reader *r = open_reader();
    for (unsigned i = 0; i < seen_count; i++) {
        unsigned count;
        assert_non_null(reader_site(r, seen[i], &count, NULL));
        assert_true(count >= 1);
    }
    reader_close(&r);
}
#endif

/* ---- forks among threads that meet new call sites -------------------------------------------- */

static atomic_bool stop;

/* Without the C library's opinion, from any thread. */
DEEP static void recursion_site(unsigned depth) {
    if (depth)
        recursion_site(depth - 1);
    else
        (void)!record_site_full(w, NULL);
    STAY();
}

static void *one_call(void *unused) {
    recursion_site(3);
    return unused;
}

static void *meet_new_stacks(void *unused) {
    for (unsigned n = 0; !atomic_load(&stop); n++) {
        recursion_site(n % 50);
        if (n % 50 == 0) { /* the dynamic linker's lock is taken and given back all the time */
            void *library = dlopen("libm.so.6", RTLD_LAZY);
            if (library)
                dlclose(library);
        }
    }
    return unused;
}

static void *start_threads(void *unused) {
    while (!atomic_load(&stop)) {
        pthread_t id;
        if (pthread_create(&id, NULL, one_call, NULL) == 0)
            pthread_join(id, NULL);
    }
    return unused;
}

/* A child that waits for a lock is killed by its alarm. */
static void children_of_threads_at_work_never_wait(void **state) {
    (void)state;
    enum { FORKS = 2000, LIMIT_S = 60 };
    pthread_t id[3];
#if defined(__SANITIZE_THREAD__)
    skip(); /* a fork may fail there while other threads start */
#endif
    begin();
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&id[0], NULL, meet_new_stacks, NULL), 0);
    assert_int_equal(pthread_create(&id[1], NULL, meet_new_stacks, NULL), 0);
    assert_int_equal(pthread_create(&id[2], NULL, start_threads, NULL), 0);
    for (unsigned n = 0; n < FORKS; n++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(LIMIT_S);
            for (unsigned k = 0; k < 4; k++)
                recursion_site((n + k * 11) % 40);
            _exit(7);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(id[i], NULL);
    record_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        record_test(each_event_has_its_own_stack),
        record_test(frames_of_any_size_are_passed),
        record_test(many_stacks_are_all_right),
        record_test(stacks_of_threads_and_handlers),
        record_test(coroutines_come_and_go),
#if defined(__x86_64__)
        record_test(generated_code_is_passed_by_its_frame_pointer),
        record_test(frame_pointer_into_nothing_ends_the_stack),
#endif
        record_test(children_of_threads_at_work_never_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
