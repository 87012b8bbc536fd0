/* race_vague.c - kernels of which only the pointers are known.
 *
 * They are compared with everything in the block (or tensor) from the pointer on, and then it
 * depends:
 *
 *   - Both got the same pointer, or the other side's range is exact; one of the two is known to
 *     write through it: a race, unless there is a sign that the streams share the block in parts.
 *   - Signs of that: the streams' own copies and sets keep to disjoint parts of the block, or the
 *     same kernel runs in both streams with the same pointer and other arguments (an offset,
 *     likely). Streams that divide a buffer among themselves are common and right, so these are
 *     doubts.
 *   - Different pointers into one block, or an access that is not known to write: a doubt.
 *
 * Signs can come later than the race, so suspects wait with their block until it goes. */
#include <stdlib.h>

#include "verdict/race.h"

enum { SUSPECTS_MAX = 32 };

struct suspect {
    struct suspect *next;
    uint32_t lane, other_lane;
    uint64_t start, end, other_start, other_end; /* what each may have touched */
    bool differs; /* the same kernel with the same pointer and other arguments */
    struct found found;
};

/* ---- how lanes share a block ----------------------------------------------------------------- */

static struct block_use *use_of(struct race *x) {
    if (!x->block->use && !(x->block->use = calloc(1, sizeof *x->block->use)))
        x->r->no_memory = true;
    return x->block->use;
}

void race_vague_widen(struct race *x, uint64_t low, uint64_t high) {
    struct block_use *u = use_of(x);
    for (unsigned i = 0; u && i < SPACE_HULLS; i++) {
        if (u->hull[i].high && u->hull[i].lane != x->me.lane)
            continue;
        if (!u->hull[i].high) {
            u->hull[i].lane = x->me.lane;
            u->hull[i].low = low;
            u->hull[i].high = high;
        }
        if (low < u->hull[i].low)
            u->hull[i].low = low;
        if (high > u->hull[i].high)
            u->hull[i].high = high;
        return;
    }
}

bool race_vague_hull(const struct block_use *u, uint32_t lane, uint64_t *low, uint64_t *high) {
    for (unsigned i = 0; i < SPACE_HULLS; i++)
        if (u->hull[i].high && u->hull[i].lane == lane) {
            *low = u->hull[i].low;
            *high = u->hull[i].high;
            return true;
        }
    return false;
}

/* Do the streams keep to parts of the block that do not meet? A lane's part is what its copies and
 * sets took up, if it had any, else what it may have touched. */
static bool is_divided(const struct block_use *u, const struct suspect *s) {
    uint64_t low = s->start, high = s->end, other_low = s->other_start, other_high = s->other_end;
    bool mine = race_vague_hull(u, s->lane, &low, &high);
    bool theirs = race_vague_hull(u, s->other_lane, &other_low, &other_high);
    return (mine || theirs) && (high <= other_low || other_high <= low);
}

/* Did the operation fault in the same block, for the same reason? */
static bool has_faulted(const struct replay *r, const struct found *f) {
    for (size_t i = 0; i < r->found.count; i++) {
        const struct found *g = &r->found.at[i];
        if (g->fault && g->hypothesis == f->hypothesis && g->culprit == f->culprit &&
            g->has_block && f->has_block && g->block.base == f->block.base)
            return true;
    }
    return false;
}

void race_vague_settle(struct space *space, struct block *b, void *replay) {
    struct replay *r = replay;
    for (struct suspect *s = b->use->suspects; s; s = s->next) {
        if (has_faulted(r, &s->found))
            continue; /* the device has said it */
        uint64_t first = s->found.other < s->found.culprit ? s->found.other : s->found.culprit;
        if (replay_is_torn(r, first, UINT64_MAX)) {
            /* What the device saw of the two may be what is missing. */
            findings_undecided(r, s->found.hypothesis, sentence_plain(SENTENCE_DOUBT_PARTS));
            continue;
        }
        if (is_divided(b->use, s) || s->differs)
            findings_undecided(r, s->found.hypothesis, sentence_plain(SENTENCE_DOUBT_PARTS));
        else if (!race_cannot_tell(r, space, NULL, &s->found))
            findings_add(r, &s->found);
    }
    b->use->suspects = NULL;
}

bool race_vague_suspects(const struct block *b, uint64_t culprit) {
    for (const struct suspect *s = b->use ? b->use->suspects : NULL; s; s = s->next)
        if (s->found.culprit == culprit)
            return true;
    return false;
}

static void add_suspect(struct race *x, const struct suspect *what) {
    struct block_use *u = use_of(x);
    if (!u)
        return;
    unsigned count = 0;
    for (const struct suspect *s = u->suspects; s; s = s->next, count++)
        if (s->found.other == what->found.other && s->found.culprit == what->found.culprit)
            return;
    if (count >= SUSPECTS_MAX)
        return;
    struct suspect *s = arena_alloc(&x->r->arena, sizeof *s);
    if (!s) {
        x->r->no_memory = true;
        return;
    }
    *s = *what;
    s->found.said = findings_keep(x->r, what->found.said);
    s->next = u->suspects;
    u->suspects = s;
}

/* ---- kernels with pointers only -------------------------------------------------------------- */

static bool may_conflict(bool writes, const struct vague *v) {
    return writes || v->writes || !(v->reads || v->writes);
}

static bool surely_conflicts(bool writes, const struct vague *v) {
    return !v->at_most && (writes || (v->writes && !v->guessed));
}

void race_vague_compare(struct race *x, uint64_t start, uint64_t end, bool writes) {
    struct block_use *u = x->block->use;
    for (unsigned i = 0; i < u->vague_count; i++) {
        struct vague *v = &u->vague[i];
        if (v->mark.lane == x->me.lane || end <= v->pointer || v->limit <= start ||
            !may_conflict(writes, v))
            continue;
        x->r->seen.pairs++;
        x->r->checked[HYPOTHESIS_STREAM_UNSYNCED]++;
        if (vclock_covers(x->clock, v->mark.lane, v->mark.number) ||
            !race_is_unordered(&v->mark, x))
            continue;
        struct suspect s = {
            .lane = x->me.lane,
            .other_lane = v->mark.lane,
            .start = start,
            .end = end,
            .other_start = v->pointer,
            .other_end = v->limit,
        };
        uint64_t from = start > v->pointer ? start : v->pointer;
        s.found = race_found(x, &v->mark, v->writes, from, end < v->limit ? end : v->limit);
        if (surely_conflicts(writes, v) && !(v->guessed && v->pointer != x->block->base))
            add_suspect(x, &s);
        else
            findings_undecided(x->r, s.found.hypothesis, sentence_plain(SENTENCE_DOUBT_WRITES));
    }
}

static void compare_two_vague(struct race *x, const struct vague *mine) {
    struct block_use *u = x->block->use;
    for (unsigned i = 0; u && i < u->vague_count; i++) {
        struct vague *v = &u->vague[i];
        if (v->mark.lane == mine->mark.lane || mine->limit <= v->pointer ||
            v->limit <= mine->pointer || !may_conflict(mine->writes, v))
            continue;
        if (!mine->writes && mine->reads && !v->writes && v->reads)
            continue;
        x->r->seen.pairs++;
        x->r->checked[HYPOTHESIS_STREAM_UNSYNCED]++;
        if (vclock_covers(x->clock, v->mark.lane, v->mark.number) ||
            !race_is_unordered(&v->mark, x))
            continue;
        bool sure = (mine->writes && !mine->guessed) || (v->writes && !v->guessed);
        if (!sure || mine->pointer != v->pointer || mine->at_most || v->at_most) {
            findings_undecided(x->r, HYPOTHESIS_STREAM_UNSYNCED,
                               sentence_plain(SENTENCE_DOUBT_EXTENT));
            continue;
        }
        struct suspect s = {
            .lane = mine->mark.lane,
            .other_lane = v->mark.lane,
            .start = mine->pointer,
            .end = mine->limit,
            .other_start = v->pointer,
            .other_end = v->limit,
            .differs = mine->kernel == v->kernel && (mine->hash != v->hash || !mine->hash),
        };
        s.found = race_found(x, &v->mark, v->writes, mine->pointer, mine->pointer);
        add_suspect(x, &s);
    }
}

static void remember_vague(struct race *x, const struct vague *mine) {
    struct block_use *u = use_of(x);
    if (!u)
        return;
    for (unsigned i = 0; i < u->vague_count; i++) {
        struct vague *v = &u->vague[i];
        if (v->mark.lane == mine->mark.lane && v->pointer == mine->pointer &&
            v->writes == mine->writes && v->reads == mine->reads && v->kernel == mine->kernel) {
            *v = *mine; /* what comes after this one comes after that one */
            return;
        }
    }
    enum { VAGUE_MAX = 256 };
    if (u->vague_count == VAGUE_MAX) {
        findings_undecided(x->r, HYPOTHESIS_STREAM_UNSYNCED, sentence_plain(SENTENCE_DOUBT_MANY));
        return;
    }
    if (u->vague_count == u->vague_room) {
        unsigned room = u->vague_room ? 2 * u->vague_room : 4;
        struct vague *v = realloc(u->vague, room * sizeof *v);
        if (!v) {
            x->r->no_memory = true;
            return;
        }
        u->vague = v;
        u->vague_room = room;
    }
    u->vague[u->vague_count++] = *mine;
}

/* Against what exact accesses left in the shadow. Returns how many of the bytes nothing has
 * written. */
static uint64_t compare_vague_with_shadow(struct race *x, const struct vague *mine) {
    struct shadow_answer answer = { 0 };
    bool unknown = !mine->reads && !mine->writes;
    struct shadow_access a = {
        .start = mine->pointer,
        .end = mine->limit,
        .me = mine->mark,
        .writes = mine->writes || unknown,
        .known = x->clock,
        .unordered = race_is_unordered,
        .user = x,
    };
    shadow_compare(x->t->space->shadow, &a, &answer);
    x->r->seen.pairs += answer.pairs;
    x->r->checked[HYPOTHESIS_STREAM_UNSYNCED] += answer.pairs;
    for (unsigned i = 0; i < answer.conflicts; i++) {
        const struct shadow_conflict *c = &answer.conflict[i];
        struct suspect s = {
            .lane = mine->mark.lane,
            .other_lane = c->other.lane,
            .start = mine->pointer,
            .end = mine->limit,
            .other_start = c->start,
            .other_end = c->end,
        };
        s.found = race_found(x, &c->other, c->other_writes, c->start, c->end);
        if (!mine->at_most && (c->other_writes || (mine->writes && !mine->guessed)))
            add_suspect(x, &s);
        else
            findings_undecided(x->r, s.found.hypothesis, sentence_plain(SENTENCE_DOUBT_WRITES));
    }
    return answer.undefined;
}

void race_vague_check(struct race *x) {
    const struct use *u = x->use;
    const struct space_name *n = space_name_at(x->t->space, u->start);
    bool at_most = u->flags & USE_BOUND;
    struct vague mine = {
        .mark = x->me,
        .pointer = u->start,
        .limit = at_most ? use_end(u)
                 : n     ? n->at + n->bytes
                         : block_end(x->block),
        .hash = x->op->hash,
        .kernel = x->op->name,
        .reads = u->access & USE_READ,
        .writes = u->access & USE_WRITE,
        .guessed = u->flags & USE_GUESSED,
        .at_most = at_most,
    };
    if (mine.writes || !mine.reads)
        x->block->leaves_mark = true;
    race_undefined_vague(x, &mine, compare_vague_with_shadow(x, &mine));
    compare_two_vague(x, &mine);
    remember_vague(x, &mine);
}
