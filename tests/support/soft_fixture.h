/* soft_fixture.h - runs programs on the software device, each in a process of its own.
 *
 * The device reads its settings once per process, and some programs here are meant to end by a
 * signal. So a test hands a function, the program, to soft_run() and friends; a forked child sets
 * the environment and calls it. What the child prints is caught and shown when the test fails. The
 * test process itself makes no HIP call that starts the device, and starts no thread.
 *
 * Inside a program: `hip` is the table of functions, OK/FAILS/MUST check (a failed check ends the
 * child), and the program returns whether it saw what a right program sees. Tests of a rule of HIP
 * come in pairs: soft_right() wants true under every schedule and seed, soft_wrong() takes a
 * program that breaks the rule and wants false every time under lazy.
 *
 * Programs may use threads. Tests call the functions below from the main thread only. */
#ifndef TESTS_SUPPORT_SOFT_FIXTURE_H
#define TESTS_SUPPORT_SOFT_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <greta/soft.h>

#include "hip/hip_api.h"

#if defined(__SANITIZE_THREAD__)
#define SOFT_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define SOFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SOFT_TSAN 1
#elif __has_feature(address_sanitizer)
#define SOFT_ASAN 1
#endif
#endif
#ifndef SOFT_TSAN
#define SOFT_TSAN 0
#endif
#ifndef SOFT_ASAN
#define SOFT_ASAN 0
#endif

/* For code that does on purpose what a sanitizer would stop. */
#define SOFT_UNCHECKED __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

/* ---- for tests ----------------------------------------------------------------------------- */

typedef bool (*soft_program)(void);

enum { SOFT_JOBS = 4, SOFT_JOBS_WAITING = 16 };

struct soft_outcome {
    int status;        /* as from waitpid() */
    bool right;        /* the program came to its end and returned true */
    bool wrong;        /* … and returned false */
    char output[8192]; /* what it wrote to standard output and error, cut */
};

/* The group setup of every test file: loads the device and makes the kernels below known. */
int soft_fixture_load(void **state);

/* Runs a program with settings "NAME=value NAME=value…" (NULL: none) and what they do not name at
 * its default. */
struct soft_outcome soft_run(soft_program program, const char *settings);

/* Fails the test unless the program returned true. */
void soft_expect(soft_program program, const char *settings);

/* The program is right under HIP's rules: it must return true under fast, eager, lazy and random
 * with every seed. settings are added to the schedule; jobs: how many at a time. */
void soft_right_with(soft_program program, const char *settings, unsigned jobs);
void soft_right(soft_program program);
/* For a program that sleeps more than it computes. */
void soft_right_waiting(soft_program program);

/* The program breaks HIP's rules: false every time under lazy; elsewhere either, but no failed
 * check and no crash. Does nothing under ThreadSanitizer, to which such a program is a finding. */
void soft_wrong_with(soft_program program, const char *settings);
void soft_wrong(soft_program program);

/* ---- for programs -------------------------------------------------------------------------- */

extern const struct hip_api *hip;
extern void *soft_library; /* for dlsym() of greta_soft_* */
extern int soft_abi;       /* 5, 6 or 7 */

/* Prints and ends the child as failed; any thread. */
void soft_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
void soft_check_call(const char *file, int line, const char *call, hipError_t expected,
                     hipError_t found);

#define OK(call)              soft_check_call(__FILE__, __LINE__, #call, hipSuccess, (call))
#define FAILS(expected, call) soft_check_call(__FILE__, __LINE__, #call, (expected), (call))
#define MUST(condition)                                                                            \
    ((condition) ? (void)0 : soft_fail(__FILE__, __LINE__, "expected %s", #condition))

/* ints, zeroed and complete when the call returns. */
int *soft_device_ints(size_t count);
int *soft_pinned_ints(size_t count);
int *soft_managed_ints(size_t count);
/* One int of device memory, read without being ordered after any stream. */
int soft_peek(const int *device);
/* Reads or writes that race with the device on purpose. */
int soft_racy_load(const int *at);
void soft_racy_store(int *at, int value);

hipStream_t soft_stream(unsigned flags);
hipStream_t soft_blocking_stream(void);
hipStream_t soft_free_stream(void); /* hipStreamNonBlocking */
hipEvent_t soft_event(void);

/* The fault observer and the other functions of greta/soft.h, by dlsym. */
void soft_observe_faults(greta_soft_fault_observer observer, void *user);
void soft_tag(uint64_t tag);
void soft_observe_launches(const struct greta_soft_launch_observer *observer, void *user);
void soft_set_threads(unsigned threads);
int soft_kernel_register(const struct greta_soft_kernel *kernel);
/* Registers a kernel and ties it to the address `host` for hipLaunchKernel. */
void soft_kernel_add(const struct greta_soft_kernel *kernel, const void *host);

/* Calls every function that returns hipError_t, but those that read errors and hipDeviceReset, with
 * `argument` for every argument. */
void soft_call_everything(void *argument, void (*check)(const char *name, hipError_t found));

/* ---- kernels ------------------------------------------------------------------------------- */

/* Each queues one launch. slow: microseconds that pass before the kernel acts, so that what should
 * have waited is caught. Accesses are relaxed atomics, because wrong programs race. */
void soft_nothing(hipStream_t stream);
void soft_store(hipStream_t stream, int *to, int value, unsigned slow);
void soft_move(hipStream_t stream, int *to, const int *from, unsigned slow);
/* *to = *to * times + plus: does not commute, so that the order shows in the result. */
void soft_fold(hipStream_t stream, int *to, int times, int plus);
/* Spins until *flag (pinned) is not 0, then sets *done to 1. */
void soft_spin(hipStream_t stream, const int *flag, int *done);
/* Reads, or writes 1 to, the byte at `at + offset`. */
void soft_touch(hipStream_t stream, void *at, int64_t offset, bool write);
/* The launch of soft_touch as a plain call, for its result. */
hipError_t soft_touch_call(hipStream_t stream, void *at, int64_t offset, bool write);

/* ---- gates --------------------------------------------------------------------------------- */

/* A host function that blocks its stream until the program opens the gate. */
struct soft_gate {
    _Atomic int entered, open;
};
void soft_gate_close(struct soft_gate *gate, hipStream_t stream); /* queues it */
void soft_gate_open(struct soft_gate *gate);

#endif
