#include "soft/runtime/graph_block.h"

#include <stdlib.h>
#include <string.h>

#include "base/spin.h"
#include "soft/runtime/error.h"
#include "soft/runtime/memory.h"

static struct spin lock;
static struct soft_graph_block *all;

/* ---- making ---------------------------------------------------------------------------------- */

static bool is_good_access(const hipMemAllocNodeParams *p) {
    if (p->accessDescCount && !p->accessDescs)
        return false;
    for (size_t i = 0; i < p->accessDescCount; i++)
        if (p->accessDescs[i].location.type != hipMemLocationTypeDevice ||
            soft_check_device(p->accessDescs[i].location.id) != hipSuccess)
            return false;
    return true;
}

static hipError_t check(const hipMemAllocNodeParams *p) {
    if (!p || !p->bytesize || p->poolProps.allocType != hipMemAllocationTypePinned ||
        p->poolProps.location.type != hipMemLocationTypeDevice ||
        soft_check_device(p->poolProps.location.id) != hipSuccess || !is_good_access(p))
        return hipErrorInvalidValue;
    return hipSuccess;
}

static void discard(struct soft_graph_block *g) {
    free((void *)g->params.accessDescs);
    free(g);
}

static struct soft_graph_block *copy_params(const hipMemAllocNodeParams *p) {
    struct soft_graph_block *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->params = *p;
    g->params.accessDescs = NULL;
    g->device = p->poolProps.location.id;
    g->users = 1;
    size_t bytes = p->accessDescCount * sizeof *p->accessDescs;
    hipMemAccessDesc *access = bytes ? malloc(bytes) : NULL;
    if (bytes && !access) {
        free(g);
        return NULL;
    }
    if (bytes)
        memcpy(access, p->accessDescs, bytes);
    g->params.accessDescs = access;
    return g;
}

hipError_t soft_graph_block_new(const hipMemAllocNodeParams *params,
                                struct soft_graph_block **out) {
    hipError_t r = check(params);
    if (r != hipSuccess)
        return r;
    struct soft_graph_block *g = copy_params(params);
    if (!g)
        return hipErrorOutOfMemory;
    r = soft_memory_alloc_for_graph(g->device, params->bytesize, &g->addr);
    if (r != hipSuccess) {
        discard(g);
        return r;
    }
    g->params.dptr = (void *)(uintptr_t)g->addr;
    spin_lock(&lock);
    g->next = all;
    all = g;
    spin_unlock(&lock);
    *out = g;
    return hipSuccess;
}

struct soft_graph_block *soft_graph_block_find(uint64_t addr) {
    spin_lock(&lock);
    struct soft_graph_block *g = all;
    while (g && g->addr != addr)
        g = g->next;
    if (g)
        g->users++;
    spin_unlock(&lock);
    return g;
}

void soft_graph_block_share(struct soft_graph_block *g) {
    spin_lock(&lock);
    g->users++;
    spin_unlock(&lock);
}

static void unlink_block(const struct soft_graph_block *g) {
    struct soft_graph_block **at = &all;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
}

void soft_graph_block_drop(struct soft_graph_block *g) {
    spin_lock(&lock);
    bool last = --g->users == 0;
    if (last)
        unlink_block(g);
    spin_unlock(&lock);
    if (!last)
        return;
    soft_memory_leave_graph(g->addr);
    discard(g);
}

/* ---- running --------------------------------------------------------------------------------- */

bool soft_graph_block_commit(const struct soft_graph_block *g) {
    soft_memory_withdraw(g->addr); /* what an earlier launch left, if the graph frees that itself */
    return soft_memory_commit_for_graph(g->addr) == hipSuccess;
}

void soft_graph_block_withdraw(const struct soft_graph_block *g) {
    soft_memory_withdraw(g->addr);
}
