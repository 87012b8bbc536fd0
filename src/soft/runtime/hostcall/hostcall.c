#include "soft/runtime/hostcall/hostcall.h"

#include "soft/runtime/memory.h"
#include "soft/runtime/settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { PACKETS = 256, LANES = 64, HEAP_BYTES = 128 << 10, READY = 1 };
enum service { SERVICE_FUNCTION = 1, SERVICE_PRINTF = 2, SERVICE_MEMORY = 3 };

/* What device code reads and writes. Pointers are device addresses. A stack entry is the number of
 * a packet in the low bits and above them a tag that changes with every pop; 0 is the end. */
struct packet {
    uint64_t next;
    uint64_t lanes;
    uint32_t service;
    _Atomic uint32_t control;
};
struct payload {
    uint64_t words[LANES][HOSTCALL_WORDS];
};
struct signal { /* amd_signal_t */
    int64_t kind;
    int64_t value;
    uint64_t mailbox;
    uint32_t event, reserved[9];
};
struct buffer {
    uint64_t packets, payloads, doorbell;
    uint64_t free_stack;
    _Atomic uint64_t ready_stack;
    uint64_t index_mask;
    uint64_t mailbox;
    struct signal signal;
    struct packet packet[PACKETS];
    struct payload payload[PACKETS];
};
_Static_assert(sizeof(struct packet) == 24, "as device code has it");
_Static_assert(offsetof(struct buffer, index_mask) == 40, "as device code has it");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t buffers[SOFT_DEVICES_MAX], heaps[SOFT_DEVICES_MAX];

/* ---- memory ---- */

/* The runtime's own: hipDeviceReset leaves it. */
static uint64_t own_memory(int device, uint64_t bytes) {
    struct soft_block *b = NULL;
    if (soft_memory_alloc(device, SOFT_GLOBAL, bytes, 0, false, &b) != hipSuccess)
        return 0;
    b->keep = true;
    memset(soft_reach(b->addr), 0, bytes);
    return b->addr;
}

static void fill_buffer(uint64_t addr) {
    struct buffer *b = soft_reach(addr);
    b->packets = addr + offsetof(struct buffer, packet);
    b->payloads = addr + offsetof(struct buffer, payload);
    b->doorbell = addr + offsetof(struct buffer, signal);
    b->index_mask = PACKETS - 1;
    b->signal.kind = 1; /* a user signal */
    b->signal.mailbox = addr + offsetof(struct buffer, mailbox);
    b->signal.event = 1;
    uint64_t next = PACKETS; /* packet 0, with a tag, because 0 is the end */
    for (unsigned i = 1; i < PACKETS; i++) {
        b->packet[i].next = next;
        next = i;
    }
    b->free_stack = next;
}

static uint64_t once(_Atomic uint64_t *at, int device, uint64_t bytes, void (*fill)(uint64_t)) {
    uint64_t addr = atomic_load_explicit(at, memory_order_acquire);
    if (addr)
        return addr;
    pthread_mutex_lock(&lock);
    addr = atomic_load(at);
    if (!addr && (addr = own_memory(device, bytes))) {
        if (fill)
            fill(addr);
        atomic_store_explicit(at, addr, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return addr;
}

uint64_t soft_hostcall_buffer(int device) {
    return once(&buffers[device], device, sizeof(struct buffer), fill_buffer);
}

uint64_t soft_hostcall_heap(int device) {
    return once(&heaps[device], device, HEAP_BYTES, NULL);
}

/* ---- services ---- */

/* words[0] is the address of a host function of the program that expects no more than this. */
static void call_function(uint64_t words[HOSTCALL_WORDS]) {
    uint64_t results[2] = { 0, 0 };
    void (*function)(uint64_t *, const uint64_t *) =
        (void (*)(uint64_t *, const uint64_t *))(uintptr_t)words[0];
    if (function)
        function(results, words + 1);
    memcpy(words, results, sizeof results);
}

/* Memory that a kernel frees (words[0]) or wants (words[1] bytes): a block as of hipMalloc. */
static void memory(int device, uint64_t words[HOSTCALL_WORDS]) {
    if (words[0]) {
        struct soft_block *b = soft_memory_claim(words[0], 1u << SOFT_DEVICE);
        if (b)
            soft_memory_free(b);
        else
            fprintf(stderr, "greta: a kernel frees 0x%llx, which nobody allocated\n",
                    (unsigned long long)words[0]);
        return;
    }
    struct soft_block *b = NULL;
    if (words[1] && soft_memory_alloc(device, SOFT_DEVICE, words[1], 0, false, &b) == hipSuccess)
        words[0] = b->addr;
}

static void serve_lane(int device, uint32_t service, uint64_t words[HOSTCALL_WORDS]) {
    switch (service) {
    case SERVICE_FUNCTION:
        call_function(words);
        break;
    case SERVICE_PRINTF:
        hostcall_message(words);
        break;
    case SERVICE_MEMORY:
        memory(device, words);
        break;
    default:
        fprintf(stderr, "greta: a kernel asks for host service %u, which does not exist\n",
                service);
        words[0] = words[1] = 0;
    }
}

/* Packets of one buffer, the first that asked first. With the lock. */
static void serve_buffer(int device, struct buffer *b) {
    uint64_t order[PACKETS];
    unsigned count = 0;
    uint64_t at = atomic_exchange_explicit(&b->ready_stack, 0, memory_order_acquire);
    for (; at && count < PACKETS; at = b->packet[at % PACKETS].next)
        order[count++] = at % PACKETS;
    while (count--) {
        struct packet *p = &b->packet[order[count]];
        for (uint64_t left = p->lanes; left; left &= left - 1)
            serve_lane(device, p->service, b->payload[order[count]].words[__builtin_ctzll(left)]);
        atomic_fetch_and_explicit(&p->control, ~(uint32_t)READY, memory_order_release);
    }
}

void soft_hostcall_serve(void) {
    pthread_mutex_lock(&lock);
    for (int device = 0; device < SOFT_DEVICES_MAX; device++) {
        uint64_t addr = atomic_load(&buffers[device]);
        if (addr)
            serve_buffer(device, soft_reach(addr));
    }
    pthread_mutex_unlock(&lock);
}
