#include "record/symbols.h"

#include <sys/stat.h>

#include "record/symbol_tables.h"

/* The build id that the recording has for a path; 0: none. False if it has several, or does not
 * know the file. */
static bool recorded_build_id(const reader *r, uint32_t path, uint32_t *build_id) {
    bool known = false;
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_MODULE); id++) {
        const struct module_value *m = reader_module(r, id, NULL);
        if (!m || m->path != path)
            continue;
        if (known && m->build_id != *build_id)
            return false;
        known = true;
        *build_id = m->build_id;
    }
    return known;
}

static bool is_older(const char *path, const struct reader_info *i) {
    struct stat st;
    return stat(path, &st) == 0 &&
           (uint64_t)st.st_mtim.tv_sec < i->start_wall_us / UINT64_C(1000000);
}

enum symbols_file symbols_file(const reader *r, uint32_t path, uint32_t *build_id) {
    const char *name = reader_string(r, path);
    *build_id = 0;
    if (name[0] != '/' || !recorded_build_id(r, path, build_id))
        return SYMBOLS_FILE_UNKNOWN;
    return *build_id || is_older(name, reader_info(r)) ? SYMBOLS_FILE_USABLE : SYMBOLS_FILE_NEWER;
}

static symtab *open_file(const void *recording, uint32_t path) {
    const reader *r = recording;
    uint32_t build_id;
    symtab *out = NULL;
    if (symbols_file(r, path, &build_id) != SYMBOLS_FILE_USABLE)
        return NULL;
    enum rc rc = symtab_open(&out, reader_string(r, path), reader_string(r, build_id), NULL);
    return rc == RC_OK ? out : NULL;
}

const char *symbols_of_frame(const reader *r, const struct site_frame *f, uint64_t *inside) {
    *inside = f->symbol_offset;
    if (f->symbol)
        return reader_string(r, f->symbol);
    if (!f->module || !f->offset)
        return NULL;
    const symtab *file = symbol_tables_get(reader_symbol_tables(r), f->module, open_file, r);
    /* The call is before the return address, which may be the next function's first byte. */
    const char *name = file ? symtab_find(file, f->offset - 1, inside) : NULL;
    *inside += name != NULL;
    return name;
}
