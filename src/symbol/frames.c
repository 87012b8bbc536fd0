/* frames.c - frames of call stacks: the files they are in, and the functions there. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "record/symbols.h"
#include "symbol/demangle.h"
#include "symbol/lines_internal.h"

/* ---- files ----------------------------------------------------------------------------------- */

static void leave_out(struct lines *l, const char *path, enum lines_reason why) {
    size_t at = atomic_load(&l->unused_count);
    if (at == LINES_FILES_MAX)
        return;
    l->unused[at].path = arena_copy_text(&l->memory, path, strlen(path));
    l->unused[at].why = why;
    if (l->unused[at].path)
        atomic_store(&l->unused_count, at + 1);
}

static dwarf_file *open_file(struct lines *l, uint32_t path) {
    const char *name = reader_string(l->r, path);
    uint32_t build_id;
    dwarf_file *out = NULL;
    enum symbols_file usable = symbols_file(l->r, path, &build_id);
    if (usable == SYMBOLS_FILE_NEWER)
        leave_out(l, name, LINES_NEWER);
    if (usable != SYMBOLS_FILE_USABLE)
        return NULL;
    enum rc rc = dwarf_file_open(&out, name, reader_string(l->r, build_id), NULL);
    if (rc == RC_REFUSED)
        leave_out(l, name, LINES_CHANGED);
    else if (rc == RC_IO)
        leave_out(l, name, LINES_UNREAD);
    return rc == RC_OK ? out : NULL;
}

dwarf_file *frames_file(struct lines *l, uint32_t path) {
    for (size_t i = 0; i < l->file_count; i++)
        if (l->file[i].path == path)
            return l->file[i].dwarf;
    if (l->file_count == LINES_FILES_MAX)
        return NULL;
    l->file[l->file_count].path = path;
    l->file[l->file_count].dwarf = open_file(l, path);
    return l->file[l->file_count++].dwarf;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static struct known *slot_of(struct known *table, size_t room, uint32_t module, uint64_t offset) {
    const uint64_t words[2] = { module, offset };
    size_t at = hash_bytes(words, sizeof words, 0) & (room - 1);
    while ((table[at].module || table[at].offset) &&
           (table[at].module != module || table[at].offset != offset))
        at = (at + 1) & (room - 1);
    return &table[at];
}

static bool make_room(struct lines *l) {
    if (2 * (l->known_count + 1) <= l->known_room)
        return true;
    size_t room = l->known_room ? 2 * l->known_room : 256;
    struct known *more = calloc(room, sizeof *more);
    if (!more)
        return false;
    for (size_t i = 0; i < l->known_room; i++)
        if (l->known[i].module || l->known[i].offset)
            *slot_of(more, room, l->known[i].module, l->known[i].offset) = l->known[i];
    free(l->known);
    l->known = more;
    l->known_room = room;
    return true;
}

static const char *kept_name(struct lines *l, const char *symbol) {
    char *plain = demangle(symbol);
    const char *name = plain ? arena_copy_text(&l->memory, plain, strlen(plain)) : symbol;
    free(plain);
    return name;
}

static unsigned look_up(struct lines *l, const struct site_frame *f,
                        struct dwarf_function out[static READER_LINES_MAX]) {
    dwarf_file *file = f->module && f->offset ? frames_file(l, f->module) : NULL;
    /* The call is before the return address, which may be the next function's first byte. */
    unsigned count = file ? dwarf_file_find(file, f->offset - 1, out, READER_LINES_MAX) : 0;
    uint64_t inside;
    const char *symbol = symbols_of_frame(l->r, f, &inside);
    if (!count)
        out[count++] = (struct dwarf_function){ 0 };
    if (!out[count - 1].name && symbol)
        out[count - 1].name = kept_name(l, symbol);
    return count;
}

const struct known *frames_find(struct lines *l, const struct site_frame *f) {
    uint64_t offset = f->module ? f->offset : f->address;
    if (!make_room(l))
        return NULL;
    struct known *k = slot_of(l->known, l->known_room, f->module, offset);
    if (k->count)
        return k;
    struct dwarf_function found[READER_LINES_MAX];
    unsigned count = look_up(l, f, found);
    struct dwarf_function *kept = arena_alloc_array(&l->memory, count, sizeof *kept);
    if (!kept || (!f->module && !offset))
        return NULL;
    memcpy(kept, found, count * sizeof *kept);
    *k = (struct known){ f->module, offset, count, kept };
    l->known_count++;
    return k;
}
