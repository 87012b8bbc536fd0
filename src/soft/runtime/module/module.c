#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "soft/runtime/module/module.h"

struct soft_module {
    struct soft_handle handle;
    int device;
    bool loaded;               /* by the program: hipModuleUnload may have it */
    struct soft_image image;   /* list points into it */
    struct codeobj_list *list; /* NULL: native only */
    /* In step with the list's kernels and variables. */
    struct soft_module_function **functions;
    struct soft_block **blocks;
};

enum { MODULES_MAX = 1 << 16, FUNCTIONS_MAX = 1 << 20 };

static pthread_once_t pools_once = PTHREAD_ONCE_INIT;
static struct soft_handles *modules, *functions;
/* Held while a module is looked into, so that an unload by another thread cannot be half seen. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

pthread_mutex_t *soft_module_lock(void) {
    return &lock;
}

static void make_pools(void) {
    modules = soft_handles_new(sizeof(struct soft_module), MODULES_MAX);
    functions = soft_handles_new(sizeof(struct soft_module_function), FUNCTIONS_MAX);
    if (!modules || !functions)
        abort(); /* address space for two tables: nothing could work without */
}

static struct soft_handles *soft_modules(void) {
    pthread_once(&pools_once, make_pools);
    return modules;
}

struct soft_handles *soft_functions(void) {
    pthread_once(&pools_once, make_pools);
    return functions;
}

/* ---- loading ------------------------------------------------------------------------------- */

hipError_t soft_module_error(enum rc rc) {
    switch (rc) {
    case RC_OK:
        return hipSuccess;
    case RC_MEMORY:
        return hipErrorOutOfMemory;
    case RC_UNSUPPORTED:
        return hipErrorNoBinaryForGpu;
    case RC_IO:
        return hipErrorFileNotFound;
    default:
        return hipErrorInvalidImage;
    }
}

static bool is_managed(const char *name, size_t *base_length) {
    size_t n = strlen(name), suffix = strlen(".managed");
    if (n <= suffix || strcmp(name + n - suffix, ".managed"))
        return false;
    *base_length = n - suffix;
    return true;
}

static hipError_t allocate_variable(struct soft_module *m, size_t i) {
    const struct codeobj_variable *v = &m->list->variables[i];
    size_t unused;
    enum soft_block_kind kind = is_managed(v->name, &unused) ? SOFT_MANAGED : SOFT_GLOBAL;
    hipError_t r = soft_memory_alloc(m->device, kind, v->size, 0, false, &m->blocks[i]);
    if (r != hipSuccess)
        return r;
    m->blocks[i]->keep = true;
    void *to = soft_reach(m->blocks[i]->addr);
    if (v->initial)
        memcpy(to, v->initial, v->size);
    else
        memset(to, 0, v->size);
    return hipSuccess;
}

/* The block of the variable called name[0..length), or NULL. */
static struct soft_block *find_block(const struct soft_module *m, const char *name, size_t length) {
    for (size_t i = 0; m->list && i < m->list->variable_count; i++)
        if (!strncmp(m->list->variables[i].name, name, length) &&
            !m->list->variables[i].name[length])
            return m->blocks[i];
    return NULL;
}

static void store_pointer(struct soft_block *b, uint64_t pointer) {
    if (b && b->size == sizeof pointer)
        memcpy(soft_reach(b->addr), &pointer, sizeof pointer);
}

/* For `__managed__ T x` the compiler emits x.managed, the value, and x, a pointer to it. */
static hipError_t allocate_variables(struct soft_module *m) {
    size_t count = m->list->variable_count, base;
    m->blocks = calloc(count + 1, sizeof *m->blocks);
    if (!m->blocks)
        return hipErrorOutOfMemory;
    for (size_t i = 0; i < count; i++) {
        hipError_t r = allocate_variable(m, i);
        if (r != hipSuccess)
            return r;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = m->list->variables[i].name;
        if (is_managed(name, &base))
            store_pointer(find_block(m, name, base), m->blocks[i]->addr);
    }
    return hipSuccess;
}

static hipError_t load(struct soft_module *m) {
    if (m->image.native)
        return hipSuccess;
    struct err e;
    enum rc rc = codeobj_list_open(&m->list, m->image.bytes, m->image.size, &e);
    if (rc)
        return soft_module_error(rc);
    if (m->list->processor != CODEOBJ_GFX90A && m->list->processor != CODEOBJ_GFX942)
        return hipErrorNoBinaryForGpu;
    m->functions = calloc(m->list->kernel_count + 1, sizeof *m->functions);
    return m->functions ? allocate_variables(m) : hipErrorOutOfMemory;
}

static void free_function(struct soft_module_function *f) {
    free(f->function.name);
    f->function.name = NULL;
    f->function.module = NULL;
    f->kernel = NULL;
    atomic_store(&f->max_dynamic_shared, 0);
    soft_handle_free(functions, f);
}

/* Frees everything of a module that nothing runs from any more. */
static void dispose(struct soft_module *m) {
    for (size_t i = 0; m->list && m->functions && i < m->list->kernel_count; i++)
        if (m->functions[i])
            free_function(m->functions[i]);
    for (size_t i = 0; m->list && m->blocks && i < m->list->variable_count; i++)
        if (m->blocks[i])
            soft_memory_free(m->blocks[i]);
    free(m->functions);
    free(m->blocks);
    codeobj_list_close(&m->list);
    free(m->image.bytes);
    soft_handle_free(modules, m);
}

hipError_t soft_module_open(struct soft_module **out, int device, struct soft_image *image) {
    struct soft_module *m = soft_handle_alloc(soft_modules());
    if (!m) {
        free(image->bytes);
        return hipErrorOutOfMemory;
    }
    m->device = device;
    m->loaded = false;
    m->image = *image;
    m->list = NULL;
    m->functions = NULL;
    m->blocks = NULL;
    hipError_t r = load(m);
    if (r == hipSuccess)
        *out = m;
    else
        dispose(m);
    return r;
}

void soft_module_close(struct soft_module *module) {
    if (!module)
        return;
    soft_schedule_drain(module->device);
    pthread_mutex_lock(&lock);
    dispose(module);
    pthread_mutex_unlock(&lock);
}

/* ---- looking up ---------------------------------------------------------------------------- */

static struct soft_module_function *make_function(struct soft_module *m,
                                                  const struct codeobj_kernel *k) {
    struct soft_module_function *f = soft_handle_alloc(soft_functions());
    if (!f)
        return NULL;
    f->function.name = strdup(k->name);
    f->function.native = soft_kernel_find(k->name);
    f->function.module = m;
    f->function.kernarg_bytes = k->kernarg_bytes;
    f->function.shared_bytes = k->group_bytes;
    f->function.private_bytes = k->private_bytes;
    f->function.max_threads = k->max_threads;
    f->kernel = k;
    atomic_store(&f->max_dynamic_shared, 0);
    if (!f->function.name) {
        free_function(f);
        return NULL;
    }
    return f;
}

/* With the lock. */
static hipError_t find_function(struct soft_module *m, const struct codeobj_kernel *k,
                                struct soft_function **out) {
    struct soft_module_function **slot = &m->functions[k - m->list->kernels];
    if (!*slot)
        *slot = make_function(m, k);
    if (!*slot)
        return hipErrorOutOfMemory;
    if (!(*slot)->function.native) /* its twin may have come since */
        (*slot)->function.native = soft_kernel_find(k->name);
    *out = &(*slot)->function;
    return hipSuccess;
}

hipError_t soft_module_function(struct soft_module *module, const char *name,
                                struct soft_function **out) {
    pthread_mutex_lock(&lock);
    const struct codeobj_kernel *k = module->list ? codeobj_list_kernel(module->list, name) : NULL;
    hipError_t r = k ? find_function(module, k, out) : hipErrorNotFound;
    pthread_mutex_unlock(&lock);
    return k ? r : soft_function_native(name, out);
}

hipError_t soft_module_variable(struct soft_module *module, const char *name, uint64_t *addr,
                                uint64_t *size) {
    char managed[512];
    pthread_mutex_lock(&lock);
    struct soft_block *b = NULL;
    size_t n = strlen(name);
    if (n < sizeof managed - sizeof ".managed") {
        memcpy(managed, name, n);
        strcpy(managed + n, ".managed");
        b = find_block(module, managed, strlen(managed));
    }
    if (!b)
        b = find_block(module, name, n);
    if (b) {
        *addr = b->addr;
        *size = b->size;
    }
    pthread_mutex_unlock(&lock);
    return b ? hipSuccess : hipErrorNotFound;
}

void soft_module_set_pointer(struct soft_module *module, const char *name, uint64_t pointer) {
    pthread_mutex_lock(&lock);
    store_pointer(find_block(module, name, strlen(name)), pointer);
    pthread_mutex_unlock(&lock);
}

/* ---- HIP ----------------------------------------------------------------------------------- */

static hipError_t load_image(hipModule_t *module, hipError_t r, struct soft_image *image) {
    struct soft_module *m;
    if (r == hipSuccess)
        r = soft_module_open(&m, soft_current_device(), image);
    if (r != hipSuccess)
        return r;
    m->loaded = true;
    *module = (hipModule_t)m;
    return hipSuccess;
}

hipError_t soft_hipModuleLoadData(hipModule_t *module, const void *image) {
    if (!module || !image)
        return hipErrorInvalidValue;
    struct soft_image found;
    hipError_t r = soft_image_from_memory(image, &found);
    return load_image(module, r, &found);
}

hipError_t soft_hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned int numOptions,
                                    hipJitOption *options, void **optionValues) {
    if (numOptions && (!options || !optionValues))
        return hipErrorInvalidValue;
    return soft_hipModuleLoadData(module, image); /* options steer a compiler; there is none */
}

hipError_t soft_hipModuleLoad(hipModule_t *module, const char *fname) {
    if (!module || !fname || !*fname)
        return hipErrorInvalidValue;
    struct soft_image found;
    hipError_t r = soft_image_from_file(fname, &found);
    return load_image(module, r, &found);
}

static bool is_loaded(hipModule_t module) {
    return soft_handle_valid(soft_modules(), module) && ((struct soft_module *)module)->loaded;
}

hipError_t soft_hipModuleUnload(hipModule_t module) {
    if (!module)
        return hipErrorInvalidResourceHandle;
    if (!is_loaded(module))
        return hipErrorNotFound;
    soft_module_close((struct soft_module *)module);
    return hipSuccess;
}

hipError_t soft_hipModuleGetFunction(hipFunction_t *function, hipModule_t module,
                                     const char *kname) {
    if (!function || !kname || !*kname)
        return hipErrorInvalidValue;
    if (!module)
        return hipErrorInvalidResourceHandle;
    struct soft_function *f;
    if (!is_loaded(module))
        return hipErrorNotFound;
    hipError_t r = soft_module_function((struct soft_module *)module, kname, &f);
    if (r == hipSuccess)
        *function = (hipFunction_t)f;
    return r;
}

hipError_t soft_hipModuleGetGlobal(hipDeviceptr_t *dptr, size_t *bytes, hipModule_t hmod,
                                   const char *name) {
    if ((!dptr && !bytes) || !name || !*name)
        return hipErrorInvalidValue;
    if (!hmod)
        return hipErrorInvalidResourceHandle;
    uint64_t addr, size;
    if (!is_loaded(hmod) ||
        soft_module_variable((struct soft_module *)hmod, name, &addr, &size) != hipSuccess)
        return hipErrorNotFound;
    if (dptr)
        *dptr = (hipDeviceptr_t)(uintptr_t)addr;
    if (bytes)
        *bytes = size;
    return hipSuccess;
}

hipError_t soft_hipModuleGetTexRef(textureReference **texRef, hipModule_t hmod, const char *name) {
    if (!texRef || !name || !*name)
        return hipErrorInvalidValue;
    if (!hmod)
        return hipErrorInvalidResourceHandle;
    return hipErrorNotFound; /* the device has no textures */
}
