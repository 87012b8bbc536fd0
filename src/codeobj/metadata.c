/* metadata.c - the MessagePack note of a code object.
 *
 * The document is a map; "amdhsa.kernels" is a list with a map for each kernel, whose ".args" is a
 * list with a map for each argument (AMDGPUUsage, "Code Object V3 Metadata"). The reader walks it
 * once, without building a tree: a value is either taken or skipped. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/codeobj.h"

enum { DEPTH_MAX = 32, ARGUMENTS_MAX = 4096 };

enum value_type { VALUE_OTHER, VALUE_NUMBER, VALUE_TEXT, VALUE_TRUE, VALUE_LIST, VALUE_MAP };

struct value {
    enum value_type type;
    uint64_t number; /* VALUE_NUMBER; the number of elements or pairs of a list or map */
    const char *text;
    size_t length;
};

struct pack {
    const unsigned char *at, *end;
};

static bool take(struct pack *p, size_t n, const unsigned char **out) {
    if ((size_t)(p->end - p->at) < n)
        return false;
    *out = p->at;
    p->at += n;
    return true;
}

/* An unsigned big-endian number of n bytes. */
static bool take_number(struct pack *p, size_t n, uint64_t *out) {
    const unsigned char *b;
    if (!take(p, n, &b))
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out = *out << 8 | b[i];
    return true;
}

static bool take_text(struct pack *p, uint64_t length, struct value *v) {
    const unsigned char *b;
    if (length > SIZE_MAX || !take(p, (size_t)length, &b))
        return false;
    v->type = VALUE_TEXT;
    v->text = (const char *)b;
    v->length = (size_t)length;
    return true;
}

static bool take_other(struct pack *p, uint64_t length, struct value *v) {
    if (!take_text(p, length, v))
        return false;
    v->type = VALUE_OTHER;
    return true;
}

/* A list or a map of n elements. Each takes at least a byte, so a valid count never exceeds the
 * bytes that are left, and walking it ends. */
static bool take_many(struct pack *p, enum value_type type, uint64_t n, struct value *v) {
    v->type = type;
    v->number = n;
    return n <= (uint64_t)(p->end - p->at);
}

/* The values whose first byte says what they are and nothing else. */
static bool take_tagged(struct pack *p, unsigned tag, struct value *v) {
    uint64_t n;
    switch (tag) {
    case 0xc3:
        v->type = VALUE_TRUE;
        return true;
    case 0xc4: /* bytes */
    case 0xc5:
    case 0xc6:
        return take_number(p, (size_t)1 << (tag - 0xc4), &n) && take_other(p, n, v);
    case 0xc7: /* extensions: length, type, bytes */
    case 0xc8:
    case 0xc9:
        return take_number(p, (size_t)1 << (tag - 0xc7), &n) && take_other(p, n + 1, v);
    case 0xca: /* float, double */
    case 0xcb:
        return take_other(p, (uint64_t)4 << (tag - 0xca), v);
    case 0xcc: /* unsigned numbers */
    case 0xcd:
    case 0xce:
    case 0xcf:
        v->type = VALUE_NUMBER;
        return take_number(p, (size_t)1 << (tag - 0xcc), &v->number);
    case 0xd0: /* signed numbers: never a size */
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return take_other(p, (uint64_t)1 << (tag - 0xd0), v);
    case 0xd4: /* extensions of fixed size */
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return take_other(p, ((uint64_t)1 << (tag - 0xd4)) + 1, v);
    case 0xd9: /* text */
    case 0xda:
    case 0xdb:
        return take_number(p, (size_t)1 << (tag - 0xd9), &n) && take_text(p, n, v);
    case 0xdc:
    case 0xdd:
        return take_number(p, (size_t)2 << (tag - 0xdc), &n) && take_many(p, VALUE_LIST, n, v);
    case 0xde:
    case 0xdf:
        return take_number(p, (size_t)2 << (tag - 0xde), &n) && take_many(p, VALUE_MAP, n, v);
    default: /* nil, false, unused */
        return true;
    }
}

/* The next value; of a list or map only its head. False if the document ends inside it. */
static bool take_value(struct pack *p, struct value *v) {
    const unsigned char *b;
    *v = (struct value){ 0 };
    if (!take(p, 1, &b))
        return false;
    if (*b <= 0x7f) {
        v->type = VALUE_NUMBER;
        v->number = *b;
        return true;
    }
    if (*b <= 0x8f)
        return take_many(p, VALUE_MAP, *b & 0xf, v);
    if (*b <= 0x9f)
        return take_many(p, VALUE_LIST, *b & 0xf, v);
    if (*b <= 0xbf)
        return take_text(p, *b & 0x1f, v);
    return *b >= 0xe0 || take_tagged(p, *b, v);
}

/* Skips what follows the head v. */
static bool skip_rest(struct pack *p, const struct value *v, int depth) {
    uint64_t n = v->type == VALUE_LIST ? v->number : v->type == VALUE_MAP ? 2 * v->number : 0;
    if (depth > DEPTH_MAX)
        return false;
    while (n--) {
        struct value inner;
        if (!take_value(p, &inner) || !skip_rest(p, &inner, depth + 1))
            return false;
    }
    return true;
}

static bool is_text(const struct value *v, const char *text) {
    return v->type == VALUE_TEXT && v->length == strlen(text) && !memcmp(v->text, text, v->length);
}

/* The number if it is one and fits, else what *out was. */
static void set_u32(uint32_t *out, const struct value *v) {
    if (v->type == VALUE_NUMBER && v->number <= UINT32_MAX)
        *out = (uint32_t)v->number;
}

/* ---- arguments ----------------------------------------------------------------------------- */

enum value_class { CLASS_UNKNOWN, CLASS_VALUE, CLASS_POINTER, CLASS_OTHER, CLASS_HIDDEN };

static const struct {
    const char *text;
    enum value_class class;
} value_kinds[] = {
    [CODEOBJ_UNKNOWN] = { "", CLASS_UNKNOWN },
#define VALUE_KIND(kind, text, class) [CODEOBJ_##kind] = { text, CLASS_##class },
#include "codeobj/value_kind.def"
};

static const char *const accesses[] = { "", "read_only", "write_only", "read_write" };
static const char *const spaces[] = { "",      "private", "global", "constant",
                                      "local", "generic", "region" };

/* The index of the value in the list; 0 if it is not there. */
static uint8_t word_of(const struct value *v, const char *const *words, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (is_text(v, words[i]))
            return (uint8_t)i;
    return 0;
}

static void set_text(char **out, const struct value *v) {
    if (v->type == VALUE_TEXT && !*out)
        *out = strndup(v->text, v->length);
}

static void set_kind(struct codeobj_argument *a, const struct value *v) {
    a->kind = CODEOBJ_UNKNOWN;
    for (size_t i = 1; i < sizeof value_kinds / sizeof *value_kinds; i++)
        if (is_text(v, value_kinds[i].text))
            a->kind = (uint8_t)i;
    a->is_pointer = value_kinds[a->kind].class == CLASS_POINTER;
    /* By its prefix, which also covers kinds that only newer compilers know. */
    a->is_hidden = v->type == VALUE_TEXT && v->length > 7 && !memcmp(v->text, "hidden_", 7);
}

static void set_argument(struct codeobj_argument *a, const struct value *key,
                         const struct value *v) {
    if (is_text(key, ".offset"))
        set_u32(&a->offset, v);
    else if (is_text(key, ".size"))
        set_u32(&a->size, v);
    else if (is_text(key, ".pointee_align"))
        set_u32(&a->pointee_align, v);
    else if (is_text(key, ".value_kind"))
        set_kind(a, v);
    else if (is_text(key, ".access"))
        a->access = word_of(v, accesses, sizeof accesses / sizeof *accesses);
    else if (is_text(key, ".actual_access"))
        a->actual_access = word_of(v, accesses, sizeof accesses / sizeof *accesses);
    else if (is_text(key, ".address_space"))
        a->address_space = word_of(v, spaces, sizeof spaces / sizeof *spaces);
    else if (is_text(key, ".is_const"))
        a->is_const = v->type == VALUE_TRUE;
    else if (is_text(key, ".is_restrict"))
        a->is_restrict = v->type == VALUE_TRUE;
    else if (is_text(key, ".is_volatile"))
        a->is_volatile = v->type == VALUE_TRUE;
    else if (is_text(key, ".name"))
        set_text(&a->name, v);
    else if (is_text(key, ".type_name"))
        set_text(&a->type_name, v);
}

static bool read_argument(struct pack *p, struct codeobj_argument *a) {
    struct value map, key, v;
    if (!take_value(p, &map) || map.type != VALUE_MAP)
        return false;
    while (map.number--) {
        if (!take_value(p, &key) || !skip_rest(p, &key, 0) || !take_value(p, &v))
            return false;
        set_argument(a, &key, &v);
        if (!skip_rest(p, &v, 0))
            return false;
    }
    a->is_read_only = a->is_pointer && (a->is_const || a->access == CODEOBJ_READ_ONLY ||
                                        a->actual_access == CODEOBJ_READ_ONLY);
    return true;
}

/* The list of arguments whose head has been taken. */
static bool read_arguments(struct pack *p, struct codeobj_kernel *k, uint64_t count) {
    if (count > ARGUMENTS_MAX)
        return false;
    k->arguments = calloc((size_t)count + 1, sizeof *k->arguments);
    if (!k->arguments)
        return false;
    while (k->argument_count < count)
        if (!read_argument(p, &k->arguments[k->argument_count++]))
            return false;
    return true;
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* Up to room numbers of the list whose head has been taken; what else it holds is skipped. */
static bool read_numbers(struct pack *p, uint64_t count, uint32_t *out, size_t room) {
    for (uint64_t i = 0; i < count; i++) {
        struct value v;
        if (!take_value(p, &v))
            return false;
        if (i < room)
            set_u32(&out[i], &v);
        if (!skip_rest(p, &v, 0))
            return false;
    }
    return true;
}

static void set_kernel(struct codeobj_kernel *k, const struct value *key, const struct value *v) {
    static const struct {
        const char *key;
        size_t offset;
    } numbers[] = {
        { ".kernarg_segment_size", offsetof(struct codeobj_kernel, kernarg_bytes) },
        { ".kernarg_segment_align", offsetof(struct codeobj_kernel, kernarg_align) },
        { ".max_flat_workgroup_size", offsetof(struct codeobj_kernel, max_threads) },
        { ".wavefront_size", offsetof(struct codeobj_kernel, wavefront) },
        { ".vgpr_count", offsetof(struct codeobj_kernel, vgprs) },
        { ".sgpr_count", offsetof(struct codeobj_kernel, sgprs) },
        { ".agpr_count", offsetof(struct codeobj_kernel, agprs) },
        { ".vgpr_spill_count", offsetof(struct codeobj_kernel, vgpr_spills) },
        { ".sgpr_spill_count", offsetof(struct codeobj_kernel, sgpr_spills) },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (is_text(key, numbers[i].key))
            set_u32((uint32_t *)(void *)((char *)k + numbers[i].offset), v);
    if (is_text(key, ".uses_dynamic_stack"))
        k->uses_dynamic_stack = v->type == VALUE_TRUE;
}

/* A kernel's map, into `found`; *name is its ".symbol" without ".kd", or its ".name". */
static bool read_kernel(struct pack *p, struct codeobj_kernel *found, struct value *symbol) {
    struct value map, key, v, name = { 0 };
    *symbol = (struct value){ 0 };
    if (!take_value(p, &map) || map.type != VALUE_MAP)
        return false;
    while (map.number--) {
        if (!take_value(p, &key) || !skip_rest(p, &key, 0) || !take_value(p, &v))
            return false;
        bool list = v.type == VALUE_LIST, good;
        if (is_text(&key, ".symbol"))
            *symbol = v;
        else if (is_text(&key, ".name"))
            name = v;
        else
            set_kernel(found, &key, &v);
        if (list && is_text(&key, ".args") && !found->arguments)
            good = read_arguments(p, found, v.number);
        else if (list && is_text(&key, ".reqd_workgroup_size"))
            good = read_numbers(p, v.number, found->required_block, 3);
        else
            good = skip_rest(p, &v, 0);
        if (!good)
            return false;
    }
    if (symbol->type == VALUE_TEXT && symbol->length > 3)
        symbol->length -= 3;
    else
        *symbol = name;
    return true;
}

void codeobj_free_arguments(struct codeobj_kernel *k) {
    for (uint32_t i = 0; i < k->argument_count; i++) {
        free(k->arguments[i].name);
        free(k->arguments[i].type_name);
    }
    free(k->arguments);
}

/* Moves what the document says into the kernel of that name. Descriptor sizes win, because the
 * hardware goes by them; older compilers left the descriptor's kernarg size at 0. */
static void adopt(struct codeobj_list *list, struct codeobj_kernel *found,
                  const struct value *name) {
    for (size_t i = 0; name->type == VALUE_TEXT && i < list->kernel_count; i++) {
        struct codeobj_kernel *k = &list->kernels[i];
        if (k->has_metadata || strlen(k->name) != name->length ||
            memcmp(k->name, name->text, name->length))
            continue;
        k->has_metadata = true;
        if (!k->kernarg_bytes)
            k->kernarg_bytes = found->kernarg_bytes;
        if (found->max_threads)
            k->max_threads = found->max_threads;
        k->kernarg_align = found->kernarg_align;
        k->wavefront = found->wavefront;
        k->vgprs = found->vgprs;
        k->sgprs = found->sgprs;
        k->agprs = found->agprs;
        k->vgpr_spills = found->vgpr_spills;
        k->sgpr_spills = found->sgpr_spills;
        k->uses_dynamic_stack = found->uses_dynamic_stack;
        memcpy(k->required_block, found->required_block, sizeof k->required_block);
        k->arguments = found->arguments;
        k->argument_count = found->argument_count;
        return;
    }
    codeobj_free_arguments(found);
}

static bool read_kernels(struct pack *p, struct codeobj_list *list, uint64_t count) {
    while (count--) {
        struct codeobj_kernel found = { 0 };
        struct value name;
        if (!read_kernel(p, &found, &name)) {
            codeobj_free_arguments(&found);
            return false;
        }
        adopt(list, &found, &name);
    }
    return true;
}

enum rc codeobj_list_read_metadata(struct codeobj_list *list, const unsigned char *data,
                                   size_t size, struct err *e) {
    struct pack p = { data, data + size };
    struct value map, key, v;
    bool good = take_value(&p, &map) && map.type == VALUE_MAP;
    while (good && map.number--) {
        good = take_value(&p, &key) && skip_rest(&p, &key, 0) && take_value(&p, &v);
        if (good && is_text(&key, "amdhsa.kernels") && v.type == VALUE_LIST)
            good = read_kernels(&p, list, v.number);
        else if (good && is_text(&key, "amdhsa.version") && v.type == VALUE_LIST)
            good = read_numbers(&p, v.number, list->metadata, 2);
        else if (good)
            good = skip_rest(&p, &v, 0);
    }
    return good ? RC_OK : err_set(e, RC_FORMAT, "the code object's metadata is malformed");
}
