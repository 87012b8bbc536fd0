/* kernels.c - names of kernels, and of their parameters, as their source has them.
 *
 * A recording has the symbol of a kernel, and the names of its arguments if they are in the code
 * object's metadata, where compilers mostly omit them. With -g the code object has DWARF. It is
 * looked up on demand in the files that the recording names: their section .hip_fatbin holds
 * bundles of code objects, one bundle per source file. Which GPU a code object is for does not
 * matter here. Modules that a program loaded from other files are not found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/bundle.h"
#include "codeobj/lines.h"
#include "symbol/demangle.h"
#include "symbol/lines_internal.h"

enum { PARAMETERS_MAX = 64, IMAGES_MAX = 256 };

struct image {
    struct codeobj_image code;
    codeobj_lines *lines;
};

struct kernel {
    struct kernel *next;
    uint32_t symbol;
    const char *name; /* NULL: as the symbol */
    bool asked;       /* for the parameters */
    unsigned count;
    const char *parameter[PARAMETERS_MAX]; /* NULL: it has no name */
};

enum { BUCKETS = 256 };
struct kernels {
    struct kernel *bucket[BUCKETS];
    bool searched;
    struct image image[IMAGES_MAX];
    size_t image_count;
};

/* "void math::reduce<double, 128>(double*, double const*)" without "void " and its parameters. */
static void shorten(char *name) {
    size_t length = strlen(name), depth = 0, at = length;
    if (!length || name[length - 1] != ')')
        return;
    do {
        at--;
        depth += (name[at] == ')') - (size_t)(name[at] == '(');
    } while (at && depth);
    if (!at)
        return;
    name[at] = '\0';
    if (!strncmp(name, "void ", 5))
        memmove(name, name + 5, strlen(name + 5) + 1);
}

static struct kernel *kernel_of(struct lines *l, uint32_t symbol) {
    if (!l->kernels && !(l->kernels = calloc(1, sizeof *l->kernels)))
        return NULL;
    struct kernel **bucket = &l->kernels->bucket[symbol % BUCKETS];
    for (struct kernel *k = *bucket; k; k = k->next)
        if (k->symbol == symbol)
            return k;
    struct kernel *k = arena_alloc(&l->memory, sizeof *k);
    if (!k)
        return NULL;
    *k = (struct kernel){ .next = *bucket, .symbol = symbol };
    char *plain = demangle(reader_string(l->r, symbol));
    if (plain) {
        shorten(plain);
        k->name = arena_copy_text(&l->memory, plain, strlen(plain));
        free(plain);
    }
    *bucket = k;
    return k;
}

const char *kernels_name(struct lines *l, uint32_t symbol) {
    const struct kernel *k = kernel_of(l, symbol);
    return k ? k->name : NULL;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void add_image(struct kernels *all, const unsigned char *bytes, size_t size) {
    struct image *i = &all->image[all->image_count];
    if (all->image_count == IMAGES_MAX ||
        codeobj_from_bytes(bytes, size, NULL, &i->code, NULL) != RC_OK)
        return;
    if (codeobj_lines_open(&i->lines, i->code.bytes, i->code.size, NULL) == RC_OK)
        all->image_count++;
    else
        free(i->code.bytes);
}

static void add_bundles(struct kernels *all, const unsigned char *bytes, size_t size) {
    static const char *const magic[] = { "__CLANG_OFFLOAD_BUNDLE__", "CCOB" };
    for (size_t n = 0; n < sizeof magic / sizeof *magic; n++)
        for (const unsigned char *at = bytes, *end = bytes + size;
             (at = memmem(at, (size_t)(end - at), magic[n], strlen(magic[n]))); at++)
            add_image(all, at, (size_t)(end - at));
}

static void search(struct lines *l) {
    l->kernels->searched = true;
    for (uint32_t id = 1; id <= reader_count(l->r, DEFINITION_MODULE); id++) {
        const struct module_value *m = reader_module(l->r, id, NULL);
        const dwarf_file *f = m ? frames_file(l, m->path) : NULL;
        size_t size;
        const void *bytes = f ? dwarf_file_section(f, ".hip_fatbin", &size) : NULL;
        if (bytes)
            add_bundles(l->kernels, bytes, size);
    }
}

const char *kernels_parameter(struct lines *l, uint32_t symbol, unsigned index) {
    struct kernel *k = kernel_of(l, symbol);
    if (!k || index >= PARAMETERS_MAX)
        return NULL;
    if (!l->kernels->searched)
        search(l);
    for (size_t i = 0; !k->asked && !k->count && i < l->kernels->image_count; i++) {
        k->count = codeobj_lines_parameters(l->kernels->image[i].lines, reader_string(l->r, symbol),
                                            k->parameter, PARAMETERS_MAX);
        if (k->count > PARAMETERS_MAX)
            k->count = PARAMETERS_MAX;
    }
    k->asked = true;
    return index < k->count ? k->parameter[index] : NULL;
}

void kernels_free(struct lines *l) {
    for (size_t i = 0; l->kernels && i < l->kernels->image_count; i++) {
        codeobj_lines_close(&l->kernels->image[i].lines);
        free(l->kernels->image[i].code.bytes);
    }
    free(l->kernels);
}
