#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache_folder.h"
#include "base/folder.h"
#include "greta_build.h"
#include "kernels/cpu/pack.h"
#include "kernels/cpu/packed_format.h"

/* ---- which model ---------------------------------------------------------------------------- */

enum rc packed_path(const char *folder, const gguf *g, char path[PACKED_PATH_BYTES],
                    struct err *e) {
    char own[CACHE_FOLDER_BYTES];
    if (!folder && !cache_folder_find(own))
        return err_set(e, RC_IO,
                       "there is no cache folder: neither XDG_CACHE_HOME nor HOME is set");
    folder = folder ? folder : own;
    if (!folder_make(folder))
        return err_set(e, RC_IO, "%s: %s", folder, strerror(errno));
    char *real = realpath(gguf_path(g), NULL);
    const char *name = real ? real : gguf_path(g);
    int n = snprintf(path, PACKED_PATH_BYTES, "%s/packed-%016llx.gpk", folder,
                     (unsigned long long)hash_bytes(name, strlen(name), 0));
    free(real);
    return n < PACKED_PATH_BYTES ? RC_OK : err_set(e, RC_IO, "%s: the name is too long", folder);
}

/* The first and the last bytes of a tensor: enough to see that it is another one, without reading
 * all of them. */
static void add_sample(hash *h, const struct gguf_tensor *t) {
    enum { SAMPLE = 4096 };
    const uint64_t bytes = t->bytes < SAMPLE ? t->bytes : SAMPLE;
    hash_add(h, t->data, bytes);
    hash_add(h, (const char *)t->data + t->bytes - bytes, bytes);
}

static void add_tensor(hash *h, const struct gguf_tensor *t) {
    const uint64_t numbers[] = { (uint64_t)t->type, t->ne[0], t->ne[1], t->ne[2],
                                 t->ne[3],          t->bytes, t->part,  t->offset };
    hash_add(h, t->name, strlen(t->name) + 1);
    hash_add(h, numbers, sizeof numbers);
    add_sample(h, t);
}

/* A model in memory has no files and no times. */
static void add_files(hash *h, const gguf *g) {
    for (uint32_t i = 0; i < gguf_part_count(g); i++) {
        struct stat st;
        if (stat(gguf_part_path(g, i), &st))
            continue;
        const int64_t numbers[] = { st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec };
        hash_add(h, numbers, sizeof numbers);
    }
}

static uint64_t hash_model(hash *h, const gguf *g) {
    static const char program[] = GRETA_VERSION;
    const uint32_t numbers[] = { PACKED_VERSION, PACK_ROWS };
    hash_add(h, program, sizeof program);
    hash_add(h, numbers, sizeof numbers);
    hash_add(h, pack_sections, sizeof pack_sections);
    add_files(h, g);
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++)
        add_tensor(h, gguf_tensor_at(g, i));
    return hash_value(h);
}

enum rc packed_key(const gguf *g, struct hash_pair *key, struct err *e) {
    uint64_t value[2] = { 0 };
    for (uint64_t seed = 0; seed < 2; seed++) {
        hash *h = NULL;
        enum rc rc = hash_open(&h, seed, e);
        if (rc)
            return rc;
        value[seed] = hash_model(h, g);
        hash_close(&h);
    }
    *key = (struct hash_pair){ value[0], value[1] };
    return RC_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct packed_file {
    const uint8_t *bytes;
    size_t size;
    const struct packed_entry *entries;
    uint64_t count;
};

static bool same(struct hash_pair a, struct hash_pair b) {
    return a.low == b.low && a.high == b.high;
}

static bool entry_is_inside(const struct packed_entry *t, uint64_t end) {
    return t->at % PACKED_PAGE == 0 && t->at <= end && t->bytes <= end - t->at &&
           memchr(t->name, 0, sizeof t->name);
}

/* NULL, or what is wrong. */
static const char *check_header(packed_file *f, struct hash_pair key) {
    struct packed_header h;
    if (f->size < PACKED_PAGE)
        return "it is cut short";
    memcpy(&h, f->bytes, sizeof h);
    if (h.magic != PACKED_MAGIC ||
        !same(h.self, hash_pair(&h, offsetof(struct packed_header, self), 0)))
        return "its header is damaged";
    if (h.version != PACKED_VERSION || !same(h.key, key))
        return "it belongs to another model or another version of greta";
    const uint64_t left = f->size > h.table ? f->size - h.table : 0;
    if (h.table % PACKED_PAGE || h.count > left / sizeof *f->entries ||
        h.count * sizeof *f->entries != left)
        return "it is cut short";
    f->entries = (const struct packed_entry *)(const void *)(f->bytes + h.table);
    f->count = h.count;
    if (!same(h.of_table, hash_pair(f->entries, left, 0)))
        return "its table is damaged";
    for (uint64_t i = 0; i < f->count; i++)
        if (!entry_is_inside(&f->entries[i], h.table))
            return "its table is wrong";
    return NULL;
}

/* Shared by the threads that check matrices. */
struct check {
    const packed_file *f;
    atomic_uint_fast64_t next, done; /* a matrix; bytes */
    atomic_uint_fast64_t bad;        /* 1 + a matrix that is damaged; 0: none */
    atomic_bool stop;
};

static void check_matrix(struct check *c, uint64_t i) {
    const struct packed_entry *t = &c->f->entries[i];
    const uint8_t *p = c->f->bytes + t->at;
    struct hash_pair h = { 0, 0 };
    for (uint64_t at = 0; at < t->bytes && !atomic_load(&c->stop); at += PACKED_CHUNK) {
        const uint64_t left = t->bytes - at;
        h = packed_hash(h, p + at, left < PACKED_CHUNK ? left : PACKED_CHUNK);
    }
    if (!atomic_load(&c->stop) && !same(h, t->hash))
        atomic_store(&c->bad, i + 1);
    atomic_fetch_add(&c->done, t->bytes);
}

static bool check_next(struct check *c) {
    uint64_t i = atomic_fetch_add(&c->next, 1);
    if (i >= c->f->count || atomic_load(&c->stop))
        return false;
    check_matrix(c, i);
    return true;
}

static void *check_others(void *user) {
    while (check_next(user))
        ;
    return NULL;
}

/* All matrices, on all processors. */
static enum rc check_matrices(struct check *c, packed_progress progress, void *user,
                              const char *path, struct err *e) {
    enum { HELPERS = 7 };
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t helper[HELPERS];
    int helpers = 0;
    while (helpers < HELPERS && helpers + 1 < processors &&
           !pthread_create(&helper[helpers], NULL, check_others, c))
        helpers++;
    bool go_on = true;
    while (go_on && check_next(c))
        go_on = !progress || progress(atomic_load(&c->done), c->f->size, user);
    if (!go_on)
        atomic_store(&c->stop, true);
    while (helpers > 0)
        pthread_join(helper[--helpers], NULL);
    const uint64_t bad = atomic_load(&c->bad);
    if (bad && go_on)
        return err_set(e, RC_FORMAT, "%s: matrix %s is damaged", path, c->f->entries[bad - 1].name);
    return go_on ? RC_OK : err_set(e, RC_BUSY, "loading was interrupted");
}

static enum rc map_file(packed_file *f, const char *path, struct err *e) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    void *bytes = MAP_FAILED;
    if (!fstat(fd, &st) && st.st_size > 0)
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return err_set(e, RC_FORMAT, "%s: it cannot be mapped", path);
    f->bytes = bytes;
    f->size = (size_t)st.st_size;
    return RC_OK;
}

enum rc packed_open(packed_file **out, const char *path, const gguf *g, packed_progress progress,
                    void *user, struct err *e) {
    struct hash_pair key;
    packed_file *f = calloc(1, sizeof *f);
    enum rc rc = f ? packed_key(g, &key, e) : err_set(e, RC_MEMORY, "out of memory");
    rc = rc ? rc : map_file(f, path, e);
    if (!rc) {
        const char *wrong = check_header(f, key);
        struct check c = { .f = f };
        rc = wrong ? err_set(e, RC_FORMAT, "%s: %s", path, wrong)
                   : check_matrices(&c, progress, user, path, e);
    }
    if (rc)
        packed_close(&f);
    else
        *out = f;
    return rc;
}

const void *packed_find(const packed_file *f, const char *name, uint64_t bytes) {
    for (uint64_t i = 0; i < f->count; i++)
        if (f->entries[i].bytes == bytes && !strcmp(f->entries[i].name, name))
            return f->bytes + f->entries[i].at;
    return NULL;
}

void packed_close(packed_file **f) {
    if (*f && (*f)->bytes)
        munmap((void *)(uintptr_t)(*f)->bytes, (*f)->size);
    free(*f);
    *f = NULL;
}
