/* The header of one GGUF file, read with a cursor that cannot leave the file.
 *
 *   magic "GGUF" | u32 version | u64 tensors | u64 keys
 *   keys:    string name | u32 type | value
 *   tensors: string name | u32 dimensions | u64 ne[dimensions] | u32 type | u64 offset
 *   padding to the alignment | tensor data, offsets count from here
 *
 * Strings are a u64 length and bytes; arrays are u32 element type, u64 count, elements. Counts are
 * compared with the bytes that are left before anything is allocated for them, so that memory stays
 * within a small multiple of the file's size. */
#include "model/gguf/gguf_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "GGUF numbers are read as they lie");

/* The fewest bytes a key and a tensor can take. */
enum { KEY_MIN_BYTES = 8 + 1 + 4 + 1, TENSOR_MIN_BYTES = 8 + 1 + 4 + 8 + 4 + 8 };
enum { KEY_MAX_NAME = 65535 };

struct cursor {
    struct gguf_file *f;
    uint64_t pos;
    struct err *e;
    char field[128]; /* what is being read, for messages: "key 'general.name'" */
};

static void __attribute__((format(printf, 3, 4)))
describe(struct cursor *c, uint64_t offset, const char *fmt, ...) {
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    err_fill(c->e, RC_FORMAT, "%s: %s at offset %" PRIu64 ": %s", c->f->path, c->field, offset,
             what);
}

/* A macro, so that analysers see that it never returns RC_OK. */
#define fail(c, offset, ...) (describe((c), (offset), __VA_ARGS__), RC_FORMAT)

static enum rc fail_memory(struct cursor *c) {
    return err_set(c->e, RC_MEMORY, "%s: %s: out of memory", c->f->path, c->field);
}

static uint64_t bytes_left(const struct cursor *c) {
    return c->f->size - c->pos;
}

/* Copies the next n bytes (at most 8) to out. */
static enum rc read_number(struct cursor *c, const char *part, void *out, uint64_t n) {
    if (n > bytes_left(c))
        return fail(c, c->pos, "%s needs %" PRIu64 " bytes, the file ends after %" PRIu64, part, n,
                    bytes_left(c));
    memcpy(out, c->f->data + c->pos, n);
    c->pos += n;
    return RC_OK;
}

static enum rc read_string(struct cursor *c, const char *part, struct gguf_string *out) {
    uint64_t start = c->pos, len = 0;
    enum rc rc = read_number(c, part, &len, sizeof len);
    if (rc)
        return rc;
    if (len > bytes_left(c))
        return fail(c, start, "%s claims %" PRIu64 " bytes, the file has %" PRIu64 " left", part,
                    len, bytes_left(c));
    *out = (struct gguf_string){ (const char *)c->f->data + c->pos, len };
    c->pos += len;
    return RC_OK;
}

/* Names of keys and tensors are printed and compared as text: printable ASCII, not empty. */
static enum rc read_name(struct cursor *c, uint64_t max, struct gguf_string *out) {
    uint64_t start = c->pos;
    enum rc rc = read_string(c, "its name", out);
    if (rc)
        return rc;
    if (out->len == 0 || out->len > max)
        return fail(c, start, "its name has %" PRIu64 " bytes, expected 1 to %" PRIu64, out->len,
                    max);
    for (uint64_t i = 0; i < out->len; i++)
        if (out->data[i] < ' ' || out->data[i] > '~')
            return fail(c, start + 8 + i, "byte 0x%02x in its name, expected printable ASCII",
                        (uint8_t)out->data[i]);
    return RC_OK;
}

static void set_field(struct cursor *c, const char *kind, struct gguf_string name) {
    int shown = name.len < 96 ? (int)name.len : 96;
    snprintf(c->field, sizeof c->field, "%s '%.*s'", kind, shown, name.data);
}

static enum rc read_scalar(struct cursor *c, struct gguf_value *v) {
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } raw;
    uint64_t start = c->pos;
    enum rc rc = read_number(c, "its value", &raw, gguf_type_bytes(v->type));
    if (rc)
        return rc;
    switch (v->type) {
    case GGUF_U8:
        v->u = raw.u8;
        break;
    case GGUF_I8:
        v->i = raw.i8;
        break;
    case GGUF_U16:
        v->u = raw.u16;
        break;
    case GGUF_I16:
        v->i = raw.i16;
        break;
    case GGUF_U32:
        v->u = raw.u32;
        break;
    case GGUF_I32:
        v->i = raw.i32;
        break;
    case GGUF_U64:
        v->u = raw.u64;
        break;
    case GGUF_I64:
        v->i = raw.i64;
        break;
    case GGUF_F32:
        v->f = (double)raw.f32;
        break;
    case GGUF_F64:
        v->f = raw.f64;
        break;
    default: /* GGUF_BOOL */
        if (raw.u8 > 1)
            return fail(c, start, "a boolean is 0 or 1, found %u", raw.u8);
        v->b = raw.u8 != 0;
    }
    return RC_OK;
}

static enum rc read_array(struct cursor *c, struct gguf_array *a, unsigned depth);

static enum rc read_string_array(struct cursor *c, struct gguf_array *a, uint64_t start) {
    if (a->count > bytes_left(c) / sizeof(uint64_t))
        return fail(c, start, "%" PRIu64 " strings cannot fit in %" PRIu64 " bytes", a->count,
                    bytes_left(c));
    struct gguf_string *strings = malloc(a->count ? a->count * sizeof *strings : 1);
    if (!strings)
        return fail_memory(c);
    a->strings = strings;
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t at = c->pos;
        if (read_string(c, "an element", &strings[i]) != RC_OK)
            return fail(c, at, "string %" PRIu64 " of %" PRIu64 " runs past the end of the file", i,
                        a->count);
    }
    return RC_OK;
}

static enum rc read_nested_array(struct cursor *c, struct gguf_array *a, uint64_t start,
                                 unsigned depth) {
    if (depth + 1 >= GGUF_MAX_DEPTH)
        return fail(c, start, "arrays nested deeper than %d", GGUF_MAX_DEPTH);
    if (a->count > bytes_left(c) / (sizeof(uint32_t) + sizeof(uint64_t)))
        return fail(c, start, "%" PRIu64 " arrays cannot fit in %" PRIu64 " bytes", a->count,
                    bytes_left(c));
    struct gguf_array *arrays = calloc(a->count ? a->count : 1, sizeof *arrays);
    if (!arrays)
        return fail_memory(c);
    a->arrays = arrays;
    for (uint64_t i = 0; i < a->count; i++) {
        enum rc rc = read_array(c, &arrays[i], depth + 1);
        if (rc)
            return rc;
    }
    return RC_OK;
}

static enum rc read_number_array(struct cursor *c, struct gguf_array *a, uint64_t start) {
    uint32_t width = gguf_type_bytes(a->type);
    if (a->count > bytes_left(c) / width)
        return fail(c, start, "%" PRIu64 " elements of %u bytes cannot fit in %" PRIu64 " bytes",
                    a->count, width, bytes_left(c));
    a->numbers = c->f->data + c->pos;
    if (a->type == GGUF_BOOL)
        for (uint64_t i = 0; i < a->count; i++)
            if (a->numbers[i] > 1)
                return fail(c, c->pos + i, "a boolean is 0 or 1, found %u", a->numbers[i]);
    c->pos += a->count * width;
    return RC_OK;
}

/* *a is zeroed, and stays something free_array() can take at every point of failure. */
static enum rc read_array(struct cursor *c, struct gguf_array *a, unsigned depth) {
    uint64_t start = c->pos, count;
    uint32_t type;
    enum rc rc = read_number(c, "its element type", &type, sizeof type);
    if (!rc)
        rc = read_number(c, "its element count", &count, sizeof count);
    if (rc)
        return rc;
    if (type >= GGUF_TYPE_COUNT)
        return fail(c, start, "element type %u, expected 0 to %d", type, GGUF_TYPE_COUNT - 1);
    *a = (struct gguf_array){ .type = (enum gguf_type)type, .count = count };
    if (type == GGUF_STRING)
        return read_string_array(c, a, start);
    if (type == GGUF_ARRAY)
        return read_nested_array(c, a, start, depth);
    return read_number_array(c, a, start);
}

static void free_array(const struct gguf_array *a) {
    if (a->type == GGUF_STRING)
        free((void *)a->strings);
    if (a->type != GGUF_ARRAY || !a->arrays)
        return;
    for (uint64_t i = 0; i < a->count; i++)
        free_array(&a->arrays[i]);
    free((void *)a->arrays);
}

static enum rc read_key(struct cursor *c, struct gguf_key *k) {
    k->offset = c->pos;
    enum rc rc = read_name(c, KEY_MAX_NAME, &k->name);
    if (rc)
        return rc;
    set_field(c, "key", k->name);
    uint64_t start = c->pos;
    uint32_t type;
    rc = read_number(c, "its type", &type, sizeof type);
    if (rc)
        return rc;
    if (type >= GGUF_TYPE_COUNT)
        return fail(c, start, "value type %u, expected 0 to %d", type, GGUF_TYPE_COUNT - 1);
    k->value = (struct gguf_value){ .type = (enum gguf_type)type };
    if (type == GGUF_STRING)
        return read_string(c, "its value", &k->value.string);
    if (type == GGUF_ARRAY)
        return read_array(c, &k->value.array, 0);
    return read_scalar(c, &k->value);
}

static int compare_keys(const void *a, const void *b, void *keys) {
    const struct gguf_string *x = &((struct gguf_key *)keys)[*(const uint32_t *)a].name;
    const struct gguf_string *y = &((struct gguf_key *)keys)[*(const uint32_t *)b].name;
    int order = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static enum rc index_keys(struct cursor *c) {
    struct gguf_file *f = c->f;
    f->key_order = malloc(f->key_count ? f->key_count * sizeof *f->key_order : 1);
    if (!f->key_order)
        return fail_memory(c);
    for (uint32_t i = 0; i < f->key_count; i++)
        f->key_order[i] = i;
    qsort_r(f->key_order, f->key_count, sizeof *f->key_order, compare_keys, f->keys);
    for (uint64_t i = 1; i < f->key_count; i++)
        if (compare_keys(&f->key_order[i - 1], &f->key_order[i], f->keys) == 0) {
            const struct gguf_key *a = &f->keys[f->key_order[i - 1]];
            const struct gguf_key *b = &f->keys[f->key_order[i]];
            set_field(c, "key", a->name);
            return fail(c, b->offset, "it occurs twice, first at offset %" PRIu64, a->offset);
        }
    return RC_OK;
}

static enum rc read_keys(struct cursor *c, uint64_t count) {
    if (count > bytes_left(c) / KEY_MIN_BYTES || count > UINT32_MAX)
        return fail(c, 16, "%" PRIu64 " keys cannot fit in %" PRIu64 " bytes", count,
                    bytes_left(c));
    c->f->keys = calloc(count ? count : 1, sizeof *c->f->keys);
    if (!c->f->keys)
        return fail_memory(c);
    for (uint64_t i = 0; i < count; i++) {
        snprintf(c->field, sizeof c->field, "key %" PRIu64 " of %" PRIu64, i, count);
        c->f->key_count = i + 1; /* a half-read key is freed like a whole one */
        enum rc rc = read_key(c, &c->f->keys[i]);
        if (rc)
            return rc;
    }
    return index_keys(c);
}

static enum rc read_alignment(struct cursor *c) {
    c->f->alignment = GGUF_DEFAULT_ALIGNMENT;
    const struct gguf_key *k = gguf_file_find_key(c->f, "general.alignment");
    if (!k)
        return RC_OK;
    uint64_t value;
    enum rc rc = gguf_value_u64(c->f->path, k, &value, c->e);
    if (rc)
        return rc;
    set_field(c, "key", k->name);
    /* The specification wants a multiple of 8; files with smaller powers of two are read too. */
    bool power = value && (value & (value - 1)) == 0;
    if (value == 0 || value > (1u << 30) || (!power && value % 8 != 0))
        return fail(c, k->offset,
                    "alignment %" PRIu64 ", expected a multiple of 8 or a power of two to 2^30",
                    value);
    c->f->alignment = (uint32_t)value;
    return RC_OK;
}

static enum rc read_dimensions(struct cursor *c, struct gguf_tensor *t) {
    uint64_t start = c->pos;
    enum rc rc = read_number(c, "its number of dimensions", &t->n_dims, sizeof t->n_dims);
    if (rc)
        return rc;
    if (t->n_dims < 1 || t->n_dims > GGUF_MAX_DIMS)
        return fail(c, start, "%u dimensions, expected 1 to %d", t->n_dims, GGUF_MAX_DIMS);
    t->elements = 1;
    for (uint32_t d = 0; d < GGUF_MAX_DIMS; d++) {
        t->ne[d] = 1;
        if (d >= t->n_dims)
            continue;
        start = c->pos;
        rc = read_number(c, "a dimension", &t->ne[d], sizeof t->ne[d]);
        if (rc)
            return rc;
        if (t->ne[d] == 0)
            return fail(c, start, "dimension %u is 0", d);
        if (__builtin_mul_overflow(t->elements, t->ne[d], &t->elements) || t->elements > INT64_MAX)
            return fail(c, start, "dimension %u is %" PRIu64 ", too many elements in all", d,
                        t->ne[d]);
    }
    return RC_OK;
}

/* Leaves the offset relative to the data section: where that begins is known after the last one. */
static enum rc read_tensor(struct cursor *c, struct gguf_tensor *t) {
    struct gguf_string name;
    enum rc rc = read_name(c, GGUF_MAX_NAME, &name);
    if (rc)
        return rc;
    memcpy(t->name, name.data, name.len);
    set_field(c, "tensor", name);
    rc = read_dimensions(c, t);
    if (rc)
        return rc;
    uint64_t start = c->pos;
    uint32_t number;
    rc = read_number(c, "its type", &number, sizeof number);
    if (rc)
        return rc;
    const struct tensor_type_info *info = tensor_type_find(number);
    if (!info)
        return fail(c, start, "unknown tensor type %u", number);
    t->type = info->type;
    if (t->ne[0] % info->block_elements != 0)
        return fail(c, start, "rows of %" PRIu64 " elements, %s needs a multiple of %u", t->ne[0],
                    info->name, info->block_elements);
    if (__builtin_mul_overflow(t->elements / info->block_elements, info->block_bytes, &t->bytes))
        return fail(c, start, "%" PRIu64 " elements of %s are more bytes than can be counted",
                    t->elements, info->name);
    start = c->pos;
    rc = read_number(c, "its data offset", &t->offset, sizeof t->offset);
    if (rc)
        return rc;
    if (t->offset % c->f->alignment != 0)
        return fail(c, start, "data offset %" PRIu64 " is not a multiple of the alignment %u",
                    t->offset, c->f->alignment);
    return RC_OK;
}

/* Offsets become offsets in the file and data pointers; every tensor must end inside the file. */
static enum rc place_tensors(struct cursor *c) {
    struct gguf_file *f = c->f;
    uint64_t align = f->alignment, start = (c->pos + align - 1) / align * align;
    uint64_t room = start < f->size ? f->size - start : 0;
    for (uint64_t i = 0; i < f->tensor_count; i++) {
        struct gguf_tensor *t = &f->tensors[i];
        if (t->bytes > room || t->offset > room - t->bytes)
            return err_set(c->e, RC_FORMAT,
                           "%s: tensor '%s': %" PRIu64 " bytes at data offset %" PRIu64
                           " (file offset %" PRIu64 " + that) run past the end; the data section"
                           " has %" PRIu64 " bytes: the file is cut short or damaged; copy or"
                           " download it again",
                           f->path, t->name, t->bytes, t->offset, start, room);
        t->offset += start;
        t->data = f->data + t->offset;
    }
    return RC_OK;
}

static int compare_offsets(const void *a, const void *b, void *tensors) {
    const struct gguf_tensor *x = &((struct gguf_tensor *)tensors)[*(const uint32_t *)a];
    const struct gguf_tensor *y = &((struct gguf_tensor *)tensors)[*(const uint32_t *)b];
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static enum rc check_overlaps(struct cursor *c) {
    struct gguf_file *f = c->f;
    uint32_t *order = malloc(f->tensor_count ? f->tensor_count * sizeof *order : 1);
    if (!order)
        return fail_memory(c);
    for (uint32_t i = 0; i < f->tensor_count; i++)
        order[i] = i;
    qsort_r(order, f->tensor_count, sizeof *order, compare_offsets, f->tensors);
    enum rc rc = RC_OK;
    for (uint64_t i = 1; i < f->tensor_count && !rc; i++) {
        const struct gguf_tensor *a = &f->tensors[order[i - 1]], *b = &f->tensors[order[i]];
        if (b->offset - a->offset < a->bytes)
            rc = err_set(c->e, RC_FORMAT,
                         "%s: tensor '%s' at offset %" PRIu64
                         " overlaps tensor '%s', which has %" PRIu64 " bytes at offset %" PRIu64,
                         f->path, b->name, b->offset, a->name, a->bytes, a->offset);
    }
    free(order);
    return rc;
}

static enum rc read_tensors(struct cursor *c, uint64_t count) {
    snprintf(c->field, sizeof c->field, "number of tensors");
    if (count > bytes_left(c) / TENSOR_MIN_BYTES || count > UINT32_MAX)
        return fail(c, 8, "%" PRIu64 " tensors cannot fit in %" PRIu64 " bytes", count,
                    bytes_left(c));
    c->f->tensors = calloc(count ? count : 1, sizeof *c->f->tensors);
    if (!c->f->tensors)
        return fail_memory(c);
    c->f->tensor_count = count;
    for (uint64_t i = 0; i < count; i++) {
        snprintf(c->field, sizeof c->field, "tensor %" PRIu64 " of %" PRIu64, i, count);
        enum rc rc = read_tensor(c, &c->f->tensors[i]);
        if (rc)
            return rc;
    }
    enum rc rc = place_tensors(c);
    return rc ? rc : check_overlaps(c);
}

static enum rc read_version(struct cursor *c) {
    char magic[4];
    snprintf(c->field, sizeof c->field, "magic");
    if (bytes_left(c) < sizeof magic)
        return fail(c, 0, "the file has %" PRIu64 " bytes: this is not a GGUF file", bytes_left(c));
    enum rc rc = read_number(c, "\"GGUF\"", magic, sizeof magic);
    if (rc)
        return rc;
    if (memcmp(magic, "GGUF", sizeof magic) != 0)
        return fail(c, 0, "found %02x %02x %02x %02x, expected \"GGUF\": this is not a GGUF file",
                    (uint8_t)magic[0], (uint8_t)magic[1], (uint8_t)magic[2], (uint8_t)magic[3]);
    snprintf(c->field, sizeof c->field, "version");
    uint32_t version;
    rc = read_number(c, "a number", &version, sizeof version);
    if (rc)
        return rc;
    if ((version & 0xffff) == 0 && version != 0)
        return err_set(c->e, RC_UNSUPPORTED,
                       "%s: version at offset 4: 0x%08x, a big-endian file; convert it to"
                       " little-endian",
                       c->f->path, version);
    if (version < 2 || version > 3)
        return err_set(
            c->e, version == 1 || version > 3 ? RC_UNSUPPORTED : RC_FORMAT,
            "%s: version at offset 4: found %u, expected 2 or 3; convert the model again",
            c->f->path, version);
    c->f->version = version;
    return RC_OK;
}

enum rc gguf_parse_file(struct gguf_file *f, struct err *e) {
    struct cursor c = { .f = f, .e = e };
    uint64_t tensors, keys;
    enum rc rc = read_version(&c);
    if (rc)
        return rc;
    snprintf(c.field, sizeof c.field, "header");
    rc = read_number(&c, "the number of tensors", &tensors, sizeof tensors);
    if (!rc)
        rc = read_number(&c, "the number of keys", &keys, sizeof keys);
    if (rc)
        return rc;
    snprintf(c.field, sizeof c.field, "number of keys");
    rc = read_keys(&c, keys);
    if (!rc)
        rc = read_alignment(&c);
    if (!rc)
        rc = read_tensors(&c, tensors);
    return rc;
}

const struct gguf_key *gguf_file_find_key(const struct gguf_file *f, const char *name) {
    uint64_t lo = 0, hi = f->key_count, len = strlen(name);
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        const struct gguf_key *k = &f->keys[f->key_order[mid]];
        int order = memcmp(name, k->name.data, len < k->name.len ? len : k->name.len);
        if (order == 0)
            order = (len > k->name.len) - (len < k->name.len);
        if (order == 0)
            return k;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

void gguf_file_clear(struct gguf_file *f) {
    for (uint64_t i = 0; i < f->key_count; i++)
        if (f->keys[i].value.type == GGUF_ARRAY)
            free_array(&f->keys[i].value.array);
    if (f->mapped)
        munmap((void *)f->data, f->size);
    free(f->keys);
    free(f->key_order);
    free(f->tensors);
    free(f->path);
    *f = (struct gguf_file){ 0 };
}
