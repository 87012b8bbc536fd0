/* ipc.c - device memory and events of another process.
 *
 * The first handle for a block moves its bytes into a file without a name, which stays open here
 * for as long as the block lives; the handle says which process and which descriptor. Whoever
 * opens the handle opens that file through /proc and maps it into its own device's range. As on a
 * GPU, what is written there is seen on both sides, and a handle is worth nothing once its block
 * is freed or its process has ended. Of an interprocess event two counters are shared (event.h). */
#include "soft/runtime/ipc.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "soft/runtime/error.h"
#include "soft/runtime/event.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/runtime.h"
#include "soft/runtime/schedule.h"

/* What is in a handle: which block, whatever address in it was asked about. */
struct content {
    char magic[8];
    int32_t process, file;
    uint64_t inode; /* of the file: whether it is still the same */
    uint64_t offset, size;
};
static const char magic[8] = "gretaIPC";
_Static_assert(sizeof(struct content) <= sizeof(hipIpcMemHandle_t), "fits into a handle");

/* A block that others may have open. */
struct shared {
    struct shared *next;
    uint64_t addr, size, inode, offset;
    int file;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared *all;

/* Closes the files of blocks that are gone. */
static void sweep(void) {
    for (struct shared **link = &all; *link;) {
        struct shared *s = *link;
        struct soft_block *b = soft_memory_at(s->addr);
        if (b && b->size == s->size && b->shared) {
            link = &s->next;
            continue;
        }
        close(s->file);
        *link = s->next;
        free(s);
    }
}

static struct shared *find(uint64_t addr) {
    struct shared *s = all;
    while (s && s->addr != addr)
        s = s->next;
    return s;
}

static hipError_t share(struct soft_block *b, struct shared **out) {
    struct stat st;
    struct shared *s = calloc(1, sizeof *s);
    if (!s)
        return hipErrorOutOfMemory;
    hipError_t r = soft_memory_share(b, &s->file, &s->offset);
    if (r != hipSuccess || fstat(s->file, &st)) {
        free(s);
        return hipErrorOutOfMemory;
    }
    s->addr = b->addr;
    s->size = b->size;
    s->inode = st.st_ino;
    s->next = all;
    *out = all = s;
    return hipSuccess;
}

hipError_t soft_hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *devPtr) {
    struct soft_block copy;
    uint64_t addr = (uint64_t)(uintptr_t)devPtr;
    if (!handle)
        return hipErrorInvalidValue;
    if (!devPtr || !soft_memory_find(addr, &copy) || copy.kind != SOFT_DEVICE)
        return hipErrorInvalidDevicePointer;
    soft_schedule_drain(-1);
    pthread_mutex_lock(&lock);
    sweep();
    struct soft_block *b = soft_memory_at(copy.addr);
    struct shared *s = find(copy.addr);
    hipError_t r = !b ? hipErrorInvalidDevicePointer : s ? hipSuccess : share(b, &s);
    if (r == hipSuccess) {
        struct content c = { .process = getpid(),
                             .file = s->file,
                             .inode = s->inode,
                             .offset = s->offset,
                             .size = s->size };
        memcpy(c.magic, magic, sizeof magic);
        memset(handle, 0, sizeof *handle);
        memcpy(handle, &c, sizeof c);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

/* The file that a handle names, opened; -1 if it is not there any more. */
static int open_content(const struct content *c) {
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)c->process, (int)c->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0 &&
        (fstat(file, &st) || st.st_ino != c->inode || (uint64_t)st.st_size < c->offset ||
         (uint64_t)st.st_size - c->offset < c->size)) {
        close(file);
        return -1;
    }
    return file;
}

static bool is_memory(const struct content *c) {
    return memcmp(c->magic, magic, sizeof magic) == 0 && c->size;
}

hipError_t soft_ipc_open(const hipIpcMemHandle_t *handle, int device, struct soft_block **out) {
    struct content c;
    memcpy(&c, handle, sizeof c);
    if (!is_memory(&c))
        return hipErrorInvalidValue;
    int file = open_content(&c);
    if (file < 0)
        return hipErrorMapFailed;
    hipError_t r = soft_memory_import(device, file, c.offset, c.size, out);
    close(file);
    return r;
}

hipError_t soft_hipIpcOpenMemHandle(void **devPtr, hipIpcMemHandle_t handle, unsigned int flags) {
    struct content c;
    struct soft_block *b;
    memcpy(&c, &handle, sizeof c);
    if (!devPtr || flags & ~(unsigned)hipIpcMemLazyEnablePeerAccess || !is_memory(&c))
        return hipErrorInvalidValue;
    if (c.process == getpid())
        return hipErrorInvalidContext; /* as ROCm: it has that memory already */
    hipError_t r = soft_ipc_open(&handle, soft_current_device(), &b);
    if (r == hipSuccess)
        *devPtr = (void *)(uintptr_t)b->addr;
    return r;
}

hipError_t soft_hipIpcCloseMemHandle(void *devPtr) {
    struct soft_block copy;
    if (!devPtr || !soft_memory_find((uint64_t)(uintptr_t)devPtr, &copy) || copy.pool)
        return hipErrorInvalidValue;
    struct soft_block *b = soft_memory_claim(copy.addr, 1u << SOFT_IMPORTED);
    if (!b)
        return hipErrorInvalidValue;
    soft_schedule_drain(-1);
    soft_memory_free(b);
    return hipSuccess;
}

/* ---- events ---------------------------------------------------------------------------------- */

static const char event_magic[8] = "gretaIPE";

hipError_t soft_hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event) {
    struct stat st;
    const struct soft_event *ev = (const struct soft_event *)event;
    if (!handle || !event)
        return hipErrorInvalidValue;
    if (!soft_handle_valid(soft_events(), event))
        return hipErrorInvalidHandle;
    if (!ev->shared || fstat(ev->file, &st))
        return hipErrorInvalidConfiguration; /* not made with hipEventInterprocess */
    struct content c = { .process = getpid(), .file = ev->file, .inode = st.st_ino };
    memcpy(c.magic, event_magic, sizeof event_magic);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &c, sizeof c);
    return hipSuccess;
}

hipError_t soft_hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle) {
    struct content c;
    memcpy(&c, &handle, sizeof c);
    if (!event || memcmp(c.magic, event_magic, sizeof event_magic) != 0)
        return hipErrorInvalidValue;
    if (c.process == getpid())
        return hipErrorInvalidContext;
    int file = open_content(&c);
    if (file < 0)
        return hipErrorInvalidHandle;
    struct soft_event *ev = soft_event_import(file);
    if (!ev) {
        close(file);
        return hipErrorOutOfMemory;
    }
    *event = (hipEvent_t)ev;
    return hipSuccess;
}
