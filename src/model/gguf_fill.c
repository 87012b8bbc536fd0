#include "model/gguf_fill.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/cpu.h"

struct run {
    gguf_writer *w;
    const struct gguf_fill *how;
    pthread_mutex_t lock; /* over all that follows */
    uint64_t tensor, first;
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
static bool take(struct run *r, uint64_t *tensor, uint64_t *first, uint64_t *count) {
    bool more = false;
    pthread_mutex_lock(&r->lock);
    if (!r->failed.rc && r->how->cancel && atomic_load(r->how->cancel))
        (void)err_set(&r->failed, RC_BUSY, "interrupted; nothing was written");
    if (!r->failed.rc && r->tensor < gguf_writer_tensor_count(r->w)) {
        uint64_t left = gguf_writer_tensor_elements(r->w, r->tensor) - r->first;
        more = true;
        *tensor = r->tensor;
        *first = r->first;
        *count = left < GGUF_FILL_PIECE ? left : GGUF_FILL_PIECE;
        r->first += *count;
        if (*count == left) {
            r->tensor++;
            r->first = 0;
        }
    }
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
    uint64_t tensor, first, count;
    float *scratch = malloc(GGUF_FILL_PIECE * sizeof *scratch);
    void *out = malloc(GGUF_FILL_PIECE * sizeof(double)); /* the widest element */
    if (!scratch || !out) {
        (void)err_set(&e, RC_MEMORY, "out of memory");
        fail(r, &e);
    }
    while (scratch && out && take(r, &tensor, &first, &count)) {
        enum tensor_type type = gguf_writer_tensor_type(r->w, tensor);
        uint64_t bytes = tensor_type_row_bytes(type, count);
        enum rc rc = r->how->make(r->how->user, tensor, first, count, scratch, out, &e);
        if (!rc)
            rc =
                gguf_writer_write(r->w, tensor, tensor_type_row_bytes(type, first), out, bytes, &e);
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
    enum { THREADS_MAX = 256 };
    int threads = how->threads > 0 ? how->threads : cpu_count();
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    struct run r = { .w = w, .how = how, .lock = PTHREAD_MUTEX_INITIALIZER };
    for (uint64_t i = 0; i < gguf_writer_tensor_count(w); i++)
        r.total +=
            tensor_type_row_bytes(gguf_writer_tensor_type(w, i), gguf_writer_tensor_elements(w, i));
    pthread_t helpers[THREADS_MAX];
    int started = 0;
    while (started < threads - 1 && pthread_create(&helpers[started], NULL, work, &r) == 0)
        started++; /* fewer helpers than wanted only cost time */
    work(&r);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    pthread_mutex_destroy(&r.lock);
    return r.failed.rc ? err_set(e, r.failed.rc, "%s", r.failed.msg) : RC_OK;
}
