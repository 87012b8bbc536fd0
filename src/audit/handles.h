/* handles.h - from an opaque HIP handle to what the audit knows about it, without a lock.
 *
 * A table of chains that only ever grows: a node is linked once and stays for the life of the
 * process, so that readers may walk while others insert. HIP runtimes use handle values again; the
 * newest node of a value is met first, and a node whose object is gone may be revived by its owner.
 * The table is therefore as big as the set of distinct handle values, not of objects. */
#ifndef AUDIT_HANDLES_H
#define AUDIT_HANDLES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { HANDLES_BUCKETS = 256 };

/* First member of what is stored. key is set before the node is linked and never changed. */
struct handle_node {
    uint64_t key;
    struct handle_node *next;
};

struct handles {
    _Atomic(struct handle_node *) bucket[HANDLES_BUCKETS];
};

static inline _Atomic(struct handle_node *) *handles_bucket(struct handles *h, uint64_t key) {
    return &h->bucket[key * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

/* The newest node with that key, or NULL. */
static inline void *handles_find(struct handles *h, uint64_t key) {
    struct handle_node *n = atomic_load_explicit(handles_bucket(h, key), memory_order_acquire);
    while (n && n->key != key)
        n = n->next;
    return n;
}

static inline void handles_insert(struct handles *h, struct handle_node *n) {
    _Atomic(struct handle_node *) *bucket = handles_bucket(h, n->key);
    n->next = atomic_load_explicit(bucket, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(bucket, &n->next, n, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

#endif
