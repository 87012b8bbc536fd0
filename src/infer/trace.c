#include "infer/trace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "infer/npy.h"
#include "model/quant/quant.h"

struct span {
    int64_t from, to; /* inclusive; from > to: everything */
};

struct trace {
    bool point[TRACE_POINT_COUNT];
    struct span layers, steps;
    FILE *lines;
    char *dump; /* folder, or NULL */
    unsigned char *bytes;
    float *values;
    size_t bytes_room, values_room;
    bool failed;
};

static const struct {
    const char *word, *tensor;
} points[TRACE_POINT_COUNT] = {
#define TRACE_POINT(id, word, tensor) { word, tensor },
#include "infer/trace.def"
#undef TRACE_POINT
};

/* ---- the selection -------------------------------------------------------------------------- */

static enum rc bad_selection(const char *text, struct err *e) {
    return err_set(
        e, RC_USAGE,
        "trace '%s': expected POINTS[:LAYERS[:STEPS]], points rmsnorm, q, k, v, attn_out, "
        "wo_out, mlp, kv_cache, logits or all separated by commas, layers and steps as "
        "5 or 0-3 or *",
        text);
}

static bool select_word(trace *t, const char *word, size_t len) {
    bool found = false;
    if (len == 7 && !memcmp(word, "post_wo", 7))
        word = "wo_out", len = 6;
    for (int i = 0; i < TRACE_POINT_COUNT; i++) {
        if ((len == 3 && !memcmp(word, "all", 3)) ||
            (strlen(points[i].word) == len && !memcmp(points[i].word, word, len)))
            t->point[i] = found = true;
    }
    return found;
}

static bool parse_span(const char *text, struct span *out) {
    char *end;
    if (!strcmp(text, "*") || !*text)
        return true;
    if (*text < '0' || *text > '9')
        return false;
    out->from = out->to = strtoll(text, &end, 10);
    if (*end == '-' && end[1] >= '0' && end[1] <= '9')
        out->to = strtoll(end + 1, &end, 10);
    return !*end && out->from <= out->to;
}

static enum rc parse_selection(trace *t, const char *selection, struct err *e) {
    char copy[512];
    if (strlen(selection) >= sizeof copy)
        return bad_selection(selection, e);
    strcpy(copy, selection);
    char *layers = strchr(copy, ':'), *steps = layers ? strchr(layers + 1, ':') : NULL;
    if (layers)
        *layers++ = 0;
    if (steps)
        *steps++ = 0;
    for (const char *word = copy;;) {
        size_t len = strcspn(word, ",");
        if (!select_word(t, word, len))
            return bad_selection(selection, e);
        if (!word[len])
            break;
        word += len + 1;
    }
    if ((layers && !parse_span(layers, &t->layers)) || (steps && !parse_span(steps, &t->steps)))
        return bad_selection(selection, e);
    return RC_OK;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static enum rc open_outputs(trace *t, const char *lines, const char *dump, struct err *e) {
    bool console = strcmp(lines, "-") == 0;
    t->lines = console ? stderr : folder_make_parents(lines) ? fopen(lines, "w") : NULL;
    if (!t->lines)
        return err_set(e, RC_IO, "%s: cannot be written: %s", lines, strerror(errno));
    if (!dump)
        return RC_OK;
    if (!folder_make(dump))
        return err_set(e, RC_IO, "%s: cannot be made: %s", dump, strerror(errno));
    t->dump = strdup(dump);
    return t->dump ? RC_OK : err_set(e, RC_MEMORY, "out of memory");
}

static void free_trace(trace *t) {
    if (t->lines && t->lines != stderr)
        (void)fclose(t->lines);
    free(t->dump);
    free(t->bytes);
    free(t->values);
    free(t);
}

enum rc trace_open(trace **out, const char *selection, const char *lines, const char *dump,
                   struct err *e) {
    trace *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(e, RC_MEMORY, "out of memory");
    t->layers = t->steps = (struct span){ 1, 0 };
    enum rc rc = parse_selection(t, selection, e);
    rc = rc ? rc : open_outputs(t, lines, dump, e);
    if (rc)
        free_trace(t);
    else
        *out = t;
    return rc;
}

enum rc trace_close(trace **t, struct err *e) {
    enum rc rc = RC_OK;
    if (!*t)
        return RC_OK;
    if (fflush((*t)->lines) || (*t)->failed)
        rc = err_set(e, RC_IO, "the trace could not be written in full: %s", strerror(errno));
    free_trace(*t);
    *t = NULL;
    return rc;
}

/* ---- tracing -------------------------------------------------------------------------------- */

static bool in_span(const struct span *s, int64_t n) {
    return s->from > s->to || (n >= s->from && n <= s->to);
}

bool trace_wants(const trace *t, enum trace_point point, int64_t step, int32_t layer) {
    return t && t->point[point] && in_span(&t->steps, step) &&
           (layer < 0 || in_span(&t->layers, layer));
}

struct statistics {
    double min, max, mean, std;
    uint64_t nan, inf;
};

static struct statistics measure(const float *v, uint64_t n) {
    struct statistics s = { .min = INFINITY, .max = -INFINITY };
    double sum = 0, squares = 0;
    uint64_t finite = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (isnan(v[i])) {
            s.nan++;
        } else if (isinf(v[i])) {
            s.inf++;
        } else {
            s.min = fmin(s.min, (double)v[i]);
            s.max = fmax(s.max, (double)v[i]);
            sum += (double)v[i];
            squares += (double)v[i] * (double)v[i];
            finite++;
        }
    }
    s.mean = finite ? sum / (double)finite : NAN;
    s.std = finite ? sqrt(fmax(0, squares / (double)finite - s.mean * s.mean)) : NAN;
    return s;
}

static bool reserve(void **buffer, size_t *room, size_t bytes) {
    if (*room >= bytes)
        return true;
    free(*buffer);
    *buffer = malloc(bytes);
    *room = *buffer ? bytes : 0;
    return *buffer != NULL;
}

static void write_line(trace *t, const char *tensor, const struct kern_view *view, uint64_t rows,
                       uint64_t width, const struct trace_place *at, uint64_t bytes) {
    struct statistics s = measure(t->values, rows * width);
    struct json j = json_begin(t->lines, 0);
    json_object_open(&j, NULL);
    json_string(&j, "tensor", tensor);
    if (at->part)
        json_string(&j, "part", at->part);
    json_string(&j, "buffer", view->name);
    json_i64(&j, "step", at->step);
    json_i64(&j, "layer", at->layer);
    if (at->sequence >= 0)
        json_i64(&j, "sequence", at->sequence);
    json_array_open(&j, "shape");
    json_u64(&j, NULL, rows);
    json_u64(&j, NULL, width);
    json_array_close(&j);
    json_string(&j, "type", tensor_type_name((enum tensor_type)view->type));
    json_double(&j, "min", s.min);
    json_double(&j, "max", s.max);
    json_double(&j, "mean", s.mean);
    json_double(&j, "std", s.std);
    json_u64(&j, "nan", s.nan);
    json_u64(&j, "inf", s.inf);
    json_format(&j, "xxh64", "%016llx", (unsigned long long)hash_bytes(t->bytes, bytes, 0));
    json_object_close(&j);
    if (json_end(&j, NULL))
        t->failed = true;
}

/* DIR/rmsnorm_in.attn_norm_s0_l3.npy: tensor, part, step, layer, sequence where there is one. */
static enum rc write_array(const trace *t, const char *tensor, uint64_t rows, uint64_t width,
                           const struct trace_place *at, struct err *e) {
    char path[700], layer[24] = "", sequence[24] = "";
    struct npy n;
    if (at->layer >= 0)
        snprintf(layer, sizeof layer, "_l%d", at->layer);
    if (at->sequence >= 0)
        snprintf(sequence, sizeof sequence, "_q%d", at->sequence);
    snprintf(path, sizeof path, "%s/%s%s%s_s%lld%s%s.npy", t->dump, tensor, at->part ? "." : "",
             at->part ? at->part : "", (long long)at->step, layer, sequence);
    enum rc rc = npy_open(&n, path, NPY_F32, width, e);
    return rc ? rc : npy_close(&n, npy_add(&n, t->values, rows, e), e);
}

/* n consecutive rows of those that are traced; they never cross a block of the cache. */
static enum rc copy_rows(trace *t, const struct device *d, const char *tensor,
                         const struct kern_view *view, const struct trace_place *at, uint64_t from,
                         uint64_t n, uint64_t row_bytes, struct err *e) {
    uint64_t place = at->blocks ? (uint64_t)at->blocks[from / KERN_BLOCK] * KERN_BLOCK : from;
    struct gcore_d2h_item item = {
        .to = t->bytes + from * row_bytes,
        .from = view->ptr,
        .kind = hipMemcpyDeviceToHost,
        .meta = { tensor, at->step, at->layer, place * row_bytes, n * row_bytes, view->bytes },
    };
    struct gcore_d2h_result r;
    if (gcore_d2h_batch(&item, 1, d->stream, &r) == GCORE_D2H_OK)
        return RC_OK;
    return device_copy_failed("D2H", &r, e);
}

enum rc trace_tensor(trace *t, const struct device *d, enum trace_point point,
                     const struct kern_view *view, uint64_t rows, uint64_t width,
                     const struct trace_place *at, struct err *e) {
    if (!trace_wants(t, point, at->step, at->layer))
        return RC_OK;
    enum tensor_type type = (enum tensor_type)view->type;
    uint64_t row = tensor_type_row_bytes(type, width), bytes = rows * row, elements = rows * width;
    if (!reserve((void **)&t->bytes, &t->bytes_room, bytes) ||
        !reserve((void **)&t->values, &t->values_room, elements * sizeof(float)))
        return err_set(e, RC_MEMORY, "tracing %s: out of memory", points[point].tensor);
    enum rc rc = RC_OK;
    for (uint64_t at_row = 0, n; !rc && at_row < rows; at_row += n) {
        n = at->blocks && rows - at_row > KERN_BLOCK ? KERN_BLOCK : rows - at_row;
        rc = copy_rows(t, d, points[point].tensor, view, at, at_row, n, row, e);
    }
    rc = rc ? rc : quant_decode_row(type, t->bytes, t->values, elements, e);
    if (rc)
        return rc;
    write_line(t, points[point].tensor, view, rows, width, at, bytes);
    return t->dump ? write_array(t, points[point].tensor, rows, width, at, e) : RC_OK;
}
