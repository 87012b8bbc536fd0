/* code.c - machine code, decoded page by page. */
#include "isa/code.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct isa_code {
    const struct isa_code_binding *binding;
    enum isa_gpu gpu;
    uint64_t address;
    size_t words, pages;
    uint32_t *word;
    pthread_mutex_t decoding;
    _Atomic(struct isa_page *) *page;
};

enum rc isa_code_make(struct isa_code **out, enum isa_gpu gpu, const void *bytes, size_t size,
                      uint64_t address, const struct isa_code_binding *binding, struct err *e) {
    if (size == 0 || size % 4 != 0 || address % 4 != 0)
        return err_set(e, RC_RANGE, "machine code at 0x%llx, %zu bytes: not whole dwords",
                       (unsigned long long)address, size);
    struct isa_code *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(e, RC_MEMORY, "no memory for decoded code");
    c->binding = binding;
    c->gpu = gpu;
    c->address = address;
    c->words = size / 4;
    c->pages = (c->words + ISA_PAGE_SLOTS - 1) / ISA_PAGE_SLOTS;
    c->word = malloc(size);
    c->page = calloc(c->pages, sizeof *c->page);
    pthread_mutex_init(&c->decoding, NULL);
    if (!c->word || !c->page) {
        isa_code_close(&c);
        return err_set(e, RC_MEMORY, "no memory for %zu bytes of code", size);
    }
    memcpy(c->word, bytes, size);
    *out = c;
    return RC_OK;
}

void isa_code_close(struct isa_code **code) {
    struct isa_code *c = *code;
    *code = NULL;
    if (!c)
        return;
    for (size_t p = 0; c->page && p < c->pages; p++)
        free(atomic_load_explicit(&c->page[p], memory_order_relaxed));
    free(c->page);
    free(c->word);
    pthread_mutex_destroy(&c->decoding);
    free(c);
}

enum isa_gpu isa_code_gpu(const struct isa_code *c) {
    return c->gpu;
}

/* Fills a page; slots past the end of the code lead on as well, to where there is no code. */
static void decode_page(const struct isa_code *c, size_t index, struct isa_page *p) {
    size_t first = index * ISA_PAGE_SLOTS;
    p->address = c->address + 4 * (uint64_t)first;
    for (size_t s = 0; s < ISA_PAGE_SLOTS + 2; s++) {
        struct isa_insn *i = &p->insn[s];
        if (s < ISA_PAGE_SLOTS && first + s < c->words) {
            isa_decode(c->gpu, &c->word[first + s], c->words - first - s, i);
            c->binding->bind(i);
        } else {
            memset(i, 0, sizeof *i);
            i->exec = c->binding->next_page;
        }
    }
}

struct isa_page *isa_code_page(struct isa_code *c, uint64_t address) {
    uint64_t word = (address - c->address) / 4;
    if (address < c->address || word >= c->words)
        return NULL;
    size_t index = (size_t)(word / ISA_PAGE_SLOTS);
    struct isa_page *p = atomic_load_explicit(&c->page[index], memory_order_acquire);
    if (p)
        return p;
    pthread_mutex_lock(&c->decoding);
    p = atomic_load_explicit(&c->page[index], memory_order_relaxed);
    if (!p && (p = malloc(sizeof *p))) {
        decode_page(c, index, p);
        /* Stored last: a thread that sees the page sees it decoded. */
        atomic_store_explicit(&c->page[index], p, memory_order_release);
    }
    pthread_mutex_unlock(&c->decoding);
    return p;
}
