#include "hip/hip_missing.h"

#include "base/log.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Library names, each kept once and for ever, because an entry may be called at any time. */
struct library_name {
    struct library_name *next;
    char text[];
};

static struct library_name *names;
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic(const char *) missing_from[HIP_FN_COUNT];
static atomic_bool reported[HIP_FN_COUNT];

static const char *intern(const char *text) {
    pthread_mutex_lock(&names_lock);
    struct library_name *n = names;
    while (n && strcmp(n->text, text) != 0)
        n = n->next;
    if (!n) {
        size_t size = strlen(text) + 1;
        n = malloc(sizeof(*n) + size);
        if (n) {
            memcpy(n->text, text, size);
            n->next = names;
            names = n;
        }
    }
    pthread_mutex_unlock(&names_lock);
    return n ? n->text : "libamdhip64";
}

static void report(enum hip_fn fn, const char *consequence) {
    if (atomic_exchange_explicit(&reported[fn], true, memory_order_relaxed))
        return;
    const struct log_sink to_stderr = { .fd = 2, .owned = false };
    const char *library = atomic_load_explicit(&missing_from[fn], memory_order_acquire);
    log_linef(&to_stderr, "greta: %s: not in %s; %s", hip_fn_name(fn),
              library ? library : "libamdhip64", consequence);
}

/* The parameters are there for the type alone. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define TEXT(word)          TEXT_EXPANDED(word)
#define TEXT_EXPANDED(word) #word

#define HIP_FN(ret, name, params, args, cls, since)                                                \
    static ret missing_##name params {                                                             \
        report(HIP_FN_##name, "returning " TEXT(HIP_UNSUPPORTED_##ret));                           \
        return HIP_UNSUPPORTED_##ret;                                                              \
    }
#define HIP_VOID_FN(name, params, args, cls, since)                                                \
    static void missing_##name params {                                                            \
        report(HIP_FN_##name, "nothing done");                                                     \
    }
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN

#pragma GCC diagnostic pop

static const hip_any_fn entries[HIP_FN_COUNT] = {
#define HIP_FN(ret, name, params, args, cls, since) [HIP_FN_##name] = (hip_any_fn)missing_##name,
#define HIP_VOID_FN(name, params, args, cls, since) [HIP_FN_##name] = (hip_any_fn)missing_##name,
#include "hip/hip_api.def"
#undef HIP_FN
#undef HIP_VOID_FN
};

hip_any_fn hip_missing_entry(enum hip_fn fn, const char *library) {
    assert((unsigned)fn < HIP_FN_COUNT);
    atomic_store_explicit(&missing_from[fn], intern(library), memory_order_release);
    return entries[fn];
}
