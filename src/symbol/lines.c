#include "symbol/lines.h"

#include <stdlib.h>

#include "symbol/lines_internal.h"

/* ---- what the reader asks -------------------------------------------------------------------- */

static struct reader_line line_of(const struct dwarf_function *f) {
    return (struct reader_line){ f->name, f->line ? f->file : NULL, f->file ? f->line : 0,
                                 f->inlined };
}

static unsigned lines_of(void *user, const struct site_frame *f, struct reader_line *out,
                         unsigned room) {
    struct lines *l = user;
    unsigned count = 0;
    pthread_mutex_lock(&l->lock);
    const struct known *k = frames_find(l, f);
    for (; k && count < k->count && count < room; count++)
        out[count] = line_of(&k->function[count]);
    pthread_mutex_unlock(&l->lock);
    return count;
}

static bool where(void *user, uint32_t site, struct reader_place *out) {
    struct lines *l = user;
    struct flat row[FLAT_MAX];
    pthread_mutex_lock(&l->lock);
    unsigned count = wrapper_flatten(l, site, row);
    if (count) {
        const struct flat *first = &row[wrapper_skip(l, site, row, count)];
        *out = (struct reader_place){ first->frame, first->depth, line_of(first->function) };
    }
    pthread_mutex_unlock(&l->lock);
    return count > 0;
}

static const char *kernel_of(void *user, uint32_t symbol) {
    struct lines *l = user;
    pthread_mutex_lock(&l->lock);
    const char *name = kernels_name(l, symbol);
    pthread_mutex_unlock(&l->lock);
    return name;
}

static const char *parameter_of(void *user, uint32_t symbol, unsigned index) {
    struct lines *l = user;
    pthread_mutex_lock(&l->lock);
    const char *name = kernels_parameter(l, symbol, index);
    pthread_mutex_unlock(&l->lock);
    return name;
}

static void lines_close(void *user) {
    struct lines *l = user;
    kernels_free(l);
    for (size_t i = 0; i < l->file_count; i++)
        dwarf_file_close(&l->file[i].dwarf);
    wrapper_free(l);
    free(l->known);
    arena_clear(&l->memory);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void lines_attach(reader *r) {
    struct lines *l = reader_source(r)->user ? NULL : calloc(1, sizeof *l);
    if (!l)
        return;
    l->r = r;
    pthread_mutex_init(&l->lock, NULL);
    reader_set_source(r, &(struct reader_source){ .lines = lines_of,
                                                  .where = where,
                                                  .kernel = kernel_of,
                                                  .parameter = parameter_of,
                                                  .close = lines_close,
                                                  .user = l });
}

bool lines_unused(const reader *r, size_t i, const char **path, enum lines_reason *why) {
    const struct lines *l = reader_source(r)->user;
    if (!l || i >= atomic_load(&l->unused_count))
        return false;
    *path = l->unused[i].path;
    *why = l->unused[i].why;
    return true;
}
