/* host_fault.c - host code that touched memory of the device's.
 *
 * The recording names the address and what lay there when the signal came (HOST_FAULT). Of a
 * program that handles the signal nothing is concluded: it may be its way of asking. */
#include "verdict/replay.h"

static void say(struct replay *r, struct thread *t, const struct block *b, struct found *f,
                bool past) {
    const struct sentence_value access = A_SENTENCE(sentence_plain(
                                    f->culprit_writes ? SENTENCE_WRITES : SENTENCE_READS)),
                                memory = A_SENTENCE(findings_memory(
                                    r, b->name ? reader_string(r->r, b->name) : NULL, b->bytes));
    uint64_t at = f->address;
    findings_set_block(r, f, t->space, b, at);
    if (f->hypothesis == HYPOTHESIS_USE_AFTER_FREE) {
        findings_evidence(f, b->free);
        f->said = SAY(&r->words, HOST_TOUCHES_FREED, access, A_NUMBER(at - b->base), memory,
                      A_SENTENCE(findings_event(r, b->free)));
    } else if (f->hypothesis == HYPOTHESIS_INVALID_POINTER && at - b->base >= b->bytes) {
        f->said =
            SAY(&r->words, HOST_TOUCHES_BESIDE, access,
                past ? A_BYTES(at - block_end(b)) : A_BYTES(b->base - at), A_NUMBER(past), memory);
        f->advised = sentence_plain(SENTENCE_ADVICE_HOST_TOUCHES);
    } else if (f->hypothesis == HYPOTHESIS_INVALID_POINTER) {
        f->said = SAY(&r->words, HOST_TOUCHES_DEVICE, access, A_NUMBER(at - b->base), memory);
        f->advised = sentence_plain(SENTENCE_ADVICE_HOST_TOUCHES);
    } else if (past) {
        f->said = SAY(&r->words, HOST_TOUCHES_PAST, access, A_BYTES(at - block_end(b)), memory);
    } else {
        f->said = SAY(&r->words, HOST_TOUCHES_BEFORE, access, A_BYTES(b->base - at), memory);
    }
}

void host_fault_on_event(struct replay *r, const struct reader_event *e, struct thread *t) {
    const struct event_extra *x = reader_extra(e, EXTRA_FAULT);
    unsigned detail = event_detail(&e->event), place = detail & 7;
    if (!x || event_fault_of(x).value)
        return;
    uint64_t at = e->event.dst, base = event_fault_of(x).alloc_base;
    const struct block *b =
        place == DETAIL_PLACE_FREED ? space_freed_at(t->space, at) : space_at(t->space, base);
    bool past = place == DETAIL_PLACE_AFTER;
    enum verdict_hypothesis_id hypothesis;
    if (place == DETAIL_PLACE_DEVICE)
        hypothesis = HYPOTHESIS_INVALID_POINTER;
    else if (place == DETAIL_PLACE_FREED)
        hypothesis = HYPOTHESIS_USE_AFTER_FREE;
    else if (past || place == DETAIL_PLACE_BEFORE)
        hypothesis = HYPOTHESIS_BAD_OFFSET;
    else
        return;
    /* The rest of the recording must agree: one with missing events accuses no one. */
    bool inside = b && at - b->base < b->bytes;
    if (!b || inside != (hypothesis != HYPOTHESIS_BAD_OFFSET) ||
        (!inside && past != (at > b->base)))
        return;
    /* Beside memory that the host cannot reach in any case, as free() of a device pointer does. */
    bool beside_device = hypothesis == HYPOTHESIS_BAD_OFFSET && space_side(b) == SPACE_DEVICE;
    struct found f =
        findings_of_call(e, beside_device ? HYPOTHESIS_INVALID_POINTER : hypothesis, at);
    f.also = beside_device ? 1u << HYPOTHESIS_BAD_OFFSET : 0;
    f.culprit_writes = detail & DETAIL_PLACE_WRITE_ELSEWHERE;
    say(r, t, b, &f, past);
    findings_add(r, &f);
}
