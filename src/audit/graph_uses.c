#include "audit/graph_uses.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/grow.h"

struct owner {
    struct owner *next;
    uint64_t key; /* a handle; of captures the number, with CAPTURE */
    struct audit_host_use *use;
    size_t count, room;
};

#define CAPTURE (UINT64_C(1) << 63)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct owner *owners;

static uint64_t key_of(const void *handle) {
    return (uint64_t)(uintptr_t)handle;
}

static struct owner **find(uint64_t key) {
    struct owner **at = &owners;
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    return at;
}

static struct owner *find_or_make(uint64_t key) {
    struct owner *o = *find(key);
    if (o || !(o = calloc(1, sizeof *o)))
        return o;
    o->key = key;
    o->next = owners;
    return owners = o;
}

static void add(struct owner *o, const struct audit_host_use *use) {
    if (!o)
        return;
    struct audit_host_use *more = grow_array(o->use, &o->room, o->count, sizeof *more);
    if (!more)
        return;
    o->use = more;
    o->use[o->count++] = *use;
}

static void drop(struct owner **at) {
    struct owner *o = *at;
    if (!o)
        return;
    *at = o->next;
    free(o->use);
    free(o);
}

void graph_uses_captured(uint32_t capture, const struct audit_host_use *use) {
    pthread_mutex_lock(&lock);
    add(find_or_make(CAPTURE | capture), use);
    pthread_mutex_unlock(&lock);
}

void graph_uses_add(const void *graph, const struct audit_host_use *use) {
    pthread_mutex_lock(&lock);
    add(find_or_make(key_of(graph)), use);
    pthread_mutex_unlock(&lock);
}

void graph_uses_ended(uint32_t capture, const void *graph) {
    pthread_mutex_lock(&lock);
    struct owner **at = find(CAPTURE | capture), *o = *at;
    if (o && graph)
        o->key = key_of(graph);
    else
        drop(at);
    pthread_mutex_unlock(&lock);
}

void graph_uses_copy(const void *from, const void *to) {
    pthread_mutex_lock(&lock);
    const struct owner *o = *find(key_of(from));
    struct owner *copy = o && from != to ? find_or_make(key_of(to)) : NULL;
    for (size_t i = 0; copy && i < o->count; i++)
        add(copy, &o->use[i]);
    pthread_mutex_unlock(&lock);
}

void graph_uses_forget(const void *graph) {
    pthread_mutex_lock(&lock);
    drop(find(key_of(graph)));
    pthread_mutex_unlock(&lock);
}

void graph_uses_each(const void *graph, void (*f)(const struct audit_host_use *use, void *user),
                     void *user) {
    pthread_mutex_lock(&lock);
    const struct owner *o = *find(key_of(graph));
    for (size_t i = 0; o && i < o->count; i++)
        f(&o->use[i], user);
    pthread_mutex_unlock(&lock);
}

void graph_uses_reset(void) {
    pthread_mutex_lock(&lock);
    while (owners)
        drop(&owners);
    pthread_mutex_unlock(&lock);
}
