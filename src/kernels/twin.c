#include "kernels/twin.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/native.h"
#include "kernels/spec.h"
#include "model/quant/quant.h"

enum { VIEWS_MAX = 16, ARGUMENTS_MAX = 1024, PARAMS_MAX = SPEC_PARAMS_MAX };

/* One view: its bytes before the launch, after it on the host, after it on the device. */
struct buffer {
    const void *before;
    uint64_t bytes;
    void *host, *device; /* device: its address, then a copy of it on the host */
    void *back;
    int same_as; /* the number of an earlier view in the same memory, or -1 */
};

struct twins {
    const struct spec *s;
    enum kern_id id;
    kern_device *d;
    const struct hip_api *hip;
    struct buffer buffer[VIEWS_MAX];
    _Alignas(16) char host[ARGUMENTS_MAX], device[ARGUMENTS_MAX];
};

static struct kern_view *view_at(char *arguments, const struct spec_view *v) {
    return (struct kern_view *)(void *)(arguments + v->offset);
}

static enum rc failed(const struct twins *t, const char *what, hipError_t r, struct err *e) {
    return err_set(e, RC_DEVICE, "kernel %s: %s failed: %s", t->s->name, what,
                   t->hip->hipGetErrorString(r));
}

/* ---- buffers --------------------------------------------------------------------------------- */

static enum rc open_buffer(struct twins *t, unsigned i, struct err *e) {
    struct buffer *b = &t->buffer[i];
    b->same_as = -1;
    for (unsigned j = 0; j < i; j++)
        if (b->bytes && t->buffer[j].before == b->before && t->buffer[j].bytes == b->bytes)
            b->same_as = (int)j;
    if (!b->bytes || b->same_as >= 0)
        return RC_OK;
    b->host = malloc(b->bytes);
    b->back = malloc(b->bytes);
    if (!b->host || !b->back)
        return err_set(e, RC_MEMORY, "out of memory");
    memcpy(b->host, b->before, b->bytes);
    hipError_t r = t->hip->hipMalloc(&b->device, b->bytes);
    if (r == hipSuccess)
        r = t->hip->hipMemcpy(b->device, b->before, b->bytes, hipMemcpyHostToDevice);
    return r == hipSuccess ? RC_OK : failed(t, "hipMalloc", r, e);
}

static enum rc open_buffers(struct twins *t, const void *arguments, struct err *e) {
    enum rc rc = RC_OK;
    for (unsigned i = 0; !rc && i < t->s->view_count; i++) {
        const struct spec_view *v = &t->s->views[i];
        struct kern_view *host = view_at(t->host, v), *device = view_at(t->device, v);
        struct buffer *b = &t->buffer[i];
        b->before = host->ptr;
        b->bytes = v->bytes(arguments);
        if (b->bytes > host->bytes)
            return err_set(e, RC_REFUSED, "kernel %s, argument %s: too small", t->s->name, v->name);
        rc = open_buffer(t, i, e);
        const struct buffer *where = b->same_as < 0 ? b : &t->buffer[b->same_as];
        host->ptr = where->host;
        device->ptr = where->device;
        device->bytes = b->bytes;
    }
    return rc;
}

static void close_buffers(struct twins *t) {
    for (unsigned i = 0; i < t->s->view_count; i++) {
        struct buffer *b = &t->buffer[i];
        free(b->host);
        free(b->back);
        if (b->device)
            (void)t->hip->hipFree(b->device);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_on_host(struct twins *t) {
    void *params[PARAMS_MAX];
    for (uint32_t i = 0; i < t->s->param_count; i++)
        params[i] = t->host + t->s->params[i].offset;
    uint64_t blocks = t->s->blocks(t->host);
    struct greta_soft_work work = {
        .grid = { (uint32_t)blocks, 1, 1 }, .block = { 64, 1, 1 }, .last = blocks, .workers = 1
    };
    native_kernel(t->id)->run(&work, params);
}

static enum rc run_on_device(struct twins *t, struct err *e) {
    static enum rc (*const launch[KERN_COUNT])(kern_device *, hipStream_t, const void *,
                                               struct err *) = {
#define KERN_BEGIN(k)                                                                              \
    [KERN_##k] = (enum rc(*)(kern_device *, hipStream_t, const void *, struct err *))(             \
        void (*)(void))kern_##k,
#include "kernels/kernel.def"
    };
    enum rc rc = launch[t->id](t->d, NULL, t->device, e);
    if (rc)
        return rc;
    hipError_t r = t->hip->hipDeviceSynchronize();
    for (unsigned i = 0; r == hipSuccess && i < t->s->view_count; i++) {
        struct buffer *b = &t->buffer[i];
        if (b->device)
            r = t->hip->hipMemcpy(b->back, b->device, b->bytes, hipMemcpyDeviceToHost);
    }
    return r == hipSuccess ? RC_OK : failed(t, "the launch", r, e);
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* False for infinity, NaN, and the largest number, which attention gives where it saw nothing: they
 * would hide all others in a mean, and must be equal on both sides. */
static bool is_ordinary(float x) {
    return fabsf(x) < FLT_MAX;
}

static bool is_same(float a, float b) {
    return a == b || (isnan(a) && isnan(b));
}

static double distance_of_floats(const float *a, const float *b, size_t n) {
    double square = 0, worst = 0;
    size_t ordinary = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_ordinary(a[i]) || !is_ordinary(b[i])) {
            if (!is_same(a[i], b[i]))
                return INFINITY;
            continue;
        }
        double difference = fabs((double)a[i] - b[i]);
        worst = difference > worst ? difference : worst;
        square += (double)a[i] * a[i];
        ordinary++;
    }
    double mean = ordinary ? sqrt(square / (double)ordinary) : 0;
    return worst == 0 ? 0 : worst / mean;
}

static double distance_of_bytes(const unsigned char *a, const unsigned char *b, size_t n) {
    size_t different = 0;
    for (size_t i = 0; i < n; i++)
        different += a[i] != b[i];
    return n ? (double)different / (double)n : 0;
}

static enum rc distance_of_rows(enum tensor_type type, const void *a, const void *b, uint64_t bytes,
                                double *out, struct err *e) {
    const struct tensor_type_info *t = tensor_type_find(type);
    size_t n = (size_t)(bytes / t->block_bytes * t->block_elements);
    float *floats = malloc((2 * n + 1) * sizeof *floats);
    if (!floats)
        return err_set(e, RC_MEMORY, "out of memory");
    enum rc rc = quant_decode_row(type, a, floats, n, e);
    rc = rc ? rc : quant_decode_row(type, b, floats + n, n, e);
    *out = rc ? 0 : distance_of_floats(floats, floats + n, n);
    free(floats);
    return rc;
}

/* A kernel that also quantises what it wrote: its levels are held against those that quantize makes
 * of the same numbers, to the bit, because numbers that differ in their last place have others. */
struct quantised {
    const struct kern_view *levels, *x; /* among the host's arguments */
    uint32_t tokens, k, run;
};

static struct quantised find_quantised(const struct twins *t) {
    const void *arguments = t->host;
    const struct kern_rmsnorm *rms = arguments;
    const struct kern_layernorm *layer = arguments;
    const struct kern_matmul_activate *activate = arguments;
    const struct kern_attention_step *step = arguments;
    const struct kern_matmul_gate_up *both = arguments;
    const struct kern_rmsnorm_add *add = arguments;
    switch (t->id) {
    case KERN_rmsnorm:
        return (struct quantised){ &rms->levels, &rms->out, rms->rows, rms->dim, rms->run };
    case KERN_layernorm:
        return (struct quantised){ &layer->levels, &layer->out, layer->rows, layer->dim,
                                   layer->run };
    case KERN_matmul_activate:
        return (struct quantised){ &activate->out_levels, &activate->out, activate->tokens,
                                   activate->hidden, activate->out_run };
    case KERN_matmul_gate_up:
        return (struct quantised){ &both->out_levels, &both->gate, both->tokens, both->hidden,
                                   both->activated ? both->out_run : 0 };
    case KERN_rmsnorm_add:
        return (struct quantised){ &add->levels, &add->next, add->rows, add->dim,
                                   add->normed ? add->run : 0 };
    case KERN_attention_step:
        return (struct quantised){ &step->levels, &step->out, step->tokens,
                                   step->heads * step->head_size, step->run };
    default:
        return (struct quantised){ 0 };
    }
}

static const struct buffer *find_buffer(const struct twins *t, const struct kern_view *v) {
    const struct buffer *b = NULL;
    for (unsigned i = 0; i < t->s->view_count; i++)
        if (t->host + t->s->views[i].offset == (const char *)v)
            b = &t->buffer[i];
    return b && b->same_as >= 0 ? &t->buffer[b->same_as] : b;
}

/* How far the levels differ from what quantize makes of the numbers of the same side. */
static enum rc distance_of_levels(const struct twins *t, const struct quantised *q, bool on_device,
                                  double *out, struct err *e) {
    const struct buffer *levels = find_buffer(t, q->levels), *x = find_buffer(t, q->x);
    struct kern_quantize a = {
        .x = *q->x, .levels = *q->levels, .tokens = q->tokens, .k = q->k, .run = q->run
    };
    struct greta_soft_work work = { .last = q->tokens, .workers = 1 };
    a.x.ptr = on_device ? x->back : x->host;
    a.levels.ptr = malloc(levels->bytes + 1);
    if (!a.levels.ptr)
        return err_set(e, RC_MEMORY, "out of memory");
    memcpy(a.levels.ptr, levels->before, levels->bytes); /* padding stays what it was */
    cpu_quantize(&work, &a);
    *out = distance_of_bytes(a.levels.ptr, on_device ? levels->back : levels->host, levels->bytes);
    free(a.levels.ptr);
    return RC_OK;
}

static enum rc compare_levels(const struct twins *t, double *distance, struct err *e) {
    const struct quantised q = find_quantised(t);
    double host = 0, device = 0;
    if (!q.levels || !q.run)
        return RC_OK;
    enum rc rc = distance_of_levels(t, &q, false, &host, e);
    rc = rc ? rc : distance_of_levels(t, &q, true, &device, e);
    *distance = host > 0 || device > 0 ? INFINITY : *distance;
    return rc;
}

static enum rc compare(struct twins *t, double *distance, struct err *e) {
    const struct kern_view *levels = find_quantised(t).levels;
    enum rc rc = RC_OK;
    *distance = 0;
    for (unsigned i = 0; !rc && i < t->s->view_count; i++) {
        const struct spec_view *v = &t->s->views[i];
        const struct buffer *b = &t->buffer[i];
        double d = 0;
        b = b->same_as < 0 ? b : &t->buffer[b->same_as];
        if (!b->bytes || v->access == SPEC_READ || view_at(t->host, v) == levels)
            continue;
        if (v->type == SPEC_CACHE || v->type == SPEC_MATRIX)
            rc = distance_of_rows((enum tensor_type)view_at(t->host, v)->type, b->host, b->back,
                                  b->bytes, &d, e);
        else if (v->type == SPEC_F32)
            d = distance_of_floats(b->host, b->back, b->bytes / sizeof(float));
        else
            d = distance_of_bytes(b->host, b->back, b->bytes);
        *distance = d > *distance ? d : *distance;
    }
    return rc ? rc : compare_levels(t, distance, e);
}

enum rc twin_compare(kern_device *d, const struct hip_api *hip, enum kern_id id,
                     const void *arguments, double *distance, struct err *e) {
    struct twins *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(e, RC_MEMORY, "out of memory");
    t->s = &spec_table[id];
    t->id = id;
    t->d = d;
    t->hip = hip;
    memcpy(t->host, arguments, t->s->argument_bytes);
    memcpy(t->device, arguments, t->s->argument_bytes);
    enum rc rc = open_buffers(t, arguments, e);
    rc = rc ? rc : run_on_device(t, e);
    if (!rc)
        run_on_host(t);
    rc = rc ? rc : compare(t, distance, e);
    close_buffers(t);
    free(t);
    return rc;
}
