/* greta_audit isa - prints the GPU code in a file: kernels, what they need, and their instructions
 * as greta's own decoder reads them; what it cannot execute is marked. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codeobj/bundle.h"
#include "codeobj/codeobj.h"
#include "codeobj/image.h"
#include "isa/insn.h"
#include "tools/audit/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/audit/isa.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/audit/isa.def"
};

const struct option_table cmd_isa_options = {
    .name = "greta_audit isa",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before =
        "Usage: greta_audit isa [options] FILE\n"
        "\n"
        "Prints the GPU code in a code object, an offload bundle or a program: kernels, what\n"
        "they need, and their instructions. What greta cannot execute is marked.\n"
        "\n",
};

/* ---- one code object ---- */

/* A code object as it lies in memory. */
struct code {
    const struct codeobj_list *list;
    enum isa_gpu gpu;
    struct codeobj_extent extent;
    unsigned char *bytes;
    size_t instructions, unknown, unsupported;
};

static void print_kernel(const struct codeobj_kernel *k) {
    printf("kernel %s\n", k->name);
    printf("  entry 0x%" PRIx64 ", descriptor 0x%" PRIx64 "\n", k->entry, k->descriptor);
    printf("  VGPRs %u, AGPRs %u, SGPRs %u\n", k->vgprs, k->agprs, k->sgprs);
    printf("  LDS %u bytes, private %u bytes%s, kernarg %u bytes\n", k->group_bytes,
           k->private_bytes, k->uses_dynamic_stack ? " and a dynamic stack" : "", k->kernarg_bytes);
    printf("  at most %u threads per block\n", k->max_threads);
    for (uint32_t n = 0; n < k->argument_count; n++) {
        const struct codeobj_argument *a = &k->arguments[n];
        if (!a->is_hidden)
            printf("  argument %u: %u bytes at %u%s%s%s\n", n, a->size, a->offset,
                   a->is_pointer ? ", pointer" : "", a->is_read_only ? ", only read" : "",
                   a->name ? a->name : "");
    }
}

/* The function and distance that a branch leads to, as llvm-objdump writes it. */
static void print_target(const struct code *c, const struct isa_insn *i, uint64_t at) {
    const char *name = isa_info[i->op].name;
    if (i->op != ISA_OP_s_branch && i->op != ISA_OP_s_call_b64 &&
        strncmp(name, "s_cbranch_", 10) != 0)
        return;
    uint64_t to = at + 4 + (uint64_t)((int64_t)(int16_t)i->imm * 4);
    const struct codeobj_function *f = codeobj_list_function_at(c->list, to);
    if (f && to == f->address)
        printf(" <%s>", f->name);
    else if (f)
        printf(" <%s+0x%" PRIx64 ">", f->name, to - f->address);
}

static void print_instruction(struct code *c, const struct isa_insn *i, uint64_t at) {
    char text[256];
    isa_print(c->gpu, i, text, sizeof text);
    printf("\t%-58s // %012" PRIX64 ": %08X", text, at, i->raw[0]);
    if (i->words > 1)
        printf(" %08X", i->raw[1]);
    print_target(c, i, at);
    c->instructions++;
    if (i->op == ISA_OP_NONE) {
        c->unknown++;
        printf(" unknown");
    } else if (!isa_is_executable(i->op)) {
        c->unsupported++;
        printf(" not executed");
    }
    printf("\n");
}

static void print_function(struct code *c, const struct codeobj_function *f) {
    uint64_t first = c->extent.first;
    if (f->address % 4 || f->address < first || f->address - first > c->extent.bytes ||
        f->size > c->extent.bytes - (f->address - first))
        return;
    printf("\n%016" PRIx64 " <%s>:\n", f->address, f->name);
    for (uint64_t at = 0; at + 4 <= f->size;) {
        uint32_t words[2] = { 0 };
        size_t left = (size_t)(f->size - at) / 4;
        struct isa_insn i;
        memcpy(words, c->bytes + (f->address - first + at), left > 1 ? 8 : 4);
        isa_decode(c->gpu, words, left, &i);
        print_instruction(c, &i, f->address + at);
        at += 4u * i.words;
    }
}

static enum rc print_code(struct code *c, const struct options *o, struct err *e) {
    const struct codeobj_list *list = c->list;
    printf("code object for %s, version %u, %zu kernels, %zu variables\n", isa_gpu_name(c->gpu),
           list->version, list->kernel_count, list->variable_count);
    for (size_t n = 0; n < list->kernel_count; n++)
        print_kernel(&list->kernels[n]);
    for (size_t n = 0; n < list->variable_count; n++)
        printf("variable %s: %" PRIu64 " bytes at 0x%" PRIx64 "%s\n", list->variables[n].name,
               list->variables[n].size, list->variables[n].address,
               list->variables[n].constant ? ", constant" : "");
    if (o->summary)
        return RC_OK;
    enum rc rc = codeobj_measure(&c->extent, list->image, list->size, e);
    if (rc)
        return rc;
    c->bytes = malloc(c->extent.bytes);
    if (!c->bytes)
        return err_set(e, RC_MEMORY, "no memory for %" PRIu64 " bytes of code", c->extent.bytes);
    rc = codeobj_load(c->bytes, c->extent.first, &c->extent, list->image, list->size, e);
    for (size_t n = 0; rc == RC_OK && n < list->function_count; n++)
        print_function(c, &list->functions[n]);
    if (rc == RC_OK)
        printf("\n%zu instructions, %zu unknown, %zu not executed\n", c->instructions, c->unknown,
               c->unsupported);
    free(c->bytes);
    return rc;
}

static enum rc print_image(const struct codeobj_image *image, const struct options *o,
                           struct err *e) {
    struct code c = { 0 };
    struct codeobj_list *list;
    enum rc rc = codeobj_list_open(&list, image->bytes, image->size, e);
    if (rc)
        return rc;
    c.list = list;
    if (list->processor == CODEOBJ_GFX90A)
        c.gpu = ISA_GFX90A;
    else if (list->processor == CODEOBJ_GFX942)
        c.gpu = ISA_GFX942;
    else
        rc = err_set(e, RC_UNSUPPORTED, "code for processor 0x%x: expected gfx90a or gfx942",
                     (unsigned)list->processor);
    if (rc == RC_OK)
        rc = print_code(&c, o, e);
    codeobj_list_close(&list);
    return rc;
}

/* ---- a file ---- */

static enum rc read_file(const char *path, unsigned char **bytes, size_t *size, struct err *e) {
    struct stat s;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &s) != 0)
        s = (struct stat){ 0 };
    *size = S_ISREG(s.st_mode) ? (size_t)s.st_size : 0;
    *bytes = *size ? malloc(*size) : NULL;
    enum rc rc = RC_OK;
    if (!f)
        rc = err_set(e, RC_IO, "%s", strerror(errno));
    else if (!*size)
        rc = err_set(e, RC_IO, "%s",
                     S_ISREG(s.st_mode) ? "the file is empty" : "expected a regular file");
    else if (!*bytes)
        rc = err_set(e, RC_MEMORY, "out of memory");
    else if (fread(*bytes, 1, *size, f) != *size)
        rc = err_set(e, RC_IO, "cannot be read");
    if (f)
        fclose(f);
    if (rc)
        free(*bytes);
    return rc;
}

/* Prints what is at the start of the bytes, once for each target; how many were there. */
static int print_at(const unsigned char *bytes, size_t size, const struct options *o,
                    struct err *e) {
    static const char *const known[] = { "gfx90a", "gfx942" };
    int found = 0;
    for (size_t n = 0; n < (o->target ? 1 : sizeof known / sizeof *known); n++) {
        struct codeobj_image image;
        if (codeobj_from_bytes(bytes, size, o->target ? o->target : known[n], &image, e) != RC_OK)
            continue;
        found += print_image(&image, o, e) == RC_OK;
        free(image.bytes);
        if (memcmp(bytes, "\177ELF", size < 4 ? size : 4) == 0)
            break; /* a code object is for one target */
    }
    return found;
}

/* Prints the code wherever the magic occurs. It often does by chance, so errors are ignored. */
static int print_all(const unsigned char *bytes, size_t size, const char *magic,
                     const struct options *o) {
    struct err ignored = { 0 };
    int found = 0;
    for (const unsigned char *at = bytes;
         (at = memmem(at, size - (size_t)(at - bytes), magic, strlen(magic))); at++)
        found += print_at(at, size - (size_t)(at - bytes), o, &ignored);
    return found;
}

/* Prints all code in a file: it is GPU code, or a program with bundles or code objects within. */
static enum rc print_file(const unsigned char *bytes, size_t size, const struct options *o,
                          struct err *e) {
    struct err why = { 0 };
    int found = print_at(bytes, size, o, &why) +
                print_all(bytes + 1, size - 1, "__CLANG_OFFLOAD_BUNDLE__", o) +
                print_all(bytes + 1, size - 1, "CCOB", o);
    if (!found)
        found = print_all(bytes + 1, size - 1, "\177ELF", o);
    if (found)
        return RC_OK;
    return err_set(e, RC_FORMAT, "%s, and it contains no code for %s",
                   why.rc == RC_OK ? "no GPU code" : why.msg,
                   o->target ? o->target : "gfx90a or gfx942");
}

int cmd_isa(int argc, char **argv) {
    static const struct option_table *const t = &cmd_isa_options;
    struct options o = { 0 };
    struct option_operands files;
    struct err e = { 0 };
    unsigned char *bytes;
    size_t size;
    int code = option_begin(t, &o, argc, argv, &files);
    if (code >= 0)
        return code;
    if (files.count != 1)
        return option_wrong(t, files.count ? "expected one file, found also" : "name a file",
                            files.count ? files.words[1] : NULL);
    enum rc rc = read_file(files.words[0], &bytes, &size, &e);
    if (rc == RC_OK) {
        rc = print_file(bytes, size, &o, &e);
        free(bytes);
    }
    if (rc == RC_OK)
        return EXIT_CLEAN;
    fprintf(stderr, "greta_audit isa: %s: %s\n", files.words[0], e.msg);
    return EXIT_FOUND;
}
