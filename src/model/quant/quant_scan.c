#include "model/quant/quant_scan.h"

#include <pthread.h>
#include <stdbool.h>

#include "model/pieces.h"
#include "model/quant/quant.h"

enum { PIECE = 1 << 20 }; /* elements a thread takes at once: a multiple of every block */

struct run {
    const gguf *g;
    const struct quant_scan *how;
    struct quant_scan_result *results;
    pthread_mutex_t lock; /* over what follows, and over results */
    struct pieces pieces;
    uint64_t done, total; /* bytes */
    bool cancelled;
};

static bool take(struct run *r, struct piece *piece) {
    pthread_mutex_lock(&r->lock);
    r->cancelled = r->cancelled || (r->how->cancel && atomic_load(r->how->cancel));
    bool more = !r->cancelled && r->pieces.tensor < gguf_tensor_count(r->g);
    if (more)
        *piece = pieces_take(&r->pieces, gguf_tensor_at(r->g, r->pieces.tensor)->elements, PIECE);
    pthread_mutex_unlock(&r->lock);
    return more;
}

/* Bad blocks among `count` elements from `first`. */
static struct quant_scan_result scan(const struct gguf_tensor *t, uint64_t first, uint64_t count) {
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
    struct piece p;
    while (take(r, &p)) {
        const struct gguf_tensor *t = gguf_tensor_at(r->g, p.tensor);
        report(r, p.tensor, scan(t, p.first, p.count), tensor_type_row_bytes(t->type, p.count));
    }
    return NULL;
}

enum rc quant_scan_model(const gguf *g, const struct quant_scan *how,
                         struct quant_scan_result *results, struct err *e) {
    struct run r = { .g = g, .how = how, .results = results, .lock = PTHREAD_MUTEX_INITIALIZER };
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        results[i] = (struct quant_scan_result){ 0 };
        r.total += gguf_tensor_at(g, i)->bytes;
    }
    pieces_work(how->threads, work, &r);
    pthread_mutex_destroy(&r.lock);
    return r.cancelled ? err_set(e, RC_BUSY, "%s: interrupted", gguf_path(g)) : RC_OK;
}
