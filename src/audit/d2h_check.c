/* May this copy be made? Two look-ups in the ledger, in one read section; the runtime is asked only
 * about addresses that the ledger does not know. */
#include "audit/d2h_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/found.h"

typedef struct d2h_place place;

/* Inside a read section. */
static void look(uint64_t address, place *p) {
    const struct ledger_entry *entry = ledger_at_or_after(audit.ledger, address);
    *p = (place){ .address = address, .family = LEDGER_FAMILY_COUNT, .side = LEDGER_SIDE_NONE };
    if (entry && entry->addr <= address) {
        p->kind = entry->state == LEDGER_LIVE ? D2H_PLACE_LIVE : D2H_PLACE_FREED;
        p->family = (uint8_t)entry->family;
        p->side = (uint8_t)ledger_family_side(entry->family);
        p->device = entry->device;
        p->addr = entry->addr;
        p->size = entry->size;
        const struct ledger_name *name =
            entry->names ? ledger_name_at(audit.ledger, address) : NULL;
        p->name_addr = name ? name->addr : 0;
        p->name_size = name ? name->len : 0;
        return;
    }
    /* Registered memory lies within other memory of the program: a copy may run into it. */
    if (entry && entry->family != LEDGER_REGISTERED && entry->family != LEDGER_TRACKED_HOST)
        p->next = entry->addr;
    entry = ledger_freed_at(audit.ledger, address);
    if (entry) {
        p->kind = D2H_PLACE_FREED;
        p->family = (uint8_t)entry->family;
        p->side = (uint8_t)ledger_family_side(entry->family);
    }
}

/* Host memory that was pinned once may be the program's own by now: unregistering leaves it in
 * place, and the addresses of freed pinned memory are given out again. One can only ask whether
 * anything readable is there. */
static bool is_readable(uint64_t address) {
    char byte;
    struct iovec here = { &byte, 1 }, there = { (void *)(uintptr_t)address, 1 };
    int saved = errno;
    bool yes = process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
    errno = saved;
    return yes;
}

/* ---- finding out ----------------------------------------------------------------------------- */

/* A thread remembers what it found out about the last addresses it copied from and to, for as long
 * as the ledger does not change: repeated copies of one tensor then take no lock and no search.
 * Where calls bypass the table, nothing may be remembered. */
static struct audit_thread *memory_of(uint64_t generation) {
    struct audit_thread *me = audit_me();
    if (me->places_generation != generation) {
        memset(me->pageable, 0, sizeof me->pageable);
        memset(me->places, 0, sizeof me->places);
        me->places_generation = generation;
    }
    return me;
}

static place *place_slot(struct audit_thread *me, uint64_t address) {
    return &me->places[address * UINT64_C(0x9e3779b97f4a7c15) >> 62];
}

/* A second opinion for an address that the ledger does not know, knows only as freed, or (where the
 * program also calls the runtime directly) knows only by an earlier answer of the runtime. */
static void look_again(uint64_t address, place *p, hipError_t *error) {
    if (found_at(address, error)) {
        readlock_token t = ledger_read_begin(audit.ledger);
        look(address, p);
        ledger_read_end(t);
    } else if (p->kind == D2H_PLACE_LIVE) {
        p->kind = D2H_PLACE_FREED; /* by a call that the audit did not see */
    }
}

static bool needs_second_look(const struct audit_thread *me, const place *p, bool host) {
    if (p->kind == D2H_PLACE_LIVE)
        return audit.partial &&
               (p->family == LEDGER_FOUND_DEVICE || p->family == LEDGER_FOUND_HOST ||
                p->family == LEDGER_FOUND_MANAGED);
    if (p->kind == D2H_PLACE_FREED)
        return audit.partial;
    uint64_t page = p->address >> 12;
    return !host || audit.partial || me->pageable[page % 4] != page;
}

/* A freed host address may be plain memory of the program by now. */
static void settle_host(place *p) {
    if (p->kind != D2H_PLACE_FREED || p->side == LEDGER_SIDE_DEVICE || p->side == LEDGER_SIDE_NONE)
        return;
    if (p->family == LEDGER_REGISTERED || p->family == LEDGER_TRACKED_HOST ||
        is_readable(p->address))
        p->kind = D2H_PLACE_NONE;
}

static void find_place(uint64_t address, bool host, place *out, hipError_t *error) {
    uint64_t generation = ledger_generation(audit.ledger);
    struct audit_thread *me = memory_of(generation);
    place *known = place_slot(me, address);
    if (known->address == address && known->host == host && known->kind != D2H_PLACE_FREED) {
        *out = *known;
        return;
    }
    readlock_token t = ledger_read_begin(audit.ledger);
    look(address, out);
    ledger_read_end(t);
    if (needs_second_look(me, out, host))
        look_again(address, out, error);
    if (host)
        settle_host(out);
    out->host = host;
    bool plain = out->kind == D2H_PLACE_NONE && host && *error == hipSuccess;
    if (audit.partial || !(plain || out->kind == D2H_PLACE_LIVE) ||
        generation != ledger_generation(audit.ledger))
        return;
    if (plain)
        me->pageable[(address >> 12) % 4] = address >> 12;
    *known = *out;
}

static void find_places(struct d2h_request *q, place *device, place *other, hipError_t *error) {
    find_place(q->base, false, device, error);
    find_place(q->other, q->kind != hipMemcpyDeviceToDevice, other, error);
}

/* ---- the checks ------------------------------------------------------------------------------ */

static enum gcore_d2h_code found(struct d2h_finding *f, enum gcore_d2h_code code, uint64_t culprit,
                                 const char *which) {
    f->code = code;
    f->culprit = culprit;
    f->which = which;
    return code;
}

static bool on_device(const place *p) {
    return p->kind == D2H_PLACE_LIVE &&
           (p->side == LEDGER_SIDE_DEVICE || p->side == LEDGER_SIDE_BOTH);
}

static bool only_on(const place *p, enum ledger_side side) {
    return p->kind == D2H_PLACE_LIVE && p->side == side;
}

/* hipMemcpyDefault: the pointers decide. */
static hipMemcpyKind kind_of_pointers(const struct d2h_request *q) {
    struct d2h_request probe = *q;
    place from, to;
    hipError_t error = hipSuccess;
    probe.kind = hipMemcpyDeviceToDevice;
    probe.base = (uint64_t)(uintptr_t)q->from;
    probe.other = (uint64_t)(uintptr_t)q->to;
    find_places(&probe, &from, &to, &error);
    bool from_device =
        on_device(&from) || (from.kind == D2H_PLACE_FREED && from.side != LEDGER_SIDE_HOST);
    bool to_device = on_device(&to) || (to.kind == D2H_PLACE_FREED && to.side != LEDGER_SIDE_HOST);
    if (from_device)
        return to_device && !(to.side == LEDGER_SIDE_BOTH) ? hipMemcpyDeviceToDevice
                                                           : hipMemcpyDeviceToHost;
    return to_device ? hipMemcpyHostToDevice : hipMemcpyHostToHost;
}

enum gcore_d2h_code d2h_assign_sides(struct d2h_request *q, struct d2h_finding *f) {
    if (q->kind == hipMemcpyDefault)
        q->kind = kind_of_pointers(q);
    uint64_t from = (uint64_t)(uintptr_t)q->from, to = (uint64_t)(uintptr_t)q->to;
    switch (q->kind) {
    case hipMemcpyDeviceToHost:
    case hipMemcpyDeviceToDevice:
        q->base = from;
        q->other = to;
        break;
    case hipMemcpyHostToDevice:
        q->base = to;
        q->other = from;
        break;
    default:
        return found(f, GCORE_D2H_KIND_MISMATCH, from, "source");
    }
    q->device = q->base + q->meta.offset;
    if (q->kind == hipMemcpyHostToDevice) {
        q->dst = (void *)(uintptr_t)q->device;
        q->src = q->from;
    } else {
        q->dst = q->to;
        q->src = (const void *)(uintptr_t)q->device;
    }
    return GCORE_D2H_OK;
}

static enum gcore_d2h_code check_arithmetic(const struct d2h_request *q, struct d2h_finding *f) {
    uint64_t end;
    f->alloc = q->meta.alloc;
    /* The range may end at the very top of the address space: its last byte is what must exist. */
    if (__builtin_add_overflow((uint64_t)q->meta.offset, (uint64_t)q->meta.size, &end) ||
        __builtin_add_overflow(q->base, (uint64_t)q->meta.offset, &end) ||
        __builtin_add_overflow(end, (uint64_t)q->meta.size - 1, &end))
        return found(f, GCORE_D2H_OVERFLOW, q->base, "device range");
    if (__builtin_add_overflow(q->other, (uint64_t)q->meta.size - 1, &end))
        return found(f, GCORE_D2H_OVERFLOW, q->other, "other range");
    return GCORE_D2H_OK;
}

static const char *base_name(const struct d2h_request *q) {
    return q->kind == hipMemcpyHostToDevice ? "destination" : "source";
}
static const char *other_name(const struct d2h_request *q) {
    return q->kind == hipMemcpyHostToDevice ? "source" : "destination";
}

static enum gcore_d2h_code check_sides(const struct d2h_request *q, const place *device,
                                       const place *other, hipError_t error,
                                       struct d2h_finding *f) {
    bool to_host = q->kind != hipMemcpyDeviceToDevice;
    f->error = error;
    if (device->kind != D2H_PLACE_FREED && !on_device(device) && to_host &&
        only_on(other, LEDGER_SIDE_DEVICE))
        return found(f, GCORE_D2H_KIND_MISMATCH, q->base, base_name(q));
    if (device->kind == D2H_PLACE_NONE)
        return found(f, error ? GCORE_D2H_DEVICE_ERROR : GCORE_D2H_UNKNOWN_POINTER, q->base,
                     base_name(q));
    if (other->kind == D2H_PLACE_NONE && !to_host)
        return found(f, error ? GCORE_D2H_DEVICE_ERROR : GCORE_D2H_UNKNOWN_POINTER, q->other,
                     other_name(q));
    if (device->kind == D2H_PLACE_FREED)
        return found(f, GCORE_D2H_FREED, q->base, base_name(q));
    if (other->kind == D2H_PLACE_FREED)
        return found(f, GCORE_D2H_FREED, q->other, other_name(q));
    if (!on_device(device))
        return found(f, GCORE_D2H_WRONG_SIDE, q->base, base_name(q));
    if (to_host ? other->kind == D2H_PLACE_LIVE &&
                      (only_on(other, LEDGER_SIDE_DEVICE) || only_on(other, LEDGER_SIDE_NONE))
                : !on_device(other))
        return found(f, GCORE_D2H_WRONG_SIDE, q->other, other_name(q));
    return GCORE_D2H_OK;
}

static enum gcore_d2h_code check_device(const struct d2h_request *q, const place *p,
                                        uint64_t address, const char *which,
                                        struct d2h_finding *f) {
    if (p->kind != D2H_PLACE_LIVE || p->side != LEDGER_SIDE_DEVICE || p->device < 0 ||
        p->device == q->order->device)
        return GCORE_D2H_OK;
    f->found_device = p->device;
    f->stream_device = q->order->device;
    return found(f, GCORE_D2H_WRONG_DEVICE, address, which);
}

/* A copy between two devices may be made by a stream of either. */
static bool is_between_devices(const struct d2h_request *q, const place *a, const place *b) {
    return q->kind == hipMemcpyDeviceToDevice && a->kind == D2H_PLACE_LIVE &&
           b->kind == D2H_PLACE_LIVE && a->device != b->device &&
           (a->device == q->order->device || b->device == q->order->device);
}

static enum gcore_d2h_code check_devices(const struct d2h_request *q, const place *device,
                                         const place *other, struct d2h_finding *f) {
    if (is_between_devices(q, device, other))
        return GCORE_D2H_OK;
    enum gcore_d2h_code code = check_device(q, device, q->base, base_name(q), f);
    return code != GCORE_D2H_OK ? code : check_device(q, other, q->other, other_name(q), f);
}

/* True if [start + offset, + size) stays in [addr, addr + len), where start lies in it. */
static bool stays_in(uint64_t start, uint64_t offset, uint64_t size, uint64_t addr, uint64_t len,
                     uint64_t *room) {
    *room = len - (start - addr);
    return offset <= *room && size <= *room - offset;
}

static enum gcore_d2h_code leaves(struct d2h_finding *f, enum gcore_d2h_code code, uint64_t culprit,
                                  const char *which, uint64_t at, uint64_t bytes) {
    f->at = at;
    f->bytes = bytes;
    return found(f, code, culprit, which);
}

/* Which tensor a range belongs to: the one it starts in if that has the caller's name; else the one
 * that base lies in, because offsets count from a tensor's base; else the one it starts in. */
static void find_tensor(const struct d2h_request *q, const place *p, uint64_t first, uint64_t *addr,
                        uint64_t *size) {
    *addr = p->name_addr;
    *size = p->name_size;
    if (first == p->address)
        return;
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_name *start = ledger_name_at(audit.ledger, first);
    if (start && (!p->name_size || (q->meta.tensor && strncmp(start->text, q->meta.tensor,
                                                              LEDGER_NAME_MAX - 1) == 0))) {
        *addr = start->addr;
        *size = start->len;
    }
    ledger_read_end(t);
}

static void copy_name(uint64_t address, char *out, size_t size) {
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_name *name = ledger_name_at(audit.ledger, address);
    snprintf(out, size, "%s", name ? name->text : "?");
    ledger_read_end(t);
}

/* [first, first + size) of the copy, in the allocation that p found, must not leave its tensor. */
static enum gcore_d2h_code check_tensor(const struct d2h_request *q, const place *p, uint64_t first,
                                        const char *which, struct d2h_finding *f) {
    uint64_t addr, size;
    find_tensor(q, p, first, &addr, &size);
    if (size == 0 ||
        (first >= addr && first - addr < size && q->meta.size <= size - (first - addr)))
        return GCORE_D2H_OK;
    f->alloc = addr + size - p->address;
    copy_name(addr, f->name, sizeof f->name);
    return leaves(f, GCORE_D2H_OUT_OF_TENSOR, first, which, addr, size);
}

static enum gcore_d2h_code check_ranges(const struct d2h_request *q, const place *device,
                                        const place *other, struct d2h_finding *f) {
    const struct gcore_d2h_meta *m = &q->meta;
    bool names = ledger_has_names(audit.ledger);
    enum gcore_d2h_code code = GCORE_D2H_OK;
    if (!stays_in(q->base, m->offset, m->size, device->addr, device->size, &f->alloc))
        return leaves(f, GCORE_D2H_OUT_OF_ALLOCATION, q->device, base_name(q), device->addr,
                      device->size);
    if (names)
        code = check_tensor(q, device, q->device, base_name(q), f);
    if (code != GCORE_D2H_OK)
        return code;
    f->alloc = m->alloc;
    if (m->alloc && (m->offset > m->alloc || m->size > m->alloc - m->offset)) {
        f->claimed = true;
        return leaves(f, GCORE_D2H_OUT_OF_ALLOCATION, q->device, base_name(q), q->base, m->alloc);
    }
    if (other->kind == D2H_PLACE_LIVE) {
        enum gcore_d2h_code too_small = q->kind == hipMemcpyDeviceToDevice
                                            ? GCORE_D2H_OUT_OF_ALLOCATION
                                            : GCORE_D2H_HOST_TOO_SMALL;
        if (!stays_in(q->other, 0, m->size, other->addr, other->size, &f->alloc))
            return leaves(f, too_small, q->other, other_name(q), other->addr, other->size);
        return names ? check_tensor(q, other, q->other, other_name(q), f) : GCORE_D2H_OK;
    }
    /* Plain memory that would run into another known block is too small as well. */
    if (other->next && other->next - q->other < m->size) {
        f->alloc = other->next - q->other;
        return leaves(f, GCORE_D2H_HOST_TOO_SMALL, q->other, other_name(q), q->other, f->alloc);
    }
    return GCORE_D2H_OK;
}

static enum gcore_d2h_code check_stream(struct d2h_request *q, struct d2h_finding *f) {
    if (order_is_destroyed(q->stream))
        return found(f, GCORE_D2H_BAD_STREAM, (uint64_t)(uintptr_t)q->stream, "destroyed");
    q->order = order_stream(q->stream);
    if (!q->order)
        return found(f, GCORE_D2H_NO_MEMORY, 0, "stream");
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    bool capturing = order_any_capture() && order_is_capturing(q->order);
    if (audit.partial && !capturing &&
        audit.raw.hipStreamIsCapturing(q->stream, &status) == hipSuccess)
        capturing = status != hipStreamCaptureStatusNone;
    if (capturing)
        return found(f, GCORE_D2H_BAD_STREAM, (uint64_t)(uintptr_t)q->stream, "captured");
    return GCORE_D2H_OK;
}

enum gcore_d2h_code d2h_check(struct d2h_request *q, struct d2h_finding *f) {
    place device, other;
    hipError_t error = hipSuccess;
    f->alloc = q->meta.alloc;
    f->claimed = false;
    f->error = hipSuccess;
    f->name[0] = '\0';
    enum gcore_d2h_code code = check_stream(q, f);
    if (code != GCORE_D2H_OK)
        return code;
    if (!q->from)
        return found(f, GCORE_D2H_NULL_POINTER, 0, "source");
    if (!q->to)
        return found(f, GCORE_D2H_NULL_POINTER, 0, "destination");
    if ((code = d2h_assign_sides(q, f)) != GCORE_D2H_OK ||
        (code = check_arithmetic(q, f)) != GCORE_D2H_OK)
        return code;
    find_places(q, &device, &other, &error);
    if ((code = check_sides(q, &device, &other, error, f)) != GCORE_D2H_OK ||
        (code = check_devices(q, &device, &other, f)) != GCORE_D2H_OK)
        return code;
    return check_ranges(q, &device, &other, f);
}
