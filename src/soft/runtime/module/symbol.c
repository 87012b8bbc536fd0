/* symbol.c - what compiled programs register before main: fat binaries, kernels, variables.
 *
 * Host addresses stand for device things: the address of a kernel's host function for the kernel,
 * that of a shadow variable for the device variable. Both are kept in hash tables that only grow:
 * an entry is pushed once and never freed, so that the launch path reads them without a lock; an
 * entry whose fat binary was unregistered (dlclose) is marked dead. Nothing is loaded at
 * registration, because that is before main; the first use of a symbol on a device loads the fat
 * binary there. Without a code object for the device a kernel with a native twin still works.
 *
 * Lock order: registry, then those of module.c. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/error.h"
#include "soft/runtime/function.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"

struct managed {
    struct managed *next;
    char *name;
    uint64_t addr;
};

struct fatbin {
    struct soft_handle handle;
    const void *binary;
    struct soft_module *module[SOFT_DEVICES_MAX]; /* under registry */
    hipError_t error[SOFT_DEVICES_MAX];           /* why there is no module */
    struct managed *managed;
};

struct entry {
    struct entry *next;
    const void *host;
    char *name;
    struct fatbin *fatbin; /* NULL: registered without one */
    uint64_t size;         /* variables: bytes */
    _Atomic bool dead;
    _Atomic(struct soft_function *) function[SOFT_DEVICES_MAX]; /* kernels: once found */
    struct soft_block *block[SOFT_DEVICES_MAX]; /* variables without code object; registry */
};

enum { BUCKETS = 1024, FATBINS_MAX = 1 << 14 };
typedef _Atomic(struct entry *) bucket;
static bucket kernels[BUCKETS], variables[BUCKETS];

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct soft_handles *pool;

pthread_mutex_t *soft_symbol_lock(void) {
    return &registry;
}

static void make_pool(void) {
    pool = soft_handles_new(sizeof(struct fatbin), FATBINS_MAX);
}

static struct soft_handles *fatbins(void) {
    pthread_once(&pool_once, make_pool);
    return pool;
}

/* ---- tables -------------------------------------------------------------------------------- */

static bucket *bucket_of(bucket *table, const void *host) {
    uint64_t h = (uint64_t)(uintptr_t)host * 0x9e3779b97f4a7c15u;
    return &table[h >> 54];
}

static struct entry *find(bucket *table, const void *host) {
    struct entry *e = atomic_load_explicit(bucket_of(table, host), memory_order_acquire);
    while (e && (e->host != host || atomic_load_explicit(&e->dead, memory_order_relaxed)))
        e = e->next;
    return e;
}

/* The first registration of an address wins, as in HIP: compilers may fold equal functions. */
static void add(bucket *table, const void *host, const char *name, struct fatbin *f, size_t size) {
    if (!host || !name)
        return;
    pthread_mutex_lock(&registry);
    if (!find(table, host)) {
        struct entry *e = calloc(1, sizeof *e);
        char *copy = strdup(name);
        if (e && copy) {
            bucket *b = bucket_of(table, host);
            e->host = host;
            e->name = copy;
            e->fatbin = f;
            e->size = size;
            e->next = atomic_load(b);
            atomic_store_explicit(b, e, memory_order_release);
        } else {
            free(e);
            free(copy);
        }
    }
    pthread_mutex_unlock(&registry);
}

/* ---- loading ------------------------------------------------------------------------------- */

/* The module of a fat binary on a device, loaded now if it was not. With the registry lock. */
static hipError_t load(struct fatbin *f, int device, struct soft_module **out) {
    *out = NULL;
    if (!f)
        return hipErrorNoBinaryForGpu;
    if (!f->module[device] && f->error[device] == hipSuccess) {
        struct soft_image image;
        hipError_t r = soft_image_from_memory(f->binary, &image);
        if (r == hipSuccess)
            r = soft_module_open(&f->module[device], device, &image);
        f->error[device] = r;
        for (struct managed *m = f->managed; r == hipSuccess && m; m = m->next)
            soft_module_set_pointer(f->module[device], m->name, m->addr);
    }
    *out = f->module[device];
    return f->error[device];
}

hipError_t soft_function_for_host(const void *host, struct soft_function **out) {
    struct entry *e = host ? find(kernels, host) : NULL;
    if (!e)
        return hipErrorInvalidDeviceFunction;
    int device = soft_current_device();
    *out = atomic_load_explicit(&e->function[device], memory_order_acquire);
    if (*out)
        return hipSuccess;

    struct soft_module *m;
    pthread_mutex_lock(&registry);
    hipError_t loaded = load(e->fatbin, device, &m);
    hipError_t r = m ? soft_module_function(m, e->name, out) : soft_function_native(e->name, out);
    if (r == hipSuccess)
        atomic_store_explicit(&e->function[device], *out, memory_order_release);
    pthread_mutex_unlock(&registry);
    if (r == hipSuccess || r == hipErrorOutOfMemory)
        return r;
    return loaded != hipSuccess ? loaded : hipErrorInvalidDeviceFunction;
}

const char *soft_symbol_function_name(const void *host) {
    struct entry *e = host ? find(kernels, host) : NULL;
    return e ? e->name : NULL;
}

/* A variable that no code object defines starts as a copy of its shadow. */
static hipError_t shadow_variable(struct entry *e, int device) {
    if (e->block[device])
        return hipSuccess;
    hipError_t r = soft_memory_alloc(device, SOFT_GLOBAL, e->size, 0, false, &e->block[device]);
    if (r == hipSuccess)
        memcpy(soft_reach(e->block[device]->addr), e->host, e->size);
    return r;
}

hipError_t soft_symbol_find(const void *symbol, uint64_t *addr, uint64_t *size) {
    struct entry *e = symbol ? find(variables, symbol) : NULL;
    if (!e)
        return hipErrorInvalidSymbol;
    int device = soft_current_device();
    struct soft_module *m;
    pthread_mutex_lock(&registry);
    load(e->fatbin, device, &m);
    hipError_t r = m ? soft_module_variable(m, e->name, addr, size) : hipErrorNotFound;
    if (r != hipSuccess) {
        r = e->size ? shadow_variable(e, device) : hipErrorInvalidSymbol;
        if (r == hipSuccess) {
            *addr = e->block[device]->addr;
            *size = e->size;
        }
    }
    pthread_mutex_unlock(&registry);
    return r;
}

hipError_t soft_symbol_range(const void *symbol, size_t offset, size_t bytes, uint64_t *addr) {
    uint64_t size;
    hipError_t r = soft_symbol_find(symbol, addr, &size);
    if (r != hipSuccess)
        return r;
    if (bytes > size || offset > size - bytes)
        return hipErrorInvalidValue;
    *addr += offset;
    return hipSuccess;
}

/* ---- registration -------------------------------------------------------------------------- */

static struct fatbin *as_fatbin(void **handle) {
    return soft_handle_valid(fatbins(), handle) ? (struct fatbin *)handle : NULL;
}

hip_fatbin_handle soft___hipRegisterFatBinary(const void *data) {
    const struct hip_fatbin_wrapper *w = data;
    if (!w || w->magic != HIP_FATBIN_MAGIC || w->version != HIP_FATBIN_VERSION)
        return NULL;
    struct fatbin *f = soft_handle_alloc(fatbins());
    if (!f)
        return NULL;
    f->binary = w->binary;
    soft_memory_note_machine_code();
    memset(f->module, 0, sizeof f->module);
    memset(f->error, 0, sizeof f->error);
    f->managed = NULL;
    if (!w->binary)
        for (size_t i = 0; i < SOFT_DEVICES_MAX; i++)
            f->error[i] = hipErrorInvalidImage;
    return (hip_fatbin_handle)f;
}

/* Marks the entries of a fat binary dead and frees what they own, which nothing may still use. */
static void kill_entries(bucket *table, const struct fatbin *f) {
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct entry *e = atomic_load(&table[i]); e; e = e->next) {
            if (e->fatbin != f || atomic_exchange(&e->dead, true))
                continue;
            for (int d = 0; d < SOFT_DEVICES_MAX; d++)
                if (e->block[d]) {
                    soft_schedule_drain(d);
                    soft_memory_free(e->block[d]);
                    e->block[d] = NULL;
                }
        }
}

void soft___hipUnregisterFatBinary(void **modules) {
    struct fatbin *f = as_fatbin(modules);
    if (!f)
        return;
    pthread_mutex_lock(&registry);
    kill_entries(kernels, f);
    kill_entries(variables, f);
    for (size_t i = 0; i < SOFT_DEVICES_MAX; i++) {
        soft_module_close(f->module[i]);
        f->module[i] = NULL;
    }
    for (struct managed *m = f->managed, *next; m; m = next) {
        struct soft_block *b = soft_memory_at(m->addr);
        next = m->next;
        if (b)
            soft_memory_free(b);
        free(m->name);
        free(m);
    }
    f->managed = NULL;
    soft_handle_free(fatbins(), f);
    pthread_mutex_unlock(&registry);
}

void soft___hipRegisterFunction(void **modules, const void *hostFunction, char *deviceFunction,
                                const char *deviceName, unsigned int threadLimit, uint3 *tid,
                                uint3 *bid, dim3 *blockDim, dim3 *gridDim, int *wSize) {
    (void)deviceFunction, (void)threadLimit, (void)tid, (void)bid;
    (void)blockDim, (void)gridDim, (void)wSize;
    add(kernels, hostFunction, deviceName, as_fatbin(modules), 0);
}

void soft___hipRegisterVar(void **modules, void *var, char *hostVar, char *deviceVar, int ext,
                           size_t size, int constant, int global) {
    (void)ext, (void)constant, (void)global;
    add(variables, var, deviceVar ? deviceVar : hostVar, as_fatbin(modules), size);
}

void soft___hipRegisterSurface(void **modules, void *var, char *hostVar, char *deviceVar, int type,
                               int ext) {
    (void)type, (void)ext;
    add(variables, var, deviceVar ? deviceVar : hostVar, as_fatbin(modules),
        sizeof(surfaceReference));
}

void soft___hipRegisterTexture(void **modules, void *var, char *hostVar, char *deviceVar, int type,
                               int norm, int ext) {
    (void)type, (void)norm, (void)ext;
    add(variables, var, deviceVar ? deviceVar : hostVar, as_fatbin(modules),
        sizeof(textureReference));
}

/* The host follows *pointer without calling HIP, so the variable is created now. */
void soft___hipRegisterManagedVar(void *hipModule, void **pointer, void *init_value,
                                  const char *name, size_t size, unsigned int align) {
    (void)align; /* blocks are aligned to whatever divides their size */
    struct fatbin *f = as_fatbin(hipModule);
    struct managed *m = calloc(1, sizeof *m);
    char *copy = name ? strdup(name) : NULL;
    struct soft_block *b;
    if (!m || !copy || !pointer || !size || soft_start() != hipSuccess ||
        soft_memory_alloc(0, SOFT_MANAGED, size, hipMemAttachGlobal, false, &b) != hipSuccess) {
        free(m);
        free(copy);
        return;
    }
    b->keep = true;
    if (init_value)
        memcpy(soft_reach(b->addr), init_value, size);
    *pointer = (void *)(uintptr_t)b->addr;
    m->name = copy;
    m->addr = b->addr;
    pthread_mutex_lock(&registry);
    if (f) {
        m->next = f->managed;
        f->managed = m;
    }
    pthread_mutex_unlock(&registry);
    if (!f) {
        free(copy);
        free(m);
    }
}

void soft___hipGetPCH(const char **pch, unsigned int *size) {
    if (pch)
        *pch = NULL;
    if (size)
        *size = 0;
}
