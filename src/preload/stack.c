#include "preload/stack.h"

#include <pthread.h>
#include <sys/resource.h>

/* The thread's stack, remembered because pthread_getattr_np() reads a file. */
static __thread struct {
    uint64_t low, high; /* high 0: not asked yet */
} mine __attribute__((tls_model("initial-exec")));

static void ask(void) {
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &size) != 0)
            size = 0;
        pthread_attr_destroy(&attr);
    }
    mine.low = (uint64_t)(uintptr_t)low;
    mine.high = size ? mine.low + size : 1; /* 1: nothing is below it */
}

/* An address far from the current frame is not on this stack; no need to call ask(). */
static bool is_near(uint64_t address) {
    enum { NEAR = 1 << 30 };
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    return address - here < NEAR || here - address < NEAR;
}

bool stack_is_mine(uint64_t address) {
    if (!mine.high) {
        if (!is_near(address))
            return false;
        ask();
    }
    return address >= mine.low && address < mine.high;
}

/* The first stack ends there; it grows to its limit, and the system keeps this much free at least.
 */
extern void *__libc_stack_end;

bool stack_is_any(uint64_t address) {
    enum { FREE_AT_LEAST = 128 << 20 };
    struct rlimit limit;
    uint64_t end = (uint64_t)(uintptr_t)__libc_stack_end, size = FREE_AT_LEAST;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < size)
        size = limit.rlim_cur;
    return stack_is_mine(address) || (address < end && end - address <= size);
}
