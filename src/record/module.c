/* Frames of a call stack as module, offset and nearest exported symbol: enough for a report on a
 * machine that has neither the program nor its address layout.
 *
 * Modules are found with _dl_find_object(), and their names, notes and symbols read where they are
 * mapped. dladdr() and dl_iterate_phdr() would take the dynamic linker's lock, which a child forked
 * at that moment waits for without end. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "record/writer_internal.h"

/* ---- what a module says about itself --------------------------------------------------------- */

static void hex_text(char *out, const unsigned char *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = 0;
}

enum { BUILD_ID_MAX = 64 };

/* Looks for NT_GNU_BUILD_ID among the notes at p. */
static void read_build_id(char *out, const unsigned char *p, size_t bytes) {
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, p, sizeof note);
        size_t name = (note.n_namesz + 3u) & ~(size_t)3, body = (note.n_descsz + 3u) & ~(size_t)3;
        if (name > bytes - sizeof note || body > bytes - sizeof note - name)
            return;
        const unsigned char *text = p + sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(text, "GNU", 4)) {
            hex_text(out, text + name, note.n_descsz < BUILD_ID_MAX ? note.n_descsz : BUILD_ID_MAX);
            return;
        }
        p += sizeof note + name + body;
        bytes -= sizeof note + name + body;
    }
}

/* The file's first page is mapped at the module's start; its program headers say where the notes
 * are. A module that hides them has no build id. */
static void find_build_id(char *out, const struct dl_find_object *o) {
    enum { FIRST_PAGE = 4096 };
    const unsigned char *start = o->dlfo_map_start;
    size_t size = (size_t)((const unsigned char *)o->dlfo_map_end - start);
    ElfW(Ehdr) head;
    if (size < FIRST_PAGE)
        return;
    memcpy(&head, start, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr)) ||
        head.e_phoff > FIRST_PAGE ||
        head.e_phnum > (FIRST_PAGE - head.e_phoff) / sizeof(ElfW(Phdr)))
        return;
    for (unsigned i = 0; i < head.e_phnum && !out[0]; i++) {
        ElfW(Phdr) segment;
        memcpy(&segment, start + head.e_phoff + i * sizeof segment, sizeof segment);
        uintptr_t at = o->dlfo_link_map->l_addr + segment.p_vaddr;
        if (segment.p_type == PT_NOTE && at - (uintptr_t)start < size &&
            segment.p_memsz <= size - (at - (uintptr_t)start))
            read_build_id(out, (const unsigned char *)at, segment.p_memsz);
    }
}

/* The absolute path of a library that was opened by a relative name, because the recording may be
 * read from another folder. The name itself if there is no such file: the program has changed its
 * folder since. */
static const char *absolute(char out[PATH_MAX], const char *name) {
    size_t length = strlen(name);
    if (!getcwd(out, PATH_MAX) || strlen(out) + length + 2 > PATH_MAX)
        return name;
    size_t here = strlen(out);
    out[here] = '/';
    memcpy(out + here + 1, name, length + 1);
    return access(out, R_OK) == 0 ? out : name;
}

/* The string number of the module's path, after defining the module if it is new. */
static uint32_t module_path(writer *w, const struct dl_find_object *o) {
    struct module_key key = { .image = w->image, .base = (uintptr_t)o->dlfo_map_start };
    uint64_t hash = intern_hash(DEFINITION_MODULE, &key, sizeof key);
    char own[PATH_MAX] = "", build_id[2 * BUILD_ID_MAX + 1] = "";
    const char *name = o->dlfo_link_map->l_name;
    /* The program itself has no name there. */
    if ((!name || !name[0]) && readlink("/proc/self/exe", own, sizeof own - 1) > 0)
        name = own;
    if (name && name[0] && name[0] != '/')
        name = absolute(own, name);
    uint32_t path = record_string(w, name);
    if (!intern_find(w, DEFINITION_MODULE, hash, &key, sizeof key)) {
        find_build_id(build_id, o);
        struct module_value value = { .path = path, .build_id = record_string(w, build_id) };
        intern_add(w, DEFINITION_MODULE, hash, &key, sizeof key, &value, sizeof value);
    }
    return path;
}

/* ---- exported symbols ------------------------------------------------------------------------ */

struct exports {
    const ElfW(Sym) * table;
    const char *strings;
    size_t count;
};

/* The number of symbols is what the hash table has: DT_HASH says it, DT_GNU_HASH ends with it. */
static size_t count_by_gnu_hash(const uint32_t *hash) {
    uint32_t buckets = hash[0], first = hash[1], words = hash[2], last = 0;
    const uint32_t *bucket = hash + 4 + (size_t)words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (last < first)
        return 0;
    while (!(chain[last - first] & 1))
        last++;
    return (size_t)last + 1;
}

static struct exports exports_of(const struct link_map *l) {
    struct exports x = { 0 };
    const uint32_t *gnu = NULL, *plain = NULL;
    for (const ElfW(Dyn) *d = l->l_ld; d && d->d_tag != DT_NULL; d++) {
        /* The dynamic linker has made these absolute, except where it cannot write (the vDSO). */
        ElfW(Addr) value = d->d_un.d_ptr;
        const void *at = (const void *)(value < l->l_addr ? value + l->l_addr : value);
        if (d->d_tag == DT_SYMTAB)
            x.table = at;
        else if (d->d_tag == DT_STRTAB)
            x.strings = at;
        else if (d->d_tag == DT_GNU_HASH)
            gnu = at;
        else if (d->d_tag == DT_HASH)
            plain = at;
    }
    if (x.table && x.strings)
        x.count = plain ? plain[1] : gnu ? count_by_gnu_hash(gnu) : 0;
    return x;
}

/* The function that a return address is in, if the module exports it. */
static void find_export(writer *w, const struct link_map *l, uintptr_t address,
                        struct site_frame *out) {
    struct exports x = exports_of(l);
    const ElfW(Sym) *best = NULL;
    uintptr_t call = address - 1 - l->l_addr;
    for (size_t i = 0; i < x.count; i++) {
        const ElfW(Sym) *s = &x.table[i];
        unsigned type = ELF64_ST_TYPE(s->st_info);
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF &&
            call - s->st_value < s->st_size && (!best || s->st_value > best->st_value))
            best = s;
    }
    if (best) {
        out->symbol = record_string(w, x.strings + best->st_name);
        out->symbol_offset = address - l->l_addr - best->st_value;
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Distinguishes a module from one that is loaded at the same address later. */
static uint64_t stamp_of(const struct dl_find_object *o) {
    uint64_t words[4] = { (uintptr_t)o->dlfo_map_start, (uintptr_t)o->dlfo_map_end,
                          (uintptr_t)o->dlfo_link_map, (uintptr_t)o->dlfo_eh_frame };
    return intern_hash(DEFINITION_MODULE, words, sizeof words) | 1;
}

static void describe(writer *w, const struct dl_find_object *o, uintptr_t address,
                     struct site_frame *out) {
    out->offset = address - (uintptr_t)o->dlfo_map_start;
    out->module = module_path(w, o);
    find_export(w, o->dlfo_link_map, address, out);
}

uint64_t module_describe(writer *w, uintptr_t address, struct site_frame *out) {
    struct dl_find_object o;
    *out = (struct site_frame){ .address = address };
    if (_dl_find_object((void *)(address - 1), &o) != 0)
        return 0;
    uint64_t stamp = stamp_of(&o);
    uint64_t hash = (address ^ stamp) * UINT64_C(0x9e3779b97f4a7c15);
    struct known_frame *k = &w->frames[hash >> 52];
    uint32_t state = atomic_load_explicit(&k->state, memory_order_acquire);
    if (state == FRAME_KNOWN && k->frame.address == address && k->stamp == stamp) {
        *out = k->frame;
        return stamp;
    }
    describe(w, &o, address, out);
    if (state == FRAME_NONE &&
        atomic_compare_exchange_strong_explicit(&k->state, &state, FRAME_COMING,
                                                memory_order_acquire, memory_order_relaxed)) {
        k->frame = *out;
        k->stamp = stamp;
        atomic_store_explicit(&k->state, FRAME_KNOWN, memory_order_release);
    }
    return stamp;
}
_Static_assert(KNOWN_FRAMES == 1 << 12, "module_describe takes 12 bits of the hash");
