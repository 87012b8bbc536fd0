/* peers.c - kernels that use the memory of another device.
 *
 * Memory that hipMalloc makes belongs to a device. A kernel of another one reaches it only after
 * its own device has been given peer access (hipDeviceEnablePeerAccess); copies need none, and all
 * devices reach pinned, registered and managed memory. On a GPU a forbidden access faults; where it
 * does not, as on the software device, only the calls show it. */
#include "verdict/replay.h"

static void set_access(struct space *s, uint32_t device, uint64_t peer, bool enabled) {
    if (device >= SPACE_DEVICES || peer >= SPACE_DEVICES)
        s->peers_unknown = true;
    else if (enabled)
        s->peers[device] |= 1u << peer;
    else
        s->peers[device] &= ~(1u << peer);
}

void peers_on_call(const struct replay *r, const struct reader_event *e, struct thread *t) {
    struct space *s = t->space;
    const unsigned status = e->event.status;
    switch (r->fn[event_fn(&e->event)]) {
    case HIP_FN_hipDeviceEnablePeerAccess:
        if (status == hipSuccess || status == hipErrorPeerAccessAlreadyEnabled)
            set_access(s, t->device, e->event.dst, true);
        break;
    case HIP_FN_hipDeviceDisablePeerAccess:
        if (status == hipSuccess)
            set_access(s, t->device, e->event.dst, false);
        break;
    case HIP_FN_hipCtxSetCurrent: /* which device is current, or meant, is not recorded */
    case HIP_FN_hipCtxPushCurrent:
    case HIP_FN_hipCtxPopCurrent:
    case HIP_FN_hipCtxCreate:
    case HIP_FN_hipCtxEnablePeerAccess:
    case HIP_FN_hipCtxDisablePeerAccess:
    case HIP_FN_hipMemPoolSetAccess:
    case HIP_FN_hipMemSetAccess:
        s->peers_unknown = true;
        break;
    default:
        break;
    }
}

/* Is it memory that only its own device, and devices with access, can reach? */
static bool is_owned(const struct block *b) {
    return b && !b->found &&
           (b->family == DETAIL_FAMILY_DEVICE || b->family == DETAIL_FAMILY_PITCHED ||
            b->family == DETAIL_FAMILY_ASYNC);
}

static bool has_access(const struct space *s, uint32_t device, const struct block *b) {
    return b->device == device || (device < SPACE_DEVICES && b->device < SPACE_DEVICES &&
                                   s->peers[device] & 1u << b->device);
}

static void add(struct replay *r, const struct op *op, const struct use *u, struct thread *t,
                uint32_t device, const struct block *b) {
    struct found f = {
        .hypothesis = HYPOTHESIS_INVALID_POINTER,
        .culprit = op->seq,
        .other = EVENT_NO_SEQ,
        .messenger = EVENT_NO_SEQ,
        .order = op->launch != EVENT_NO_SEQ ? op->launch : op->seq,
        .replay = op->launch != EVENT_NO_SEQ ? op->launch : 0,
        .argument = u->argument == EVENT_NO_ARGUMENT ? -1 : u->argument,
        .culprit_writes = u->access & USE_WRITE,
        .address = u->start,
        .len = use_end(u) ? use_end(u) - u->start : 0,
        .process = t->space->process,
        .advised = sentence_plain(SENTENCE_ADVICE_PEER),
        .said = SAY(&r->words, PEER_CLOSED, A_SENTENCE(findings_op(r, op)), A_NUMBER(device),
                    A_NUMBER((u->access & USE_WRITE) != 0), A_SENTENCE(findings_block(r, b)),
                    A_NUMBER(b->device)),
    };
    findings_set_block(r, &f, t->space, b, u->start);
    findings_add(r, &f);
}

void peers_check(struct replay *r, const struct op *op, struct thread *t, const struct stream *s) {
    if (op->what != SHADOW_LAUNCH || !s)
        return;
    for (unsigned i = 0; i < op->count; i++) {
        const struct use *u = &op->use[i];
        const struct block *b = space_at(t->space, u->start);
        if (!is_owned(b) || has_access(t->space, s->device, b))
            continue;
        bool is_sure = u->flags & USE_SEEN || !(u->flags & (USE_VAGUE | USE_GUESSED));
        if (is_sure && !t->space->peers_unknown && !t->space->gap && !r->gap_count && !r->partial)
            add(r, op, u, t, s->device, b);
        else if (!(u->flags & USE_GUESSED))
            findings_undecided(r, HYPOTHESIS_INVALID_POINTER,
                               SAY(&r->words, PEER_UNDECIDED, A_SENTENCE(findings_op(r, op)),
                                   A_NUMBER(s->device), A_NUMBER(b->device)));
    }
}
