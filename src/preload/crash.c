#include "preload/crash.h"

#include <errno.h>
#include <ucontext.h>

#include "preload/preload.h"
#include "preload/signals.h"

/* How far beside an allocation an address is still taken for a slip from it. */
static const uint64_t NEAR_BEFORE = 64 << 10, NEAR_AFTER = 1 << 20;
enum { FIRST_PAGE = 4096, WRITE = DETAIL_PLACE_WRITE_ELSEWHERE, NOTED_MAX = 64, STACK_MIN = 32768 };

struct place {
    unsigned what; /* DETAIL_PLACE_* */
    struct ledger_entry entry;
    uint32_t name;
};

static const struct ledger_entry *beside(uint64_t address, unsigned *what) {
    const struct ledger_entry *before = ledger_before(audit.ledger, address);
    *what = DETAIL_PLACE_AFTER;
    if (before && address - (before->addr + before->size) < NEAR_AFTER)
        return before;
    const struct ledger_entry *after = ledger_at_or_after(audit.ledger, address);
    *what = DETAIL_PLACE_BEFORE;
    return after && after->addr - address <= NEAR_BEFORE ? after : NULL;
}

static struct place find(uint64_t address) {
    struct place p = { .what = DETAIL_PLACE_ELSEWHERE };
    p.entry.made.event = p.entry.freed.event = LEDGER_NO_EVENT;
    readlock_token t = address < FIRST_PAGE ? NULL : ledger_read_try(audit.ledger);
    if (!t) {
        p.what = address < FIRST_PAGE ? DETAIL_PLACE_NULL : DETAIL_PLACE_ELSEWHERE;
        return p;
    }
    const struct ledger_entry *e = ledger_at(audit.ledger, address);
    const struct ledger_name *name = e ? ledger_name_at(audit.ledger, address) : NULL;
    if (e)
        p.what = ledger_family_side(e->family) == LEDGER_SIDE_DEVICE ? DETAIL_PLACE_DEVICE
                                                                     : DETAIL_PLACE_HOST;
    else if ((e = ledger_freed_at(audit.ledger, address)))
        p.what = DETAIL_PLACE_FREED;
    else
        e = beside(address, &p.what);
    if (e)
        p.entry = *e;
    else
        p.what = DETAIL_PLACE_ELSEWHERE;
    p.name = name ? name->tag : 0;
    ledger_read_end(t);
    return p;
}

/* Unwinding needs more than the smallest stacks for signals have. */
static bool has_room(void) {
    stack_t stack;
    return sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_ONSTACK) ||
           stack.ss_size >= STACK_MIN;
}

static void record(const struct place *p, int number, uint64_t address, uintptr_t ip, bool writes) {
    union event_slot slot[2];
    slot[0].event = (struct event){
        .kind = EVENT_HOST_FAULT,
        .dst = address,
        .src = p->what == DETAIL_PLACE_FREED ? p->entry.freed.event : EVENT_NO_SEQ,
        .len = (uint64_t)number,
        .name = p->name,
        .aux = event_aux(EVENT_NO_FN, p->what | (writes ? WRITE : 0)),
        .site = has_room() ? record_site_full(audit.writer, (const void *)ip) : 0,
    };
    struct event_fault extra = {
        .argument = EVENT_NO_ARGUMENT,
        .value = signals_are_handled(number),
        .alloc_base = p->entry.addr,
        .alloc_bytes = p->entry.size,
        .alloc_seq = p->entry.made.event,
        .pc = ip,
    };
    event_extra_fault(&slot[1], &extra);
    record_events(audit.writer, slot, 2);
}

static uintptr_t instruction(const ucontext_t *u, bool *writes) {
#if defined(__x86_64__)
    *writes = u->uc_mcontext.gregs[REG_ERR] & 2;
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    *writes = false; /* the syndrome register is not always saved */
    return u->uc_mcontext.pc;
#else
    (void)u;
    *writes = false;
    return 0;
#endif
}

static bool is_devices(void) {
    return !preload_me.host_fn &&
           (preload_me.runtime || (audit.soft.is_running && audit.soft.is_running()));
}

void crash_note(int number, const siginfo_t *info, void *context) {
    static _Atomic unsigned noted; /* some programs fault on purpose, many times */
    static __thread struct {
        uintptr_t ip, address;
    } last __attribute__((tls_model("initial-exec")));
    bool writes;
    if (info->si_code <= 0 || !preload_is_recording() || is_devices() ||
        atomic_load_explicit(&noted, memory_order_relaxed) >= NOTED_MAX)
        return;
    int saved = errno;
    preload_me.inside++;
    uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    uintptr_t ip = instruction(context, &writes);
    struct place p = find(address);
    bool strange = p.what == DETAIL_PLACE_ELSEWHERE || p.what == DETAIL_PLACE_NULL;
    /* The access repeats if the program's handler restores the default action and returns. */
    bool repeated = last.ip == ip && last.address == address;
    last.ip = ip;
    last.address = address;
    if (!repeated && (!strange || !signals_are_handled(number))) {
        atomic_fetch_add_explicit(&noted, 1, memory_order_relaxed);
        record(&p, number, address, ip, writes);
    }
    preload_me.inside--;
    errno = saved;
}
