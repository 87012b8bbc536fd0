/* inject_strike.c - the faults of inject.def, each as a program would have it: calls of the HIP
 * table, past the checked copies where those would refuse.
 *
 * Failures are returned to the caller, as the engine does with its own calls, unless ignoring them
 * is the fault. What does not fail leaves the run as it is: only the audit can tell. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <gcore/audit.h>
#include <greta/soft.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "infer/inject_internal.h"

enum { PAGE = 4096 };

static enum rc failed(const inject *i, const char *what, hipError_t error, struct err *e) {
    return err_set(e, RC_DEVICE, "%s failed: %s", what,
                   i->scene.device->hip->hipGetErrorString(error));
}

/* ---- helpers --------------------------------------------------------------------------------- */

/* A second stream that no rule of HIP orders with the engine's. */
static enum rc need_side(inject *i, struct err *e) {
    if (i->side)
        return RC_OK;
    hipError_t r = i->scene.device->hip->hipStreamCreateWithFlags(&i->side, hipStreamNonBlocking);
    return r == hipSuccess ? RC_OK : failed(i, "hipStreamCreateWithFlags", r, e);
}

static enum rc need_pinned(inject *i, size_t bytes, void **out, struct err *e) {
    if (i->host_count == INJECT_MAX)
        return err_set(e, RC_MEMORY, "out of memory");
    hipError_t r = i->scene.device->hip->hipHostMalloc(out, bytes, 0);
    if (r != hipSuccess)
        return failed(i, "hipHostMalloc", r, e);
    memset(*out, 0, bytes);
    i->host[i->host_count++] = *out;
    return RC_OK;
}

/* Orders later work of `later` after the present work of `earlier`. */
static enum rc order(const inject *i, hipStream_t earlier, hipStream_t later, struct err *e) {
    const struct hip_api *hip = i->scene.device->hip;
    hipEvent_t event = NULL;
    hipError_t r = hip->hipEventCreateWithFlags(&event, hipEventDisableTiming);
    if (r == hipSuccess)
        r = hip->hipEventRecord(event, earlier);
    if (r == hipSuccess)
        r = hip->hipStreamWaitEvent(later, event, 0);
    if (event)
        (void)hip->hipEventDestroy(event);
    return r == hipSuccess ? RC_OK : failed(i, "hipStreamWaitEvent", r, e);
}

/* From now on the engine uses `to` for the view. mine: memory to free at the end. */
static void change_view(inject *i, struct kern_view *view, const struct kern_view *to, void *mine) {
    struct kern_view *output = &i->scene.weights->output, was = *view;
    bool same = output->ptr == was.ptr; /* a copy of another view */
    i->changes[i->change_count++] = (struct change){ view, was, mine };
    *view = *to;
    if (same)
        *output = *to;
}

void strike_undo(inject *i) {
    const struct hip_api *hip = i->scene.device->hip;
    struct kern_view *output = &i->scene.weights->output;
    if (i->side) {
        (void)hip->hipStreamSynchronize(i->side);
        (void)hip->hipStreamDestroy(i->side);
    }
    (void)hip->hipStreamSynchronize(i->scene.device->stream);
    while (i->change_count) {
        struct change *c = &i->changes[--i->change_count];
        if (c->mine)
            (void)hip->hipFree(c->mine);
        if (output->ptr == c->view->ptr)
            *output = c->was;
        *c->view = c->was;
    }
    for (size_t n = 0; n < i->host_count; n++)
        (void)hip->hipHostFree(i->host[n]);
    if (i->registered) {
        (void)hip->hipHostUnregister(i->registered);
        munmap(i->registered, i->registered_bytes);
    }
}

/* Bytes of the tensor that this batch uses, or of what an earlier one left there. */
static size_t used_bytes(const inject *i, const struct shot *s, const struct forward_batch *b) {
    int64_t id = s->view - i->scene.buffers;
    if (id < 0 || id >= FORWARD_BUFFERS)
        return s->view->bytes;
    struct forward_shape used = *i->scene.shape;
    used.tokens = b->tokens;
    used.sequences = b->sequences;
    used.context = b->table_width * KERN_BLOCK;
    used.wanted = 1; /* one row of logits, of this batch or of an earlier one */
    if (id == FORWARD_rows && b->wanted)
        used.wanted = b->wanted;
    return forward_buffer_bytes(&used, (enum forward_buffer_id)id);
}

/* A copy of the tensor on the device, under its name. */
static enum rc make_copy(inject *i, const struct shot *s, const struct forward_batch *b,
                         struct kern_view *out, struct err *e) {
    const struct device *d = i->scene.device;
    size_t bytes = used_bytes(i, s, b);
    enum rc rc = device_alloc(d, out, s->view->name, (enum tensor_type)s->view->type, bytes, e);
    if (rc)
        return rc;
    hipError_t r =
        d->hip->hipMemcpyAsync(out->ptr, s->view->ptr, bytes, hipMemcpyDeviceToDevice, d->stream);
    return r == hipSuccess ? RC_OK : failed(i, "hipMemcpy D2D", r, e);
}

/* ---- copies that miss ------------------------------------------------------------------------ */

/* A copy to the host with no check before it. */
static enum rc plain_copy(const inject *i, const void *from, size_t bytes, hipMemcpyKind kind,
                          struct err *e) {
    const struct device *d = i->scene.device;
    void *host = calloc(1, bytes);
    if (!host)
        return err_set(e, RC_MEMORY, "out of memory");
    hipError_t r = d->hip->hipMemcpyAsync(host, from, bytes, kind, d->stream);
    if (r == hipSuccess)
        r = d->hip->hipStreamSynchronize(d->stream);
    enum rc rc = r == hipSuccess ? RC_OK : failed(i, "hipMemcpy D2H", r, e);
    free(host);
    return rc;
}

static enum rc strike_size_mismatch(inject *i, struct shot *s, const struct forward_batch *b,
                                    struct err *e) {
    (void)b;
    return plain_copy(i, s->view->ptr, 2 * s->view->bytes, hipMemcpyDeviceToHost, e);
}

static enum rc strike_size_refused(inject *i, struct shot *s, const struct forward_batch *b,
                                   struct err *e) {
    struct kern_view believed = *s->view;
    believed.bytes *= 2;
    void *host = malloc(believed.bytes);
    if (!host)
        return err_set(e, RC_MEMORY, "out of memory");
    enum rc rc = device_download(i->scene.device, host, &believed, believed.bytes, b->step,
                                 (int32_t)s->layer, e);
    free(host);
    return rc;
}

static enum rc strike_bad_offset(inject *i, struct shot *s, const struct forward_batch *b,
                                 struct err *e) {
    (void)b;
    const char *past = (const char *)s->view->ptr + s->view->bytes + PAGE;
    size_t bytes = s->view->bytes < PAGE ? s->view->bytes : PAGE;
    return plain_copy(i, past, bytes, hipMemcpyDeviceToHost, e);
}

static enum rc strike_kind_mismatch(inject *i, struct shot *s, const struct forward_batch *b,
                                    struct err *e) {
    return plain_copy(i, s->view->ptr, used_bytes(i, s, b), hipMemcpyHostToDevice, e);
}

/* ---- kernels that miss ----------------------------------------------------------------------- */

static enum rc strike_pos_size(inject *i, struct shot *s, const struct forward_batch *b,
                               struct err *e) {
    const struct device *d = i->scene.device;
    /* Two bytes each; whole words if there are several, as any allocator gives them. */
    size_t bytes = b->tokens == 1 ? 2 : (b->tokens * (size_t)2 + 3) / 4 * 4;
    int16_t *narrow = calloc(1, bytes);
    if (!narrow)
        return err_set(e, RC_MEMORY, "out of memory");
    for (uint32_t t = 0; t < b->tokens; t++)
        narrow[t] = (int16_t)b->pos[t];
    struct kern_view view;
    enum rc rc = device_alloc(d, &view, s->view->name, TENSOR_TYPE_I32, bytes, e);
    rc = rc ? rc : device_upload(d, &view, narrow, bytes, b->step, -1, e);
    free(narrow);
    if (rc)
        return rc;
    void *mine = view.ptr;
    view.bytes = s->view->bytes; /* what the engine believes */
    change_view(i, s->view, &view, mine);
    return RC_OK;
}

static enum rc strike_kv_heads(inject *i, struct shot *s, const struct forward_batch *b,
                               struct err *e) {
    struct config *c = i->scene.config;
    struct kvcache *k = i->scene.cache;
    (void)s, (void)b, (void)e;
    c->kv_heads = c->heads;
    k->row_bytes = tensor_type_row_bytes((enum tensor_type)k->layers[0].keys.type,
                                         (uint64_t)c->kv_heads * c->head_size);
    kern_trust(i->scene.device->kernels);
    return RC_OK;
}

static enum rc strike_wild_block(inject *i, struct shot *s, const struct forward_batch *b,
                                 struct err *e) {
    uint32_t last = b->tokens - 1;
    size_t count = (size_t)b->sequences * b->table_width;
    int32_t *tables = malloc(count * sizeof *tables);
    if (!tables)
        return err_set(e, RC_MEMORY, "out of memory");
    memcpy(tables, b->tables, count * sizeof *tables);
    tables[(size_t)b->seqs[last] * b->table_width + (size_t)b->pos[last] / KERN_BLOCK] = -1;
    enum rc rc =
        device_upload(i->scene.device, s->view, tables, count * sizeof *tables, b->step, -1, e);
    free(tables);
    return rc;
}

static enum rc strike_invalid_pointer(inject *i, struct shot *s, const struct forward_batch *b,
                                      struct err *e) {
    struct kern_view view = *s->view;
    (void)b, (void)e;
    view.ptr = NULL;
    change_view(i, s->view, &view, NULL);
    return RC_OK;
}

static enum rc strike_use_after_free(inject *i, struct shot *s, const struct forward_batch *b,
                                     struct err *e) {
    (void)b;
    hipError_t r = i->scene.device->hip->hipFree(s->view->ptr);
    if (r != hipSuccess)
        return failed(i, "hipFree", r, e);
    struct kern_view view = *s->view;
    change_view(i, s->view, &view, NULL);
    i->changes[i->change_count - 1].was.ptr = NULL; /* it is not to be freed again */
    return RC_OK;
}

/* New memory for the tensor, and nothing written to it. */
static enum rc strike_uninitialised_read(inject *i, struct shot *s, const struct forward_batch *b,
                                         struct err *e) {
    struct kern_view view;
    (void)b;
    enum rc rc = device_alloc(i->scene.device, &view, s->view->name,
                              (enum tensor_type)s->view->type, s->view->bytes, e);
    if (!rc)
        change_view(i, s->view, &view, view.ptr);
    return rc;
}

static void run_trap(const struct greta_soft_work *work, void *const *args) {
    (void)work, (void)args;
    __builtin_trap();
}

static enum rc strike_kernel_trap(inject *i, struct shot *s, const struct forward_batch *b,
                                  struct err *e) {
    static const struct greta_soft_param param = { "tensor", 8,
                                                   GRETA_SOFT_POINTER | GRETA_SOFT_READS };
    static const struct greta_soft_kernel trap = { "inject_trap", run_trap, &param, 1 };
    const struct device *d = i->scene.device;
    const struct hip_runtime *runtime = gcore_runtime();
    void *args[] = { &s->view->ptr };
    hipModule_t module = NULL;
    hipFunction_t function = NULL;
    (void)b;
    if (!runtime || !runtime->soft.kernel_register || runtime->soft.kernel_register(&trap))
        return err_set(e, RC_UNSUPPORTED, "--inject %s: only the software device can do it",
                       s->spec);
    hipError_t r = d->hip->hipModuleLoadData(&module, GRETA_SOFT_NATIVE_IMAGE);
    if (r == hipSuccess)
        r = d->hip->hipModuleGetFunction(&function, module, trap.name);
    if (r != hipSuccess)
        return failed(i, "hipModuleGetFunction", r, e);
    kern_trust(d->kernels);
    (void)d->hip->hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, d->stream, args, NULL);
    return RC_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static enum rc strike_double_free(inject *i, struct shot *s, const struct forward_batch *b,
                                  struct err *e) {
    const struct hip_api *hip = i->scene.device->hip;
    struct kern_view copy;
    enum rc rc = make_copy(i, s, b, &copy, e);
    if (rc)
        return rc;
    hipError_t r = hip->hipFree(copy.ptr);
    if (r == hipSuccess)
        r = hip->hipFree(copy.ptr);
    return r == hipSuccess ? RC_OK : failed(i, "hipFree", r, e);
}

static enum rc strike_leak(inject *i, struct shot *s, const struct forward_batch *b,
                           struct err *e) {
    struct kern_view copy;
    return make_copy(i, s, b, &copy, e);
}

/* hipMalloc fails, and the copy gets the pointer that it did not set. */
static enum rc strike_unchecked_error(inject *i, struct shot *s, const struct forward_batch *b,
                                      struct err *e) {
    const struct device *d = i->scene.device;
    void *copy = NULL;
    (void)b;
    (void)d->hip->hipMalloc(&copy, (size_t)1 << 46);
    hipError_t r = d->hip->hipMemcpyAsync(copy, s->view->ptr, s->view->bytes,
                                          hipMemcpyDeviceToDevice, d->stream);
    return r == hipSuccess ? RC_OK : failed(i, "hipMemcpy D2D", r, e);
}

/* ---- order ----------------------------------------------------------------------------------- */

static enum rc copy_out(const inject *i, void *host, const void *from, size_t bytes,
                        hipStream_t stream, struct err *e) {
    hipError_t r =
        i->scene.device->hip->hipMemcpyAsync(host, from, bytes, hipMemcpyDeviceToHost, stream);
    return r == hipSuccess ? RC_OK : failed(i, "hipMemcpy D2H", r, e);
}

static enum rc copy_in(const inject *i, void *to, const void *host, size_t bytes,
                       hipStream_t stream, struct err *e) {
    hipError_t r =
        i->scene.device->hip->hipMemcpyAsync(to, host, bytes, hipMemcpyHostToDevice, stream);
    return r == hipSuccess ? RC_OK : failed(i, "hipMemcpy H2D", r, e);
}

static enum rc strike_stream_unsynced(inject *i, struct shot *s, const struct forward_batch *b,
                                      struct err *e) {
    size_t bytes = used_bytes(i, s, b);
    void *host = NULL;
    enum rc rc = need_side(i, e);
    rc = rc ? rc : need_pinned(i, bytes, &host, e);
    return rc ? rc : copy_out(i, host, s->view->ptr, bytes, i->side, e);
}

/* Both copies write what is there already, so that only their order is wrong. */
static enum rc strike_overlapping_copies(inject *i, struct shot *s, const struct forward_batch *b,
                                         struct err *e) {
    const struct device *d = i->scene.device;
    size_t bytes = used_bytes(i, s, b);
    void *host = NULL;
    enum rc rc = need_side(i, e);
    rc = rc ? rc : need_pinned(i, bytes, &host, e);
    rc = rc ? rc : device_download(d, host, s->view, bytes, b->step, (int32_t)s->layer, e);
    rc = rc ? rc : copy_in(i, s->view->ptr, host, bytes, d->stream, e);
    rc = rc ? rc : copy_in(i, s->view->ptr, host, bytes, i->side, e);
    return rc ? rc : order(i, i->side, d->stream, e);
}

static enum rc strike_staging_reuse(inject *i, struct shot *s, const struct forward_batch *b,
                                    struct err *e) {
    const struct device *d = i->scene.device;
    size_t bytes = used_bytes(i, s, b);
    void *host = NULL;
    enum rc rc = need_side(i, e);
    rc = rc ? rc : need_pinned(i, bytes, &host, e);
    rc = rc ? rc : order(i, d->stream, i->side, e);
    rc = rc ? rc : copy_out(i, host, s->view->ptr, bytes, d->stream, e);
    rc = rc ? rc : copy_out(i, host, s->view->ptr, bytes, i->side, e);
    return rc ? rc : order(i, i->side, d->stream, e);
}

/* Reports the buffer as freed while the copy is under way. It stays mapped until the end, which
 * keeps the run alive but does not make the program correct. */
static enum rc strike_host_buffer_lifetime(inject *i, struct shot *s, const struct forward_batch *b,
                                           struct err *e) {
    const struct device *d = i->scene.device;
    size_t used = used_bytes(i, s, b), bytes = (used + PAGE - 1) / PAGE * PAGE;
    if (i->registered)
        return err_set(e, RC_USAGE, "--inject %s: it can be injected once per run", s->spec);
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED)
        return err_set(e, RC_MEMORY, "out of memory");
    hipError_t r = d->hip->hipHostRegister(host, bytes, 0);
    if (r != hipSuccess) {
        munmap(host, bytes);
        return failed(i, "hipHostRegister", r, e);
    }
    i->registered = host;
    i->registered_bytes = bytes;
    enum rc rc = copy_out(i, host, s->view->ptr, used, d->stream, e);
    if (!rc)
        gcore_host_freed(host, bytes);
    return rc;
}

/* ---- the table ------------------------------------------------------------------------------- */

static enum rc strike_stale_binary(inject *i, struct shot *s, const struct forward_batch *b,
                                   struct err *e) {
    (void)i, (void)s, (void)b, (void)e; /* inject_claim() */
    return RC_OK;
}

const strike_fn strike_table[INJECT_KINDS] = {
#define INJECT(kind, hypothesis, when, tensors, tensor, text) [INJECT_KIND_##kind] = strike_##kind,
#include "infer/inject.def"
#undef INJECT
};
