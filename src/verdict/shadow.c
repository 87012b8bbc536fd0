#include "verdict/shadow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "verdict/effort.h"

/* What it costs, in the steps of effort.h: going down the tree, and the next segment or read there.
 * The first segment of an access is as good as free: a copy of thousands of rows is one event. */
enum { STEPS_FIND = 48, STEPS_NEXT = 4 };

enum { LEAF_MAX = 32, INNER_MAX = 64, DEPTH_MAX = 16, SEGMENTS_MAX = 6 << 20 };

struct segment {
    uint64_t start, end;
    struct shadow_mark write, read;
    uint32_t more; /* further reads: index in the pool, 0: none */
};

struct leaf { /* only the leftmost may be empty */
    unsigned count;
    struct leaf *next, *prev;
    struct segment at[LEAF_MAX];
};

/* child[i] holds the segments that start at key[i] or later and before key[i + 1]; what starts
 * before key[0] is in child[0]. Level 1: the children are leaves. */
struct inner {
    unsigned count, level;
    uint64_t key[INNER_MAX];
    void *child[INNER_MAX];
};

struct more_read {
    struct shadow_mark read;
    uint32_t next;
};

struct shadow {
    void *root; /* a leaf if depth is 0 */
    struct arena nodes;
    struct leaf *free_leaves;  /* linked by next */
    struct inner *free_inners; /* linked by child[0] */
    unsigned depth;
    size_t segments;
    struct more_read *pool; /* [0] unused */
    uint32_t pool_used, pool_room, pool_free;
    bool saturated;
};

struct path {
    struct inner *node[DEPTH_MAX];
    unsigned index[DEPTH_MAX];
};

struct place {
    struct leaf *leaf;
    unsigned index;
};

/* ---- further reads --------------------------------------------------------------------------- */

static bool more_push(struct shadow *s, uint32_t *list, const struct shadow_mark *read) {
    uint32_t i = s->pool_free;
    if (i) {
        s->pool_free = s->pool[i].next;
    } else {
        if (s->pool_used == s->pool_room) {
            uint32_t room = s->pool_room ? 2 * s->pool_room : 64;
            struct more_read *pool = NULL;
            if (room > s->pool_room && effort_bytes((room - s->pool_room) * sizeof *pool, 0))
                pool = realloc(s->pool, (size_t)room * sizeof *pool);
            if (!pool)
                return false;
            s->pool = pool;
            s->pool_room = room;
        }
        s->pool_used += !s->pool_used;
        i = s->pool_used++;
    }
    s->pool[i] = (struct more_read){ *read, *list };
    *list = i;
    return true;
}

static void more_free(struct shadow *s, uint32_t *list) {
    while (*list) {
        uint32_t next = s->pool[*list].next;
        s->pool[*list].next = s->pool_free;
        s->pool_free = *list;
        *list = next;
    }
}

static bool more_copy(struct shadow *s, uint32_t *to, uint32_t from) {
    *to = 0;
    for (uint32_t i = from; i; i = s->pool[i].next) {
        struct shadow_mark read = s->pool[i].read;
        if (!effort_steps(STEPS_NEXT) || !more_push(s, to, &read)) {
            more_free(s, to);
            return false;
        }
    }
    return true;
}

/* Drops the reads that `known` comes after: they no longer matter, because whatever comes after the
 * new access comes after them too. */
static void more_drop_known(struct shadow *s, struct segment *seg, const struct vclock *known) {
    uint32_t *link = &seg->more;
    while (*link && effort_steps(STEPS_NEXT)) {
        struct more_read *m = &s->pool[*link];
        if (vclock_covers(known, m->read.lane, m->read.number)) {
            uint32_t gone = *link;
            *link = m->next;
            m->next = s->pool_free;
            s->pool_free = gone;
        } else {
            link = &m->next;
        }
    }
}

/* ---- the tree -------------------------------------------------------------------------------- */

static struct leaf *new_leaf(struct shadow *s) {
    struct leaf *leaf = s->free_leaves;
    if (leaf)
        s->free_leaves = leaf->next;
    else if (effort_bytes(sizeof *leaf, 0))
        leaf = arena_alloc(&s->nodes, sizeof *leaf);
    if (leaf) {
        leaf->count = 0;
        leaf->next = leaf->prev = NULL;
    }
    return leaf;
}

static struct inner *new_inner(struct shadow *s, unsigned level) {
    struct inner *n = s->free_inners;
    if (n)
        s->free_inners = n->child[0];
    else
        n = arena_alloc(&s->nodes, sizeof *n);
    if (n) {
        n->count = 0;
        n->level = level;
    }
    return n;
}

shadow *shadow_open(void) {
    shadow *s = calloc(1, sizeof *s);
    if (s && !(s->root = new_leaf(s)))
        shadow_close(&s);
    return s;
}

void shadow_close(shadow **s) {
    if (!*s)
        return;
    arena_clear(&(*s)->nodes);
    free((*s)->pool);
    free(*s);
    *s = NULL;
}

/* The last child whose key is <= addr, or the first. */
static unsigned child_of(const struct inner *n, uint64_t addr) {
    unsigned low = 0, high = n->count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (n->key[middle] <= addr)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The leaf where a segment that starts at addr belongs. */
static struct leaf *descend(const struct shadow *s, uint64_t addr) {
    void *node = s->root;
    for (unsigned d = s->depth; d; d--) {
        struct inner *n = node;
        node = n->child[child_of(n, addr)];
    }
    return node;
}

/* The same, and how it was reached. (One function for both is miscompiled by GCC 12's
 * -fipa-modref.) */
static struct leaf *descend_path(const struct shadow *s, uint64_t addr, struct path *path) {
    void *node = s->root;
    for (unsigned d = s->depth; d; d--) {
        struct inner *n = node;
        path->node[d - 1] = n;
        path->index[d - 1] = child_of(n, addr);
        node = n->child[path->index[d - 1]];
    }
    return node;
}

/* Segments of the leaf that end at or before addr. */
static unsigned skip_before(const struct leaf *leaf, uint64_t addr) {
    unsigned low = 0, high = leaf->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (leaf->at[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct segment *segment_at(const struct place *p) {
    return p->leaf ? &p->leaf->at[p->index] : NULL;
}

static void settle(struct place *p) {
    while (p->leaf && p->index == p->leaf->count) {
        p->leaf = p->leaf->next;
        p->index = 0;
    }
}

/* The first segment that ends after addr. One that starts in the leaf before may reach into this
 * leaf's share: keys only bound where segments start. */
static struct place find(const struct shadow *s, uint64_t addr) {
    struct place p = { descend(s, addr), 0 };
    struct leaf *prev = p.leaf->prev;
    p.index = skip_before(p.leaf, addr);
    if (!p.index && prev && prev->count && prev->at[prev->count - 1].end > addr)
        return (struct place){ prev, prev->count - 1 };
    settle(&p);
    return p;
}

static void advance(struct place *p) {
    p->index++;
    settle(p);
}

/* Puts (key, child) after position i of the inner node at level d of the path; splits upwards. */
static bool insert_child(struct shadow *s, struct path *path, unsigned d, uint64_t key,
                         void *child) {
    for (;; d++) {
        if (d == s->depth) { /* a new root above two halves */
            struct inner *root = d + 1 < DEPTH_MAX ? new_inner(s, d + 1) : NULL;
            if (!root)
                return false;
            root->count = 2;
            root->key[0] = 0;
            root->child[0] = s->root;
            root->key[1] = key;
            root->child[1] = child;
            s->root = root;
            s->depth++;
            return true;
        }
        struct inner *n = path->node[d], *into = n, *right = NULL;
        unsigned at = path->index[d] + 1;
        assert(n); /* a path has a node at every level below the depth */
        if (n->count == INNER_MAX) {
            right = new_inner(s, n->level);
            if (!right)
                return false;
            unsigned keep = at == INNER_MAX ? INNER_MAX - 1 : INNER_MAX / 2;
            right->count = INNER_MAX - keep;
            memcpy(right->key, n->key + keep, right->count * sizeof *n->key);
            memcpy(right->child, n->child + keep, right->count * sizeof *n->child);
            n->count = keep;
            if (at > keep) {
                into = right;
                at -= keep;
            }
        }
        memmove(into->key + at + 1, into->key + at, (into->count - at) * sizeof *n->key);
        memmove(into->child + at + 1, into->child + at, (into->count - at) * sizeof *n->child);
        into->key[at] = key;
        into->child[at] = child;
        into->count++;
        if (!right)
            return true;
        key = right->key[0];
        child = right;
    }
}

/* The segment overlaps none that is there. */
static bool insert(struct shadow *s, const struct segment *seg) {
    struct path path = { 0 };
    struct leaf *leaf = descend_path(s, seg->start, &path);
    unsigned at = skip_before(leaf, seg->start);
    if (leaf->count == LEAF_MAX) {
        struct leaf *right = new_leaf(s);
        if (!right)
            return false;
        /* Memory that is filled from low to high addresses leaves full leaves behind. */
        unsigned keep = at == LEAF_MAX ? LEAF_MAX : LEAF_MAX / 2;
        right->count = LEAF_MAX - keep;
        memcpy(right->at, leaf->at + keep, right->count * sizeof *leaf->at);
        uint64_t key = right->count ? right->at[0].start : seg->start;
        if (!insert_child(s, &path, 0, key, right))
            return false;
        leaf->count = keep;
        right->next = leaf->next;
        right->prev = leaf;
        if (right->next)
            right->next->prev = right;
        leaf->next = right;
        if (at >= keep && seg->start >= key) {
            leaf = right;
            at -= keep;
        }
    }
    memmove(leaf->at + at + 1, leaf->at + at, (leaf->count - at) * sizeof *leaf->at);
    leaf->at[at] = *seg;
    leaf->count++;
    s->segments++;
    return true;
}

/* Takes an empty leaf out, unless it is the leftmost. */
static void unlink_leaf(struct shadow *s, struct leaf *leaf, struct path *path) {
    if (!leaf->prev)
        return;
    leaf->prev->next = leaf->next;
    if (leaf->next)
        leaf->next->prev = leaf->prev;
    leaf->next = s->free_leaves;
    s->free_leaves = leaf;
    for (unsigned k = 0; k < s->depth; k++) {
        struct inner *n = path->node[k];
        unsigned i = path->index[k];
        memmove(n->key + i, n->key + i + 1, (n->count - i - 1) * sizeof *n->key);
        memmove(n->child + i, n->child + i + 1, (n->count - i - 1) * sizeof *n->child);
        n->count--;
        if (n->count)
            return;
        n->child[0] = s->free_inners;
        s->free_inners = n;
    }
}

/* Takes out the segment that starts there; its list of reads is the caller's. */
static void remove_at(struct shadow *s, uint64_t start) {
    struct path path = { 0 };
    struct leaf *leaf = descend_path(s, start, &path);
    unsigned at = skip_before(leaf, start);
    leaf->count--;
    memmove(leaf->at + at, leaf->at + at + 1, (leaf->count - at) * sizeof *leaf->at);
    s->segments--;
    if (!leaf->count && s->depth)
        unlink_leaf(s, leaf, &path);
}

/* Cuts the segment that contains `at` in two. */
static bool split(struct shadow *s, struct segment *seg, uint64_t at) {
    struct segment right = *seg;
    right.start = at;
    if (!more_copy(s, &right.more, seg->more))
        return false;
    seg->end = at; /* before inserting: seg may move */
    if (!insert(s, &right)) {
        seg->end = right.end;
        more_free(s, &right.more);
        return false;
    }
    return true;
}

/* Nothing is left in [start, end). */
static bool carve(struct shadow *s, uint64_t start, uint64_t end) {
    for (;;) {
        struct place p = find(s, start);
        struct segment *seg = segment_at(&p);
        if (!seg || seg->start >= end)
            return true;
        if (!effort_steps(STEPS_FIND))
            return false;
        if (seg->start < start) {
            if (seg->end > end && !split(s, seg, end))
                return false;
            p = find(s, start); /* the split may have moved it */
            segment_at(&p)->end = start;
        } else if (seg->end > end) {
            struct segment rest = *seg; /* with a later start it may belong into another leaf */
            remove_at(s, seg->start);
            rest.start = end;
            return insert(s, &rest);
        } else {
            more_free(s, &seg->more);
            remove_at(s, seg->start);
        }
    }
}

bool shadow_clear(shadow *s, uint64_t start, uint64_t end) {
    return start >= end || carve(s, start, end);
}

size_t shadow_segments(const shadow *s) {
    return s->segments;
}

bool shadow_is_saturated(const shadow *s) {
    return s->saturated;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}
static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void compare_mark(const struct shadow_access *a, const struct shadow_mark *other,
                         bool other_writes, const struct segment *seg,
                         struct shadow_answer *answer) {
    if (!other->number || (other->lane == a->me.lane && other->number == a->me.number))
        return; /* nothing, or another range of the same operation */
    answer->pairs++;
    answer->copy_pairs += a->me.what == SHADOW_COPY && other->what == SHADOW_COPY;
    if (vclock_covers(a->known, other->lane, other->number) || !a->unordered(other, a->user))
        return;
    for (unsigned i = 0; i < answer->conflicts; i++)
        if (answer->conflict[i].other.seq == other->seq &&
            answer->conflict[i].other_writes == other_writes)
            return;
    if (answer->conflicts < SHADOW_CONFLICTS)
        answer->conflict[answer->conflicts++] =
            (struct shadow_conflict){ *other, other_writes, larger(seg->start, a->start),
                                      smaller(seg->end, a->end) };
}

static void compare(const struct shadow *s, const struct shadow_access *a,
                    const struct segment *seg, struct shadow_answer *answer) {
    compare_mark(a, &seg->write, true, seg, answer);
    if (!a->writes)
        return;
    compare_mark(a, &seg->read, false, seg, answer);
    for (uint32_t i = seg->more; i && effort_steps(STEPS_NEXT); i = s->pool[i].next)
        compare_mark(a, &s->pool[i].read, false, seg, answer);
}

static void count_undefined(uint64_t start, uint64_t end, struct shadow_answer *answer) {
    if (!answer->undefined)
        answer->undefined_at = start;
    answer->undefined += end - start;
    answer->row =
        answer->row && answer->undefined_end == start ? answer->row + end - start : end - start;
    answer->undefined_end = end;
    answer->longest = answer->row > answer->longest ? answer->row : answer->longest;
}

static bool is_defined(const struct segment *seg) {
    return seg->write.number && seg->write.what != SHADOW_ALLOC;
}

void shadow_compare(shadow *s, const struct shadow_access *a, struct shadow_answer *answer) {
    uint64_t at = a->start;
    for (struct place p = find(s, a->start); p.leaf; advance(&p)) {
        const struct segment *seg = segment_at(&p);
        if (seg->start >= a->end || !effort_steps(STEPS_NEXT))
            break;
        if (seg->start > at)
            count_undefined(at, seg->start, answer);
        if (!is_defined(seg))
            count_undefined(larger(seg->start, a->start), smaller(seg->end, a->end), answer);
        compare(s, a, seg, answer);
        at = seg->end;
    }
    if (at < a->end)
        count_undefined(at, a->end, answer);
}

/* ---- entering -------------------------------------------------------------------------------- */

static bool touch_write(struct shadow *s, const struct shadow_access *a,
                        struct shadow_answer *answer) {
    struct place p = find(s, a->start);
    struct segment *seg = segment_at(&p);
    if (seg && seg->start == a->start && seg->end == a->end) { /* the usual case */
        compare(s, a, seg, answer);
        seg->write = a->me;
        seg->read.number = 0;
        more_free(s, &seg->more);
        return true;
    }
    shadow_compare(s, a, answer);
    struct segment fresh = { .start = a->start, .end = a->end, .write = a->me };
    return carve(s, a->start, a->end) && insert(s, &fresh);
}

static bool add_read(struct shadow *s, const struct shadow_access *a, struct segment *seg) {
    if (seg->more)
        more_drop_known(s, seg, a->known);
    if (!seg->read.number || seg->read.lane == a->me.lane ||
        vclock_covers(a->known, seg->read.lane, seg->read.number)) {
        seg->read = a->me;
        return true;
    }
    for (uint32_t i = seg->more; i && effort_steps(STEPS_NEXT); i = s->pool[i].next)
        if (s->pool[i].read.lane == a->me.lane) {
            s->pool[i].read = a->me;
            return true;
        }
    return more_push(s, &seg->more, &a->me);
}

static bool touch_read(struct shadow *s, const struct shadow_access *a,
                       struct shadow_answer *answer) {
    uint64_t at = a->start;
    while (at < a->end) {
        struct place p = find(s, at);
        struct segment *seg = segment_at(&p);
        if (at != a->start && !effort_steps(STEPS_FIND))
            return false;
        if (!seg || seg->start > at) {
            uint64_t end = seg ? smaller(seg->start, a->end) : a->end;
            count_undefined(at, end, answer);
            struct segment fresh = { .start = at, .end = end, .read = a->me };
            if (!insert(s, &fresh))
                return false;
            at = end;
            continue;
        }
        bool whole = seg->start == at && seg->end <= a->end;
        if (!whole && s->segments >= SEGMENTS_MAX) {
            s->saturated = true;
            shadow_compare(s, a, answer);
            return true;
        }
        if (!whole) {
            if (!split(s, seg, seg->start < at ? at : a->end))
                return false;
            continue;
        }
        if (!is_defined(seg))
            count_undefined(seg->start, seg->end, answer);
        compare(s, a, seg, answer);
        if (!add_read(s, a, seg))
            return false;
        at = seg->end;
    }
    return true;
}

bool shadow_touch(shadow *s, const struct shadow_access *a, struct shadow_answer *answer) {
    if (!effort_steps(STEPS_NEXT))
        return false;
    return a->writes ? touch_write(s, a, answer) : touch_read(s, a, answer);
}
