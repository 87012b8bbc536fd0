#include "model/gguf/gguf_fill.h"

#include <pthread.h>
#include <stdlib.h>

#include "model/pieces.h"

struct run {
    gguf_writer *w;
    const struct gguf_fill *how;
    pthread_mutex_t lock; /* over all that follows */
    struct pieces pieces;
    uint64_t done, total; /* bytes of tensor data */
    struct err failed;    /* rc is RC_OK while all is well */
};

static void fail(struct run *r, const struct err *e) {
    pthread_mutex_lock(&r->lock);
    if (!r->failed.rc)
        r->failed = *e;
    pthread_mutex_unlock(&r->lock);
}

/* Takes the next piece; false at the end, on another thread's failure, or when cancelled. */
static bool take(struct run *r, struct piece *piece) {
    pthread_mutex_lock(&r->lock);
    if (!r->failed.rc && r->how->cancel && atomic_load(r->how->cancel))
        (void)err_set(&r->failed, RC_BUSY, "interrupted; nothing was written");
    bool more = !r->failed.rc && r->pieces.tensor < gguf_writer_tensor_count(r->w);
    if (more)
        *piece = pieces_take(&r->pieces, gguf_writer_tensor_elements(r->w, r->pieces.tensor),
                             GGUF_FILL_PIECE);
    pthread_mutex_unlock(&r->lock);
    return more;
}

static void report(struct run *r, uint64_t bytes) {
    pthread_mutex_lock(&r->lock);
    r->done += bytes;
    if (r->how->progress)
        r->how->progress(r->how->progress_user, r->done, r->total);
    pthread_mutex_unlock(&r->lock);
}

static void *work(void *arg) {
    struct run *r = arg;
    struct err e = { 0 };
    struct piece p;
    float *scratch = malloc(GGUF_FILL_PIECE * sizeof *scratch);
    void *out = malloc(GGUF_FILL_PIECE * sizeof(double)); /* the widest element */
    if (!scratch || !out) {
        (void)err_set(&e, RC_MEMORY, "out of memory");
        fail(r, &e);
    }
    while (scratch && out && take(r, &p)) {
        enum tensor_type type = gguf_writer_tensor_type(r->w, p.tensor);
        uint64_t at = tensor_type_row_bytes(type, p.first);
        uint64_t bytes = tensor_type_row_bytes(type, p.count);
        enum rc rc = r->how->make(r->how->user, p.tensor, p.first, p.count, scratch, out, &e);
        rc = rc ? rc : gguf_writer_write(r->w, p.tensor, at, out, bytes, &e);
        if (rc)
            fail(r, &e);
        else
            report(r, bytes);
    }
    free(scratch);
    free(out);
    return NULL;
}

enum rc gguf_fill_run(gguf_writer *w, const struct gguf_fill *how, struct err *e) {
    struct run r = { .w = w, .how = how, .lock = PTHREAD_MUTEX_INITIALIZER };
    for (uint64_t i = 0; i < gguf_writer_tensor_count(w); i++)
        r.total +=
            tensor_type_row_bytes(gguf_writer_tensor_type(w, i), gguf_writer_tensor_elements(w, i));
    pieces_work(how->threads, work, &r);
    pthread_mutex_destroy(&r.lock);
    return r.failed.rc ? err_set(e, r.failed.rc, "%s", r.failed.msg) : RC_OK;
}

enum rc gguf_fill_write(gguf_writer *w, const struct gguf_fill *how, struct err *e) {
    enum rc rc = gguf_writer_begin(w, e);
    rc = rc ? rc : gguf_fill_run(w, how, e);
    return rc ? rc : gguf_writer_commit(w, e);
}
