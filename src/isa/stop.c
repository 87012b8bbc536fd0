/* stop.c - messages about waves that have stopped. */
#include "isa/exec.h"

enum isa_result isa_stop_unsupported(struct isa_wave *w, const struct isa_insn *i,
                                     const char *why) {
    (void)i;
    w->stop = (struct isa_stop){ .why = why };
    return ISA_UNSUPPORTED;
}

enum isa_result isa_stop_fault(const struct isa_access *a, unsigned lane, uint64_t address,
                               const char *why) {
    a->wave->stop = (struct isa_stop){ .space = a->space,
                                       .kind = a->kind,
                                       .bytes = a->bytes,
                                       .lane = lane,
                                       .address = address,
                                       .why = why };
    return ISA_FAULT;
}
