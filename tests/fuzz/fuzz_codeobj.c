/* fuzz_codeobj - any bytes as a code object: list its kernels and variables, and read all that the
 * list hands out. The same bytes also go to the reader of bundles, plain and compressed, and to the
 * reader of metadata alone. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/bundle.h"
#include "codeobj/codeobj.h"
#include "codeobj/descriptor.h"
#include "codeobj/image.h"
#include "codeobj/kernarg.h"

/* The sum is used, so that the reads are made. */
static volatile uint64_t total;

static void read_list(const struct codeobj_list *list) {
    for (size_t i = 0; i < list->kernel_count; i++) {
        const struct codeobj_kernel *k = &list->kernels[i];
        total += strlen(k->name) + k->kernarg_bytes + (codeobj_list_kernel(list, k->name) != NULL);
        for (uint32_t a = 0; a < k->argument_count; a++)
            total +=
                k->arguments[a].size + (k->arguments[a].name ? strlen(k->arguments[a].name) : 0);
    }
    for (size_t i = 0; i < list->variable_count; i++) {
        const struct codeobj_variable *v = &list->variables[i];
        total += strlen(v->name);
        if (v->initial)
            total += v->initial[0] + v->initial[v->size - 1];
    }
}

/* As a dispatch uses a kernel: its segment, its registers. */
static void dispatch(const struct codeobj_list *list, const unsigned char *bytes, size_t size) {
    const struct codeobj_dispatch d = { .grid = { 64, 2, 1 }, .block = { 32, 2, 1 }, .dims = 2 };
    struct err e;
    for (size_t i = 0; i < list->kernel_count; i++) {
        const struct codeobj_kernel *k = &list->kernels[i];
        uint32_t need = codeobj_kernarg_bytes(k);
        unsigned char *segment = need <= 1 << 20 ? calloc(1, need + 1) : NULL;
        if (segment)
            total += codeobj_kernarg_hide(k, &d, segment, &e) == RC_OK;
        free(segment);
        total += codeobj_list_function_at(list, k->entry) != NULL;
        total += codeobj_list_variable_at(list, k->descriptor) != NULL;
    }
    for (size_t at = 0; at + CODEOBJ_DESCRIPTOR_BYTES <= size && at < 4096; at += 256) {
        struct codeobj_descriptor k;
        struct codeobj_start start;
        codeobj_descriptor_read(&k, bytes + at);
        total += codeobj_descriptor_start(&start, &k, list->processor, &e) == RC_OK;
    }
}

static void load(const unsigned char *bytes, size_t size) {
    struct codeobj_extent extent;
    struct err e;
    if (codeobj_measure(&extent, bytes, size, &e) != RC_OK || extent.bytes > 1 << 24)
        return;
    unsigned char *memory = malloc(extent.bytes);
    if (memory)
        total += codeobj_load(memory, 0x7f0000000000, &extent, bytes, size, &e) == RC_OK;
    free(memory);
}

static void read_image(const unsigned char *bytes, size_t size) {
    struct codeobj_list *list = NULL;
    struct err e;
    if (size >= 64)
        total += codeobj_elf_size(bytes);
    if (codeobj_list_open(&list, bytes, size, &e) == RC_OK) {
        read_list(list);
        dispatch(list, bytes, size);
    }
    codeobj_list_close(&list);
    load(bytes, size);
}

static void read_bundle(const unsigned char *bytes, size_t size, const char *target) {
    struct codeobj_image found;
    struct err e;
    if (codeobj_from_bytes(bytes, size, target, &found, &e) != RC_OK)
        return;
    read_image(found.bytes, found.size);
    free(found.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct codeobj_list empty = { 0 };
    struct err e;
    unsigned char *copy = malloc(size ? size : 1); /* aligned, and nothing after it */
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    read_image(copy, size);
    read_bundle(copy, size, "gfx90a:sramecc+:xnack-");
    read_bundle(copy, size, NULL);
    total += codeobj_list_read_metadata(&empty, copy, size, &e) == RC_OK;
    free(copy);
    return 0;
}
