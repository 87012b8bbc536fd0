#include "audit/decorate.h"

#include <errno.h>
#include <string.h>

#include "audit/call.h"
#include "audit/dropped.h"
#include "audit/hooks.h"
#include "audit/provenance.h"
#include "audit/statements.h"

/* hook_table.h has to come after the functions its macros call. */
#include "audit/hook_table.h"

/* A macro that may be undefined as a value: HOOK_x, if defined, is `~, before, after` and pushes
 * the defaults to the right; if not, it is one word, and the defaults are second and third. */
#define TAKE_SECOND_(first, second, ...)       second
#define TAKE_THIRD_(first, second, third, ...) third
#define TAKE_SECOND(...)                       TAKE_SECOND_(__VA_ARGS__, ~, ~)
#define TAKE_THIRD(...)                        TAKE_THIRD_(__VA_ARGS__, ~, ~, ~)
#define BEFORE(name, otherwise)                TAKE_SECOND(HOOK_##name, otherwise, ~)
#define AFTER(name, otherwise)                 TAKE_THIRD(HOOK_##name, ~, otherwise)

/* The first three arguments as numbers, whatever their types; 0 for those that are not there. If x
 * is nothing, `NO_ARGUMENT x ()` is a call of the macro, which pushes the 0 into second place. */
#define NO_ARGUMENT()          ~, 0
#define NUMBER(x)              TAKE_SECOND(NO_ARGUMENT x(), argument_bits(&x, sizeof(__typeof__(x))))
#define NUMBERS_(a, b, c, ...) NUMBER(a), NUMBER(b), NUMBER(c)
#define NUMBERS(...)           NUMBERS_(__VA_ARGS__, , , , ~)

static inline uint64_t argument_bits(const void *argument, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, argument, size < sizeof bits ? size : sizeof bits);
    return bits;
}

static void call_plain(struct call *c, uint64_t a, uint64_t b, uint64_t d) {
    struct event ev = call_event(c, EVENT_CALL, 0, NULL);
    ev.dst = a;
    ev.src = b;
    ev.len = d;
    call_begin(c, &ev);
}

/* A call that has made something: written when it has returned, with the handle that it gave. */
static void call_made(struct call *c, hipError_t r, const void *handle) {
    if (!call_is_recorded())
        return;
    struct event ev = call_event(c, EVENT_CALL, 0, NULL);
    ev.dst = (uint64_t)(uintptr_t)handle;
    ev.status = (uint16_t)r;
    call_begin(c, &ev);
}

/* Status of a result for the recording: an error code, or 0 for what is not one. */
static unsigned status_error(const void *result) {
    return (unsigned)*(const hipError_t *)result;
}
static unsigned status_other(const void *result) {
    (void)result;
    return 0;
}
#define STATUS(r) _Generic((r), hipError_t : status_error, default : status_other)(&(r))

/* Records that the caller ignores the result of this failed call. */
static void tell_dropped(const struct call *c) {
    if (c->seq == RECORD_NONE || !dropped_answer(c->caller))
        return;
    struct event ev = call_event(c, EVENT_DROPPED, 0, NULL);
    ev.aux = event_aux(EVENT_NO_FN, 0);
    ev.dst = c->seq;
    ev.status = hipSuccess;
    record_event(audit.writer, &ev);
}

/* Remembers a failure; "not ready" is none. Not called for functions that read errors. */
static void note_failure(const struct call *c, unsigned status) {
    if (status == hipSuccess || status == hipErrorNotReady)
        return;
    audit_note_error(c->fn, c->caller, c->seq, (hipError_t)status);
    tell_dropped(c);
}

/* Describes the devices before the first call that initialises HIP anyway. Calls that register
 * kernels, or only store arguments, do not initialise it. */
static void describe_device(void) {
    if (atomic_exchange(&audit.device_unknown, false))
        provenance_write_devices(audit.writer, &audit.raw);
}
#define INITIALISES(cls) (HIP_CLASS_##cls != HIP_CLASS_REGISTER)
#define DESCRIBE(cls)                                                                              \
    if (INITIALISES(cls) && atomic_load_explicit(&audit.device_unknown, memory_order_relaxed))     \
    describe_device()

/* Host memory on the stack is released when its function returns, which no hook sees. But what lies
 * below the caller's stack pointer is gone. */
static inline void notice_return(const void *stack_end, const void *caller) {
    uint64_t used = audit_thread.stack_use, end = (uint64_t)(uintptr_t)stack_end;
    if (__builtin_expect(used != 0, 0) && used < end && audit.host)
        audit.host->returned(end, caller);
}

#define HIP_FN(ret, name, params, args, cls, since)                                                \
    static ret decorated_##name params {                                                           \
        int saved = errno;                                                                         \
        struct call c = CALL_INIT(HIP_FN_##name, __builtin_return_address(0));                     \
        DESCRIBE(cls);                                                                             \
        notice_return(__builtin_dwarf_cfa(), c.caller);                                            \
        BEFORE(name, if (call_is_recorded()) call_plain(&c, NUMBERS args));                        \
        errno = saved;                                                                             \
        ret r = audit.raw.name args;                                                               \
        saved = errno;                                                                             \
        AFTER(name, call_end(&c, STATUS(r)));                                                      \
        if (HIP_CLASS_##cls != HIP_CLASS_ERROR)                                                    \
            note_failure(&c, STATUS(r));                                                           \
        errno = saved;                                                                             \
        return r;                                                                                  \
    }
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    static void decorated_##name params {                                                          \
        int saved = errno;                                                                         \
        struct call c = CALL_INIT(HIP_FN_##name, __builtin_return_address(0));                     \
        DESCRIBE(cls);                                                                             \
        notice_return(__builtin_dwarf_cfa(), c.caller);                                            \
        BEFORE(name, if (call_is_recorded()) call_plain(&c, NUMBERS args));                        \
        errno = saved;                                                                             \
        audit.raw.name args;                                                                       \
        saved = errno;                                                                             \
        AFTER(name, call_end(&c, 0));                                                              \
        errno = saved;                                                                             \
    }
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

void decorate_table(struct hip_api *table) {
#define HIP_FN(ret, name, params, args, cls, since) table->name = decorated_##name;
#define HIP_VOID_FN(name, params, args, cls, since) table->name = decorated_##name;
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
}
