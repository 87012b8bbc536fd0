#include "audit/found.h"

#include "audit/audit.h"
#include "audit/call.h"
#include "audit/hooks.h"

/* hipMemoryType has other numbers in ROCm 5 than since 6. */
static enum ledger_family family_of(const hipPointerAttribute_t *a) {
    int type = (int)a->memoryType;
    if (a->isManaged)
        return LEDGER_FOUND_MANAGED;
    if (audit.hip_major < 6) {
        if (type == HIP5_MEMORY_TYPE_HOST)
            return LEDGER_FOUND_HOST;
        return type == HIP5_MEMORY_TYPE_DEVICE ? LEDGER_FOUND_DEVICE : LEDGER_FAMILY_COUNT;
    }
    if (type == hipMemoryTypeHost)
        return LEDGER_FOUND_HOST;
    if (type == hipMemoryTypeManaged || type == hipMemoryTypeUnified)
        return LEDGER_FOUND_MANAGED;
    return type == hipMemoryTypeDevice ? LEDGER_FOUND_DEVICE : LEDGER_FAMILY_COUNT;
}

/* A query of ours that failed has set the last error, which the program must not see. It is cleared
 * unless the program had an unread error before: HIP cannot set that one again, and a wrong error
 * is better than none. */
static void clear_own_error(hipError_t before) {
    if (before == hipSuccess)
        (void)audit.raw.hipGetLastError();
}

static bool is_entered(uint64_t addr, uint64_t size, enum ledger_family family) {
    readlock_token t = ledger_read_begin(audit.ledger);
    const struct ledger_entry *entry = ledger_at(audit.ledger, addr);
    bool same = entry && entry->addr == addr && entry->size == size && entry->family == family;
    ledger_read_end(t);
    return same;
}

bool found_at(uint64_t address, hipError_t *error) {
    hipPointerAttribute_t a = { 0 };
    hipDeviceptr_t base = NULL;
    size_t size = 0;
    *error = hipSuccess;
    hipError_t before = audit.raw.hipPeekAtLastError();
    hipError_t r = audit.raw.hipPointerGetAttributes(&a, (const void *)(uintptr_t)address);
    enum ledger_family family = r == hipSuccess ? family_of(&a) : LEDGER_FAMILY_COUNT;
    if (family != LEDGER_FAMILY_COUNT)
        r = audit.raw.hipMemGetAddressRange(&base, &size, (hipDeviceptr_t)(uintptr_t)address);
    if (r != hipSuccess)
        clear_own_error(before);
    if (hip_error_is_sticky(r))
        *error = r;
    if (r != hipSuccess || family == LEDGER_FAMILY_COUNT || size == 0)
        return false;
    if (is_entered((uint64_t)(uintptr_t)base, size, family))
        return true;
    struct call c = CALL_INIT(HIP_FN_hipMemGetAddressRange, NULL);
    struct ledger_entry what = {
        .addr = (uint64_t)(uintptr_t)base,
        .size = size,
        .family = family,
        .device = a.device,
    };
    /* Where calls bypass the table, the runtime's answer replaces what the ledger has. */
    hook_enter_memory(&c, hipSuccess, &what, 0, !audit.partial);
    return true;
}
