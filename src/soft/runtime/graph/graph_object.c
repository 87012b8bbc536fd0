/* graph_object.c - user objects: the program's own data, destroyed when the last graph and the last
 * caller have let go of it. Destructors run without the graph lock. */
#include <pthread.h>
#include <stdlib.h>

#include "soft/runtime/graph/graph.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/runtime.h"

struct user_object {
    struct soft_handle handle;
    void *data;
    hipHostFn_t destroy;
    uint64_t references; /* under the graph lock */
};

/* References that a graph holds. */
struct graph_keep {
    struct graph_keep *next;
    struct user_object *object;
    uint64_t count;
};

enum { OBJECTS_MAX = 1 << 18 };
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct soft_handles *pool;

static void make_pool(void) {
    pool = soft_handles_new(sizeof(struct user_object), OBJECTS_MAX);
}

static struct user_object *object_of(hipUserObject_t handle) {
    pthread_once(&pool_once, make_pool);
    return soft_handle_valid(pool, handle) ? (struct user_object *)handle : NULL;
}

/* The lock is held: the destructor runs when it is free. */
static void release(struct user_object *o, uint64_t count) {
    o->references -= count;
    if (o->references)
        return;
    soft_graph_doom(o->destroy, o->data);
    soft_handle_free(pool, o);
}

/* ---- what graphs keep ---------------------------------------------------------------------- */

static bool keep(struct graph *g, struct user_object *o, uint64_t count) {
    struct graph_keep *k = malloc(sizeof *k);
    if (!k)
        return false;
    *k = (struct graph_keep){ g->keeps, o, count };
    g->keeps = k;
    return true;
}

void soft_graph_keep_copy(struct graph *to, const struct graph *from) {
    for (const struct graph_keep *k = from->keeps; k; k = k->next)
        if (keep(to, k->object, k->count))
            k->object->references += k->count;
}

void soft_graph_keep_drop(struct graph *g) {
    for (struct graph_keep *k = g->keeps, *next; k; k = next) {
        next = k->next;
        release(k->object, k->count);
        free(k);
    }
    g->keeps = NULL;
}

/* ---- HIP ----------------------------------------------------------------------------------- */

hipError_t soft_hipUserObjectCreate(hipUserObject_t *object_out, void *ptr, hipHostFn_t destroy,
                                    unsigned int initialRefcount, unsigned int flags) {
    if (!object_out || !destroy || flags != hipUserObjectNoDestructorSync || !initialRefcount ||
        initialRefcount > INT32_MAX)
        return hipErrorInvalidValue;
    pthread_once(&pool_once, make_pool);
    struct user_object *o = soft_handle_alloc(pool);
    if (!o)
        return hipErrorOutOfMemory;
    o->data = ptr;
    o->destroy = destroy;
    o->references = initialRefcount;
    *object_out = (hipUserObject_t)o;
    return hipSuccess;
}

static bool bad_count(unsigned int count) {
    return !count || count > INT32_MAX;
}

hipError_t soft_hipUserObjectRetain(hipUserObject_t object, unsigned int count) {
    soft_graph_lock();
    struct user_object *o = object_of(object);
    bool good = o && !bad_count(count);
    if (good)
        o->references += count;
    soft_graph_unlock();
    return good ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipUserObjectRelease(hipUserObject_t object, unsigned int count) {
    soft_graph_lock();
    struct user_object *o = object_of(object);
    bool good = o && !bad_count(count) && count <= o->references;
    if (good)
        release(o, count);
    soft_graph_unlock();
    return good ? hipSuccess : hipErrorInvalidValue;
}

/* With hipGraphUserObjectMove the caller's references become the graph's. */
hipError_t soft_hipGraphRetainUserObject(hipGraph_t graph, hipUserObject_t object,
                                         unsigned int count, unsigned int flags) {
    if (bad_count(count) || flags & ~(unsigned)hipGraphUserObjectMove)
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    struct user_object *o = object_of(object);
    hipError_t r = hipErrorInvalidValue;
    if (g && o)
        r = keep(g, o, count) ? hipSuccess : hipErrorOutOfMemory;
    if (r == hipSuccess && !flags)
        o->references += count;
    soft_graph_unlock();
    return r;
}

hipError_t soft_hipGraphReleaseUserObject(hipGraph_t graph, hipUserObject_t object,
                                          unsigned int count) {
    if (bad_count(count))
        return hipErrorInvalidValue;
    soft_graph_lock();
    struct graph *g = soft_graph_of(graph);
    struct user_object *o = object_of(object);
    uint64_t held = 0, left = count;
    for (struct graph_keep *k = g && o ? g->keeps : NULL; k; k = k->next)
        held += k->object == o ? k->count : 0;
    bool good = held >= count;
    for (struct graph_keep **at = good ? &g->keeps : NULL; at && *at && left;) {
        struct graph_keep *k = *at;
        uint64_t n = k->object != o ? 0 : k->count < left ? k->count : left;
        k->count -= n;
        left -= n;
        if (k->count) {
            at = &k->next;
        } else {
            *at = k->next;
            free(k);
        }
    }
    if (good)
        release(o, count);
    soft_graph_unlock();
    return good ? hipSuccess : hipErrorInvalidValue;
}
