/* Call sites. A site that is known costs a look into a table by its return address. One that is
 * new is unwound, and every frame is stored as module, offset and nearest exported symbol: enough
 * for a report on a machine that has neither the program nor its address layout. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "record/writer_internal.h"

/* ---- modules ------------------------------------------------------------------------------- */

struct module_search {
    uint64_t base;
    char path[PATH_MAX];
    char build_id[2 * 64 + 1];
    bool found;
};

static void hex_text(char *out, const unsigned char *bytes, size_t n) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = 0;
}

/* Looks for NT_GNU_BUILD_ID among the notes at p. */
static void read_build_id(struct module_search *s, const unsigned char *p, size_t bytes) {
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, p, sizeof note);
        size_t name = (note.n_namesz + 3u) & ~(size_t)3, body = (note.n_descsz + 3u) & ~(size_t)3;
        if (name > bytes - sizeof note || body > bytes - sizeof note - name)
            return;
        const unsigned char *text = p + sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(text, "GNU", 4)) {
            hex_text(s->build_id, text + name, note.n_descsz < 64 ? note.n_descsz : 64);
            return;
        }
        p += sizeof note + name + body;
        bytes -= sizeof note + name + body;
    }
}

/* dladdr() calls the lowest mapped address a module's base, dl_iterate_phdr() the difference
 * between its addresses and those in the file; for a program linked at a fixed address they differ.
 */
static int visit_module(struct dl_phdr_info *info, size_t size, void *data) {
    struct module_search *s = data;
    uint64_t lowest = UINT64_MAX;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_vaddr < lowest)
            lowest = info->dlpi_phdr[i].p_vaddr;
    if (lowest == UINT64_MAX || ((info->dlpi_addr + lowest) & ~UINT64_C(4095)) != s->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE && !s->build_id[0])
            read_build_id(
                s, (const unsigned char *)(uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                info->dlpi_phdr[i].p_memsz);
    s->found = true;
    strncpy(s->path, info->dlpi_name, sizeof s->path - 1);
    return 1;
}

/* The string number of the path of the module at base, after defining the module if it is new. */
static uint32_t module_path(writer *w, uint64_t base, const char *fallback) {
    struct module_key key = { .image = w->image, .base = base };
    uint64_t hash = intern_hash(DEFINITION_MODULE, &key, sizeof key);
    struct module_search s = { .base = base };
    dl_iterate_phdr(visit_module, &s);
    /* The program itself has no name there, and dladdr() gives argv[0], which may be anything. */
    if (s.found && !s.path[0] && readlink("/proc/self/exe", s.path, sizeof s.path - 1) < 0)
        s.path[0] = 0;
    uint32_t path = record_string(w, s.path[0] ? s.path : fallback);
    if (!intern_find(w, DEFINITION_MODULE, hash, &key, sizeof key)) {
        struct module_value value = { .path = path, .build_id = record_string(w, s.build_id) };
        intern_add(w, DEFINITION_MODULE, hash, &key, sizeof key, &value, sizeof value);
    }
    return path;
}

/* ---- stacks -------------------------------------------------------------------------------- */

struct stack {
    int count;
    void *frame[RECORD_FRAMES_MAX];
};

/* The stack from return_address outwards: the frames of the recorder and of its caller's hooks are
 * nobody's business. */
__attribute__((noinline)) static void unwind(struct stack *s, const void *return_address) {
    void *all[RECORD_FRAMES_MAX + 16];
    int n = backtrace(all, RECORD_FRAMES_MAX + 16), first = 0;
    while (first < n && all[first] != return_address)
        first++;
    s->count = 0;
    if (first == n) { /* code without unwind information lies between */
        s->frame[s->count++] = (void *)(uintptr_t)return_address;
        return;
    }
    for (int i = first; i < n && s->count < RECORD_FRAMES_MAX; i++)
        if (all[i])
            s->frame[s->count++] = all[i];
}

static void describe(writer *w, const void *address, struct site_frame *out) {
    Dl_info info;
    *out = (struct site_frame){ .address = (uintptr_t)address };
    /* A return address may be the first byte of the next function, if the call does not return. */
    if (!dladdr((const char *)address - 1, &info) || !info.dli_fbase)
        return;
    out->offset = (uintptr_t)address - (uintptr_t)info.dli_fbase;
    out->module = module_path(w, (uintptr_t)info.dli_fbase, info.dli_fname);
    if (info.dli_sname) {
        out->symbol = record_string(w, info.dli_sname);
        out->symbol_offset = (uintptr_t)address - (uintptr_t)info.dli_saddr;
    }
}

static uint32_t add_site(writer *w, uint64_t hash, const void *key, size_t key_bytes,
                         const struct stack *s) {
    struct {
        struct site_value head;
        struct site_frame frame[RECORD_FRAMES_MAX];
    } value = { .head.count = (uint32_t)s->count };
    for (int i = 0; i < s->count; i++)
        describe(w, s->frame[i], &value.frame[i]);
    return intern_add(w, DEFINITION_SITE, hash, key, key_bytes, &value,
                      sizeof value.head + (size_t)s->count * sizeof value.frame[0]);
}

struct full_key {
    struct site_key head;
    uint64_t address[RECORD_FRAMES_MAX];
};

__attribute__((noinline)) uint32_t record_site_full(writer *w, const void *return_address) {
    if (!w)
        return 0;
    int saved = errno;
    struct stack s;
    struct full_key key = { .head = { w->image, SITE_WHOLE } };
    unwind(&s, return_address ? return_address : __builtin_return_address(0));
    for (int i = 0; i < s.count; i++)
        key.address[i] = (uintptr_t)s.frame[i];
    size_t bytes = sizeof key.head + (size_t)s.count * sizeof key.address[0];
    uint64_t hash = intern_hash(DEFINITION_SITE, &key, bytes);
    uint32_t id = intern_find(w, DEFINITION_SITE, hash, &key, bytes);
    if (!id)
        id = add_site(w, hash, &key, bytes, &s);
    errno = saved;
    return id;
}

/* A site by its return address alone, from the file's table or new. */
__attribute__((noinline)) static uint32_t find_site(writer *w, const void *return_address) {
    int saved = errno;
    struct full_key key = { .head = { w->image, 0 }, .address = { (uintptr_t)return_address } };
    size_t bytes = sizeof key.head + sizeof key.address[0];
    uint64_t hash = intern_hash(DEFINITION_SITE, &key, bytes);
    uint32_t id = intern_find(w, DEFINITION_SITE, hash, &key, bytes);
    if (!id) {
        struct stack s;
        unwind(&s, return_address);
        id = add_site(w, hash, &key, bytes, &s);
    }
    errno = saved;
    return id;
}

uint32_t record_site(writer *w, const void *return_address) {
    if (!w || !return_address)
        return 0;
    uintptr_t address = (uintptr_t)return_address;
    unsigned at = (unsigned)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 52);
    for (unsigned i = 0; i < SITE_PROBES; i++, at++) {
        _Atomic uintptr_t *place = &w->sites->entry[at % SITE_CACHE].address;
        _Atomic uint32_t *id = &w->sites->entry[at % SITE_CACHE].id;
        uintptr_t there = atomic_load_explicit(place, memory_order_relaxed);
        if (there == address) {
            uint32_t known = atomic_load_explicit(id, memory_order_acquire);
            if (LIKELY(known))
                return known;
            break; /* being added by another thread, or by the code this handler interrupted */
        }
        if (!there) {
            uint32_t fresh = find_site(w, return_address);
            if (fresh && atomic_compare_exchange_strong_explicit(
                             place, &there, address, memory_order_relaxed, memory_order_relaxed))
                atomic_store_explicit(id, fresh, memory_order_release);
            return fresh;
        }
    }
    return find_site(w, return_address);
}
_Static_assert(SITE_CACHE == 1 << 12, "record_site takes 12 bits of the hash");
