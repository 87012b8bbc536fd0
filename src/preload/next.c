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

static struct symbols symbols_of(const struct dl_phdr_info *object) {
    struct symbols s = { 0 };
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
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
            strcmp(s->strings + s->table[i].st_name, name) == 0)
            return s->table[i].st_value;
        if (link & 1)
            break;
    }
    return 0;
}

/* ---- the C library --------------------------------------------------------------------------- */

struct wanted {
    const char *name;
    void *found;
};

static int visit(struct dl_phdr_info *object, size_t size, void *user) {
    (void)size;
    struct wanted *w = user;
    const char *slash = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    const char *file = slash ? slash + 1 : object->dlpi_name;
    if (!file || (strncmp(file, "libc.so", 7) != 0 && strncmp(file, "libdl.so", 8) != 0))
        return 0;
    struct symbols s = symbols_of(object);
    ElfW(Addr) value = symbol_value(&s, w->name);
    if (value)
        w->found = (void *)(object->dlpi_addr + value);
    return w->found != NULL;
}

static void *find_in_c_library(_Atomic(void *) *slot, const char *name) {
    void *found = atomic_load_explicit(slot, memory_order_acquire);
    if (found)
        return found;
    struct wanted w = { .name = name };
    dl_iterate_phdr(visit, &w);
    if (!w.found) {
        static const char text[] =
            "greta: the C library has no dlsym: cannot record this program\n";
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        abort();
    }
    atomic_store_explicit(slot, w.found, memory_order_release);
    return w.found;
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
    const char *slash = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    const char *file = slash ? slash + 1 : object->dlpi_name;
    if (!file || strncmp(file, w->beginning, strlen(w->beginning)) != 0)
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
