#include "soft/runtime/machine/machine_heap.h"

#include <string.h>

#include "soft/runtime/heap.h"

/* Numbers of messages that hardware does not have; the low bits mean nothing to other messages. */
enum { MESSAGE_ALLOC = 0x7e10, MESSAGE_FREE = 0x7e20 };
enum { S_SENDMSG = (int)0xbf900000, S_SETPC_S30 = (int)0xbe801d1e, RETURN = 30 };

static void replace(const struct codeobj_list *list, unsigned char *image, uint64_t first,
                    uint64_t bytes, const char *name, uint32_t message) {
    const uint32_t code[] = { (uint32_t)S_SENDMSG | message, (uint32_t)S_SETPC_S30 };
    for (size_t i = 0; i < list->function_count; i++) {
        const struct codeobj_function *f = &list->functions[i];
        if (!strcmp(f->name, name) && f->size >= sizeof code && f->address >= first &&
            f->address - first <= bytes - sizeof code && bytes >= sizeof code)
            memcpy(image + (f->address - first), code, sizeof code);
    }
}

void machine_heap_replace(const struct codeobj_list *list, unsigned char *image, uint64_t first,
                          uint64_t bytes) {
    replace(list, image, first, bytes, "__ockl_dm_alloc", MESSAGE_ALLOC);
    replace(list, image, first, bytes, "__ockl_dm_dealloc", MESSAGE_FREE);
}

static uint64_t get(const struct isa_wave *w, unsigned lane) {
    return w->vgpr[0][lane] | (uint64_t)w->vgpr[1][lane] << 32;
}

static void allocate(int device, struct isa_wave *w, uint32_t site) {
    for (uint64_t left = ISA_WAVE_EXEC(w); left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(left);
        uint64_t address = soft_heap_alloc(device, get(w, lane), site);
        w->vgpr[0][lane] = (uint32_t)address;
        w->vgpr[1][lane] = (uint32_t)(address >> 32);
    }
}

static enum isa_result release(struct isa_wave *w) {
    static const char *const why[] = {
        [SOFT_HEAP_FREED_TWICE] = "free() of memory that was freed before",
        [SOFT_HEAP_UNKNOWN] = "free() of an address that malloc() in a kernel has not returned",
    };
    for (uint64_t left = ISA_WAVE_EXEC(w); left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctzll(left);
        uint64_t address = get(w, lane);
        enum soft_heap_freed r = address ? soft_heap_free(address) : SOFT_HEAP_FREED;
        if (r == SOFT_HEAP_FREED)
            continue;
        w->stop = (struct isa_stop){ .space = ISA_SPACE_GLOBAL,
                                     .kind = ISA_STORE,
                                     .lane = lane,
                                     .address = address,
                                     .why = why[r] };
        return ISA_FAULT;
    }
    return ISA_CONTINUE;
}

bool machine_heap_asks(uint32_t message) {
    return message == MESSAGE_ALLOC;
}

enum isa_result machine_heap_message(int device, struct isa_wave *w, uint32_t message,
                                     uint32_t site) {
    if (machine_heap_asks(message))
        allocate(device, w, site);
    return message == MESSAGE_FREE ? release(w) : ISA_CONTINUE;
}

uint64_t machine_heap_caller(const struct isa_wave *w) {
    return w->sgpr64[RETURN / 2] - 4;
}
