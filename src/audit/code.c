#include "audit/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/handles.h"
#include "codeobj/bundle.h"
#include "codeobj/codeobj.h"

enum { LIST_TEXT = 4096, KEY_TEXT = 1024 };

struct code_module {
    struct handle_node node;             /* key: the handle */
    _Atomic(const void *) wrapper;       /* of a fat binary; NULL: not one, or gone */
    _Atomic bool read;                   /* list is final */
    _Atomic(struct codeobj_list *) list; /* without its image; NULL: could not be read */
};

static struct handles modules;

/* ---- reading ------------------------------------------------------------------------------- */

/* The thread's device, as bundles name it: "gfx90a:sramecc+:xnack-". False if it does not say. */
static bool device_target(char target[256]) {
    union {
        hipDeviceProp_tR0600 six;
        hipDeviceProp_tR0000 five;
    } *p = calloc(1, sizeof *p);
    int device = audit_current_device();
    const char *arch = NULL;
    if (!p)
        return false;
    if (audit.hip_major >= 6) {
        if (audit.raw.hipGetDevicePropertiesR0600(&p->six, device) == hipSuccess)
            arch = p->six.gcnArchName;
    } else if (audit.raw.hipGetDeviceProperties(&p->five, device) == hipSuccess) {
        arch = p->five.gcnArchName;
    }
    if (arch)
        snprintf(target, 256, "%.255s", arch);
    free(p);
    return arch && *target;
}

/* Reads by one of the two functions: for the device, and if there is nothing for it, whatever there
 * is. Takes the list and drops the image. */
static struct codeobj_list *read_code(const void *memory, const char *path) {
    char own[256];
    const char *targets[2] = { device_target(own) ? own : NULL, NULL };
    struct codeobj_image image = { 0 };
    struct codeobj_list *list = NULL;
    enum rc rc = RC_UNSUPPORTED;
    for (int i = 0; i < 2 && rc == RC_UNSUPPORTED; i++)
        rc = path ? codeobj_from_file(path, targets[i], &image, NULL)
                  : codeobj_from_memory(memory, targets[i], &image, NULL);
    if (rc == RC_OK && codeobj_list_open(&list, image.bytes, image.size, NULL) != RC_OK)
        list = NULL;
    if (list)
        codeobj_list_forget_image(list);
    free(image.bytes);
    return list;
}

static void publish(struct code_module *m, struct codeobj_list *list) {
    struct codeobj_list *none = NULL;
    if (list && !atomic_compare_exchange_strong(&m->list, &none, list))
        codeobj_list_close(&list); /* another thread was first */
    atomic_store_explicit(&m->read, true, memory_order_release);
}

static const struct codeobj_list *list_of(struct code_module *m) {
    if (!atomic_load_explicit(&m->read, memory_order_acquire)) {
        const void *wrapper = atomic_load(&m->wrapper);
        publish(m, wrapper ? read_code(wrapper, NULL) : NULL);
    }
    return atomic_load_explicit(&m->list, memory_order_acquire);
}

/* ---- modules ------------------------------------------------------------------------------- */

static struct code_module *enter(const void *handle) {
    struct code_module *m = handle ? calloc(1, sizeof *m) : NULL;
    if (m)
        m->node.key = (uint64_t)(uintptr_t)handle;
    return m;
}

void code_enter_fatbin(const void *handle, const void *wrapper) {
    struct code_module *m = audit.writer ? enter(handle) : NULL;
    if (!m)
        return;
    atomic_store(&m->wrapper, wrapper);
    handles_insert(&modules, &m->node);
}

void code_enter_image(const void *handle, const void *image) {
    struct code_module *m = audit.writer ? enter(handle) : NULL;
    if (!m)
        return;
    publish(m, read_code(image, NULL));
    handles_insert(&modules, &m->node);
}

void code_enter_file(const void *handle, const char *path) {
    struct code_module *m = audit.writer && path ? enter(handle) : NULL;
    if (!m)
        return;
    publish(m, read_code(NULL, path));
    handles_insert(&modules, &m->node);
}

struct code_module *code_find(const void *handle) {
    return handles_find(&modules, (uint64_t)(uintptr_t)handle);
}

void code_leave(const void *handle) {
    struct code_module *m = code_find(handle);
    if (m)
        atomic_store(&m->wrapper, NULL);
}

void code_reset(void) {
    for (int i = 0; i < HANDLES_BUCKETS; i++) {
        struct handle_node *n = atomic_exchange(&modules.bucket[i], NULL);
        while (n) {
            struct code_module *m = (struct code_module *)n;
            struct codeobj_list *list = atomic_load(&m->list);
            n = n->next;
            codeobj_list_close(&list);
            free(m);
        }
    }
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* A recording knows arguments by their numbers; the names are recorded once. */
static void tell_names(const struct codeobj_kernel *k, unsigned count) {
    char key[KEY_TEXT], names[LIST_TEXT];
    size_t used = 0;
    bool any = false;
    for (unsigned i = 0; i < count && used < sizeof names; i++) {
        const char *name = k->arguments[i].name;
        any |= name != NULL;
        used +=
            (size_t)(name ? snprintf(names + used, sizeof names - used, "%s%s", i ? "," : "", name)
                          : snprintf(names + used, sizeof names - used, "%s#%u", i ? "," : "", i));
    }
    if (!any)
        return;
    snprintf(key, sizeof key, "kernel.%s.arguments", k->name);
    record_provenance(audit.writer, key, names);
}

static void describe(const struct codeobj_argument *a, struct kernel_param *out) {
    *out = (struct kernel_param){ .size = a->size, .offset = a->offset };
    if (a->is_pointer)
        out->access = a->is_read_only ? EVENT_ARG_READ : EVENT_ARG_READ | EVENT_ARG_WRITE;
    if (a->actual_access == CODEOBJ_WRITE_ONLY)
        out->access = EVENT_ARG_WRITE;
    /* Eight bytes and more may hold a pointer, until the type says otherwise. */
    out->opaque = !a->is_pointer && a->size >= sizeof(void *);
    out->leads_on = a->is_pointer;
}

bool code_layout(struct code_module *m, const char *kernel, struct kernel_layout *out) {
    const struct codeobj_list *list = m ? list_of(m) : NULL;
    const struct codeobj_kernel *k = list ? codeobj_list_kernel(list, kernel) : NULL;
    if (!k || !k->has_metadata)
        return false;
    *out = (struct kernel_layout){ .has_offsets = true };
    for (uint32_t i = 0; i < k->argument_count && !k->arguments[i].is_hidden; i++) {
        if (out->count == KERNEL_PARAMS_MAX) {
            out->reaches = true; /* those after have no room */
            break;
        }
        describe(&k->arguments[i], &out->param[out->count++]);
    }
    tell_names(k, out->count);
    code_add_types(kernel, out);
    for (unsigned i = 0; i < out->count; i++)
        out->reaches |= out->param[i].opaque || out->param[i].leads_on;
    return true;
}
