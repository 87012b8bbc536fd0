#include "model/gguf/gguf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/grow.h"

struct buffer {
    uint8_t *data; /* owned */
    uint64_t len, room;
};

struct tensor {
    char name[GGUF_MAX_NAME + 1];
    enum tensor_type type;
    uint64_t elements, bytes;
    uint64_t offset; /* in the file, after begin */
};

struct gguf_writer {
    char *path;   /* owned: the target, symbolic links resolved */
    char *folder; /* owned: where it lies */
    char *hidden; /* owned: the temporary name, NULL while the file has none */
    int fd;
    struct err failed; /* the first problem while adding; RC_OK if none */
    struct buffer keys, infos;
    uint64_t key_count;
    struct tensor *tensors; /* owned */
    uint64_t tensor_count, tensor_room;
    uint64_t alignment, file_bytes, data_bytes;
    _Atomic uint64_t written;
    bool begun;
};

/* ---- the file ---- */

enum { HIDDEN_TRIES = 100 }; /* names that leftovers of other runs may have taken */

/* Sets w->hidden to the try-th hidden name beside the target. */
static enum rc make_hidden_name(gguf_writer *w, unsigned try, struct err *e) {
    free(w->hidden);
    w->hidden = NULL;
    if (asprintf(&w->hidden, "%s/.greta-%ld-%u", w->folder, (long)getpid(), try) >= 0)
        return RC_OK;
    w->hidden = NULL;
    return err_set(e, RC_MEMORY, "%s: out of memory", w->path);
}

/* Forgets a hidden name that was not used; the reason stands in errno. */
static enum rc fail_hidden(gguf_writer *w, const char *what, int reason, struct err *e) {
    free(w->hidden);
    w->hidden = NULL;
    return err_set(e, RC_IO, "%s: %s in %s: %s", w->path, what, w->folder, strerror(reason));
}

/* A file that does not appear yet: nameless if the file system can do that, else under a hidden
 * name. */
static enum rc create_file(gguf_writer *w, struct err *e) {
#ifdef O_TMPFILE
    w->fd = open(w->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (w->fd >= 0 && access("/proc/self/fd", X_OK) == 0) /* commit links it from there */
        return RC_OK;
    if (w->fd >= 0)
        close(w->fd);
#endif
    for (unsigned try = 0; try < HIDDEN_TRIES; try++) {
        enum rc rc = make_hidden_name(w, try, e);
        if (rc)
            return rc;
        w->fd = open(w->hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0)
            return RC_OK;
        if (errno != EEXIST)
            break;
    }
    return fail_hidden(w, "cannot create a file", errno, e);
}

static enum rc resolve_path(gguf_writer *w, const char *path, struct err *e) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return err_set(e, RC_IO, "%s: exists and is not a regular file", path);
    w->path = exists ? realpath(path, NULL) : strdup(path);
    char *copy = w->path ? strdup(w->path) : NULL;
    w->folder = copy ? strdup(dirname(copy)) : NULL;
    free(copy);
    if (!w->folder)
        return err_set(e, RC_MEMORY, "%s: out of memory", path);
    return RC_OK;
}

enum rc gguf_writer_open(gguf_writer **out, const char *path, struct err *e) {
    gguf_writer *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(e, RC_MEMORY, "%s: out of memory", path);
    w->fd = -1;
    w->alignment = GGUF_DEFAULT_ALIGNMENT;
    enum rc rc = resolve_path(w, path, e);
    if (!rc && !folder_make_parents(path))
        rc = err_set(e, RC_IO, "%s: its folder cannot be made: %s", path, strerror(errno));
    if (!rc)
        rc = create_file(w, e);
    if (rc)
        gguf_writer_close(&w);
    else
        *out = w;
    return rc;
}

void gguf_writer_close(gguf_writer **w) {
    if (!*w)
        return;
    if ((*w)->hidden)
        unlink((*w)->hidden);
    if ((*w)->fd >= 0)
        close((*w)->fd);
    free((*w)->path);
    free((*w)->folder);
    free((*w)->hidden);
    free((*w)->keys.data);
    free((*w)->infos.data);
    free((*w)->tensors);
    free(*w);
    *w = NULL;
}

static enum rc write_at(gguf_writer *w, const void *data, uint64_t bytes, uint64_t offset,
                        struct err *e) {
    const uint8_t *p = data;
    while (bytes > 0) {
        ssize_t n = pwrite(w->fd, p, bytes < (1u << 30) ? bytes : 1u << 30, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, RC_IO, "%s: cannot write at offset %" PRIu64 ": %s", w->path, offset,
                           n < 0 ? strerror(errno) : "no byte was written");
        p += n;
        offset += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return RC_OK;
}

/* ---- building the header ---- */

static void __attribute__((format(printf, 3, 4)))
add_failed(gguf_writer *w, enum rc rc, const char *fmt, ...) {
    if (w->failed.rc)
        return;
    char what[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    (void)err_set(&w->failed, rc, "%s: %s", w->path, what);
}

static void put(gguf_writer *w, struct buffer *b, const void *data, uint64_t len) {
    if (len == 0)
        return;
    if (len > b->room - b->len) {
        uint64_t room = (b->len + len) * 2;
        uint8_t *bigger = realloc(b->data, room);
        if (!bigger) {
            add_failed(w, RC_MEMORY, "out of memory");
            return;
        }
        b->data = bigger;
        b->room = room;
    }
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

static void put_u32(gguf_writer *w, struct buffer *b, uint32_t v) {
    put(w, b, &v, sizeof v);
}

static void put_u64(gguf_writer *w, struct buffer *b, uint64_t v) {
    put(w, b, &v, sizeof v);
}

static void put_string(gguf_writer *w, struct buffer *b, const char *data, uint64_t len) {
    put_u64(w, b, len);
    put(w, b, data, len);
}

/* Key and type; the value follows. */
static void put_key(gguf_writer *w, const char *key, uint64_t len, enum gguf_type type) {
    put_string(w, &w->keys, key, len);
    put_u32(w, &w->keys, type);
    w->key_count++;
}

void gguf_writer_add_u32(gguf_writer *w, const char *key, uint32_t value) {
    put_key(w, key, strlen(key), GGUF_U32);
    put_u32(w, &w->keys, value);
    if (strcmp(key, "general.alignment") == 0)
        w->alignment = value;
}

void gguf_writer_add_u64(gguf_writer *w, const char *key, uint64_t value) {
    put_key(w, key, strlen(key), GGUF_U64);
    put_u64(w, &w->keys, value);
}

void gguf_writer_add_f32(gguf_writer *w, const char *key, float value) {
    put_key(w, key, strlen(key), GGUF_F32);
    put(w, &w->keys, &value, sizeof value);
}

void gguf_writer_add_bool(gguf_writer *w, const char *key, bool value) {
    uint8_t byte = value;
    put_key(w, key, strlen(key), GGUF_BOOL);
    put(w, &w->keys, &byte, sizeof byte);
}

void gguf_writer_add_string(gguf_writer *w, const char *key, const char *text) {
    put_key(w, key, strlen(key), GGUF_STRING);
    put_string(w, &w->keys, text, strlen(text));
}

static void put_array(gguf_writer *w, const struct gguf_array *a) {
    put_u32(w, &w->keys, a->type);
    put_u64(w, &w->keys, a->count);
    if (a->type == GGUF_STRING)
        for (uint64_t i = 0; i < a->count; i++)
            put_string(w, &w->keys, a->strings[i].data, a->strings[i].len);
    else if (a->type == GGUF_ARRAY)
        for (uint64_t i = 0; i < a->count; i++)
            put_array(w, &a->arrays[i]);
    else
        put(w, &w->keys, a->numbers, a->count * gguf_type_bytes(a->type));
}

void gguf_writer_add_array(gguf_writer *w, const char *key, enum gguf_type type, const void *data,
                           uint64_t count) {
    put_key(w, key, strlen(key), GGUF_ARRAY);
    put_array(w, &(struct gguf_array){ .type = type, .count = count, .numbers = data });
}

void gguf_writer_add_strings(gguf_writer *w, const char *key, const struct gguf_string *strings,
                             uint64_t count) {
    put_key(w, key, strlen(key), GGUF_ARRAY);
    put_array(w, &(struct gguf_array){ .type = GGUF_STRING, .count = count, .strings = strings });
}

void gguf_writer_copy_key(gguf_writer *w, const struct gguf_key *key) {
    const struct gguf_value *v = &key->value;
    put_key(w, key->name.data, key->name.len, v->type);
    switch (v->type) {
    case GGUF_STRING:
        put_string(w, &w->keys, v->string.data, v->string.len);
        break;
    case GGUF_ARRAY:
        put_array(w, &v->array);
        break;
    case GGUF_F32:
        put(w, &w->keys, &(float){ (float)v->f }, sizeof(float));
        break;
    case GGUF_BOOL:
        put(w, &w->keys, &(uint8_t){ v->b }, 1);
        break;
    default: /* integers and F64 lie in their low bytes, little-endian */
        put(w, &w->keys, &v->u, gguf_type_bytes(v->type));
    }
    if (gguf_string_is(key->name, "general.alignment"))
        w->alignment = v->u;
}

static bool grow_tensors(gguf_writer *w) {
    struct tensor *more = grow_array(w->tensors, &w->tensor_room, w->tensor_count, sizeof *more);
    w->tensors = more ? more : w->tensors;
    return more;
}

uint64_t gguf_writer_add_tensor(gguf_writer *w, const char *name, enum tensor_type type,
                                uint32_t n_dims, const uint64_t *ne) {
    struct tensor t = { .type = type, .elements = 1 };
    size_t len = strlen(name);
    if (len == 0 || len > GGUF_MAX_NAME || n_dims < 1 || n_dims > GGUF_MAX_DIMS)
        add_failed(w, RC_RANGE, "tensor '%s': a name of 1 to %d bytes and 1 to %d dimensions", name,
                   GGUF_MAX_NAME, GGUF_MAX_DIMS);
    else
        memcpy(t.name, name, len + 1);
    for (uint32_t d = 0; d < n_dims && !w->failed.rc; d++)
        if (ne[d] == 0 || __builtin_mul_overflow(t.elements, ne[d], &t.elements))
            add_failed(w, RC_RANGE, "tensor '%s': dimension %u is %" PRIu64, name, d, ne[d]);
    if (!w->failed.rc && tensor_type_row_bytes(type, ne[0]) == 0)
        add_failed(w, RC_RANGE, "tensor '%s': rows of %" PRIu64 " elements cannot be %s", name,
                   ne[0], tensor_type_name(type));
    t.bytes = tensor_type_row_bytes(type, t.elements);
    if (!grow_tensors(w))
        add_failed(w, RC_MEMORY, "out of memory");
    if (w->failed.rc)
        return 0;
    /* The offset is appended by gguf_writer_begin(), when the alignment is known for sure. */
    put_string(w, &w->infos, name, len);
    put_u32(w, &w->infos, n_dims);
    put(w, &w->infos, ne, n_dims * sizeof *ne);
    put_u32(w, &w->infos, type);
    t.offset = w->infos.len;
    put_u64(w, &w->infos, 0);
    w->tensors[w->tensor_count] = t;
    return w->tensor_count++;
}

static uint64_t align_up(uint64_t n, uint64_t alignment) {
    return (n + alignment - 1) / alignment * alignment;
}

/* Sets every tensor's place; offsets in the header count from the start of the data. */
static enum rc lay_out(gguf_writer *w, uint64_t start, struct err *e) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < w->tensor_count; i++) {
        struct tensor *t = &w->tensors[i];
        memcpy(w->infos.data + t->offset, &at, sizeof at);
        t->offset = start + at;
        if (t->bytes > INT64_MAX / 2 || at > INT64_MAX / 2)
            return err_set(e, RC_RANGE, "%s: the tensors have too many bytes", w->path);
        at = align_up(at + t->bytes, w->alignment);
        w->data_bytes += t->bytes;
    }
    w->file_bytes = start + at;
    return RC_OK;
}

enum rc gguf_writer_begin(gguf_writer *w, struct err *e) {
    if (w->failed.rc)
        return err_set(e, w->failed.rc, "%s", w->failed.msg);
    if (w->alignment == 0 || w->alignment > (1u << 30))
        return err_set(e, RC_RANGE, "%s: alignment %" PRIu64, w->path, w->alignment);
    struct buffer head = { 0 };
    put(w, &head, "GGUF\3\0\0\0", 8);
    put_u64(w, &head, w->tensor_count);
    put_u64(w, &head, w->key_count);
    put(w, &head, w->keys.data, w->keys.len);
    uint64_t infos_at = head.len;
    enum rc rc = lay_out(w, align_up(head.len + w->infos.len, w->alignment), e);
    if (!rc && w->failed.rc)
        rc = err_set(e, w->failed.rc, "%s", w->failed.msg);
    /* Space is reserved now, so that a full disk shows here and not after an hour's work. */
    if (!rc && fallocate(w->fd, 0, 0, (off_t)w->file_bytes) != 0 &&
        (errno == ENOSPC || errno == EFBIG || ftruncate(w->fd, (off_t)w->file_bytes) != 0))
        rc = err_set(e, RC_IO, "%s: cannot reserve %" PRIu64 " bytes: %s", w->path, w->file_bytes,
                     strerror(errno));
    if (!rc)
        rc = write_at(w, head.data, head.len, 0, e);
    if (!rc)
        rc = write_at(w, w->infos.data, w->infos.len, infos_at, e);
    free(head.data);
    w->begun = rc == RC_OK;
    return rc;
}

enum rc gguf_writer_write(gguf_writer *w, uint64_t tensor, uint64_t offset, const void *data,
                          uint64_t bytes, struct err *e) {
    if (!w->begun || tensor >= w->tensor_count || bytes > w->tensors[tensor].bytes ||
        offset > w->tensors[tensor].bytes - bytes)
        return err_set(e, RC_RANGE,
                       "%s: %" PRIu64 " bytes at offset %" PRIu64 " of tensor %" PRIu64
                       " are outside what was declared",
                       w->path, bytes, offset, tensor);
    enum rc rc = write_at(w, data, bytes, w->tensors[tensor].offset + offset, e);
    if (!rc)
        atomic_fetch_add_explicit(&w->written, bytes, memory_order_relaxed);
    return rc;
}

/* Gives the nameless file a hidden name, from which rename() can replace the target at once. */
static enum rc name_file(gguf_writer *w, struct err *e) {
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", w->fd);
    for (unsigned try = 0; try < HIDDEN_TRIES; try++) {
        enum rc rc = make_hidden_name(w, try, e);
        if (rc)
            return rc;
        if (linkat(AT_FDCWD, self, AT_FDCWD, w->hidden, AT_SYMLINK_FOLLOW) == 0)
            return RC_OK;
        if (errno != EEXIST)
            break;
    }
    return fail_hidden(w, "cannot name the finished file", errno, e);
}

enum rc gguf_writer_commit(gguf_writer *w, struct err *e) {
    uint64_t written = atomic_load(&w->written);
    if (!w->begun || written != w->data_bytes)
        return err_set(e, RC_RANGE, "%s: %" PRIu64 " of %" PRIu64 " bytes of tensors were written",
                       w->path, written, w->data_bytes);
    if (fsync(w->fd) != 0)
        return err_set(e, RC_IO, "%s: %s", w->path, strerror(errno));
    if (!w->hidden) {
        enum rc rc = name_file(w, e);
        if (rc)
            return rc;
    }
    if (rename(w->hidden, w->path) != 0)
        return err_set(e, RC_IO, "%s: cannot put the finished file in place: %s", w->path,
                       strerror(errno));
    free(w->hidden);
    w->hidden = NULL;
    w->begun = false;
    return RC_OK;
}

uint64_t gguf_writer_tensor_count(const gguf_writer *w) {
    return w->tensor_count;
}

enum tensor_type gguf_writer_tensor_type(const gguf_writer *w, uint64_t tensor) {
    return w->tensors[tensor].type;
}

uint64_t gguf_writer_tensor_elements(const gguf_writer *w, uint64_t tensor) {
    return w->tensors[tensor].elements;
}
