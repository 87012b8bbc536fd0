/* Hooks of devices, contexts and errors. */
#include "audit/hooks.h"

void hook_set_device(struct call *c, int device) {
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_DEVICE, 0, NULL);
        ev.dst = (uint64_t)(int64_t)device;
        call_begin(c, &ev);
    }
}

void hook_device_set(struct call *c, hipError_t r, int device) {
    if (r == hipSuccess)
        audit_me()->device = 1 + device;
    call_end(c, (unsigned)r);
}

void hook_device_unknown(void) {
    audit_me()->device = 0;
}

int hook_reset(struct call *c, int device) {
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_DEVICE_RESET, 0, NULL);
        ev.dst = (uint64_t)(int64_t)device;
        call_begin(c, &ev);
    }
    return device;
}

void hook_was_reset(struct call *c, hipError_t r, int device) {
    if (r == hipSuccess) {
        struct ledger_act who = call_act(c);
        d2h_pending_device_reset();
        ledger_free_device(audit.ledger, device, &who);
        order_device_reset(device);
        atomic_store(&audit.sticky_error, hipSuccess);
    }
    call_end(c, (unsigned)r);
}

void hook_error_read(struct call *c, hipError_t r, bool clears) {
    struct audit_thread *me = audit_me();
    if (call_is_recorded()) {
        struct event ev = call_event(c, EVENT_ERROR_READ, 0, NULL);
        ev.dst = (uint64_t)r;
        ev.src = me->failed_call ? me->failed_call - 1 : EVENT_NO_SEQ;
        ev.status = hipSuccess; /* reading an error is no failure */
        call_begin(c, &ev);
    }
    if (clears)
        me->failed_call = 0;
}
