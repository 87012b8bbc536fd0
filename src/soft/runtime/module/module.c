#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/lines.h"
#include "soft/runtime/error.h"
#include "soft/runtime/function.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/machine/machine.h"
#include "soft/runtime/machine/machine_heap.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"

static bool place(const struct soft_function *function, uint64_t pc, char *out, size_t size);

struct soft_module {
    struct soft_handle handle;
    int device;
    bool loaded;               /* by the program: hipModuleUnload may have it */
    struct soft_image image;   /* list points into it */
    struct codeobj_list *list; /* NULL: native only */
    struct codeobj_extent extent;
    struct soft_block *block; /* the loaded image */
    struct isa_code *code;    /* its machine code */
    /* In step with the list's kernels and variables; managed variables have memory of their own. */
    struct soft_module_function **functions;
    struct soft_block **managed;
};

enum { MODULES_MAX = 1 << 16, IMAGE_ALIGN = 4096 };

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct soft_handles *modules;
/* Held while a module is read, so that no other thread unloads it meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

pthread_mutex_t *soft_module_lock(void) {
    return &lock;
}

static void make_pool(void) {
    modules = soft_handles_new(sizeof(struct soft_module), MODULES_MAX);
    if (!modules)
        abort(); /* no address space for a table: nothing could work */
}

static struct soft_handles *soft_modules(void) {
    pthread_once(&pool_once, make_pool);
    return modules;
}

void soft_module_prepare(void) {
    (void)soft_modules();
}

/* ---- loading ------------------------------------------------------------------------------- */

static bool is_managed(const char *name, size_t *base_length) {
    size_t n = strlen(name), suffix = strlen(".managed");
    if (n <= suffix || strcmp(name + n - suffix, ".managed"))
        return false;
    *base_length = n - suffix;
    return true;
}

/* The variable called name[0..length), or NULL. */
static const struct codeobj_variable *find_variable(const struct soft_module *m, const char *name,
                                                    size_t length) {
    for (size_t i = 0; m->list && i < m->list->variable_count; i++) {
        const struct codeobj_variable *v = &m->list->variables[i];
        if (!v->local && !strncmp(v->name, name, length) && !v->name[length])
            return v;
    }
    return NULL;
}

/* Where a variable is on the device. */
static uint64_t address_of(const struct soft_module *m, const struct codeobj_variable *v) {
    const struct soft_block *own = m->managed[v - m->list->variables];
    return own ? own->addr : m->block->addr + v->address - m->extent.first;
}

static void store_pointer(const struct soft_module *m, const struct codeobj_variable *v,
                          uint64_t pointer) {
    if (v && v->size == sizeof pointer)
        memcpy(soft_reach(address_of(m, v)), &pointer, sizeof pointer);
}

/* For `__managed__ T x` the compiler emits x.managed, the value, and x, a pointer to it. */
static hipError_t allocate_managed(struct soft_module *m) {
    size_t count = m->list->variable_count, base;
    m->managed = calloc(count + 1, sizeof *m->managed);
    if (!m->managed)
        return hipErrorOutOfMemory;
    for (size_t i = 0; i < count; i++) {
        const struct codeobj_variable *v = &m->list->variables[i];
        if (v->local || !is_managed(v->name, &base))
            continue;
        hipError_t r =
            soft_memory_alloc(m->device, SOFT_MANAGED, v->size, 0, false, &m->managed[i]);
        if (r != hipSuccess)
            return r;
        m->managed[i]->keep = true;
        void *to = soft_reach(m->managed[i]->addr);
        if (v->initial)
            memcpy(to, v->initial, v->size);
        else
            memset(to, 0, v->size);
        store_pointer(m, find_variable(m, v->name, base), m->managed[i]->addr);
    }
    return hipSuccess;
}

/* All segments in one block, because code reaches variables relative to the program counter. */
static hipError_t load_image_bytes(struct soft_module *m) {
    struct err e;
    enum rc rc = codeobj_measure(&m->extent, m->image.bytes, m->image.size, &e);
    for (size_t i = 0; !rc && i < m->list->variable_count; i++) {
        const struct codeobj_variable *v = &m->list->variables[i];
        uint64_t at = v->address - m->extent.first;
        if (v->address < m->extent.first || v->size > m->extent.bytes ||
            at > m->extent.bytes - v->size)
            rc = err_set(&e, RC_FORMAT, "variable %s is in no segment", v->name);
    }
    if (rc)
        return soft_image_error(rc);
    /* Aligned blocks begin at a page, which every segment's alignment divides. */
    uint64_t bytes = (m->extent.bytes + IMAGE_ALIGN - 1) & ~(uint64_t)(IMAGE_ALIGN - 1);
    if (m->extent.align > IMAGE_ALIGN)
        return hipErrorInvalidImage;
    hipError_t r = soft_memory_alloc(m->device, SOFT_GLOBAL, bytes, 0, false, &m->block);
    if (r != hipSuccess)
        return r;
    m->block->keep = true;
    unsigned char *to = soft_reach(m->block->addr);
    memset(to + m->extent.bytes, 0, bytes - m->extent.bytes);
    rc = codeobj_load(to, m->block->addr, &m->extent, m->image.bytes, m->image.size, &e);
    if (rc == RC_OK)
        machine_heap_replace(m->list, to, m->extent.first, m->extent.bytes);
    return soft_image_error(rc);
}

static hipError_t open_code(struct soft_module *m) {
    enum isa_gpu gpu = m->list->processor == CODEOBJ_GFX90A ? ISA_GFX90A : ISA_GFX942;
    struct err e;
    return soft_image_error(isa_code_open(&m->code, gpu, soft_reach(m->block->addr), m->block->size,
                                          m->block->addr, &e));
}

/* Bundles name the GPU; a code object that comes alone says it itself. */
static bool is_taken(int processor) {
    int own = soft_settings()->arch == SOFT_ARCH_gfx90a ? CODEOBJ_GFX90A : CODEOBJ_GFX942;
    return processor == own || (soft_settings()->takes_other_code &&
                                (processor == CODEOBJ_GFX90A || processor == CODEOBJ_GFX942));
}

static hipError_t load(struct soft_module *m) {
    if (m->image.native)
        return hipSuccess;
    struct err e;
    enum rc rc = codeobj_list_open(&m->list, m->image.bytes, m->image.size, &e);
    if (rc)
        return soft_image_error(rc);
    if (!is_taken(m->list->processor))
        return hipErrorNoBinaryForGpu;
    m->functions = calloc(m->list->kernel_count + 1, sizeof *m->functions);
    if (!m->functions)
        return hipErrorOutOfMemory;
    soft_memory_note_machine_code();
    hipError_t r = load_image_bytes(m);
    if (r == hipSuccess)
        r = open_code(m);
    return r == hipSuccess ? allocate_managed(m) : r;
}

static void free_function(struct soft_module_function *f) {
    free(f->function.name);
    f->function.name = NULL;
    f->function.module = NULL;
    f->function.place = NULL;
    soft_machine_forget_through(&f->machine);
    soft_machine_forget_frame(&f->machine);
    f->kernel = NULL;
    atomic_store(&f->max_dynamic_shared, 0);
    soft_handle_free(soft_functions(), f);
}

/* Frees everything of a module that nothing runs from any more. */
static void dispose(struct soft_module *m) {
    for (size_t i = 0; m->list && m->functions && i < m->list->kernel_count; i++)
        if (m->functions[i])
            free_function(m->functions[i]);
    for (size_t i = 0; m->list && m->managed && i < m->list->variable_count; i++)
        if (m->managed[i])
            soft_memory_free(m->managed[i]);
    if (m->block)
        soft_memory_free(m->block);
    isa_code_close(&m->code);
    free(m->functions);
    free(m->managed);
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
    m->managed = NULL;
    m->block = NULL;
    m->code = NULL;
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

/* What it takes to run the kernel; NULL if its descriptor is malformed. */
static const struct soft_machine *
make_machine(struct soft_module *m, const struct codeobj_kernel *k, struct soft_machine *out) {
    uint64_t at = k->descriptor - m->extent.first, bias = m->block->addr - m->extent.first;
    struct err e;
    if (k->descriptor < m->extent.first || m->extent.bytes < CODEOBJ_DESCRIPTOR_BYTES ||
        at > m->extent.bytes - CODEOBJ_DESCRIPTOR_BYTES)
        return NULL;
    const unsigned char *bytes = soft_reach(m->block->addr);
    *out = (struct soft_machine){ .code = m->code,
                                  .kernel = k,
                                  .object = k->descriptor + bias,
                                  .entry = k->entry + bias,
                                  .processor = m->list->processor };
    codeobj_descriptor_read(&out->descriptor, bytes + at);
    return codeobj_descriptor_start(&out->start, &out->descriptor, out->processor, &e) ? NULL : out;
}

static struct soft_module_function *make_function(struct soft_module *m,
                                                  const struct codeobj_kernel *k) {
    struct soft_module_function *f = soft_handle_alloc(soft_functions());
    if (!f)
        return NULL;
    f->function.name = strdup(k->name);
    soft_function_set_native(&f->function, soft_kernel_find(k->name));
    f->function.module = m;
    f->function.place = place;
    f->function.kernarg_bytes = k->kernarg_bytes;
    f->function.shared_bytes = k->group_bytes;
    f->function.private_bytes = k->private_bytes;
    f->function.max_threads = k->max_threads;
    f->kernel = k;
    f->function.machine = make_machine(m, k, &f->machine);
    const struct codeobj_function *code = codeobj_list_function_at(m->list, k->entry);
    if (f->function.machine && code) {
        uint64_t end = f->machine.entry + code->size - (k->entry - code->address);
        soft_machine_find_through(&f->machine, end);
        soft_machine_find_frame(&f->machine, end, m->image.bytes, m->image.size);
    }
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
        soft_function_set_native(&(*slot)->function, soft_kernel_find(k->name));
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
    const struct codeobj_variable *v = NULL;
    size_t n = strlen(name);
    if (n < sizeof managed - sizeof ".managed") {
        memcpy(managed, name, n);
        strcpy(managed + n, ".managed");
        v = find_variable(module, managed, strlen(managed));
    }
    if (!v)
        v = find_variable(module, name, n);
    if (v) {
        *addr = address_of(module, v);
        *size = v->size;
    }
    pthread_mutex_unlock(&lock);
    return v ? hipSuccess : hipErrorNotFound;
}

void soft_module_set_pointer(struct soft_module *module, const char *name, uint64_t pointer) {
    pthread_mutex_lock(&lock);
    store_pointer(module, find_variable(module, name, strlen(name)), pointer);
    pthread_mutex_unlock(&lock);
}

/* Code from HIP's headers is attributed to the function that it is inlined into. */
static bool is_of_a_header(const struct codeobj_place *p) {
    return p->inlined &&
           (!p->file || !strncmp(p->file, "/usr/", 5) || strstr(p->file, "include/hip/"));
}

static bool place(const struct soft_function *function, uint64_t pc, char *out, size_t size) {
    enum { FRAMES = 16 };
    const struct soft_module *m = function->module;
    struct codeobj_place frame[FRAMES] = { 0 };
    codeobj_lines *lines = NULL;
    if (!m || !m->block || pc - m->block->addr >= m->extent.bytes ||
        codeobj_lines_open(&lines, m->image.bytes, m->image.size, NULL) != RC_OK)
        return false;
    uint64_t address = pc - m->block->addr + m->extent.first;
    unsigned count = codeobj_lines_find(lines, address, frame, FRAMES), at = 0;
    count = count < FRAMES ? count : FRAMES;
    while (at + 1 < count && is_of_a_header(&frame[at]))
        at++;
    const struct codeobj_place *p = &frame[at];
    bool known = count && p->file && p->line;
    if (known)
        snprintf(out, size, "%s at %s:%u", p->function ? p->function : function->name, p->file,
                 p->line);
    codeobj_lines_close(&lines);
    return known;
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
