/* kern.c - loading the kernels into a HIP runtime, and launching them. */
#include "kernels/kern.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <greta/soft.h>

#include "audit/audit.h"
#include "audit/kernel.h"
#include "base/env.h"
#include "codeobj/codeobj.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/native.h"
#include "kernels/hip/image.h"
#include "kernels/hip/rtc.h"
#include "kernels/spec.h"

struct kern_device {
    const struct hip_api *hip;
    hipModule_t module;
    hipFunction_t functions[KERN_COUNT]; /* NULL: GPU code has nothing to do for it */
    bool gpu;                            /* the functions are GPU code */
    bool enforce;                        /* GCORE_ENFORCE */
    bool trusts;                         /* kern_trust() */
};

/* ---- opening -------------------------------------------------------------------------------- */

static enum rc hip_failed(const struct hip_api *hip, const char *what, hipError_t error,
                          struct err *e) {
    return err_set(e, RC_DEVICE, "%s failed: %s (%s)", what, hip->hipGetErrorString(error),
                   hip->hipGetErrorName(error));
}

/* The current device as bundles name it: "gfx942:sramecc+:xnack-". */
static enum rc device_target(const struct hip_runtime *runtime, const struct hip_api *hip,
                             char target[256], struct err *e) {
    union {
        hipDeviceProp_tR0600 six;
        hipDeviceProp_tR0000 five;
    } *p = calloc(1, sizeof *p);
    int device = 0;
    if (!p)
        return err_set(e, RC_MEMORY, "out of memory");
    hipError_t r = hip->hipGetDevice(&device);
    const char *name = runtime->major >= 6 ? p->six.gcnArchName : p->five.gcnArchName;
    if (r == hipSuccess)
        r = runtime->major >= 6 ? hip->hipGetDevicePropertiesR0600(&p->six, device)
                                : hip->hipGetDeviceProperties(&p->five, device);
    snprintf(target, 256, "%.255s", r == hipSuccess ? name : "");
    free(p);
    return r == hipSuccess ? RC_OK : hip_failed(hip, "hipGetDeviceProperties", r, e);
}

/* The software device runs kernels that are host functions; they are made known to it by name. */
static enum rc register_native(const struct hip_soft *soft, struct err *e) {
    if (!soft->kernel_register)
        return err_set(e, RC_UNSUPPORTED,
                       "the software device is too old: it lacks greta_soft_kernel_register");
    for (int i = 0; i < KERN_COUNT; i++)
        if (soft->kernel_register(native_kernel((enum kern_id)i)))
            return err_set(e, RC_MEMORY, "kernel %s: cannot be registered",
                           kern_name((enum kern_id)i));
    return RC_OK;
}

static const struct spec *find_spec(const char *name) {
    for (int i = 0; i < KERN_COUNT; i++)
        if (spec_table[i].name[0] == name[0] && !strcmp(spec_table[i].name, name))
            return &spec_table[i];
    return NULL;
}

/* What the audit asks to find the buffers among a launch's arguments. */
static bool describe_kernel(const char *name, struct kernel_layout *out, void *user) {
    const struct spec *s = find_spec(name);
    (void)user;
    if (!s)
        return false;
    out->count = s->param_count;
    for (uint32_t p = 0; p < s->param_count; p++) {
        out->param[p].size = s->params[p].size;
        out->param[p].access = (uint8_t)s->params[p].access;
    }
    return true;
}

static bool may_skip_rows(const struct spec *s, const struct spec_view *v) {
    /* Caches are used up to the token's position, tables and logits where ids point. */
    return v->type == SPEC_CACHE || s == &spec_table[KERN_embed] ||
           s == &spec_table[KERN_take_rows] || s == &spec_table[KERN_sample];
}

/* The argument that hands a view to the kernel, by their names. */
static unsigned search_argument(const struct spec *s, const struct spec_view *v) {
    unsigned found = EVENT_NO_ARGUMENT;
    for (uint32_t p = 0; p < s->param_count; p++)
        if (s->params[p].access && !strcmp(s->params[p].name, v->name))
            found = p;
    return found;
}

/* 1 + search_argument(), remembered, because a recorded launch asks for every view; 0: not yet. All
 * threads find the same. */
static unsigned argument_of(const struct spec *s, uint32_t view) {
    enum { VIEWS = 16 };
    static _Atomic uint16_t known[KERN_COUNT][VIEWS];
    if (view >= VIEWS)
        return search_argument(s, &s->views[view]);
    _Atomic uint16_t *k = &known[s - spec_table][view];
    unsigned found = atomic_load_explicit(k, memory_order_relaxed);
    if (!found) {
        found = 1 + search_argument(s, &s->views[view]);
        atomic_store_explicit(k, (uint16_t)found, memory_order_relaxed);
    }
    return found - 1;
}

/* What the audit asks to know which bytes a launch touches: kernel.def's footprints. */
static unsigned footprint(const char *name, void **params, struct event_access *out, unsigned room,
                          void *user) {
    static const unsigned access[] = { [SPEC_READ] = DETAIL_ACCESS_READ,
                                       [SPEC_WRITE] = DETAIL_ACCESS_WRITE,
                                       [SPEC_UPDATE] = DETAIL_ACCESS_READ_WRITE };
    unsigned n = 0;
    const struct spec *s = find_spec(name);
    union spec_arguments arguments;
    (void)user;
    if (!s)
        return 0;
    spec_gather(s, params, &arguments);
    for (uint32_t i = 0; i < s->view_count && n < room; i++) {
        const struct spec_view *v = &s->views[i];
        const struct kern_view *view = (const void *)((const char *)&arguments + v->offset);
        out[n] = (struct event_access){ .address = (uint64_t)(uintptr_t)view->ptr,
                                        .bytes = v->bytes(&arguments),
                                        .access = access[v->access],
                                        .argument = argument_of(s, i) };
        if (v->type != SPEC_I32)
            out[n].access |= EVENT_ACCESS_SHAPED;
        if (may_skip_rows(s, v))
            out[n].access |= EVENT_ACCESS_AT_MOST;
        n += out[n].bytes != 0;
    }
    return n;
}

/* A recording knows arguments by their numbers. */
static void record_arguments(void) {
    for (int i = 0; audit.writer && i < KERN_COUNT; i++) {
        const struct spec *s = &spec_table[i];
        char key[80], names[600];
        size_t used = 0;
        for (uint32_t p = 0; p < s->param_count && used < sizeof names; p++)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", p ? "," : "",
                                     s->params[p].name);
        snprintf(key, sizeof key, "kernel.%s.arguments", s->name);
        record_provenance(audit.writer, key, names);
    }
}

/* ---- native code and GPU code ---------------------------------------------------------------- */

static _Atomic bool native_is_known; /* to the software device, for the rest of the process */

enum rc kern_exec_find(enum kern_exec *out, const char *name, struct err *e) {
    if (!name || !*name)
        *out = KERN_EXEC_DEFAULT;
    else if (!strcmp(name, "native"))
        *out = KERN_EXEC_NATIVE;
    else if (!strcmp(name, "isa"))
        *out = KERN_EXEC_ISA;
    else
        return err_set(e, RC_USAGE, "expected native or isa, found '%s'", name);
    return RC_OK;
}

static enum rc find_function(kern_device *d, int kernel, struct err *e) {
    hipError_t r = d->hip->hipModuleGetFunction(&d->functions[kernel], d->module,
                                                kern_name((enum kern_id)kernel));
    return r == hipSuccess ? RC_OK : hip_failed(d->hip, "hipModuleGetFunction", r, e);
}

static enum rc load_module(kern_device *d, const void *image, struct err *e) {
    hipError_t r = d->hip->hipModuleLoadData(&d->module, image);
    return r == hipSuccess ? RC_OK : hip_failed(d->hip, "hipModuleLoadData", r, e);
}

static enum rc load_native(kern_device *d, const struct hip_runtime *runtime, struct err *e) {
    enum rc rc = isa_check(e);
    rc = rc ? rc : register_native(&runtime->soft, e);
    if (!rc)
        atomic_store(&native_is_known, true);
    rc = rc ? rc : load_module(d, "GRETASFT", e);
    for (int i = 0; !rc && i < KERN_COUNT; i++)
        rc = find_function(d, i, e);
    return rc;
}

/* The arguments of a kernel's code are those of kernel.def: as many, as large, in this order. */
static bool fits(const struct codeobj_kernel *k, const struct spec *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->argument_count; i++) {
        const struct codeobj_argument *a = &k->arguments[i];
        if (a->is_hidden)
            continue;
        if (n == s->param_count || a->size != s->params[n].size ||
            a->is_pointer != (s->params[n].access != SPEC_VALUE))
            return false;
        n++;
    }
    return n == s->param_count;
}

static enum rc find_gpu_functions(kern_device *d, const struct codeobj_list *list, struct err *e) {
    enum rc rc = RC_OK;
    for (int i = 0; !rc && i < KERN_COUNT; i++) {
        const struct codeobj_kernel *k = codeobj_list_kernel(list, spec_table[i].name);
        if (k && !fits(k, &spec_table[i]))
            return err_set(e, RC_UNSUPPORTED, "kernel %s: the GPU code has other arguments",
                           spec_table[i].name);
        rc = k ? find_function(d, i, e) : RC_OK;
    }
    return rc;
}

static enum rc load_gpu(kern_device *d, const struct hip_runtime *runtime, struct err *e) {
    char target[256];
    struct codeobj_image image = { 0 };
    struct codeobj_list *list = NULL;
    enum rc rc = device_target(runtime, d->hip, target, e);
    rc = rc ? rc : image_find(target, &image, e);
    if (rc == RC_UNSUPPORTED && runtime->kind == HIP_DEVICE_ROCM)
        rc = rtc_find(d->hip, target, &image, e);
    rc = rc ? rc : codeobj_list_open(&list, image.bytes, image.size, e);
    rc = rc ? rc : load_module(d, image.bytes, e);
    rc = rc ? rc : find_gpu_functions(d, list, e);
    d->gpu = true;
    codeobj_list_close(&list);
    free(image.bytes);
    return rc;
}

static enum rc load(kern_device *d, const struct hip_runtime *runtime, enum kern_exec exec,
                    struct err *e) {
    bool soft = runtime->kind == HIP_DEVICE_SOFT;
    if (exec == KERN_EXEC_DEFAULT)
        exec = soft ? KERN_EXEC_NATIVE : KERN_EXEC_ISA;
    if (exec == KERN_EXEC_NATIVE && !soft)
        return err_set(e, RC_UNSUPPORTED,
                       "native kernels need the software device (--device soft)");
    if (exec == KERN_EXEC_NATIVE)
        return load_native(d, runtime, e);
    if (soft && atomic_load(&native_is_known))
        return err_set(e, RC_UNSUPPORTED,
                       "this process runs native kernels already: GPU code comes first or alone");
    return load_gpu(d, runtime, e);
}

enum rc kern_open(kern_device **out, const struct hip_runtime *runtime, const struct hip_api *table,
                  enum kern_exec exec, struct err *e) {
    kern_device *d = calloc(1, sizeof *d);
    if (!d)
        return err_set(e, RC_MEMORY, "out of memory");
    d->hip = table;
    d->enforce = env_flag(ENV_GCORE_ENFORCE);
    kernel_set_source(describe_kernel, NULL);
    kernel_set_footprint(footprint, NULL);
    record_arguments();
    enum rc rc = load(d, runtime, exec, e);
    if (rc)
        kern_close(&d);
    else
        *out = d;
    return rc;
}

void kern_close(kern_device **d) {
    if (!*d)
        return;
    if ((*d)->module)
        (void)(*d)->hip->hipModuleUnload((*d)->module);
    free(*d);
    *d = NULL;
}

void kern_trust(kern_device *d) {
    d->enforce = false;
    d->trusts = true;
}

bool kern_is_gpu(const kern_device *d) {
    return d->gpu;
}

uint32_t kern_tokens_most(const kern_device *d) {
    return d->gpu ? KERN_FEW : UINT32_MAX;
}

/* ---- launching ------------------------------------------------------------------------------ */

static enum rc check_view(const struct spec *s, const struct spec_view *v, const void *arguments,
                          struct err *e) {
    const struct kern_view *view = (const struct kern_view *)((const char *)arguments + v->offset);
    const char *name = view->name ? view->name : "unnamed";
    uint64_t need = v->bytes(arguments);
    bool right_type = spec_type_allows(v->type, view->type);
    if (need == 0 || (right_type && need <= view->bytes))
        return RC_OK;
    char needed[80];
    if (need == UINT64_MAX)
        snprintf(needed, sizeof needed, "rows that are no whole blocks of %s, or too many",
                 tensor_type_name((enum tensor_type)view->type));
    else
        snprintf(needed, sizeof needed, "%llu", (unsigned long long)need);
    if (!right_type)
        return err_set(
            e, RC_REFUSED,
            "kernel %s, argument %s: tensor %s is %s, expected %s (%llu bytes there, the "
            "launch needs %s); nothing was launched (GCORE_ENFORCE=0 lets it through)",
            s->name, v->name, name, tensor_type_name((enum tensor_type)view->type),
            spec_type_name(v->type), (unsigned long long)view->bytes, needed);
    return err_set(e, RC_REFUSED,
                   "kernel %s, argument %s: tensor %s has %llu bytes, the launch needs %s; "
                   "nothing was launched (GCORE_ENFORCE=0 lets it through)",
                   s->name, v->name, name, (unsigned long long)view->bytes, needed);
}

/* Sizes that the GPU code has no room for. */
static bool is_beyond_gpu(enum kern_id id, const void *arguments) {
    const struct kern_attention *attention = arguments;
    const struct kern_matmul_activate *activate = arguments;
    const struct kern_matmul_gate_up *gate_up = arguments;
    const struct kern_attention_step *step = arguments;
    return (id == KERN_attention && attention->head_size > KERN_HEAD_MAX) ||
           (id == KERN_attention_step && step->head_size > KERN_HEAD_MAX) ||
           (id == KERN_matmul_activate && activate->tokens > KERN_FEW) ||
           (id == KERN_matmul_gate_up && gate_up->activated && gate_up->tokens <= KERN_FEW);
}

static enum rc launch(kern_device *d, enum kern_id id, hipStream_t stream, const void *arguments,
                      struct err *e) {
    const struct spec *s = &spec_table[id];
    for (uint32_t i = 0; d->enforce && i < s->view_count; i++) {
        enum rc rc = check_view(s, &s->views[i], arguments, e);
        if (rc)
            return rc;
    }
    void *params[SPEC_PARAMS_MAX];
    spec_list(s, arguments, params);
    uint64_t blocks = d->gpu ? s->groups(arguments) : s->blocks(arguments);
    if (!blocks)
        return RC_OK;
    if (blocks > UINT32_MAX)
        return err_set(e, RC_RANGE, "kernel %s: %llu blocks are more than a launch can have",
                       s->name, (unsigned long long)blocks);
    if (!d->functions[id] || (d->gpu && is_beyond_gpu(id, arguments)))
        return err_set(e, RC_UNSUPPORTED, "kernel %s has no GPU code for this", s->name);
    hipError_t r =
        d->hip->hipModuleLaunchKernel(d->functions[id], (unsigned)blocks, 1, 1,
                                      d->gpu ? s->threads : 64, 1, 1, 0, stream, params, NULL);
    if (r == hipSuccess || d->trusts)
        return RC_OK;
    return err_set(e, RC_DEVICE, "%s launch failed: %s", s->name, d->hip->hipGetErrorString(r));
}

#define KERN_BEGIN(k)                                                                              \
    enum rc kern_##k(kern_device *device, hipStream_t stream, const struct kern_##k *arguments,    \
                     struct err *e) {                                                              \
        return launch(device, KERN_##k, stream, arguments, e);                                     \
    }
#include "kernels/kernel.def"
