#include "codeobj/kernarg.h"

#include <string.h>

uint32_t codeobj_explicit_count(const struct codeobj_kernel *k) {
    uint32_t n = 0;
    while (n < k->argument_count && !k->arguments[n].is_hidden)
        n++;
    return n;
}

/* The end of an argument; UINT32_MAX if it has none. */
static uint32_t end_of(const struct codeobj_argument *a) {
    return a->size > UINT32_MAX - a->offset ? UINT32_MAX : a->offset + a->size;
}

uint32_t codeobj_explicit_bytes(const struct codeobj_kernel *k) {
    uint32_t count = codeobj_explicit_count(k), end = 0;
    for (uint32_t i = 0; i < count; i++)
        if (end_of(&k->arguments[i]) > end)
            end = end_of(&k->arguments[i]);
    return end;
}

uint32_t codeobj_kernarg_bytes(const struct codeobj_kernel *k) {
    uint32_t end = k->kernarg_bytes;
    for (uint32_t i = 0; i < k->argument_count; i++)
        if (end_of(&k->arguments[i]) > end)
            end = end_of(&k->arguments[i]);
    return end;
}

enum rc codeobj_kernarg_pack(const struct codeobj_kernel *k, void *const *params,
                             unsigned char *segment, struct err *e) {
    uint32_t count = codeobj_explicit_count(k), bytes = codeobj_kernarg_bytes(k);
    for (uint32_t i = 0; i < count; i++) {
        const struct codeobj_argument *a = &k->arguments[i];
        if (!params[i])
            return err_set(e, RC_USAGE, "argument %u of %s is not there", i, k->name);
        if (a->size > bytes || a->offset > bytes - a->size)
            return err_set(e, RC_FORMAT, "argument %u of %s leaves the kernarg segment", i,
                           k->name);
        memcpy(segment + a->offset, params[i], a->size);
    }
    return RC_OK;
}

/* The value of a hidden argument; false if its kind is unknown. */
static bool hidden_value(const struct codeobj_argument *a, const struct codeobj_dispatch *d,
                         uint64_t *value) {
    unsigned kind = a->kind;
    *value = 0;
    switch (kind) {
    case CODEOBJ_HIDDEN_GLOBAL_OFFSET_X: /* HIP has none */
    case CODEOBJ_HIDDEN_GLOBAL_OFFSET_Y:
    case CODEOBJ_HIDDEN_GLOBAL_OFFSET_Z:
    case CODEOBJ_HIDDEN_NONE:
        return true;
    case CODEOBJ_HIDDEN_BLOCK_COUNT_X:
    case CODEOBJ_HIDDEN_BLOCK_COUNT_Y:
    case CODEOBJ_HIDDEN_BLOCK_COUNT_Z: /* whole blocks; hidden_remainder is the rest */
        kind -= CODEOBJ_HIDDEN_BLOCK_COUNT_X;
        *value = d->block[kind] ? d->grid[kind] / d->block[kind] : 0;
        return true;
    case CODEOBJ_HIDDEN_GROUP_SIZE_X:
    case CODEOBJ_HIDDEN_GROUP_SIZE_Y:
    case CODEOBJ_HIDDEN_GROUP_SIZE_Z:
        *value = d->block[kind - CODEOBJ_HIDDEN_GROUP_SIZE_X];
        return true;
    case CODEOBJ_HIDDEN_REMAINDER_X:
    case CODEOBJ_HIDDEN_REMAINDER_Y:
    case CODEOBJ_HIDDEN_REMAINDER_Z:
        kind -= CODEOBJ_HIDDEN_REMAINDER_X;
        *value = d->block[kind] ? d->grid[kind] % d->block[kind] : 0;
        return true;
#define IS(name, field)                                                                            \
    case CODEOBJ_HIDDEN_##name:                                                                    \
        *value = d->field;                                                                         \
        return true;
        IS(PRINTF_BUFFER, printf_buffer)
        IS(HOSTCALL_BUFFER, hostcall_buffer)
        IS(DEFAULT_QUEUE, default_queue)
        IS(COMPLETION_ACTION, completion_action)
        IS(MULTIGRID_SYNC, multigrid_sync)
        IS(GRID_DIMS, dims)
        IS(HEAP, heap)
        IS(DYNAMIC_LDS_SIZE, dynamic_lds)
        IS(QUEUE_PTR, queue)
        IS(PRIVATE_BASE, private_base >> 32)
        IS(SHARED_BASE, shared_base >> 32)
#undef IS
    default:
        return false;
    }
}

enum rc codeobj_kernarg_hide(const struct codeobj_kernel *k,
                             const struct codeobj_dispatch *dispatch, unsigned char *segment,
                             struct err *e) {
    uint32_t bytes = codeobj_kernarg_bytes(k);
    for (uint32_t i = codeobj_explicit_count(k); i < k->argument_count; i++) {
        const struct codeobj_argument *a = &k->arguments[i];
        uint64_t value;
        if (!a->is_hidden)
            return err_set(e, RC_FORMAT, "%s has an argument after hidden ones", k->name);
        if (!hidden_value(a, dispatch, &value))
            return err_set(e, RC_UNSUPPORTED, "%s wants a hidden argument that is not known",
                           k->name);
        if (a->size > sizeof value || a->size > bytes || a->offset > bytes - a->size)
            return err_set(e, RC_FORMAT, "hidden argument %u of %s has %u bytes", i, k->name,
                           a->size);
        memcpy(segment + a->offset, &value, a->size); /* little-endian: the low bytes */
    }
    return RC_OK;
}

void codeobj_packet_fill(struct codeobj_packet *out, const struct codeobj_dispatch *dispatch,
                         uint64_t kernel_object, uint64_t kernarg, uint32_t private_bytes,
                         uint32_t group_bytes) {
    enum { TYPE_DISPATCH = 2, FENCE_SYSTEM = 2, ACQUIRE_SHIFT = 9, RELEASE_SHIFT = 11 };
    *out = (struct codeobj_packet){
        .header = TYPE_DISPATCH | FENCE_SYSTEM << ACQUIRE_SHIFT | FENCE_SYSTEM << RELEASE_SHIFT,
        .setup = (uint16_t)dispatch->dims,
        .private_segment_size = private_bytes,
        .group_segment_size = group_bytes,
        .kernel_object = kernel_object,
        .kernarg_address = kernarg,
    };
    for (int i = 0; i < 3; i++) {
        out->workgroup_size[i] = (uint16_t)dispatch->block[i];
        out->grid_size[i] = dispatch->grid[i];
    }
}

void codeobj_queue_fill(struct codeobj_queue *out, const struct codeobj_dispatch *dispatch) {
    *out = (struct codeobj_queue){
        .features = 1, /* kernel dispatch */
        .size = 1,
        .group_aperture_hi = (uint32_t)(dispatch->shared_base >> 32),
        .private_aperture_hi = (uint32_t)(dispatch->private_base >> 32),
    };
}
