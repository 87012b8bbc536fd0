#include "audit/fault_observer.h"

#include <greta/soft.h>

#include <dlfcn.h>
#include <string.h>

#include "audit/kernel.h"

static void observe(const struct greta_soft_fault *fault, void *user) {
    (void)user;
    static const unsigned access[] = {
        [GRETA_SOFT_FAULT_READ] = DETAIL_ACCESS_READ,
        [GRETA_SOFT_FAULT_WRITE] = DETAIL_ACCESS_WRITE,
        [GRETA_SOFT_FAULT_UNKNOWN] = DETAIL_ACCESS_UNKNOWN,
        [GRETA_SOFT_FAULT_TRAP] = DETAIL_ACCESS_EXECUTE,
    };
    bool known = fault->kind > 0 && (size_t)fault->kind < sizeof access / sizeof *access;
    union event_slot slot[3];
    unsigned slots = 2;
    slot[0].event = (struct event){
        .kind = EVENT_FAULT,
        .dst = fault->address,
        .src = fault->tag ? fault->tag - 1 : EVENT_NO_SEQ,
        .name = record_string(audit.writer, fault->operation),
        .status =
            fault->kind == GRETA_SOFT_FAULT_TRAP ? hipErrorLaunchFailure : hipErrorIllegalAddress,
        .aux = event_aux(EVENT_NO_FN, known ? access[fault->kind] : DETAIL_ACCESS_UNKNOWN),
    };
    struct event_fault extra = {
        .argument = fault->argument >= 0 ? (uint64_t)fault->argument : EVENT_NO_ARGUMENT,
        .alloc_base = fault->allocation_base,
        .alloc_bytes = fault->allocation_size,
        .alloc_seq = EVENT_NO_SEQ,
    };
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, fault->allocation_base);
    if (!entry)
        entry = ledger_freed_at(audit.ledger, fault->allocation_base);
    if (entry)
        extra.alloc_seq = entry->made.event;
    ledger_read_end(t);
    event_extra_fault(&slot[1], &extra);
    if (fault->argument >= 0 && fault->argument_name)
        event_extra_argument(&slot[slots++], (uint64_t)fault->argument,
                             record_string(audit.writer, fault->argument_name));
    record_events(audit.writer, slot, slots);
}

/* dlsym() answers for functions with an object pointer; POSIX says that the bits are the same. */
static void find(void *library, const char *name, void *out) {
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(out, &symbol, sizeof symbol);
}

/* Is it the name of an offset, an index, a part? */
static bool names_a_place(const char *name) {
    static const char *const words[] = { "off",  "start", "begin", "end",   "index", "idx",
                                         "part", "chunk", "slice", "first", "last",  "row",
                                         "col",  "pos",   "tile",  "lane",  "rank",  "id" };
    for (size_t i = 0; name && i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

/* What the software device knows about a kernel in host code. */
static bool describe_native(const char *name, struct kernel_layout *out, void *user) {
    (void)user;
    const struct greta_soft_kernel *k = audit.soft_kernel(name);
    if (!k || k->param_count > KERNEL_PARAMS_MAX)
        return false;
    out->count = k->param_count;
    for (uint32_t i = 0; i < k->param_count; i++) {
        bool pointer = k->params[i].flags & GRETA_SOFT_POINTER;
        bool reads = k->params[i].flags & GRETA_SOFT_READS;
        out->param[i].size = k->params[i].size;
        out->param[i].place = !pointer && names_a_place(k->params[i].name);
        out->param[i].access = !pointer ? 0
                               : reads  ? EVENT_ARG_READ
                                        : EVENT_ARG_READ | EVENT_ARG_WRITE;
    }
    return true;
}

void fault_attach(void *library) {
    kernel_set_device_source(NULL, NULL);
    if (!audit.writer)
        return;
    find(library, "greta_soft_kernel_find", &audit.soft_kernel);
    if (audit.soft_kernel)
        kernel_set_device_source(describe_native, NULL);
    find(library, "greta_soft_tag", &audit.soft_tag);
    find(library, "greta_soft_observe_faults", &audit.soft_observe);
    if (audit.soft_observe)
        audit.soft_observe(observe, NULL);
}

void fault_detach(void) {
    if (audit.soft_observe)
        audit.soft_observe(NULL, NULL);
}
