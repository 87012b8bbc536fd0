#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "codeobj/codeobj.h"

enum {
    MACHINE_AMDGPU = 224,
    OSABI_HSA = 64,
    NOTE_METADATA = 32,
    MACH_MASK = 0xff,
    DESCRIPTOR_BYTES = 64,
    DEFAULT_MAX_THREADS = 1024,
};

/* The parts of a kernel descriptor that are read here (AMDGPUUsage, "Kernel Descriptor"):
 *   0  group_segment_fixed_size    4  private_segment_fixed_size
 *   8  kernarg_size               16  kernel_code_entry_byte_offset, from the descriptor */
enum { KD_GROUP = 0, KD_PRIVATE = 4, KD_KERNARG = 8, KD_ENTRY = 16 };

/* An image being read. */
struct reader {
    const unsigned char *image;
    size_t size;
    const Elf64_Shdr *sections;
    size_t section_count;
    struct err *e;
};

uint64_t codeobj_elf_size(const void *header) {
    Elf64_Ehdr h;
    memcpy(&h, header, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64)
        return 0;
    uint64_t sections = (uint64_t)h.e_shnum * h.e_shentsize;
    return h.e_shoff > UINT64_MAX - sections ? 0 : h.e_shoff + sections;
}

/* True if [offset, offset + bytes) lies in the image. */
static bool inside(const struct reader *r, uint64_t offset, uint64_t bytes) {
    return bytes <= r->size && offset <= r->size - bytes;
}

static uint32_t read_u32(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t read_u64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static enum rc read_header(struct reader *r, struct codeobj_list *list) {
    Elf64_Ehdr h;
    if (r->size < sizeof h)
        return err_set(r->e, RC_FORMAT, "code object of %zu bytes is too short", r->size);
    memcpy(&h, r->image, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_ident[EI_OSABI] != OSABI_HSA ||
        h.e_machine != MACHINE_AMDGPU || h.e_type != ET_DYN)
        return err_set(r->e, RC_FORMAT, "not an AMDGPU code object");
    list->processor = (enum codeobj_processor)(h.e_flags & MACH_MASK);
    list->flags = h.e_flags;
    list->version = h.e_ident[EI_ABIVERSION] + 2u; /* ELFABIVERSION_AMDGPU_HSA_V2 is 0 */
    if (!h.e_shnum || h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shoff % 8 ||
        !inside(r, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr)))
        return err_set(r->e, RC_FORMAT, "section headers leave the code object");
    r->sections = (const Elf64_Shdr *)(r->image + h.e_shoff);
    r->section_count = h.e_shnum;
    return RC_OK;
}

/* The section of a type whose bytes are all there, or NULL. */
static const Elf64_Shdr *find_section(const struct reader *r, uint32_t type) {
    for (size_t i = 0; i < r->section_count; i++)
        if (r->sections[i].sh_type == type &&
            inside(r, r->sections[i].sh_offset, r->sections[i].sh_size))
            return &r->sections[i];
    return NULL;
}

/* The image's bytes at [address, address + bytes) of section s; NULL if the section does not hold
 * them (then *zero says whether they are zeros that need no bytes). */
static const unsigned char *section_bytes(const struct reader *r, const Elf64_Shdr *s,
                                          uint64_t address, uint64_t bytes, bool *zero) {
    *zero = false;
    if (address < s->sh_addr || bytes > s->sh_size || address - s->sh_addr > s->sh_size - bytes)
        return NULL;
    if (s->sh_type == SHT_NOBITS) {
        *zero = true;
        return NULL;
    }
    uint64_t within = address - s->sh_addr;
    if (s->sh_offset > UINT64_MAX - within || !inside(r, s->sh_offset + within, bytes))
        return NULL;
    return r->image + s->sh_offset + within;
}

static enum rc add_kernel(struct reader *r, struct codeobj_list *list, const Elf64_Sym *sym,
                          const char *name, size_t length) {
    const Elf64_Shdr *s = &r->sections[sym->st_shndx];
    bool zero;
    const unsigned char *d = section_bytes(r, s, sym->st_value, DESCRIPTOR_BYTES, &zero);
    if (!d)
        return err_set(r->e, RC_FORMAT, "kernel descriptor '%s' leaves its section", name);
    struct codeobj_kernel *k = &list->kernels[list->kernel_count];
    *k = (struct codeobj_kernel){
        .name = strndup(name, length),
        .descriptor = sym->st_value,
        .entry = sym->st_value + read_u64(d + KD_ENTRY),
        .kernarg_bytes = read_u32(d + KD_KERNARG),
        .group_bytes = read_u32(d + KD_GROUP),
        .private_bytes = read_u32(d + KD_PRIVATE),
        .max_threads = DEFAULT_MAX_THREADS,
    };
    if (!k->name)
        return err_set(r->e, RC_MEMORY, "no memory for the kernels of a code object");
    list->kernel_count++;
    return RC_OK;
}

static enum rc add_variable(struct reader *r, struct codeobj_list *list, const Elf64_Sym *sym,
                            const char *name) {
    const Elf64_Shdr *s = &r->sections[sym->st_shndx];
    bool zero;
    const unsigned char *d = section_bytes(r, s, sym->st_value, sym->st_size, &zero);
    if (!d && !zero)
        return err_set(r->e, RC_FORMAT, "variable '%s' leaves its section", name);
    struct codeobj_variable *v = &list->variables[list->variable_count];
    *v = (struct codeobj_variable){
        .name = strdup(name),
        .address = sym->st_value,
        .size = sym->st_size,
        .initial = d,
        .constant = !(s->sh_flags & SHF_WRITE),
        .local = ELF64_ST_BIND(sym->st_info) == STB_LOCAL,
    };
    if (!v->name)
        return err_set(r->e, RC_MEMORY, "no memory for the variables of a code object");
    list->variable_count++;
    return RC_OK;
}

static enum rc add_function(struct reader *r, struct codeobj_list *list, const Elf64_Sym *sym,
                            const char *name) {
    struct codeobj_function *f = &list->functions[list->function_count];
    *f = (struct codeobj_function){ strdup(name), sym->st_value, sym->st_size };
    if (!f->name)
        return err_set(r->e, RC_MEMORY, "no memory for the functions of a code object");
    list->function_count++;
    return RC_OK;
}

/* Objects that the code object defines: kernels' descriptors and variables; and functions. */
static enum rc add_symbol(struct reader *r, struct codeobj_list *list, const Elf64_Sym *sym,
                          const char *name) {
    unsigned type = ELF64_ST_TYPE(sym->st_info);
    if ((type != STT_OBJECT && type != STT_FUNC) || sym->st_shndx == SHN_UNDEF || !*name)
        return RC_OK;
    if (sym->st_shndx >= r->section_count)
        return sym->st_shndx >= SHN_LORESERVE
                   ? RC_OK
                   : err_set(r->e, RC_FORMAT, "symbol '%s' has no section", name);
    if (type == STT_FUNC)
        return sym->st_size ? add_function(r, list, sym, name) : RC_OK;
    size_t length = strlen(name);
    if (length > 3 && !strcmp(name + length - 3, ".kd") && sym->st_size == DESCRIPTOR_BYTES)
        return add_kernel(r, list, sym, name, length - 3);
    return sym->st_size ? add_variable(r, list, sym, name) : RC_OK;
}

/* The string table that names a table's symbols, or NULL. */
static const Elf64_Shdr *names_of(const struct reader *r, const Elf64_Shdr *table) {
    if (table->sh_link >= r->section_count || table->sh_offset % 8)
        return NULL;
    const Elf64_Shdr *names = &r->sections[table->sh_link];
    bool good = names->sh_type == SHT_STRTAB && names->sh_size &&
                inside(r, names->sh_offset, names->sh_size) &&
                !r->image[names->sh_offset + names->sh_size - 1];
    return good ? names : NULL;
}

/* Room for count more of everything that symbols can be. */
static enum rc reserve(struct reader *r, struct codeobj_list *list, size_t count) {
    void *kernels =
        realloc(list->kernels, (list->kernel_count + count + 1) * sizeof *list->kernels);
    if (kernels)
        list->kernels = kernels;
    void *variables =
        realloc(list->variables, (list->variable_count + count + 1) * sizeof *list->variables);
    if (variables)
        list->variables = variables;
    void *functions =
        realloc(list->functions, (list->function_count + count + 1) * sizeof *list->functions);
    if (functions)
        list->functions = functions;
    return kernels && variables && functions
               ? RC_OK
               : err_set(r->e, RC_MEMORY, "no memory for %zu symbols", count);
}

/* The symbols of a table that are local, or those that are not, or all. */
static enum rc read_table(struct reader *r, struct codeobj_list *list, const Elf64_Shdr *table,
                          bool locals, bool others) {
    const Elf64_Shdr *names = names_of(r, table);
    if (!names)
        return err_set(r->e, RC_FORMAT, "symbol names leave the code object");
    const Elf64_Sym *symbols = (const Elf64_Sym *)(r->image + table->sh_offset);
    size_t count = table->sh_size / sizeof *symbols;
    enum rc rc = reserve(r, list, count);
    for (size_t i = 0; !rc && i < count; i++) {
        if (symbols[i].st_name >= names->sh_size)
            return err_set(r->e, RC_FORMAT, "symbol %zu has no name", i);
        const char *name = (const char *)r->image + names->sh_offset + symbols[i].st_name;
        bool local = ELF64_ST_BIND(symbols[i].st_info) == STB_LOCAL;
        if (local ? locals : others)
            rc = add_symbol(r, list, &symbols[i], name);
    }
    return rc;
}

static int by_address(const void *a, const void *b) {
    const struct codeobj_function *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* Exported symbols are in the dynamic table, static ones, if listed at all, in the other. */
static enum rc read_symbols(struct reader *r, struct codeobj_list *list) {
    const Elf64_Shdr *dynamic = find_section(r, SHT_DYNSYM), *all = find_section(r, SHT_SYMTAB);
    if (!dynamic && !all)
        return err_set(r->e, RC_FORMAT, "code object has no symbol table");
    enum rc rc = dynamic ? read_table(r, list, dynamic, false, true) : RC_OK;
    if (!rc && all)
        rc = read_table(r, list, all, true, !dynamic);
    if (!rc)
        qsort(list->functions, list->function_count, sizeof *list->functions, by_address);
    return rc;
}

/* Notes are { name bytes, data bytes, type }, the name and the data, each padded to 4 bytes. */
static enum rc read_notes(struct reader *r, struct codeobj_list *list, const Elf64_Shdr *s) {
    const unsigned char *p = r->image + s->sh_offset, *end = p + s->sh_size;
    while ((size_t)(end - p) >= 12) {
        uint64_t name = ((uint64_t)read_u32(p) + 3) & ~(uint64_t)3, data = read_u32(p + 4);
        uint32_t type = read_u32(p + 8);
        bool ours = read_u32(p) == 7 && type == NOTE_METADATA;
        p += 12;
        if (name > (size_t)(end - p) || data > (size_t)(end - p) - name)
            return err_set(r->e, RC_FORMAT, "a note leaves its section");
        if (ours && !memcmp(p, "AMDGPU", 7))
            return codeobj_list_read_metadata(list, p + name, (size_t)data, r->e);
        uint64_t padded = (data + 3) & ~(uint64_t)3;
        if (padded > (size_t)(end - p) - name)
            break;
        p += name + padded;
    }
    return RC_OK;
}

enum rc codeobj_list_open(struct codeobj_list **out, const void *image, size_t size,
                          struct err *e) {
    struct reader r = { .image = image, .size = size, .e = e };
    /* Section headers and symbols are read in place. */
    if ((uintptr_t)image % 8)
        return err_set(e, RC_FORMAT, "code object is not aligned");
    struct codeobj_list *list = calloc(1, sizeof *list);
    if (!list)
        return err_set(e, RC_MEMORY, "no memory for a code object");
    list->image = image;
    list->size = size;
    enum rc rc = read_header(&r, list);
    if (!rc)
        rc = read_symbols(&r, list);
    for (size_t i = 0; !rc && i < r.section_count; i++)
        if (r.sections[i].sh_type == SHT_NOTE &&
            inside(&r, r.sections[i].sh_offset, r.sections[i].sh_size))
            rc = read_notes(&r, list, &r.sections[i]);
    if (rc)
        codeobj_list_close(&list);
    else
        *out = list;
    return rc;
}

void codeobj_list_close(struct codeobj_list **list) {
    struct codeobj_list *l = *list;
    *list = NULL;
    if (!l)
        return;
    for (size_t i = 0; i < l->kernel_count; i++) {
        struct codeobj_kernel *k = &l->kernels[i];
        codeobj_free_arguments(k);
        free(k->name);
    }
    for (size_t i = 0; i < l->variable_count; i++)
        free(l->variables[i].name);
    for (size_t i = 0; i < l->function_count; i++)
        free(l->functions[i].name);
    free(l->kernels);
    free(l->variables);
    free(l->functions);
    free(l);
}

void codeobj_list_forget_image(struct codeobj_list *list) {
    list->image = NULL;
    for (size_t i = 0; i < list->variable_count; i++)
        list->variables[i].initial = NULL;
}

const struct codeobj_kernel *codeobj_list_kernel(const struct codeobj_list *list,
                                                 const char *name) {
    for (size_t i = 0; i < list->kernel_count; i++)
        if (!strcmp(list->kernels[i].name, name))
            return &list->kernels[i];
    return NULL;
}

const struct codeobj_variable *codeobj_list_variable(const struct codeobj_list *list,
                                                     const char *name) {
    for (size_t i = 0; i < list->variable_count; i++)
        if (!list->variables[i].local && !strcmp(list->variables[i].name, name))
            return &list->variables[i];
    return NULL;
}

const struct codeobj_variable *codeobj_list_variable_at(const struct codeobj_list *list,
                                                        uint64_t address) {
    for (size_t i = 0; i < list->variable_count; i++)
        if (address - list->variables[i].address < list->variables[i].size)
            return &list->variables[i];
    return NULL;
}

const struct codeobj_function *codeobj_list_function_at(const struct codeobj_list *list,
                                                        uint64_t address) {
    size_t low = 0, high = list->function_count;
    while (low < high) { /* invariant: functions before low begin at or before the address */
        size_t middle = low + (high - low) / 2;
        if (list->functions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct codeobj_function *f = low ? &list->functions[low - 1] : NULL;
    return f && address - f->address < f->size ? f : NULL;
}
