/* Opening a model: mapping its files, joining the parts of a split one, looking things up. */
#include "model/gguf/gguf_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct gguf {
    struct gguf_file *files; /* owned; files[0] carries the metadata */
    uint32_t file_count;
    struct gguf_tensor *tensors; /* owned: those of all files */
    uint64_t tensor_count;
    uint32_t *tensor_order; /* owned: indexes of tensors by name */
};

enum { SPLIT_MAX = 65535 }; /* split.count is a u16 */

static enum rc map_file(struct gguf_file *f, const char *path, struct err *e) {
    f->path = strdup(path);
    if (!f->path)
        return err_set(e, RC_MEMORY, "%s: out of memory", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang us */
    if (fd < 0)
        return err_set(e, RC_IO, "%s: cannot open: %s", path, strerror(errno));
    struct stat st;
    enum rc rc = RC_OK;
    if (fstat(fd, &st) != 0)
        rc = err_set(e, RC_IO, "%s: cannot stat: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = err_set(e, RC_IO, "%s: expected a regular file", path);
    else if (st.st_size == 0)
        rc = err_set(e, RC_FORMAT, "%s: magic at offset 0: the file is empty", path);
    if (!rc) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) {
            rc = err_set(e, RC_IO, "%s: cannot map %" PRId64 " bytes: %s", path,
                         (int64_t)st.st_size, strerror(errno));
        } else {
            f->data = p;
            f->size = (uint64_t)st.st_size;
            f->mapped = true;
        }
    }
    close(fd);
    return rc;
}

/* A split.* number of file f; *out keeps its default if the key is absent. */
static enum rc split_number(const struct gguf_file *f, const char *key, uint64_t *out,
                            struct err *e) {
    const struct gguf_key *k = gguf_file_find_key(f, key);
    return k ? gguf_value_u64(f->path, k, out, e) : RC_OK;
}

/* "name-00001-of-00003.gguf" -> the name of part `part` (from 0). RC_FORMAT if the name does not
 * have that form or does not agree with the count in the file. */
static enum rc split_path(const char *first, uint64_t part, uint64_t count, char **out,
                          struct err *e) {
    char tail[40];
    snprintf(tail, sizeof tail, "-00001-of-%05" PRIu64 ".gguf", count);
    size_t len = strlen(first), tail_len = strlen(tail);
    if (len < tail_len || strcmp(first + len - tail_len, tail) != 0)
        return err_set(e, RC_FORMAT,
                       "%s: the first of %" PRIu64 " files; its name must end in '%s', so that the"
                       " others can be found",
                       first, count, tail);
    if (asprintf(out, "%.*s-%05" PRIu64 "-of-%05" PRIu64 ".gguf", (int)(len - tail_len), first,
                 part + 1, count) < 0)
        return err_set(e, RC_MEMORY, "%s: out of memory", first);
    return RC_OK;
}

static enum rc open_part(gguf *g, uint64_t part, uint64_t count, struct err *e) {
    char *path = NULL;
    enum rc rc = split_path(g->files[0].path, part, count, &path, e);
    if (rc)
        return rc;
    struct gguf_file *f = &g->files[part];
    g->file_count = (uint32_t)part + 1;
    uint64_t no = UINT64_MAX, n = 0;
    rc = map_file(f, path, e);
    if (!rc)
        rc = gguf_parse_file(f, e);
    if (!rc)
        rc = split_number(f, "split.no", &no, e);
    if (!rc)
        rc = split_number(f, "split.count", &n, e);
    if (!rc && (no != part || n != count))
        rc = err_set(e, RC_FORMAT,
                     "%s: keys split.no and split.count: expected part %" PRIu64 " of %" PRIu64
                     ", found %" PRId64 " of %" PRIu64,
                     path, part, count, (int64_t)no, n);
    free(path);
    return rc;
}

static enum rc open_parts(gguf *g, bool named, struct err *e) {
    struct gguf_file *first = &g->files[0];
    uint64_t count = 1, no = 0, expected = UINT64_MAX, found = 0;
    enum rc rc = split_number(first, "split.count", &count, e);
    if (!rc)
        rc = split_number(first, "split.no", &no, e);
    if (!rc)
        rc = split_number(first, "split.tensors.count", &expected, e);
    if (rc)
        return rc;
    if (count <= 1)
        return RC_OK;
    if (count > SPLIT_MAX)
        return err_set(e, RC_FORMAT, "%s: key 'split.count': %" PRIu64 ", expected at most %d",
                       first->path, count, SPLIT_MAX);
    if (!named)
        return err_set(e, RC_FORMAT, "%s: one of %" PRIu64 " files; open it by its path",
                       first->path, count);
    if (no != 0)
        return err_set(e, RC_FORMAT,
                       "%s: part %" PRIu64 " of %" PRIu64
                       "; open the one ending in -00001-of-%05" PRIu64 ".gguf",
                       first->path, no + 1, count, count);
    struct gguf_file *files = realloc(g->files, count * sizeof *files);
    if (!files)
        return err_set(e, RC_MEMORY, "%s: out of memory", g->files[0].path);
    memset(files + 1, 0, (count - 1) * sizeof *files);
    g->files = files;
    for (uint64_t i = 1; i < count; i++) {
        rc = open_part(g, i, count, e);
        if (rc)
            return rc;
    }
    for (uint64_t i = 0; i < count; i++)
        found += g->files[i].tensor_count;
    if (expected != UINT64_MAX && found != expected)
        return err_set(e, RC_FORMAT,
                       "%s: key 'split.tensors.count': expected %" PRIu64 " tensors in all parts,"
                       " found %" PRIu64,
                       g->files[0].path, expected, found);
    return RC_OK;
}

static int compare_names(const void *a, const void *b, void *tensors) {
    const struct gguf_tensor *t = tensors;
    return strcmp(t[*(const uint32_t *)a].name, t[*(const uint32_t *)b].name);
}

static enum rc index_tensors(gguf *g, struct err *e) {
    const char *path = g->files[0].path;
    uint64_t n = 0;
    for (uint32_t p = 0; p < g->file_count; p++)
        n += g->files[p].tensor_count;
    if (n > UINT32_MAX)
        return err_set(e, RC_FORMAT, "%s: %" PRIu64 " tensors", path, n);
    g->tensors = calloc(n ? n : 1, sizeof *g->tensors);
    g->tensor_order = malloc(n ? n * sizeof *g->tensor_order : 1);
    if (!g->tensors || !g->tensor_order)
        return err_set(e, RC_MEMORY, "%s: out of memory", path);
    for (uint32_t p = 0; p < g->file_count; p++)
        for (uint64_t i = 0; i < g->files[p].tensor_count; i++) {
            g->tensors[g->tensor_count] = g->files[p].tensors[i];
            g->tensors[g->tensor_count].part = p;
            g->tensor_order[g->tensor_count] = (uint32_t)g->tensor_count;
            g->tensor_count++;
        }
    qsort_r(g->tensor_order, n, sizeof *g->tensor_order, compare_names, g->tensors);
    for (uint64_t i = 1; i < n; i++) {
        const struct gguf_tensor *a = &g->tensors[g->tensor_order[i - 1]];
        const struct gguf_tensor *b = &g->tensors[g->tensor_order[i]];
        if (strcmp(a->name, b->name) == 0)
            return err_set(e, RC_FORMAT,
                           "%s: tensor '%s' occurs twice, with data at offsets %" PRIu64
                           " and %" PRIu64,
                           g->files[b->part].path, a->name, a->offset, b->offset);
    }
    return RC_OK;
}

/* g->files[0] has its bytes; reads everything else. Takes g: closed on failure. */
static enum rc finish_open(gguf **out, gguf *g, bool named, struct err *e) {
    enum rc rc = gguf_parse_file(&g->files[0], e);
    if (!rc)
        rc = open_parts(g, named, e);
    if (!rc)
        rc = index_tensors(g, e);
    if (rc)
        gguf_close(&g);
    else
        *out = g;
    return rc;
}

static gguf *new_gguf(void) {
    gguf *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->files = calloc(1, sizeof *g->files);
    if (!g->files) {
        free(g);
        return NULL;
    }
    g->file_count = 1;
    return g;
}

enum rc gguf_open(gguf **out, const char *path, struct err *e) {
    gguf *g = new_gguf();
    if (!g)
        return err_set(e, RC_MEMORY, "%s: out of memory", path);
    enum rc rc = map_file(&g->files[0], path, e);
    if (rc) {
        gguf_close(&g);
        return rc;
    }
    return finish_open(out, g, true, e);
}

enum rc gguf_open_memory(gguf **out, const void *data, size_t size, const char *name,
                         struct err *e) {
    gguf *g = new_gguf();
    if (g)
        g->files[0] = (struct gguf_file){ .path = strdup(name), .data = data, .size = size };
    if (!g || !g->files[0].path) {
        gguf_close(&g);
        return err_set(e, RC_MEMORY, "%s: out of memory", name);
    }
    return finish_open(out, g, false, e);
}

void gguf_close(gguf **g) {
    if (!*g)
        return;
    for (uint32_t i = 0; i < (*g)->file_count; i++)
        gguf_file_clear(&(*g)->files[i]);
    free((*g)->files);
    free((*g)->tensors);
    free((*g)->tensor_order);
    free(*g);
    *g = NULL;
}

const char *gguf_path(const gguf *g) {
    return g->files[0].path;
}

uint32_t gguf_version(const gguf *g) {
    return g->files[0].version;
}

uint32_t gguf_alignment(const gguf *g) {
    return g->files[0].alignment;
}

uint32_t gguf_part_count(const gguf *g) {
    return g->file_count;
}

const char *gguf_part_path(const gguf *g, uint32_t part) {
    return g->files[part].path;
}

uint64_t gguf_file_bytes(const gguf *g) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < g->file_count; i++)
        bytes += g->files[i].size;
    return bytes;
}

uint64_t gguf_key_count(const gguf *g) {
    return g->files[0].key_count;
}

const struct gguf_key *gguf_key_at(const gguf *g, uint64_t index) {
    return &g->files[0].keys[index];
}

const struct gguf_key *gguf_find_key(const gguf *g, const char *name) {
    return gguf_file_find_key(&g->files[0], name);
}

uint64_t gguf_tensor_count(const gguf *g) {
    return g->tensor_count;
}

const struct gguf_tensor *gguf_tensor_at(const gguf *g, uint64_t index) {
    return &g->tensors[index];
}

const struct gguf_tensor *gguf_find_tensor(const gguf *g, const char *name) {
    uint64_t lo = 0, hi = g->tensor_count;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        const struct gguf_tensor *t = &g->tensors[g->tensor_order[mid]];
        int order = strcmp(name, t->name);
        if (order == 0)
            return t;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

void gguf_release_tensor(const gguf *g, const struct gguf_tensor *t) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)t->data;
    uintptr_t from = (at + page - 1) / page * page, to = (at + t->bytes) / page * page;
    if (g->files[t->part].mapped && from < to)
        madvise((void *)from, to - from, MADV_DONTNEED);
}
