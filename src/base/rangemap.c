#include "base/rangemap.h"

#include <assert.h>
#include <stdlib.h>

enum { LEFT = 0, RIGHT = 1 };

struct rangemap_node {
    struct range range; /* first: a struct range * is also a node */
    struct rangemap_node *child[2];
    int height; /* of the subtree; a leaf has 1 */
};

typedef struct rangemap_node node;

static int node_height(const node *n) {
    return n ? n->height : 0;
}

static void node_measure(node *n) {
    int l = node_height(n->child[LEFT]), r = node_height(n->child[RIGHT]);
    n->height = 1 + (l > r ? l : r);
}

/* The last address of a range. Ends are compared inclusively: addr + len may be 2^64. */
static uint64_t range_last(const struct range *r) {
    return r->addr + (r->len - 1);
}

/* Lifts n's child on the given side above n; returns the subtree's new root. */
static node *node_rotate(node *n, int side) {
    node *up = n->child[side];
    assert(up); /* the side to be lifted is the higher one */
    n->child[side] = up->child[!side];
    up->child[!side] = n;
    node_measure(n);
    node_measure(up);
    return up;
}

/* Restores the AVL invariant at n, whose children hold it and differ by at most 2 in height. */
static node *node_balance(node *n) {
    int tilt = node_height(n->child[RIGHT]) - node_height(n->child[LEFT]);
    if (tilt >= -1 && tilt <= 1) {
        node_measure(n);
        return n;
    }
    int side = tilt > 0 ? RIGHT : LEFT;
    node *heavy = n->child[side];
    if (node_height(heavy->child[!side]) > node_height(heavy->child[side]))
        n->child[side] = node_rotate(heavy, !side);
    return node_rotate(n, side);
}

static node *node_insert(node *n, node *fresh) {
    if (!n)
        return fresh;
    int side = fresh->range.addr > n->range.addr ? RIGHT : LEFT;
    n->child[side] = node_insert(n->child[side], fresh);
    return node_balance(n);
}

/* Takes the lowest node out of n's subtree into *lowest; returns what remains. */
static node *node_take_lowest(node *n, node **lowest) {
    if (!n->child[LEFT]) {
        *lowest = n;
        return n->child[RIGHT];
    }
    n->child[LEFT] = node_take_lowest(n->child[LEFT], lowest);
    return node_balance(n);
}

/* Takes the node that starts at addr out of n's subtree into *taken (NULL if there is none). */
static node *node_take(node *n, uint64_t addr, node **taken) {
    if (!n)
        return NULL;
    if (n->range.addr != addr) {
        int side = addr > n->range.addr ? RIGHT : LEFT;
        n->child[side] = node_take(n->child[side], addr, taken);
        return node_balance(n);
    }
    *taken = n;
    if (!n->child[RIGHT])
        return n->child[LEFT];
    node *heir = NULL;
    node *right = node_take_lowest(n->child[RIGHT], &heir);
    heir->child[LEFT] = n->child[LEFT];
    heir->child[RIGHT] = right;
    return node_balance(heir);
}

static void node_free_all(node *n) {
    if (!n)
        return;
    node_free_all(n->child[LEFT]);
    node_free_all(n->child[RIGHT]);
    free(n);
}

struct range *rangemap_find_first_at_or_after(const struct rangemap *m, uint64_t addr) {
    node *best = NULL;
    for (node *n = m->root; n;) {
        if (range_last(&n->range) >= addr) {
            best = n;
            n = n->child[LEFT];
        } else {
            n = n->child[RIGHT];
        }
    }
    return best ? &best->range : NULL;
}

struct range *rangemap_find_last_before(const struct rangemap *m, uint64_t addr) {
    node *best = NULL;
    for (node *n = m->root; n;) {
        if (range_last(&n->range) < addr) {
            best = n;
            n = n->child[RIGHT];
        } else {
            n = n->child[LEFT];
        }
    }
    return best ? &best->range : NULL;
}

struct range *rangemap_find(const struct rangemap *m, uint64_t addr) {
    for (node *n = m->root; n;) {
        if (addr < n->range.addr)
            n = n->child[LEFT];
        else if (addr - n->range.addr < n->range.len)
            return &n->range;
        else
            n = n->child[RIGHT];
    }
    return NULL;
}

struct range *rangemap_first(const struct rangemap *m) {
    return rangemap_find_first_at_or_after(m, 0);
}

struct range *rangemap_next(const struct rangemap *m, const struct range *r) {
    uint64_t last = range_last(r);
    return last == UINT64_MAX ? NULL : rangemap_find_first_at_or_after(m, last + 1);
}

enum rc rangemap_insert(struct rangemap *m, uint64_t addr, uint64_t len, void *value,
                        struct err *e) {
    if (len == 0)
        return err_set(e, RC_RANGE, "range at 0x%llx is empty", (unsigned long long)addr);
    if (len - 1 > UINT64_MAX - addr)
        return err_set(e, RC_RANGE, "range 0x%llx + %llu bytes wraps", (unsigned long long)addr,
                       (unsigned long long)len);
    const struct range *other = rangemap_find_first_at_or_after(m, addr);
    if (other && other->addr <= addr + (len - 1))
        return err_set(e, RC_RANGE, "range 0x%llx + %llu bytes overlaps 0x%llx + %llu bytes",
                       (unsigned long long)addr, (unsigned long long)len,
                       (unsigned long long)other->addr, (unsigned long long)other->len);
    node *fresh = malloc(sizeof *fresh);
    if (!fresh)
        return err_set(e, RC_MEMORY, "no memory for a range entry");
    *fresh = (node){ .range = { addr, len, value }, .height = 1 };
    m->root = node_insert(m->root, fresh);
    m->count++;
    return RC_OK;
}

enum rc rangemap_remove(struct rangemap *m, uint64_t addr, void **value) {
    node *taken = NULL;
    m->root = node_take(m->root, addr, &taken);
    if (!taken)
        return RC_RANGE;
    if (value)
        *value = taken->range.value;
    free(taken);
    m->count--;
    return RC_OK;
}

void rangemap_clear(struct rangemap *m) {
    node_free_all(m->root);
    *m = (struct rangemap){ 0 };
}
