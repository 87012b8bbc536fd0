#include "audit/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/code.h"
#include "audit/handles.h"
#include "base/hash.h"

struct kernel_node {
    struct handle_node node; /* key: the function */
    char *name;
    uint32_t record_name;
    struct code_module *module; /* NULL: none */
    _Atomic int asked;          /* the source: 0 not yet, 1 has answered */
    _Atomic(struct kernel_layout *) layout;
};

static struct handles kernels;
static struct {
    kernel_source ask;
    void *user;
} source, device_source;

void kernel_set_device_source(kernel_source ask, void *user) {
    device_source.ask = ask;
    device_source.user = user;
}

static struct {
    kernel_footprint ask;
    void *user;
} footprint;

void kernel_set_footprint(kernel_footprint ask, void *user) {
    footprint.ask = ask;
    footprint.user = user;
}

void kernel_set_source(kernel_source ask, void *user) {
    source.ask = ask;
    source.user = user;
}

static void enter(const void *function, const char *name, struct code_module *code) {
    uint64_t key = (uint64_t)(uintptr_t)function;
    const struct kernel_node *known = handles_find(&kernels, key);
    if (!function || !name || (known && known->module == code && strcmp(known->name, name) == 0))
        return;
    struct kernel_node *k = calloc(1, sizeof *k);
    char *copy = strdup(name);
    if (!k || !copy) { /* without a name the kernel is "?" */
        free(k);
        free(copy);
        return;
    }
    k->node.key = key;
    k->name = copy;
    k->module = code;
    k->record_name = record_string(audit.writer, name);
    handles_insert(&kernels, &k->node);
}

void kernel_enter(const void *function, const char *name, const void *module) {
    enter(function, name, module ? code_find(module) : NULL);
}

void kernel_alias(const void *function, const void *symbol) {
    const struct kernel_node *k = handles_find(&kernels, (uint64_t)(uintptr_t)symbol);
    if (k)
        enter(function, k->name, k->module);
}

static bool find_layout(const struct kernel_node *k, struct kernel_layout *out) {
    return (source.ask && source.ask(k->name, out, source.user)) ||
           (device_source.ask && device_source.ask(k->name, out, device_source.user)) ||
           code_layout(k->module, k->name, out);
}

static const struct kernel_layout *layout_of(struct kernel_node *k) {
    if (!atomic_load_explicit(&k->asked, memory_order_acquire) &&
        (source.ask || device_source.ask || k->module)) {
        struct kernel_layout *fresh = calloc(1, sizeof *fresh), *none = NULL;
        if (fresh && find_layout(k, fresh) &&
            atomic_compare_exchange_strong(&k->layout, &none, fresh))
            fresh = NULL;
        free(fresh);
        atomic_store_explicit(&k->asked, 1, memory_order_release);
    }
    return atomic_load_explicit(&k->layout, memory_order_acquire);
}

struct kernel kernel_find(const void *function) {
    struct kernel_node *k = handles_find(&kernels, (uint64_t)(uintptr_t)function);
    if (!k)
        return (struct kernel){ .name = "?" };
    return (struct kernel){ k->name, k->record_name, layout_of(k) };
}

/* Can it be an address of a block of memory? Not a count, and not the bits of a double. */
static bool is_like_address(uint64_t value) {
    return value >> 32 && !(value >> 47);
}

/* The words of a struct that look like addresses. The ledger is not asked, because the same bytes
 * must always give the same arguments; the verdict finds out what they are. */
static unsigned pointers_in_struct(const char *bytes, unsigned index, size_t size,
                                   struct event_arg *out, unsigned room) {
    unsigned n = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= size && n < room; at += sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, bytes + at, sizeof value);
        if (is_like_address(value))
            out[n++] = (struct event_arg){ value, index, EVENT_ARG_GUESSED };
    }
    return n;
}

static unsigned pointers_by_layout(const struct kernel_layout *layout, void **params,
                                   struct event_arg *out, unsigned room) {
    unsigned n = 0;
    for (unsigned i = 0; i < layout->count && n < room; i++) {
        unsigned size = layout->param[i].size, access = layout->param[i].access;
        if (!params[i])
            continue;
        unsigned found =
            layout->param[i].opaque ? pointers_in_struct(params[i], i, size, &out[n], room - n) : 0;
        n += found;
        if (found || n == room || (access ? size < sizeof(uint64_t) : size != 4 && size != 8))
            continue;
        out[n] = (struct event_arg){ .index = i, .flags = access ? access : EVENT_ARG_NUMBER };
        memcpy(&out[n++].value, params[i], size < 8 ? size : 8);
    }
    return n;
}

/* The launch's `extra`: pairs of a key and a value, ended by HIP_LAUNCH_PARAM_END. */
static const void *extra_buffer(void **extra, size_t *bytes) {
    const void *buffer = NULL;
    *bytes = 0;
    for (int i = 0; i < 8 && extra[i] != HIP_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
            *bytes = *(const size_t *)extra[i + 1];
        else
            break;
    }
    return buffer;
}

static unsigned pointers_by_guess(const char *buffer, size_t bytes, struct event_arg *out,
                                  unsigned room) {
    unsigned n = 0;
    readlock_token t = ledger_read_begin(audit.ledger);
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes && n < room; at += sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, buffer + at, sizeof value);
        if (value && (ledger_at(audit.ledger, value) || ledger_freed_at(audit.ledger, value)))
            out[n++] =
                (struct event_arg){ value, (unsigned)(at / sizeof value), EVENT_ARG_GUESSED };
    }
    ledger_read_end(t);
    return n;
}

/* Each argument of a block of them, as kernelParams would point at it; NULL beyond its end. */
static void params_of_block(const struct kernel_layout *layout, const char *block, size_t bytes,
                            void **out) {
    for (unsigned i = 0; i < layout->count; i++) {
        const struct kernel_param *p = &layout->param[i];
        bool inside = p->size <= bytes && p->offset <= bytes - p->size;
        out[i] = inside ? (void *)(uintptr_t)(block + p->offset) : NULL;
    }
}

unsigned kernel_pointers(const struct kernel *k, void **params, void **extra, struct event_arg *out,
                         unsigned room, uint64_t *bytes) {
    *bytes = 0;
    if (params)
        return k->layout ? pointers_by_layout(k->layout, params, out, room) : 0;
    if (!extra)
        return 0;
    size_t size;
    const void *buffer = extra_buffer(extra, &size);
    *bytes = size;
    if (!buffer || !k->layout || !k->layout->has_offsets)
        return buffer ? pointers_by_guess(buffer, size, out, room) : 0;
    void *in_block[KERNEL_PARAMS_MAX];
    params_of_block(k->layout, buffer, size, in_block);
    return pointers_by_layout(k->layout, in_block, out, room);
}

unsigned kernel_accesses(const struct kernel *k, void **params, struct event_access *out,
                         unsigned room) {
    return footprint.ask && params && k->layout
               ? footprint.ask(k->name, params, out, room, footprint.user)
               : 0;
}

/* The number that argument i is; 0 for pointers and whatever is no number. */
static uint64_t number_of(const struct kernel_layout *layout, void **params, unsigned i) {
    uint32_t half;
    uint64_t value = 0;
    if (layout->param[i].access || !params[i])
        return 0;
    switch (layout->param[i].size) {
    case sizeof half: /* the usual size, and a constant one: memcpy() is inlined */
        memcpy(&half, params[i], sizeof half);
        return half;
    case sizeof value:
        memcpy(&value, params[i], sizeof value);
        return value;
    default:
        if (layout->param[i].size < sizeof value)
            memcpy(&value, params[i], layout->param[i].size);
        return value;
    }
}

/* A hash of what can say where a part of a buffer begins or ends: every number but the very large
 * ones, which are floating-point numbers. */
static uint64_t hash_places(const struct kernel_layout *layout, void **params) {
    const uint64_t too_large = UINT64_C(1) << 28;
    uint64_t number[KERNEL_PARAMS_MAX];
    for (unsigned i = 0; i < layout->count; i++) {
        number[i] = number_of(layout, params, i);
        if (number[i] >= too_large)
            number[i] = 0;
    }
    return hash_bytes(number, layout->count * sizeof number[0], 1);
}

uint32_t kernel_hash(const struct kernel *k, void **params, void **extra) {
    uint64_t h = 0;
    size_t bytes = 0;
    if (params && k->layout) {
        h = hash_places(k->layout, params);
    } else if (!params) {
        const void *buffer = extra ? extra_buffer(extra, &bytes) : NULL;
        h = buffer ? hash_bytes(buffer, bytes, 0) : 0;
    }
    return (uint32_t)(h ^ h >> 32);
}

void kernel_reset(void) {
    for (int i = 0; i < HANDLES_BUCKETS; i++) {
        struct handle_node *n = atomic_exchange(&kernels.bucket[i], NULL);
        while (n) {
            struct kernel_node *k = (struct kernel_node *)n;
            n = n->next;
            free(atomic_load(&k->layout));
            free(k->name);
            free(k);
        }
    }
}
