/* virtual.c - virtual memory, where addresses and memory are separate (hipMemAddressReserve,
 * hipMemCreate, hipMemMap).
 *
 * Memory is a file without a name; mapping it puts its pages at the alias of the reserved
 * addresses. The table of blocks (memory.h) only has what is accessible, as runs: adjacent mappings
 * are one block, because kernels and copies may cross from one into the next. So each change of a
 * reservation, which waits for the devices first, makes its runs anew. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft/runtime/error.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/start.h"

enum { PAGE = 4096, HANDLES_MAX = 1 << 16 };
static const size_t recommended = 2u << 20;

/* Memory. It lives for as long as a handle or a mapping does. */
struct memory {
    struct soft_handle handle;
    int file;
    uint64_t size;
    hipMemAllocationProp prop;
    unsigned handles, mappings;
};

struct mapping {
    struct mapping *next; /* by address */
    uint64_t addr, size;
    struct memory *memory;
    hipMemAccessFlags access[SOFT_DEVICES_MAX];
    struct soft_block *run; /* the run that begins here, or NULL */
};

struct reservation {
    struct reservation *next;
    uint64_t addr, size;
    struct mapping *mappings;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct soft_handles *handles;
static struct reservation *reservations;

/* ---- memory ---------------------------------------------------------------------------------- */

static struct soft_handles *all_handles(void) {
    if (!handles)
        handles = soft_handles_new(sizeof(struct memory), HANDLES_MAX);
    return handles;
}

static struct memory *find_memory(hipMemGenericAllocationHandle_t handle) {
    return handle && soft_handle_valid(all_handles(), handle) ? (struct memory *)handle : NULL;
}

/* Both layouts of hipMemAllocationProp as one. False: it asks for a kind of memory that does not
 * exist here. */
static bool read_property(const hipMemAllocationProp *given, hipMemAllocationProp *p) {
    if (!given)
        return false;
    if (soft_hip_major() >= 6) {
        *p = *given;
    } else {
        const HIP5_hipMemAllocationProp *old =
            (const HIP5_hipMemAllocationProp *)(const void *)given;
        *p = (hipMemAllocationProp){ .type = old->type,
                                     .requestedHandleType = old->requestedHandleType,
                                     .location = old->location,
                                     .win32HandleMetaData = old->win32HandleMetaData,
                                     .allocFlags = { .compressionType = old->compressionType,
                                                     .usage = old->usage } };
    }
    return p->type == hipMemAllocationTypePinned && p->location.type == hipMemLocationTypeDevice &&
           soft_check_device(p->location.id) == hipSuccess;
}

static void write_property(const hipMemAllocationProp *p, hipMemAllocationProp *out) {
    if (soft_hip_major() >= 6) {
        *out = *p;
        return;
    }
    HIP5_hipMemAllocationProp *old = (HIP5_hipMemAllocationProp *)(void *)out;
    *old = (HIP5_hipMemAllocationProp){ .compressionType = p->allocFlags.compressionType,
                                        .location = p->location,
                                        .requestedHandleType = p->requestedHandleType,
                                        .type = p->type,
                                        .usage = p->allocFlags.usage,
                                        .win32HandleMetaData = p->win32HandleMetaData };
}

/* Takes the file over if it succeeds. */
static struct memory *new_memory(int file, uint64_t size, const hipMemAllocationProp *prop) {
    struct memory *m = soft_handle_alloc(all_handles());
    if (!m)
        return NULL;
    m->file = file;
    m->size = size;
    m->prop = *prop;
    m->handles = 1;
    return m;
}

static void drop_if_unused(struct memory *m) {
    if (m->handles || m->mappings)
        return;
    close(m->file);
    soft_handle_free(all_handles(), m);
}

static hipError_t create(hipMemGenericAllocationHandle_t *handle, size_t size,
                         const hipMemAllocationProp *prop) {
    uint64_t free_bytes, total;
    soft_memory_info(prop->location.id, &free_bytes, &total);
    if (size > free_bytes)
        return hipErrorOutOfMemory;
    int file = memfd_create("greta-virtual", MFD_CLOEXEC);
    if (file < 0)
        return hipErrorOutOfMemory;
    struct memory *m = NULL;
    if (!ftruncate(file, (off_t)size))
        m = new_memory(file, size, prop);
    if (!m) {
        close(file);
        return hipErrorOutOfMemory;
    }
    *handle = (hipMemGenericAllocationHandle_t)m;
    return hipSuccess;
}

hipError_t soft_hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size,
                             const hipMemAllocationProp *prop, unsigned long long flags) {
    hipMemAllocationProp p;
    if (!handle || !size || size % PAGE || flags || !read_property(prop, &p))
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    hipError_t r = create(handle, size, &p);
    pthread_mutex_unlock(&lock);
    return r;
}

hipError_t soft_hipMemRelease(hipMemGenericAllocationHandle_t handle) {
    pthread_mutex_lock(&lock);
    struct memory *m = find_memory(handle);
    bool ok = m && m->handles;
    if (ok) {
        m->handles--;
        drop_if_unused(m);
    }
    pthread_mutex_unlock(&lock);
    return ok ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipMemGetAllocationGranularity(size_t *granularity,
                                               const hipMemAllocationProp *prop,
                                               hipMemAllocationGranularity_flags option) {
    hipMemAllocationProp p;
    if (!granularity || !read_property(prop, &p) ||
        (unsigned)option > hipMemAllocationGranularityRecommended)
        return hipErrorInvalidValue;
    *granularity = option == hipMemAllocationGranularityMinimum ? PAGE : recommended;
    return hipSuccess;
}

hipError_t soft_hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *prop,
                                                        hipMemGenericAllocationHandle_t handle) {
    pthread_mutex_lock(&lock);
    const struct memory *m = find_memory(handle);
    if (m && prop)
        write_property(&m->prop, prop);
    pthread_mutex_unlock(&lock);
    return m && prop ? hipSuccess : hipErrorInvalidValue;
}

/* The program owns the descriptor it gets. */
hipError_t soft_hipMemExportToShareableHandle(void *shareableHandle,
                                              hipMemGenericAllocationHandle_t handle,
                                              hipMemAllocationHandleType handleType,
                                              unsigned long long flags) {
    if (!shareableHandle || flags || handleType != hipMemHandleTypePosixFileDescriptor)
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    const struct memory *m = find_memory(handle);
    int file = m ? fcntl(m->file, F_DUPFD_CLOEXEC, 0) : -1;
    pthread_mutex_unlock(&lock);
    if (file < 0)
        return m ? hipErrorOutOfMemory : hipErrorInvalidValue;
    *(int *)shareableHandle = file;
    return hipSuccess;
}

/* osHandle is a descriptor, or, as some releases want it, points at one. */
hipError_t soft_hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle,
                                                void *osHandle,
                                                hipMemAllocationHandleType shHandleType) {
    struct stat s;
    if (!handle || !osHandle || shHandleType != hipMemHandleTypePosixFileDescriptor)
        return hipErrorInvalidValue;
    uintptr_t number = (uintptr_t)osHandle;
    int given = number < PAGE ? (int)number : *(const int *)osHandle;
    int file = fcntl(given, F_DUPFD_CLOEXEC, 0);
    if (file < 0)
        return hipErrorInvalidValue;
    hipMemAllocationProp prop = { .type = hipMemAllocationTypePinned,
                                  .requestedHandleType = shHandleType,
                                  .location = { hipMemLocationTypeDevice, soft_current_device() } };
    struct memory *m = NULL;
    pthread_mutex_lock(&lock);
    if (!fstat(file, &s) && s.st_size > 0 && s.st_size % PAGE == 0)
        m = new_memory(file, (uint64_t)s.st_size, &prop);
    pthread_mutex_unlock(&lock);
    if (!m) {
        close(file);
        return hipErrorInvalidValue;
    }
    *handle = (hipMemGenericAllocationHandle_t)m;
    return hipSuccess;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static struct reservation *find_reservation(uint64_t addr, uint64_t size) {
    for (struct reservation *r = reservations; r; r = r->next)
        if (addr >= r->addr && addr - r->addr < r->size && size <= r->size - (addr - r->addr))
            return r;
    return NULL;
}

hipError_t soft_hipMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr,
                                     unsigned long long flags) {
    (void)addr; /* a wish */
    if (!ptr || flags || (alignment & (alignment - 1)) || size > (uint64_t)1 << 46 ||
        alignment > (uint64_t)1 << 40)
        return hipErrorInvalidValue;
    if (!size || size % PAGE)
        return hipErrorOutOfMemory; /* as ROCm says it */
    struct reservation *r = calloc(1, sizeof *r);
    if (!r)
        return hipErrorOutOfMemory;
    r->addr = soft_memory_reserve(size, alignment);
    r->size = size;
    if (!r->addr) {
        free(r);
        return hipErrorOutOfMemory;
    }
    pthread_mutex_lock(&lock);
    r->next = reservations;
    reservations = r;
    pthread_mutex_unlock(&lock);
    *ptr = (void *)(uintptr_t)r->addr;
    return hipSuccess;
}

hipError_t soft_hipMemAddressFree(void *devPtr, size_t size) {
    hipError_t result = hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    for (struct reservation **link = &reservations; *link; link = &(*link)->next) {
        struct reservation *r = *link;
        if (r->addr == (uint64_t)(uintptr_t)devPtr && r->size == size && !r->mappings) {
            *link = r->next;
            free(r);
            result = hipSuccess;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static bool is_accessible(const struct mapping *m) {
    return m->access[m->memory->prop.location.id] != hipMemAccessFlagsProtNone;
}

/* The last mapping of the run that begins with m. */
static const struct mapping *run_end(const struct mapping *m) {
    while (m->next && is_accessible(m->next) && m->next->addr == m->addr + m->size &&
           m->next->memory->prop.location.id == m->memory->prop.location.id)
        m = m->next;
    return m;
}

static void drop_runs(struct reservation *r) {
    for (struct mapping *m = r->mappings; m; m = m->next) {
        if (m->run)
            soft_memory_disown(m->run);
        m->run = NULL;
    }
}

static hipError_t make_runs(struct reservation *r) {
    hipError_t result = hipSuccess;
    for (struct mapping *m = r->mappings; m;) {
        if (!is_accessible(m)) {
            m = m->next;
            continue;
        }
        const struct mapping *last = run_end(m);
        struct mapping *next = last->next;
        m->run = soft_memory_adopt(m->memory->prop.location.id, m->addr,
                                   last->addr + last->size - m->addr);
        if (!m->run)
            result = hipErrorOutOfMemory;
        m = next;
    }
    return result;
}

static bool overlaps(const struct reservation *r, uint64_t addr, uint64_t size) {
    for (const struct mapping *m = r->mappings; m; m = m->next)
        if (m->addr < addr + size && addr < m->addr + m->size)
            return true;
    return false;
}

static void insert(struct reservation *r, struct mapping *m) {
    struct mapping **link = &r->mappings;
    while (*link && (*link)->addr < m->addr)
        link = &(*link)->next;
    m->next = *link;
    *link = m;
}

static hipError_t map(uint64_t addr, uint64_t size, struct memory *memory) {
    struct reservation *r = find_reservation(addr, size);
    if (!r || !memory || size > memory->size || overlaps(r, addr, size))
        return hipErrorInvalidValue;
    struct mapping *m = calloc(1, sizeof *m);
    if (!m || mmap(soft_reach(addr), size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file, 0) ==
                  MAP_FAILED) {
        free(m);
        return hipErrorOutOfMemory;
    }
    m->addr = addr;
    m->size = size;
    m->memory = memory;
    memory->mappings++;
    insert(r, m);
    return hipSuccess;
}

hipError_t soft_hipMemMap(void *ptr, size_t size, size_t offset,
                          hipMemGenericAllocationHandle_t handle, unsigned long long flags) {
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    if (!ptr || !size || size % PAGE || addr % PAGE || offset || flags)
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    hipError_t r = map(addr, size, find_memory(handle));
    pthread_mutex_unlock(&lock);
    return r;
}

/* Whether whole mappings, one after the other, make up [addr, addr + size). */
static bool covers(const struct reservation *r, uint64_t addr, uint64_t size) {
    uint64_t at = addr;
    for (const struct mapping *m = r->mappings; m && at < addr + size; m = m->next)
        if (m->addr == at)
            at += m->size;
    return at == addr + size;
}

static void unmap(struct reservation *r, uint64_t addr, uint64_t size) {
    for (struct mapping **link = &r->mappings; *link;) {
        struct mapping *m = *link;
        if (m->addr < addr || m->addr >= addr + size) {
            link = &m->next;
            continue;
        }
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
        (void)mmap(soft_reach(m->addr), m->size, PROT_NONE, flags, -1, 0);
        m->memory->mappings--;
        drop_if_unused(m->memory);
        *link = m->next;
        free(m);
    }
}

hipError_t soft_hipMemUnmap(void *ptr, size_t size) {
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    if (!ptr || !size)
        return hipErrorInvalidValue;
    soft_schedule_drain(-1);
    pthread_mutex_lock(&lock);
    struct reservation *r = find_reservation(addr, size);
    hipError_t result = r && covers(r, addr, size) ? hipSuccess : hipErrorInvalidValue;
    if (result == hipSuccess) {
        drop_runs(r);
        unmap(r, addr, size);
        result = make_runs(r);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- access ---------------------------------------------------------------------------------- */

static bool is_access(const hipMemAccessDesc *d) {
    return d->location.type == hipMemLocationTypeDevice &&
           soft_check_device(d->location.id) == hipSuccess &&
           (d->flags == hipMemAccessFlagsProtNone || d->flags == hipMemAccessFlagsProtRead ||
            d->flags == hipMemAccessFlagsProtReadWrite);
}

/* What any device may do is possible; the owner's access decides whether there is a block. */
static bool set_protection(struct mapping *m) {
    int most = 0;
    for (int i = 0; i < SOFT_DEVICES_MAX; i++)
        most |= (int)m->access[i];
    int prot = (most & 1 ? PROT_READ : 0) | (most & 2 ? PROT_WRITE : 0);
    return !mprotect(soft_reach(m->addr), m->size, prot);
}

hipError_t soft_hipMemSetAccess(void *ptr, size_t size, const hipMemAccessDesc *desc,
                                size_t count) {
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    if (!ptr || !size || !desc || !count)
        return hipErrorInvalidValue;
    for (size_t i = 0; i < count; i++)
        if (!is_access(&desc[i]))
            return hipErrorInvalidValue;
    soft_schedule_drain(-1);
    pthread_mutex_lock(&lock);
    struct reservation *r = find_reservation(addr, size);
    hipError_t result = r && covers(r, addr, size) ? hipSuccess : hipErrorInvalidValue;
    if (result == hipSuccess)
        drop_runs(r);
    for (struct mapping *m = result == hipSuccess ? r->mappings : NULL; m; m = m->next) {
        if (m->addr < addr || m->addr >= addr + size)
            continue;
        for (size_t i = 0; i < count; i++)
            m->access[desc[i].location.id] = desc[i].flags;
        if (!set_protection(m))
            result = hipErrorOutOfMemory;
    }
    if (r && make_runs(r) != hipSuccess)
        result = hipErrorOutOfMemory;
    pthread_mutex_unlock(&lock);
    return result;
}

/* The mapping that holds the address. */
static const struct mapping *mapping_at(const void *ptr) {
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    const struct reservation *r = find_reservation(addr, 1);
    const struct mapping *m = r ? r->mappings : NULL;
    while (m && addr - m->addr >= m->size)
        m = m->next;
    return m;
}

hipError_t soft_hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location,
                                void *ptr) {
    if (!flags || !ptr || !location || location->type != hipMemLocationTypeDevice ||
        soft_check_device(location->id) != hipSuccess)
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    const struct mapping *m = mapping_at(ptr);
    if (m)
        *flags = (unsigned long long)m->access[location->id];
    pthread_mutex_unlock(&lock);
    return m ? hipSuccess : hipErrorInvalidValue;
}

hipError_t soft_hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *addr) {
    if (!handle || !addr)
        return hipErrorInvalidValue;
    pthread_mutex_lock(&lock);
    const struct mapping *m = mapping_at(addr);
    if (m) {
        m->memory->handles++;
        *handle = (hipMemGenericAllocationHandle_t)m->memory;
    }
    pthread_mutex_unlock(&lock);
    return m ? hipSuccess : hipErrorInvalidValue;
}
