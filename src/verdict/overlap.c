/* overlap.c - one copy whose source and destination overlap.
 *
 * Rows are compared one by one: source and destination may be different columns of one buffer. A
 * copy of bytes onto themselves changes nothing, in whatever order, and does not count. */
#include "verdict/effort.h"
#include "verdict/replay.h"

enum { ROWS_MAX = 4096 };

static uint64_t row_at(const struct use *u, uint64_t i) {
    return u->start + i / u->rows * u->slice + i % u->rows * u->pitch;
}

/* How many bytes of [start, start + bytes) the rows of one slice hold. */
static uint64_t bytes_in_slice(const struct use *u, uint64_t slice, uint64_t start,
                               uint64_t bytes) {
    uint64_t base = u->start + slice * u->slice, sum = 0;
    if (start + bytes <= base)
        return 0;
    uint64_t pitch = u->rows > 1 && u->pitch ? u->pitch : UINT64_MAX;
    uint64_t first = start > base ? (start - base) / pitch : 0;
    for (uint64_t i = first; i < u->rows && base + i * u->pitch < start + bytes; i++) {
        uint64_t row = base + i * u->pitch, end = row + u->bytes;
        uint64_t low = row > start ? row : start, high = end < start + bytes ? end : start + bytes;
        sum += low < high ? high - low : 0;
        if (!effort_steps(4))
            break;
    }
    return sum;
}

/* Uses whose own rows overlap, because the pitch is too small, are not looked at here. */
static bool is_plain(const struct use *u) {
    return u->rows && u->rows <= ROWS_MAX && u->slices && u->slices <= ROWS_MAX / u->rows &&
           u->bytes && !(u->flags & USE_VAGUE) && use_end(u) &&
           (u->rows == 1 || u->pitch >= u->bytes);
}

void overlap_check(struct replay *r, const struct op *op, struct thread *t) {
    const struct use *to = &op->use[0], *from = &op->use[1];
    if (op->what != SHADOW_COPY || op->count != 2 || to->access != USE_WRITE ||
        from->access != USE_READ || !is_plain(to) || !is_plain(from))
        return;
    r->checked[HYPOTHESIS_OVERLAPPING_COPIES]++;
    if (to->start == from->start || to->start >= use_end(from) || from->start >= use_end(to))
        return;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < to->rows * to->slices && effort_steps(4 * from->slices); i++)
        for (uint64_t k = 0; k < from->slices; k++)
            bytes += bytes_in_slice(from, k, row_at(to, i), to->bytes);
    if (!bytes || effort_is_spent())
        return;
    struct found f = {
        .hypothesis = HYPOTHESIS_OVERLAPPING_COPIES,
        .culprit = op->seq,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = op->launch != EVENT_NO_SEQ ? op->launch : op->seq,
        .argument = -1,
        .culprit_writes = true,
        .address = to->start > from->start ? to->start : from->start,
        .len = bytes,
        .advised = sentence_plain(SENTENCE_ADVICE_OVERLAP),
    };
    findings_set_block(r, &f, t->space, space_at(t->space, to->start), to->start);
    findings_evidence(&f, op->launch);
    f.said =
        SAY(&r->words, COPY_ONTO_ITSELF, A_SENTENCE(findings_event(r, op->seq)), A_BYTES(bytes));
    findings_add(r, &f);
}
