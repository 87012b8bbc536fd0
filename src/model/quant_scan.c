#include "model/quant_scan.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/cpu.h"
#include "model/quant.h"

enum { PIECE = 1 << 20 }; /* elements a thread takes at once: a multiple of every block */

struct run {
    const gguf *g;
    const struct quant_scan *how;
    struct quant_scan_result *results;
    pthread_mutex_t lock; /* over what follows, and over results */
    uint64_t tensor, first;
    uint64_t done, total; /* bytes */
    bool cancelled;
};

static bool take(struct run *r, uint64_t *tensor, uint64_t *first, uint64_t *count) {
    bool more = false;
    pthread_mutex_lock(&r->lock);
    r->cancelled = r->cancelled || (r->how->cancel && atomic_load(r->how->cancel));
    if (!r->cancelled && r->tensor < gguf_tensor_count(r->g)) {
        uint64_t left = gguf_tensor_at(r->g, r->tensor)->elements - r->first;
        more = true;
        *tensor = r->tensor;
        *first = r->first;
        *count = left < PIECE ? left : PIECE;
        r->first += *count;
        if (*count == left) {
            r->tensor++;
            r->first = 0;
        }
    }
    pthread_mutex_unlock(&r->lock);
    return more;
}

/* Bad blocks among `count` elements from `first`. */
static struct quant_scan_result scan_piece(const struct gguf_tensor *t, uint64_t first,
                                           uint64_t count) {
    struct quant_scan_result found = { 0 };
    uint64_t block = tensor_type_find(t->type)->block_elements;
    for (uint64_t at = 0; at < count; at += block) {
        const uint8_t *p = (const uint8_t *)t->data + tensor_type_row_bytes(t->type, first + at);
        at += quant_find_nonfinite(t->type, p, count - at);
        if (at < count && found.bad++ == 0)
            found.first = first + at;
    }
    return found;
}

static void report(struct run *r, uint64_t tensor, struct quant_scan_result found, uint64_t bytes) {
    struct quant_scan_result *all = &r->results[tensor];
    pthread_mutex_lock(&r->lock);
    if (found.bad && (all->bad == 0 || found.first < all->first))
        all->first = found.first;
    all->bad += found.bad;
    r->done += bytes;
    if (r->how->progress)
        r->how->progress(r->how->progress_user, r->done, r->total);
    pthread_mutex_unlock(&r->lock);
}

static void *work(void *arg) {
    struct run *r = arg;
    uint64_t tensor, first, count;
    while (take(r, &tensor, &first, &count)) {
        const struct gguf_tensor *t = gguf_tensor_at(r->g, tensor);
        report(r, tensor, scan_piece(t, first, count), tensor_type_row_bytes(t->type, count));
    }
    return NULL;
}

enum rc quant_scan_model(const gguf *g, const struct quant_scan *how,
                         struct quant_scan_result *results, struct err *e) {
    enum { THREADS_MAX = 256 };
    int threads = how->threads > 0 ? how->threads : cpu_count();
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    struct run r = { .g = g, .how = how, .results = results, .lock = PTHREAD_MUTEX_INITIALIZER };
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        results[i] = (struct quant_scan_result){ 0 };
        r.total += gguf_tensor_at(g, i)->bytes;
    }
    pthread_t helpers[THREADS_MAX];
    int started = 0;
    while (started < threads - 1 && pthread_create(&helpers[started], NULL, work, &r) == 0)
        started++;
    work(&r);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    pthread_mutex_destroy(&r.lock);
    return r.cancelled ? err_set(e, RC_BUSY, "%s: interrupted", gguf_path(g)) : RC_OK;
}
