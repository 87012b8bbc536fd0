/* packed_writer.c - writes a file of packed matrices; see packed_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/mm.h"
#include "kernels/cpu/packed_format.h"

struct packed_writer {
    char path[PACKED_PATH_BYTES], temporary[PACKED_PATH_BYTES + 8];
    int fd;
    uint64_t at; /* bytes written */
    struct packed_header header;
    struct packed_entry *entries;
    uint64_t room;  /* for entries */
    uint8_t *chunk; /* what is written next */
    size_t used;    /* and how much of it there is */
};

static enum rc failed(const packed_writer *w, struct err *e) {
    return err_set(e, RC_IO, "%s: %s", w->path, strerror(errno));
}

enum rc packed_create(packed_writer **out, const char *path, const gguf *g, struct err *e) {
    packed_writer *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(e, RC_MEMORY, "out of memory");
    w->fd = -1;
    snprintf(w->path, sizeof w->path, "%s", path);
    snprintf(w->temporary, sizeof w->temporary, "%s.XXXXXX", path);
    w->header = (struct packed_header){ .magic = PACKED_MAGIC, .version = PACKED_VERSION };
    w->chunk = malloc(PACKED_CHUNK);
    enum rc rc =
        w->chunk ? packed_key(g, &w->header.key, e) : err_set(e, RC_MEMORY, "out of memory");
    if (!rc) {
        w->fd = mkstemp(w->temporary);
        rc = w->fd < 0 ? failed(w, e) : RC_OK;
    }
    w->at = PACKED_PAGE; /* the header comes last */
    if (rc)
        packed_discard(&w);
    else
        *out = w;
    return rc;
}

static enum rc write_at(packed_writer *w, uint64_t at, const void *from, size_t bytes,
                        struct err *e) {
    for (const char *p = from; bytes;) {
        ssize_t n = pwrite(w->fd, p, bytes, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(w, e);
        p += n;
        at += (size_t)n;
        bytes -= (size_t)n;
    }
    return RC_OK;
}

static enum rc flush_chunk(packed_writer *w, struct packed_entry *t, struct err *e) {
    if (!w->used)
        return RC_OK;
    enum rc rc = write_at(w, w->at, w->chunk, w->used, e);
    t->hash = packed_hash(t->hash, w->chunk, w->used);
    w->at += w->used;
    w->used = 0;
    return rc;
}

static enum rc append(packed_writer *w, struct packed_entry *t, const uint8_t *from, size_t bytes,
                      struct err *e) {
    enum rc rc = RC_OK;
    while (!rc && bytes) {
        size_t left = PACKED_CHUNK - w->used, n = bytes < left ? bytes : left;
        memcpy(w->chunk + w->used, from, n);
        w->used += n;
        from += n;
        bytes -= n;
        if (w->used == PACKED_CHUNK)
            rc = flush_chunk(w, t, e);
    }
    return rc;
}

static struct packed_entry *new_entry(packed_writer *w) {
    if (w->header.count == w->room) {
        uint64_t room = w->room ? 2 * w->room : 64;
        struct packed_entry *entries = realloc(w->entries, room * sizeof *entries);
        if (!entries)
            return NULL;
        w->entries = entries;
        w->room = room;
    }
    struct packed_entry *t = &w->entries[w->header.count++];
    memset(t, 0, sizeof *t);
    return t;
}

/* Rows after the last whole group stay as they are, as on the device. */
static enum rc append_rows(packed_writer *w, struct packed_entry *to, const struct gguf_tensor *t,
                           struct err *e) {
    const uint64_t rows = t->elements / t->ne[0], row_bytes = t->bytes / rows;
    const size_t blocks = t->ne[0] / tensor_type_find(t->type)->block_elements;
    const uint8_t *from = t->data;
    uint8_t *group = malloc(PACK_ROWS * row_bytes);
    enum rc rc = group ? RC_OK : err_set(e, RC_MEMORY, "out of memory");
    uint64_t row = 0;
    for (; !rc && row + PACK_ROWS <= rows; row += PACK_ROWS) {
        mm()->pack(t->type, from + row * row_bytes, row_bytes, blocks, group);
        rc = append(w, to, group, PACK_ROWS * row_bytes, e);
    }
    free(group);
    return rc ? rc : append(w, to, from + row * row_bytes, (rows - row) * row_bytes, e);
}

enum rc packed_add(packed_writer *w, const char *name, const struct gguf_tensor *t, struct err *e) {
    struct packed_entry *to = new_entry(w);
    if (!to)
        return err_set(e, RC_MEMORY, "out of memory");
    w->at = (w->at + PACKED_PAGE - 1) / PACKED_PAGE * PACKED_PAGE;
    snprintf(to->name, sizeof to->name, "%s", name);
    to->at = w->at;
    to->bytes = t->bytes;
    enum rc rc = append_rows(w, to, t, e);
    return rc ? rc : flush_chunk(w, to, e);
}

static enum rc write_ends(packed_writer *w, struct err *e) {
    struct packed_header *h = &w->header;
    const size_t bytes = h->count * sizeof *w->entries;
    h->table = (w->at + PACKED_PAGE - 1) / PACKED_PAGE * PACKED_PAGE;
    h->of_table = hash_pair(w->entries, bytes, 0);
    h->self = hash_pair(h, offsetof(struct packed_header, self), 0);
    if (ftruncate(w->fd, (off_t)(h->table + bytes))) /* also where the table is empty */
        return failed(w, e);
    enum rc rc = write_at(w, h->table, w->entries, bytes, e);
    return rc ? rc : write_at(w, 0, h, sizeof *h, e);
}

/* A name that was changed is on the disk when its folder is. */
static void sync_folder(const char *path) {
    char folder[PACKED_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

enum rc packed_commit(packed_writer **w, struct err *e) {
    enum rc rc = write_ends(*w, e);
    if (!rc && fsync((*w)->fd))
        rc = failed(*w, e);
    if (!rc && rename((*w)->temporary, (*w)->path))
        rc = failed(*w, e);
    if (!rc) {
        sync_folder((*w)->path);
        (*w)->temporary[0] = 0;
    }
    packed_discard(w);
    return rc;
}

void packed_discard(packed_writer **w) {
    if (!*w)
        return;
    if ((*w)->fd >= 0) {
        close((*w)->fd);
        if ((*w)->temporary[0])
            (void)unlink((*w)->temporary);
    }
    free((*w)->entries);
    free((*w)->chunk);
    free(*w);
    *w = NULL;
}
