/* defined.c - which bytes of device memory something has written. */
#include "soft/runtime/defined.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "soft/runtime/memory.h"
#include "soft/runtime/settings.h"

enum { BUCKETS = 4096 };

/* A block, with one bit per byte that is set when the byte is written. */
struct map {
    struct map *next;
    uint64_t start, bytes;
    unsigned char *bits;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map *maps[BUCKETS];
static struct map *last; /* the one that was asked for last */

static bool is_wanted(void) {
    return (soft_settings()->checks & SOFT_CHECK_INIT) != 0;
}

static struct map **bucket(uint64_t start) {
    return &maps[(start >> 12) % BUCKETS];
}

static struct map *make(const struct soft_block *b) {
    struct map *m = malloc(sizeof *m);
    void *bits = mmap(NULL, b->size / 8 + 1, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!m || bits == MAP_FAILED) {
        free(m);
        if (bits != MAP_FAILED)
            munmap(bits, b->size / 8 + 1);
        return NULL;
    }
    struct map **first = bucket(b->addr);
    *m = (struct map){ *first, b->addr, b->size, bits };
    *first = m;
    return m;
}

/* The map of the block that holds the address; NULL: everything there is defined. */
static struct map *find(uint64_t address) {
    struct soft_block b;
    if (last && address - last->start < last->bytes)
        return last;
    if (!soft_memory_find(address, &b) || b.kind != SOFT_DEVICE)
        return NULL;
    struct map *m = *bucket(b.addr);
    while (m && m->start != b.addr)
        m = m->next;
    return last = m ? m : make(&b);
}

void soft_defined_write(uint64_t address, uint64_t bytes) {
    if (!is_wanted() || !soft_memory_is_device_address(address))
        return;
    pthread_mutex_lock(&lock);
    struct map *m = find(address);
    for (uint64_t at = m ? address - m->start : 0, end = at + bytes; m && at < end;) {
        if (at >= m->bytes)
            break;
        if (at % 8 == 0 && end - at >= 64) {
            uint64_t whole = (end < m->bytes ? end : m->bytes) - at;
            memset(m->bits + at / 8, 0xff, whole / 8);
            at += whole / 8 * 8;
            end = at + whole % 8;
            continue;
        }
        m->bits[at / 8] |= (unsigned char)(1u << at % 8);
        at++;
    }
    pthread_mutex_unlock(&lock);
}

void soft_defined_write_all(void) {
    if (!is_wanted())
        return;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct map *m = maps[i]; m; m = m->next)
            memset(m->bits, 0xff, m->bytes / 8 + 1);
    pthread_mutex_unlock(&lock);
}

void soft_defined_forget(uint64_t address) {
    if (!is_wanted())
        return;
    pthread_mutex_lock(&lock);
    for (struct map **link = bucket(address); *link; link = &(*link)->next)
        if ((*link)->start == address) {
            struct map *m = *link;
            *link = m->next;
            munmap(m->bits, m->bytes / 8 + 1);
            free(m);
            break;
        }
    last = NULL;
    pthread_mutex_unlock(&lock);
}

bool soft_defined_is_undefined(uint64_t address, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    const struct map *m = find(address);
    bool undefined = m != NULL;
    for (uint64_t at = m ? address - m->start : 0, end = at + bytes; undefined && at < end; at++)
        undefined = at < m->bytes && !(m->bits[at / 8] >> at % 8 & 1);
    pthread_mutex_unlock(&lock);
    return undefined;
}
