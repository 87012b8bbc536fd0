/* start.c - the first HIP call of the program, and which table a call belongs to. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "audit/attach.h"
#include "base/env.h"
#include "base/futex.h"
#include "hip/hip_missing.h"
#include "preload/host.h"
#include "preload/next.h"
#include "preload/preload.h"
#include "preload/watch.h"

struct preload preload = { .size = UINTPTR_MAX };
__thread struct preload_thread preload_me __attribute__((tls_model("initial-exec")));

/* What the library does with calls. During the start, the upper bits are the id of the process that
 * starts. fork() waits for the end of a start, because its child would inherit locks that nobody
 * releases; a child made without fork(), by clone() say, finds the parent's id and starts again. */
enum { STATE_IDLE, STATE_STARTING, STATE_AUDITING, STATE_PASSING, STATE_BITS = 2 };
static _Atomic uint32_t state;

static struct hip_runtime runtime;
static struct hip_api bypass; /* the runtime's own functions, found without hip_load() */
static atomic_bool bypass_prepared, bypass_filled;
static struct spin pass_lock; /* of pass() */

/* ---- libraries whose calls are not the program's --------------------------------------------- */

struct range {
    uintptr_t base, size;
};
enum { RANGE_MAX = 16 };
static struct range internal[RANGE_MAX], own_range;
static _Atomic unsigned internal_count;

static struct range object_range(const struct dl_phdr_info *object) {
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        uintptr_t at = object->dlpi_addr + segment->p_vaddr;
        low = at < low ? at : low;
        high = at + segment->p_memsz > high ? at + segment->p_memsz : high;
    }
    return (struct range){ low, high > low ? high - low : 0 };
}

/* A library of the runtime; or the C library: what it calls is some library's handler of fork or
 * exit. */
static bool is_runtime_file(const char *path) {
    static const char *const names[] = { "libamdhip64.so", "libhiprtc",     "libhsa-runtime64.so",
                                         "libhsakmt.so",   "libamd_comgr.", "librocprofiler",
                                         "libc.so." };
    const char *slash = path ? strrchr(path, '/') : NULL;
    bool is = false;
    for (size_t i = 0; slash && i < sizeof names / sizeof *names; i++)
        is |= strncmp(slash + 1, names[i], strlen(names[i])) == 0;
    return is;
}

static int note_internal(struct dl_phdr_info *object, size_t size, void *user) {
    (void)size;
    unsigned *count = user;
    struct range r = object_range(object);
    bool own = (uintptr_t)note_internal - r.base < r.size; /* this library */
    if ((own || is_runtime_file(object->dlpi_name)) && *count < RANGE_MAX)
        internal[(*count)++] = r;
    if (own)
        own_range = r;
    return 0;
}

bool preload_is_internal(const void *address) {
    unsigned count = atomic_load_explicit(&internal_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if ((uintptr_t)address - internal[i].base < internal[i].size)
            return true;
    return false;
}

bool preload_is_own(const void *address) {
    return (uintptr_t)address - own_range.base < own_range.size;
}

struct find_range {
    const void *inside;
    struct range found;
};

static int find_range(struct dl_phdr_info *object, size_t size, void *user) {
    (void)size;
    struct find_range *f = user;
    struct range r = object_range(object);
    if ((uintptr_t)f->inside - r.base >= r.size)
        return 0;
    f->found = r;
    return 1;
}

/* ---- functions without the audit ------------------------------------------------------------- */

static void *open_present(const char *name) {
    return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

/* The runtime that caller is in, if it is in one, else one that is in the process. */
static void *present_runtime(const void *caller) {
    static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                         "libamdhip64.so" };
    Dl_info info;
    void *library = NULL;
    if (dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libamdhip64.so"))
        library = open_present(info.dli_fname);
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = open_present(names[i]);
    return library;
}

/* Fills *table with functions that the runtime exports, past this library's. */
static void fill_bypass(struct hip_api *table, const void *caller) {
    void *library = present_runtime(caller);
    for (int fn = 0; fn < HIP_FN_COUNT; fn++) {
        const char *name = hip_fn_name((enum hip_fn)fn);
        void *found = library ? next_dlsym()(library, name) : NULL;
        if (!found)
            found = next_find(name);
        hip_any_fn entry;
        if (found)
            memcpy(&entry, &found, sizeof entry);
        else
            entry = hip_missing_entry((enum hip_fn)fn, "the program's libraries");
        memcpy((char *)table + (size_t)fn * sizeof entry, &entry, sizeof entry);
    }
}

static const char *name_of(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

static void set_bypass(unsigned fn, void *symbol, void *table) {
    memcpy((char *)table + fn * sizeof symbol, &symbol, sizeof symbol);
}

/* Fills bypass with entries for missing functions in advance, because making them takes a lock and
 * memory. */
__attribute__((constructor)) static void prepare_bypass(void) {
    for (int fn = 0; fn < HIP_FN_COUNT; fn++) {
        hip_any_fn entry = hip_missing_entry((enum hip_fn)fn, "the program's libraries");
        void *symbol;
        memcpy(&symbol, &entry, sizeof symbol);
        set_bypass((unsigned)fn, symbol, &bypass);
    }
    atomic_store_explicit(&bypass_prepared, true, memory_order_release);
}

/* For calls that come while the audit starts, on the thread that starts it. Calls from the runtime
 * itself get its own functions. Others come from a signal handler of the program's that has
 * interrupted malloc(), the dynamic linker, or the runtime's initialisation. They are refused,
 * because the runtime might wait for a lock that the interrupted code holds. Several threads may
 * come here; all get the same. */
static const struct hip_api *bypass_table(const void *caller) {
    struct dl_find_object object;
    if (_dl_find_object((char *)(uintptr_t)caller - 1, &object) != 0 ||
        !is_runtime_file(object.dlfo_link_map->l_name))
        return early_table();
    if (!atomic_load_explicit(&bypass_filled, memory_order_acquire)) {
        if (!atomic_load_explicit(&bypass_prepared, memory_order_acquire))
            prepare_bypass();
        if (next_each_in("libamdhip64.so", name_of, HIP_FN_COUNT, set_bypass, &bypass))
            atomic_store_explicit(&bypass_filled, true, memory_order_release);
    }
    return &bypass;
}

/* ---- functions that hand out functions ------------------------------------------------------- */

static struct {
    __typeof__(((struct hip_api *)NULL)->hipGetProcAddress) proc;
    __typeof__(((struct hip_api *)NULL)->hipGetDriverEntryPoint) entry, entry_spt;
} given;

/* Replaces *function by our exported one if `name` is a HIP function. */
static void replace(hipError_t result, const char *name, void **function) {
    enum hip_fn fn = name && function ? hip_fn_find(name) : HIP_FN_COUNT;
    if (result == hipSuccess && fn != HIP_FN_COUNT && *function)
        *function = preload_exported(fn);
}

static hipError_t get_proc_address(const char *symbol, void **pfn, int version, uint64_t flags,
                                   hipDriverProcAddressQueryResult *status) {
    hipError_t r = given.proc(symbol, pfn, version, flags, status);
    replace(r, symbol, pfn);
    return r;
}

static hipError_t get_entry_point(const char *symbol, void **function, unsigned long long flags,
                                  hipDriverEntryPointQueryResult *status) {
    hipError_t r = given.entry(symbol, function, flags, status);
    replace(r, symbol, function);
    return r;
}

static hipError_t get_entry_point_spt(const char *symbol, void **function, unsigned long long flags,
                                      hipDriverEntryPointQueryResult *status) {
    hipError_t r = given.entry_spt(symbol, function, flags, status);
    replace(r, symbol, function);
    return r;
}

static void replace_givers(struct hip_api *api) {
    given.proc = api->hipGetProcAddress;
    given.entry = api->hipGetDriverEntryPoint;
    given.entry_spt = api->hipGetDriverEntryPoint_spt;
    api->hipGetProcAddress = get_proc_address;
    api->hipGetDriverEntryPoint = get_entry_point;
    api->hipGetDriverEntryPoint_spt = get_entry_point_spt;
}

/* ---- starting -------------------------------------------------------------------------------- */

static void complain(const char *why) {
    char line[640];
    int n =
        snprintf(line, sizeof line, "greta: this program runs without being recorded: %s\n", why);
    if (n > 0)
        (void)!write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static enum rc attach(struct hip_api *table, struct err *e) {
    struct audit_config config;
    enum rc rc = audit_config_read(&config, NULL, e);
    if (rc != RC_OK)
        return rc;
    /* If greta started this program, the environment already tells its children which recording to
     * join; setting it again would only change it under other threads. */
    config.record.announce = env_text(ENV_GCORE_RECORD_JOIN) == NULL;
    struct audit_options options = {
        .config = &config,
        .library = runtime.library,
        .library_path = runtime.path,
        .hip_major = hip_runtime_major(&runtime),
    };
    return audit_attach(table, &options, e);
}

/* Publishes the table: base first, because a reader that sees the new size reads base next. */
static void publish(const void *inside) {
    struct find_range f = { .inside = inside };
    if (inside)
        dl_iterate_phdr(find_range, &f);
    atomic_store_explicit(&preload.base, f.found.base, memory_order_relaxed);
    atomic_store_explicit(&preload.size, f.found.size, memory_order_release);
}

static uint32_t start(const void *caller) {
    struct err e = { 0 };
    if (hip_load(&runtime, NULL, &e) != RC_OK) {
        complain(e.msg);
        fill_bypass(&preload.table, caller);
        publish(NULL);
        return STATE_PASSING;
    }
    void *inside = next_dlsym()(runtime.library, "hipGetDeviceCount");
    unsigned count = 0;
    dl_iterate_phdr(note_internal, &count);
    atomic_store_explicit(&internal_count, count, memory_order_release);
    preload.table = runtime.api;
    replace_givers(&preload.table);
    if (attach(&preload.table, &e) != RC_OK) {
        complain(e.msg);
        preload.table = runtime.api;
        publish(NULL);
        return STATE_PASSING;
    }
    if (audit.writer) {
        host_start();
        atomic_store_explicit(&preload.recording, true, memory_order_release);
    }
    publish(inside);
    return STATE_AUDITING;
}

/* ---- forks ----------------------------------------------------------------------------------- */

static uint32_t starting(void) {
    return STATE_STARTING | (uint32_t)getpid() << STATE_BITS;
}

/* Locks are on a page that the system clears in a child. Where it cannot, only the fork handlers
 * release them. */
struct spin *preload_new_lock(void) {
    enum { LOCKS = 8, PAGE = 4096 };
    static struct spin fallback[LOCKS], *page;
    static unsigned used;
    if (!page) {
        void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED)
            (void)!madvise(p, PAGE, MADV_WIPEONFORK);
        page = p != MAP_FAILED ? p : fallback;
    }
    return &page[used++ % LOCKS];
}

static __thread bool forking __attribute__((tls_model("initial-exec")));

/* Keeps all threads from starting the audit until the fork is over. */
static void fork_prepare(void) {
    int saved = errno;
    while (!preload_me.inside) { /* otherwise the thread that forks is the one that starts */
        uint32_t now = STATE_IDLE;
        if (atomic_compare_exchange_strong(&state, &now, starting())) {
            forking = true;
            preload_me.inside++;
        } else if (now != starting()) {
            break;
        } else {
            futex_wait(&state, now, -1);
        }
    }
    errno = saved;
}

static void fork_done(void) {
    if (!forking)
        return;
    int saved = errno;
    forking = false;
    preload_me.inside--;
    atomic_store_explicit(&state, STATE_IDLE, memory_order_release);
    futex_wake(&state, INT32_MAX);
    errno = saved;
}

static void fork_child(void) {
    fork_done();
    spin_unlock(&pass_lock);
    host_forked();
    watch_forked();
}

__attribute__((constructor)) static void watch_forks(void) {
    preload_me.begun = true;
    pthread_atfork(fork_prepare, fork_done, fork_child);
}

/* ---- giving way ------------------------------------------------------------------------------ */

/* Called by a program that contains greta's audit: the preloaded one gives way, so that the run is
 * recorded once, with the names that the program gives. */
PRELOAD_EXPORT void greta_preload_yield(void);
PRELOAD_EXPORT void greta_preload_yield(void) {
    uint32_t idle = STATE_IDLE;
    atomic_compare_exchange_strong(&state, &idle, STATE_PASSING);
}

bool preload_is_wanted(void) {
    return atomic_load_explicit(&state, memory_order_acquire) != STATE_PASSING;
}

/* The table for calls in the state PASSING. The program's audit loads the runtime itself; this is
 * for other code of the program that also calls HIP. */
static const struct hip_api *pass(const void *caller) {
    spin_lock(&pass_lock);
    if (atomic_load(&preload.size) == UINTPTR_MAX) {
        fill_bypass(&preload.table, caller);
        publish(NULL);
    }
    spin_unlock(&pass_lock);
    return &preload.table;
}

const struct hip_api *preload_pick(const void *caller) {
    int saved = errno;
    const struct hip_api *table = NULL;
    bool nested = preload_me.inside++ > 0;
    while (!table) {
        uint32_t now = atomic_load_explicit(&state, memory_order_acquire);
        uint32_t mine = starting();
        if (now == STATE_AUDITING) {
            bool own = (uintptr_t)caller - atomic_load(&preload.base) < atomic_load(&preload.size);
            table = own ? &audit.raw : &preload.table;
        } else if (now == STATE_PASSING) {
            bool published = atomic_load(&preload.size) != UINTPTR_MAX;
            table = nested && !published ? bypass_table(caller) : pass(caller);
        } else if (nested) {
            table = bypass_table(caller);
        } else if (now != mine) { /* idle, or its starter is in the process that forked us */
            if (!atomic_compare_exchange_strong(&state, &now, mine))
                continue;
            atomic_store_explicit(&state, start(caller), memory_order_release);
            futex_wake(&state, INT32_MAX);
        } else {
            futex_wait(&state, now, -1);
        }
    }
    preload_me.inside--;
    errno = saved;
    return table;
}
