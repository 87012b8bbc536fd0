#include "codeobj/image.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

/* Relocations of AMDGPU (AMDGPUUsage, "Relocation Records"). S symbol, A addend, B base, P place.
 */
enum {
    R_NONE = 0,
    R_ABS32_LO = 1,   /* (S + A) & 0xffffffff */
    R_ABS32_HI = 2,   /* (S + A) >> 32 */
    R_ABS64 = 3,      /* S + A */
    R_REL32 = 4,      /* S + A - P */
    R_REL64 = 5,      /* S + A - P */
    R_ABS32 = 6,      /* S + A */
    R_REL32_LO = 10,  /* (S + A - P) & 0xffffffff */
    R_REL32_HI = 11,  /* (S + A - P) >> 32 */
    R_RELATIVE64 = 13 /* B + A */
};

#define SPAN_MAX (UINT64_C(1) << 40)

struct elf {
    const unsigned char *bytes;
    size_t size;
    struct err *e;
};

static bool inside(const struct elf *f, uint64_t offset, uint64_t bytes) {
    return bytes <= f->size && offset <= f->size - bytes;
}

static bool read_header(const struct elf *f, Elf64_Ehdr *h) {
    if (!inside(f, 0, sizeof *h))
        return false;
    memcpy(h, f->bytes, sizeof *h);
    return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_ident[EI_DATA] == ELFDATA2LSB;
}

/* ---- segments ------------------------------------------------------------------------------ */

static enum rc add_segment(const struct elf *f, struct codeobj_extent *x, const Elf64_Phdr *p) {
    if (x->count == CODEOBJ_SEGMENTS_MAX)
        return err_set(f->e, RC_FORMAT, "a code object with more than %d segments",
                       CODEOBJ_SEGMENTS_MAX);
    if (p->p_filesz > p->p_memsz || !inside(f, p->p_offset, p->p_filesz) || p->p_memsz > SPAN_MAX ||
        p->p_vaddr > SPAN_MAX)
        return err_set(f->e, RC_FORMAT, "segment %u leaves the code object", x->count);
    uint64_t end = x->first + x->bytes;
    if (x->count && p->p_vaddr < end)
        return err_set(f->e, RC_FORMAT, "segment %u overlaps the one before it", x->count);
    if (!x->count)
        x->first = p->p_vaddr;
    x->bytes = p->p_vaddr + p->p_memsz - x->first;
    if (p->p_align > x->align && !(p->p_align & (p->p_align - 1)) && p->p_align <= 1 << 21)
        x->align = p->p_align;
    x->segments[x->count++] = (struct codeobj_segment){
        .address = p->p_vaddr,
        .bytes = p->p_memsz,
        .file_offset = p->p_offset,
        .file_bytes = p->p_filesz,
        .flags = p->p_flags,
    };
    return RC_OK;
}

enum rc codeobj_measure(struct codeobj_extent *out, const unsigned char *elf, size_t size,
                        struct err *e) {
    struct elf f = { elf, size, e };
    Elf64_Ehdr h;
    struct codeobj_extent x = { .align = 1 };
    if (!read_header(&f, &h) || h.e_phentsize != sizeof(Elf64_Phdr) ||
        !inside(&f, h.e_phoff, (uint64_t)h.e_phnum * sizeof(Elf64_Phdr)))
        return err_set(e, RC_FORMAT, "program headers leave the code object");
    for (unsigned i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, elf + h.e_phoff + i * sizeof p, sizeof p);
        enum rc rc = p.p_type == PT_LOAD && p.p_memsz ? add_segment(&f, &x, &p) : RC_OK;
        if (rc)
            return rc;
    }
    if (!x.count)
        return err_set(e, RC_FORMAT, "a code object with nothing to load");
    /* The image starts at a multiple of its alignment, whatever the first segment's address is. */
    uint64_t lead = x.first & (x.align - 1);
    x.first -= lead;
    x.bytes += lead;
    *out = x;
    return RC_OK;
}

/* ---- relocations --------------------------------------------------------------------------- */

struct relocator {
    struct elf f;
    unsigned char *to;
    uint64_t base;
    const struct codeobj_extent *extent;
    Elf64_Ehdr h;
};

static bool read_section(const struct relocator *r, unsigned i, Elf64_Shdr *out) {
    if (i >= r->h.e_shnum)
        return false;
    memcpy(out, r->f.bytes + r->h.e_shoff + (uint64_t)i * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || inside(&r->f, out->sh_offset, out->sh_size);
}

/* The device address of a symbol; 0 for a weak one that is not there. */
static enum rc symbol_address(const struct relocator *r, const Elf64_Shdr *table, uint32_t index,
                              uint64_t *out) {
    Elf64_Sym s;
    *out = 0;
    if (!index)
        return RC_OK;
    if (index >= table->sh_size / sizeof s)
        return err_set(r->f.e, RC_FORMAT, "a relocation names symbol %u, which is not there",
                       index);
    memcpy(&s, r->f.bytes + table->sh_offset + (uint64_t)index * sizeof s, sizeof s);
    if (s.st_shndx != SHN_UNDEF)
        *out = r->base - r->extent->first + s.st_value;
    else if (ELF64_ST_BIND(s.st_info) != STB_WEAK)
        return err_set(r->f.e, RC_FORMAT, "a relocation needs symbol %u, which is not defined",
                       index);
    return RC_OK;
}

static unsigned width_of(unsigned type) {
    return type == R_ABS64 || type == R_REL64 || type == R_RELATIVE64 ? 8 : 4;
}

/* The value to store; false for a kind that is not known. */
static bool value_of(unsigned type, uint64_t symbol, uint64_t addend, uint64_t place, uint64_t bias,
                     uint64_t *out) {
    switch (type) {
    case R_ABS32:
    case R_ABS32_LO:
    case R_ABS64:
        *out = symbol + addend;
        return true;
    case R_ABS32_HI:
        *out = (symbol + addend) >> 32;
        return true;
    case R_REL32:
    case R_REL32_LO:
    case R_REL64:
        *out = symbol + addend - place;
        return true;
    case R_REL32_HI:
        *out = (symbol + addend - place) >> 32;
        return true;
    case R_RELATIVE64:
        *out = bias + addend;
        return true;
    default:
        return false;
    }
}

static enum rc relocate(const struct relocator *r, const Elf64_Shdr *symbols, const Elf64_Rela *a) {
    unsigned type = (unsigned)ELF64_R_TYPE(a->r_info), width = width_of(type);
    uint64_t at = a->r_offset - r->extent->first, symbol, value;
    if (type == R_NONE)
        return RC_OK;
    if (a->r_offset < r->extent->first || width > r->extent->bytes || at > r->extent->bytes - width)
        return err_set(r->f.e, RC_FORMAT, "a relocation leaves the image");
    enum rc rc = symbol_address(r, symbols, (uint32_t)ELF64_R_SYM(a->r_info), &symbol);
    if (rc)
        return rc;
    if (!value_of(type, symbol, (uint64_t)a->r_addend, r->base + at, r->base - r->extent->first,
                  &value))
        return err_set(r->f.e, RC_UNSUPPORTED, "relocation of kind %u", type);
    memcpy(r->to + at, &value, width); /* little-endian */
    return RC_OK;
}

/* A table of relocations for the loaded image: one that is itself loaded. */
static enum rc relocate_table(const struct relocator *r, const Elf64_Shdr *table) {
    Elf64_Shdr symbols = { 0 };
    if (table->sh_link && (!read_section(r, table->sh_link, &symbols) ||
                           (symbols.sh_type != SHT_DYNSYM && symbols.sh_type != SHT_SYMTAB)))
        return err_set(r->f.e, RC_FORMAT, "relocations without a symbol table");
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela a;
        memcpy(&a, r->f.bytes + table->sh_offset + i * sizeof a, sizeof a);
        enum rc rc = relocate(r, &symbols, &a);
        if (rc)
            return rc;
    }
    return RC_OK;
}

static enum rc relocate_all(struct relocator *r) {
    Elf64_Ehdr *h = &r->h;
    if (!read_header(&r->f, h) || (h->e_shnum && h->e_shentsize != sizeof(Elf64_Shdr)) ||
        !inside(&r->f, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
        return err_set(r->f.e, RC_FORMAT, "section headers leave the code object");
    for (unsigned i = 0; i < h->e_shnum; i++) {
        Elf64_Shdr s;
        if (!read_section(r, i, &s) || s.sh_type != SHT_RELA || !(s.sh_flags & SHF_ALLOC))
            continue;
        enum rc rc = relocate_table(r, &s);
        if (rc)
            return rc;
    }
    return RC_OK;
}

enum rc codeobj_load(unsigned char *to, uint64_t base, const struct codeobj_extent *extent,
                     const unsigned char *elf, size_t size, struct err *e) {
    uint64_t done = 0;
    for (unsigned i = 0; i < extent->count; i++) {
        const struct codeobj_segment *s = &extent->segments[i];
        uint64_t at = s->address - extent->first;
        memset(to + done, 0, at - done);
        memcpy(to + at, elf + s->file_offset, s->file_bytes);
        done = at + s->file_bytes;
    }
    memset(to + done, 0, extent->bytes - done);
    struct relocator r = { .f = { elf, size, e }, .to = to, .base = base, .extent = extent };
    return relocate_all(&r);
}
