#include "preload/next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- a symbol in one loaded object, by its GNU hash table ------------------------------------ */

struct symbols {
    const ElfW(Sym) * table;
    const char *strings;
    const uint32_t *hash;
    const ElfW(Half) * versions; /* bit 15: hidden, an older version of the name */
};

static struct symbols symbols_in(const ElfW(Dyn) * dynamic) {
    struct symbols s = { 0 };
    for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++) {
        /* The dynamic linker has made these addresses absolute. */
        const void *at = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB)
            s.table = at;
        else if (d->d_tag == DT_STRTAB)
            s.strings = at;
        else if (d->d_tag == DT_GNU_HASH)
            s.hash = at;
        else if (d->d_tag == DT_VERSYM)
            s.versions = at;
    }
    return s;
}

static struct symbols symbols_of(const struct dl_phdr_info *object) {
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return symbols_in(dynamic);
}

/* Not strcmp() and its relatives: a sanitizer that asks for functions while it starts would find
 * its own, which are not ready. */
static bool is_same(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static bool begins_with(const char *text, const char *beginning) {
    while (*beginning && *text == *beginning)
        text++, beginning++;
    return !*beginning;
}

static const char *file_of(const char *path) {
    const char *file = path;
    for (const char *c = path; c && *c; c++)
        file = *c == '/' ? c + 1 : file;
    return file;
}

static uint32_t gnu_hash(const char *name) {
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

/* The address of the default version of name, relative to the object; 0 if it is not there. */
static ElfW(Addr) symbol_value(const struct symbols *s, const char *name) {
    if (!s->table || !s->strings || !s->hash)
        return 0;
    uint32_t buckets = s->hash[0], first = s->hash[1], words = s->hash[2];
    const uint32_t *bucket =
        (const uint32_t *)((const ElfW(Addr) *)(const void *)(s->hash + 4) + words);
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = gnu_hash(name);
    uint32_t i = buckets ? bucket[hash % buckets] : 0;
    for (; i >= first && i != 0; i++) {
        uint32_t link = chain[i - first];
        bool hidden = s->versions && s->versions[i] & 0x8000;
        if ((link | 1) == (hash | 1) && !hidden && s->table[i].st_shndx != SHN_UNDEF &&
            is_same(s->strings + s->table[i].st_name, name))
            return s->table[i].st_value;
        if (link & 1)
            break;
    }
    return 0;
}

/* ---- the C library --------------------------------------------------------------------------- */

/* In the dynamic linker's own list, which grows at its end only: no lock, so that a forked child
 * and a signal handler may do this, and nothing that a sanitizer replaces. */
static void *search_c_library(const char *name) {
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        const char *file = file_of(map->l_name);
        if (!file || (!begins_with(file, "libc.so") && !begins_with(file, "libdl.so")))
            continue;
        struct symbols s = symbols_in(map->l_ld);
        ElfW(Addr) value = symbol_value(&s, name);
        if (value)
            return (void *)(map->l_addr + value);
    }
    return NULL;
}

static void *find_in_c_library(_Atomic(void *) *slot, const char *name) {
    void *found = atomic_load_explicit(slot, memory_order_acquire);
    if (found)
        return found;
    found = search_c_library(name);
    if (!found) {
        static const char text[] =
            "greta: the C library has no dlsym: cannot record this program\n";
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        abort();
    }
    atomic_store_explicit(slot, found, memory_order_release);
    return found;
}

next_dlsym_fn next_dlsym(void) {
    static _Atomic(void *) slot;
    void *found = find_in_c_library(&slot, "dlsym");
    next_dlsym_fn out;
    memcpy(&out, &found, sizeof out);
    return out;
}

next_dlvsym_fn next_dlvsym(void) {
    static _Atomic(void *) slot;
    void *found = find_in_c_library(&slot, "dlvsym");
    next_dlvsym_fn out;
    memcpy(&out, &found, sizeof out);
    return out;
}

/* ---- functions of a library, without the dynamic linker's memory ----------------------------- */

struct wanted_library {
    const char *beginning;
    void (*found)(unsigned i, void *symbol, void *user);
    const char *(*name)(unsigned i);
    unsigned count;
    void *user;
};

static int visit_library(struct dl_phdr_info *object, size_t size, void *user) {
    (void)size;
    const struct wanted_library *w = user;
    const char *file = file_of(object->dlpi_name);
    if (!file || !begins_with(file, w->beginning))
        return 0;
    struct symbols s = symbols_of(object);
    for (unsigned i = 0; i < w->count; i++) {
        ElfW(Addr) value = symbol_value(&s, w->name(i));
        if (value)
            w->found(i, (void *)(object->dlpi_addr + value), w->user);
    }
    return 1;
}

bool next_each_in(const char *beginning, const char *(*name)(unsigned i), unsigned count,
                  void (*found)(unsigned i, void *symbol, void *user), void *user) {
    struct wanted_library w = { beginning, found, name, count, user };
    return dl_iterate_phdr(visit_library, &w) != 0;
}

void *next_find(const char *name) {
    return next_dlsym()(RTLD_NEXT, name);
}
