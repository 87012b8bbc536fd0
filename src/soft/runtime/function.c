#include "soft/runtime/function.h"

#include <stdlib.h>
#include <string.h>

#include "soft/runtime/memory.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/slack.h"
#include "soft/runtime/start.h"

/* ---- the pool -------------------------------------------------------------------------------- */

enum { FUNCTIONS_MAX = 1 << 20 };

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct soft_handles *functions;

static void make_pool(void) {
    functions = soft_handles_new(sizeof(struct soft_module_function), FUNCTIONS_MAX);
    if (!functions)
        abort(); /* no address space for a table: nothing could work */
}

struct soft_handles *soft_functions(void) {
    pthread_once(&pool_once, make_pool);
    return functions;
}

/* ---- native kernels -------------------------------------------------------------------------- */

/* One entry per name, for ever: struct soft_function is what programs hold as hipFunction_t. */
struct entry {
    struct entry *next;
    struct soft_function *function;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *registry;

static struct entry *find_entry(const char *name) {
    struct entry *e = registry;
    while (e && strcmp(e->function->name, name))
        e = e->next;
    return e;
}

void soft_function_set_native(struct soft_function *f, const struct greta_soft_kernel *kernel) {
    f->native = kernel;
    f->looks = false;
    for (uint32_t i = 0; kernel && i < kernel->param_count; i++)
        f->looks |= soft_slack_is_looked_at(&kernel->params[i]);
}

static bool add_entry(const struct greta_soft_kernel *kernel) {
    struct entry *e = malloc(sizeof *e);
    struct soft_handles *pool = soft_functions();
    struct soft_function *f = e ? soft_handle_alloc(pool) : NULL;
    char *name = f ? strdup(kernel->name) : NULL;
    if (!name) {
        if (f)
            soft_handle_free(pool, f);
        free(e);
        return false;
    }
    f->name = name;
    soft_function_set_native(f, kernel);
    f->max_threads = SOFT_THREADS_MAX;
    *e = (struct entry){ .next = registry, .function = f };
    registry = e;
    return true;
}

static bool is_well_formed(const struct greta_soft_kernel *k) {
    if (!k || !k->name || !*k->name || !k->run || k->param_count > SOFT_PARAMS_MAX ||
        (k->param_count && !k->params))
        return false;
    uint32_t end = 0;
    for (uint32_t i = 0; i < k->param_count; i++) {
        uint32_t size = k->params[i].size;
        if (!size || (k->params[i].flags & GRETA_SOFT_POINTER && size < sizeof(void *)))
            return false;
        end = soft_param_offset(end, size) + size;
    }
    return end <= SOFT_ARGUMENT_BYTES_MAX;
}

pthread_mutex_t *soft_kernel_lock(void) {
    return &registry_lock;
}

int greta_soft_kernel_register(const struct greta_soft_kernel *kernel) {
    if (!is_well_formed(kernel) || soft_is_forked())
        return -1;
    pthread_mutex_lock(&registry_lock);
    struct entry *e = find_entry(kernel->name);
    bool ok = true;
    if (e)
        soft_function_set_native(e->function, kernel);
    else
        ok = add_entry(kernel);
    pthread_mutex_unlock(&registry_lock);
    soft_memory_note_native_kernels();
    return ok ? 0 : -1;
}

hipError_t soft_function_native(const char *name, struct soft_function **out) {
    pthread_mutex_lock(&registry_lock);
    struct entry *e = find_entry(name);
    pthread_mutex_unlock(&registry_lock);
    if (!e)
        return hipErrorNotFound;
    *out = e->function;
    return hipSuccess;
}

const struct greta_soft_kernel *soft_kernel_find(const char *name) {
    struct soft_function *f;
    return soft_function_native(name, &f) == hipSuccess ? f->native : NULL;
}

const struct greta_soft_kernel *greta_soft_kernel_find(const char *name) {
    return name && !soft_is_forked() ? soft_kernel_find(name) : NULL;
}
