#include "soft/runtime/tensor.h"

#include <stdatomic.h>

#include <greta/soft.h>

#include "base/rangemap.h"
#include "base/spin.h"

static struct spin lock;
static struct rangemap named;
/* How many ranges there are, usually none: read without the lock. */
static _Atomic uint64_t count;

/* Under the lock. */
static void drop(uint64_t address, uint64_t bytes) {
    for (;;) {
        const struct range *r = rangemap_find_first_at_or_after(&named, address);
        if (!r || r->addr - address >= bytes) /* wraps, too, where it starts before */
            break;
        rangemap_remove(&named, r->addr, NULL);
    }
    atomic_store(&count, named.count);
}

void soft_tensor_forget(uint64_t address, uint64_t bytes) {
    if (!atomic_load(&count))
        return;
    spin_lock(&lock);
    drop(address, bytes);
    spin_unlock(&lock);
}

bool soft_tensor_find(uint64_t address, uint64_t *start, uint64_t *bytes) {
    if (!atomic_load(&count))
        return false;
    spin_lock(&lock);
    const struct range *r = rangemap_find(&named, address);
    if (r) {
        *start = r->addr;
        *bytes = r->len;
    }
    spin_unlock(&lock);
    return r != NULL;
}

void greta_soft_name_range(const void *address, uint64_t bytes) {
    uint64_t at = (uint64_t)(uintptr_t)address;
    spin_lock(&lock);
    const struct range *old = rangemap_find(&named, at);
    if (old && old->addr == at)
        rangemap_remove(&named, at, NULL);
    if (bytes) /* without memory it stays unchecked */
        (void)(rangemap_insert(&named, at, bytes, NULL, NULL) == RC_OK);
    atomic_store(&count, named.count);
    spin_unlock(&lock);
}
