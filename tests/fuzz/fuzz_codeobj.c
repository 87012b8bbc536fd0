/* fuzz_codeobj - any bytes as a code object: list its kernels and variables, and read all that the
 * list hands out. The same bytes also go to the reader of bundles, plain and compressed, and to the
 * reader of metadata alone. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/bundle.h"
#include "codeobj/codeobj.h"

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

static void read_image(const unsigned char *bytes, size_t size) {
    struct codeobj_list *list = NULL;
    struct err e;
    if (size >= 64)
        total += codeobj_elf_size(bytes);
    if (codeobj_list_open(&list, bytes, size, &e) == RC_OK)
        read_list(list);
    codeobj_list_close(&list);
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
