/* greta_model info - what is in a model file, as text or JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "model/config.h"
#include "tools/model/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/model/info.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/model/info.def"
};

const struct option_table cmd_info_options = {
    .name = "greta_model info",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before = "Usage: greta_model info [options] FILE\n"
              "\n"
              "Prints the metadata and the tensors of a GGUF file; of a split model, name the "
              "first part.\n"
              "\n",
};

/* What is shown of an array and a string unless everything is wanted. */
enum { SHOWN_ELEMENTS = 8, SHOWN_BYTES = 100 };

/* ---- text ---- */

/* In quotes; what would move the cursor or is not text becomes \xNN. */
static void print_string(struct gguf_string s, bool all) {
    uint64_t shown = all || s.len <= SHOWN_BYTES ? s.len : SHOWN_BYTES;
    /* Not in the middle of a UTF-8 character. */
    while (shown < s.len && shown > 0 && ((uint8_t)s.data[shown] & 0xc0) == 0x80)
        shown--;
    putchar('"');
    for (uint64_t i = 0; i < shown; i++) {
        uint8_t c = (uint8_t)s.data[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c < ' ' || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    putchar('"');
    if (shown < s.len)
        printf("… (%" PRIu64 " bytes)", s.len);
}

static void print_array(const struct gguf_array *a, bool all) {
    uint64_t shown = all || a->count <= SHOWN_ELEMENTS ? a->count : SHOWN_ELEMENTS;
    putchar('[');
    for (uint64_t i = 0; i < shown; i++) {
        if (i)
            fputs(", ", stdout);
        if (a->type == GGUF_STRING)
            print_string(a->strings[i], all);
        else if (a->type == GGUF_ARRAY)
            print_array(&a->arrays[i], all);
        else if (a->type == GGUF_F32 || a->type == GGUF_F64)
            printf("%.9g", gguf_array_f64(a, i));
        else if (a->type == GGUF_U64)
            printf("%" PRIu64, gguf_array_u64(a, i));
        else
            printf("%" PRId64, gguf_array_i64(a, i));
    }
    fputs(shown < a->count ? ", …]" : "]", stdout);
}

static void print_value(const struct gguf_value *v, bool all) {
    switch (v->type) {
    case GGUF_STRING:
        print_string(v->string, all);
        break;
    case GGUF_ARRAY:
        print_array(&v->array, all);
        break;
    case GGUF_BOOL:
        fputs(v->b ? "true" : "false", stdout);
        break;
    case GGUF_F32:
    case GGUF_F64:
        printf("%.9g", v->f);
        break;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
        printf("%" PRId64, v->i);
        break;
    default:
        printf("%" PRIu64, v->u);
    }
}

static void print_keys(const gguf *g, bool all) {
    printf("\n%" PRIu64 " keys\n", gguf_key_count(g));
    for (uint64_t i = 0; i < gguf_key_count(g); i++) {
        const struct gguf_key *k = gguf_key_at(g, i);
        char type[40];
        if (k->value.type == GGUF_ARRAY)
            snprintf(type, sizeof type, "%s[%" PRIu64 "]", gguf_type_name(k->value.array.type),
                     k->value.array.count);
        else
            snprintf(type, sizeof type, "%s", gguf_type_name(k->value.type));
        printf("  %-*.*s  %-14s  ", 42, (int)k->name.len, k->name.data, type);
        print_value(&k->value, all);
        putchar('\n');
    }
}

static void print_tensors(const gguf *g) {
    printf("\n%" PRIu64 " tensors\n", gguf_tensor_count(g));
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        char shape[96], size[BYTES_TEXT];
        size_t n = 0;
        for (uint32_t d = 0; d < t->n_dims; d++)
            n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRIu64, d ? " x " : "",
                                  t->ne[d]);
        bytes_format(t->bytes, size);
        printf("  %-32s  %-6s  %-16s  %11s  at %" PRIu64, t->name, tensor_type_name(t->type), shape,
               size, t->offset);
        if (gguf_part_count(g) > 1)
            printf(" of part %u", t->part + 1);
        putchar('\n');
    }
}

static void print_types(const gguf *g) {
    for (const struct tensor_type_info *t = tensor_type_next(NULL); t; t = tensor_type_next(t)) {
        uint64_t count = 0, bytes = 0;
        for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
            if (gguf_tensor_at(g, i)->type == t->type) {
                count++;
                bytes += gguf_tensor_at(g, i)->bytes;
            }
        char size[BYTES_TEXT];
        bytes_format(bytes, size);
        if (count)
            printf("  %-6s %5" PRIu64 " tensors  %11s\n", t->name, count, size);
    }
}

static uint64_t count_elements(const gguf *g) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
        n += gguf_tensor_at(g, i)->elements;
    return n;
}

static void print_config(const gguf *g) {
    struct config c;
    struct err e = { 0 };
    if (config_read(g, &c, &e)) {
        printf("not a model greta runs: %s\n", e.msg);
        return;
    }
    printf("%s: %u layers, dim %u, %u heads of %u, %u KV heads, hidden %u, vocabulary %u\n",
           config_arch_name(c.arch), c.layers, c.dim, c.heads, c.head_size, c.kv_heads, c.hidden,
           c.vocab);
    printf("context %u, rope base %g, rope scaling %s", c.context, c.rope_base,
           config_rope_scaling_name(c.rope_scaling));
    if (c.rope_factor != 1)
        printf(" x %g", c.rope_factor);
    if (c.rope_local_base != 0)
        printf(", rope base of local layers %g", c.rope_local_base);
    if (c.sliding_window)
        printf(", sliding window %u", c.sliding_window);
    if (c.sliding_window && c.window_period)
        printf(" in all but one of every %u layers", c.window_period);
    if (c.attention_cap != 0)
        printf(", attention scores capped at %g", (double)c.attention_cap);
    if (c.logit_cap != 0)
        printf(", logits capped at %g", (double)c.logit_cap);
    printf("%s\n", c.tied ? ", tied embeddings" : "");
}

static void print_text(const gguf *g, bool all) {
    char size[BYTES_TEXT];
    bytes_format(gguf_file_bytes(g), size);
    printf("%s: GGUF %u, %s in %u file%s, alignment %u, %" PRIu64 " parameters\n", gguf_path(g),
           gguf_version(g), size, gguf_part_count(g), gguf_part_count(g) == 1 ? "" : "s",
           gguf_alignment(g), count_elements(g));
    print_config(g);
    print_types(g);
    print_keys(g, all);
    print_tensors(g);
}

/* ---- JSON ---- */

static void write_array(struct json *j, const char *key, const struct gguf_array *a, bool all) {
    uint64_t shown = all || a->count <= SHOWN_ELEMENTS ? a->count : SHOWN_ELEMENTS;
    json_array_open(j, key);
    for (uint64_t i = 0; i < shown; i++) {
        if (a->type == GGUF_STRING)
            json_text(j, NULL, a->strings[i].data, a->strings[i].len);
        else if (a->type == GGUF_ARRAY)
            write_array(j, NULL, &a->arrays[i], all);
        else if (a->type == GGUF_F32 || a->type == GGUF_F64)
            json_double(j, NULL, gguf_array_f64(a, i));
        else if (a->type == GGUF_BOOL)
            json_bool(j, NULL, gguf_array_u64(a, i) != 0);
        else if (a->type == GGUF_U64)
            json_u64(j, NULL, gguf_array_u64(a, i));
        else
            json_i64(j, NULL, gguf_array_i64(a, i));
    }
    json_array_close(j);
}

static void write_key(struct json *j, const struct gguf_key *k, bool all) {
    const struct gguf_value *v = &k->value;
    json_object_open(j, NULL);
    json_text(j, "key", k->name.data, k->name.len);
    json_string(j, "type", gguf_type_name(v->type));
    switch (v->type) {
    case GGUF_STRING:
        json_text(j, "value", v->string.data, v->string.len);
        break;
    case GGUF_ARRAY:
        json_string(j, "element_type", gguf_type_name(v->array.type));
        json_u64(j, "count", v->array.count);
        write_array(j, "value", &v->array, all);
        break;
    case GGUF_BOOL:
        json_bool(j, "value", v->b);
        break;
    case GGUF_F32:
    case GGUF_F64:
        json_double(j, "value", v->f);
        break;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
        json_i64(j, "value", v->i);
        break;
    default:
        json_u64(j, "value", v->u);
    }
    json_object_close(j);
}

static void write_tensor(struct json *j, const struct gguf_tensor *t) {
    json_object_open(j, NULL);
    json_string(j, "name", t->name);
    json_string(j, "type", tensor_type_name(t->type));
    json_array_open(j, "shape");
    for (uint32_t d = 0; d < t->n_dims; d++)
        json_u64(j, NULL, t->ne[d]);
    json_array_close(j);
    json_u64(j, "bytes", t->bytes);
    json_u64(j, "offset", t->offset);
    json_u64(j, "part", t->part);
    json_object_close(j);
}

static void write_config(struct json *j, const gguf *g) {
    struct config c;
    if (config_read(g, &c, NULL)) {
        json_null(j, "config");
        return;
    }
    json_object_open(j, "config");
    json_string(j, "arch", config_arch_name(c.arch));
    json_u64(j, "dim", c.dim);
    json_u64(j, "layers", c.layers);
    json_u64(j, "heads", c.heads);
    json_u64(j, "kv_heads", c.kv_heads);
    json_u64(j, "head_size", c.head_size);
    json_u64(j, "hidden", c.hidden);
    json_u64(j, "vocab", c.vocab);
    json_u64(j, "context", c.context);
    json_bool(j, "tied", c.tied);
    json_double(j, "rms_eps", (double)c.norm_eps);
    json_u64(j, "sliding_window", c.sliding_window);
    json_u64(j, "window_period", c.window_period);
    json_double(j, "attention_cap", (double)c.attention_cap);
    json_double(j, "logit_cap", (double)c.logit_cap);
    json_double(j, "rope_base", c.rope_base);
    json_double(j, "rope_local_base", c.rope_local_base);
    json_u64(j, "rope_dims", c.rope_dims);
    json_string(j, "rope_scaling", config_rope_scaling_name(c.rope_scaling));
    json_double(j, "rope_factor", c.rope_factor);
    json_object_close(j);
}

static enum rc write_json(const gguf *g, bool all, struct err *e) {
    struct json j = json_begin(stdout, 2);
    json_object_open(&j, NULL);
    json_string(&j, "file", gguf_path(g));
    json_u64(&j, "version", gguf_version(g));
    json_u64(&j, "alignment", gguf_alignment(g));
    json_u64(&j, "bytes", gguf_file_bytes(g));
    json_u64(&j, "parameters", count_elements(g));
    json_array_open(&j, "parts");
    for (uint32_t i = 0; i < gguf_part_count(g); i++)
        json_string(&j, NULL, gguf_part_path(g, i));
    json_array_close(&j);
    write_config(&j, g);
    json_array_open(&j, "metadata");
    for (uint64_t i = 0; i < gguf_key_count(g); i++)
        write_key(&j, gguf_key_at(g, i), all);
    json_array_close(&j);
    json_array_open(&j, "tensors");
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
        write_tensor(&j, gguf_tensor_at(g, i));
    json_array_close(&j);
    json_object_close(&j);
    return json_end(&j, e);
}

int cmd_info(int argc, char **argv) {
    struct options o = { 0 };
    const char *path;
    int code = cmd_begin(&cmd_info_options, &o, argc, argv, &path);
    if (code >= 0)
        return code;
    struct err e = { 0 };
    gguf *g = NULL;
    enum rc rc = gguf_open(&g, path, &e);
    if (!rc && o.json)
        rc = write_json(g, o.all, &e);
    else if (!rc)
        print_text(g, o.all);
    gguf_close(&g);
    return rc ? cmd_failed(&cmd_info_options, &e) : EXIT_CLEAN;
}
