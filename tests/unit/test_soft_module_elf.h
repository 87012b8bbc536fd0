/* test_soft_module_elf.h - builds small AMDGPU code objects and offload bundles for tests.
 * Static functions; a built image is malloc'd and the caller's. Nothing here is checked: tests
 * damage what comes out. */
#ifndef TESTS_UNIT_TEST_SOFT_MODULE_ELF_H
#define TESTS_UNIT_TEST_SOFT_MODULE_ELF_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct image {
    unsigned char *bytes;
    size_t size;
};

static inline void image_put(struct image *i, const void *bytes, size_t size) {
    i->bytes = realloc(i->bytes, i->size + size + 64);
    if (size)
        memcpy(i->bytes + i->size, bytes, size);
    i->size += size;
}

static inline void image_align(struct image *i, size_t to) {
    static const unsigned char zeros[64];
    image_put(i, zeros, (to - i->size % to) % to);
}

static inline void image_text(struct image *i, const char *text) {
    unsigned char head = (unsigned char)(0xa0 | strlen(text)); /* MessagePack: up to 31 bytes */
    image_put(i, &head, 1);
    image_put(i, text, strlen(text));
}

static inline void image_pair(struct image *i, const char *key, unsigned value) {
    unsigned char number[] = { 0xcd, (unsigned char)(value >> 8), (unsigned char)value };
    image_text(i, key);
    image_put(i, number, sizeof number);
}

/* The note's MessagePack: one kernel `vadd` with a pointer it only reads and a number. */
static inline struct image elf_metadata(void) {
    struct image m = { 0 };
    image_put(&m, "\x81", 1); /* a map of 1 */
    image_text(&m, "amdhsa.kernels");
    image_put(&m, "\x91\x89", 2); /* a list of 1: a map of 9 */
    image_text(&m, ".symbol");
    image_text(&m, "vadd.kd");
    image_pair(&m, ".max_flat_workgroup_size", 256);
    image_pair(&m, ".vgpr_count", 64);
    image_pair(&m, ".sgpr_count", 16);
    image_pair(&m, ".agpr_count", 32);
    image_pair(&m, ".vgpr_spill_count", 5);
    image_pair(&m, ".sgpr_spill_count", 300);
    image_pair(&m, ".kernarg_segment_size", 12);
    image_text(&m, ".args");
    image_put(&m, "\x92\x84", 2);
    image_pair(&m, ".offset", 0);
    image_pair(&m, ".size", 8);
    image_text(&m, ".value_kind");
    image_text(&m, "global_buffer");
    image_text(&m, ".is_const");
    image_put(&m, "\xc3\x82", 2);
    image_pair(&m, ".offset", 8);
    image_pair(&m, ".size", 4);
    return m;
}

/* Addresses are file offsets; .bss lies past the end. */
enum { ELF_BSS_ADDRESS = 0x10000 };
static const uint32_t ELF_TABLE[] = { 11, 22, 33, 44 };

static inline void elf_symbol(struct image *symbols, struct image *names, const char *name,
                              int section, uint64_t address, uint64_t size) {
    Elf64_Sym s = { .st_name = (Elf64_Word)names->size,
                    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
                    .st_shndx = (Elf64_Section)section,
                    .st_value = address,
                    .st_size = size };
    image_put(names, name, strlen(name) + 1);
    image_put(symbols, &s, sizeof s);
}

/* A code object for processor `mach` (0x3f: gfx90a) with
 *   kernel vadd: kernarg 12, group 512, private 16 bytes
 *   uint32_t table[4] = { 11, 22, 33, 44 };  char zeros[300];  __managed__ int shared = 5; */
static inline struct image elf_build(unsigned mach) {
    Elf64_Ehdr h = { .e_type = ET_DYN,
                     .e_machine = 224,
                     .e_version = 1,
                     .e_flags = mach,
                     .e_ehsize = sizeof h,
                     .e_shentsize = sizeof(Elf64_Shdr),
                     .e_phentsize = sizeof(Elf64_Phdr),
                     .e_phnum = 3,
                     .e_shnum = 7 };
    memcpy(h.e_ident, ELFMAG "\x02\x01\x01\x40\x02", 9);
    struct image out = { 0 }, symbols = { 0 }, names = { 0 }, note = { 0 };
    image_put(&out, &h, sizeof h);
    uint32_t descriptor[16] = { 512, 16, 12, 0, 64 };
    uint64_t rodata = out.size;
    image_put(&out, descriptor, sizeof descriptor);
    uint64_t data = out.size;
    image_put(&out, ELF_TABLE, sizeof ELF_TABLE);
    uint64_t pointer = 0;
    image_put(&out, &pointer, sizeof pointer);
    int managed = 5;
    image_put(&out, &managed, sizeof managed);
    uint64_t data_end = out.size;

    image_put(&symbols, (char[sizeof(Elf64_Sym)]){ 0 }, sizeof(Elf64_Sym));
    image_put(&names, "", 1);
    elf_symbol(&symbols, &names, "vadd.kd", 3, rodata, 64);
    elf_symbol(&symbols, &names, "table", 4, data, sizeof ELF_TABLE);
    elf_symbol(&symbols, &names, "zeros", 5, ELF_BSS_ADDRESS, 300);
    elf_symbol(&symbols, &names, "shared", 4, data + 16, 8);
    elf_symbol(&symbols, &names, "shared.managed", 4, data + 24, 4);
    image_align(&out, 8);
    uint64_t symbols_at = out.size;
    image_put(&out, symbols.bytes, symbols.size);
    uint64_t names_at = out.size;
    image_put(&out, names.bytes, names.size);

    struct image metadata = elf_metadata();
    uint32_t note_head[] = { 7, (uint32_t)metadata.size, 32 };
    image_put(&note, note_head, sizeof note_head);
    image_put(&note, "AMDGPU\0", 8);
    image_put(&note, metadata.bytes, metadata.size);
    image_align(&note, 4);
    image_align(&out, 8);
    uint64_t note_at = out.size;
    image_put(&out, note.bytes, note.size);
    image_align(&out, 8);

    Elf64_Shdr sections[] = {
        { 0 },
        { .sh_type = SHT_DYNSYM, .sh_offset = symbols_at, .sh_size = symbols.size, .sh_link = 2 },
        { .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = names.size },
        { .sh_type = SHT_PROGBITS, .sh_addr = rodata, .sh_offset = rodata, .sh_size = 64 },
        { .sh_type = SHT_PROGBITS,
          .sh_flags = SHF_WRITE,
          .sh_addr = data,
          .sh_offset = data,
          .sh_size = data_end - data },
        { .sh_type = SHT_NOBITS,
          .sh_flags = SHF_WRITE,
          .sh_addr = ELF_BSS_ADDRESS,
          .sh_size = 300 },
        { .sh_type = SHT_NOTE, .sh_offset = note_at, .sh_size = note.size },
    };
    Elf64_Phdr segments[] = {
        { .p_type = PT_LOAD,
          .p_flags = PF_R | PF_X,
          .p_filesz = rodata + 64,
          .p_memsz = rodata + 64 },
        { .p_type = PT_LOAD,
          .p_flags = PF_R | PF_W,
          .p_offset = data,
          .p_vaddr = data,
          .p_filesz = data_end - data,
          .p_memsz = data_end - data },
        { .p_type = PT_LOAD,
          .p_flags = PF_R | PF_W,
          .p_offset = data_end,
          .p_vaddr = ELF_BSS_ADDRESS,
          .p_memsz = 300,
          .p_align = 4096 },
    };
    uint64_t segments_at = out.size;
    image_put(&out, segments, sizeof segments);
    memcpy(out.bytes + offsetof(Elf64_Ehdr, e_phoff), &segments_at, sizeof segments_at);
    uint64_t sections_at = out.size;
    image_put(&out, sections, sizeof sections);
    memcpy(out.bytes + offsetof(Elf64_Ehdr, e_shoff), &sections_at, sizeof sections_at);
    free(symbols.bytes);
    free(names.bytes);
    free(metadata.bytes);
    free(note.bytes);
    return out;
}

struct bundle_entry {
    const char *id;
    struct image image;
};

/* An offload bundle, each entry aligned to `align` bytes. */
static inline struct image bundle_build(const struct bundle_entry *entries, size_t count,
                                        size_t align) {
    struct image head = { 0 }, out = { 0 };
    size_t at = 32;
    for (size_t i = 0; i < count; i++)
        at += 24 + strlen(entries[i].id);
    uint64_t n = count;
    image_put(&head, "__CLANG_OFFLOAD_BUNDLE__", 24);
    image_put(&head, &n, sizeof n);
    for (size_t i = 0; i < count; i++) {
        at = (at + align - 1) / align * align;
        uint64_t fields[] = { at, entries[i].image.size, strlen(entries[i].id) };
        image_put(&head, fields, sizeof fields);
        image_put(&head, entries[i].id, strlen(entries[i].id));
        at += entries[i].image.size;
    }
    image_put(&out, head.bytes, head.size);
    for (size_t i = 0; i < count; i++) {
        while (out.size % align)
            image_put(&out, "", 1);
        image_put(&out, entries[i].image.bytes, entries[i].image.size);
    }
    free(head.bytes);
    return out;
}

#endif
