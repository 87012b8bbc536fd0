#include "codeobj/lines.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The functions of libelf and libdw that are used, as members of the same names. */
#define FUNCTIONS(F)                                                                               \
    F(elf_version)                                                                                 \
    F(elf_memory)                                                                                  \
    F(elf_end)                                                                                     \
    F(dwarf_begin_elf)                                                                             \
    F(dwarf_end)                                                                                   \
    F(dwarf_nextcu)                                                                                \
    F(dwarf_offdie)                                                                                \
    F(dwarf_addrdie)                                                                               \
    F(dwarf_haspc)                                                                                 \
    F(dwarf_getscopes)                                                                             \
    F(dwarf_getscopes_die)                                                                         \
    F(dwarf_getsrc_die)                                                                            \
    F(dwarf_getsrcfiles)                                                                           \
    F(dwarf_filesrc)                                                                               \
    F(dwarf_linesrc)                                                                               \
    F(dwarf_lineno)                                                                                \
    F(dwarf_linecol)                                                                               \
    F(dwarf_tag)                                                                                   \
    F(dwarf_child)                                                                                 \
    F(dwarf_siblingof)                                                                             \
    F(dwarf_attr)                                                                                  \
    F(dwarf_attr_integrate)                                                                        \
    F(dwarf_formstring)                                                                            \
    F(dwarf_formref_die)                                                                           \
    F(dwarf_getlocation)                                                                           \
    F(dwarf_aggregate_size)                                                                        \
    F(dwarf_peel_type)                                                                             \
    F(dwarf_formudata)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} dw;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool available;

struct codeobj_lines {
    Elf *elf;
    Dwarf *dwarf;
};

static void find_functions(void) {
    void *elf = dlopen("libelf.so.1", RTLD_NOW | RTLD_LOCAL);
    void *dwarf = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol;
    if (!elf || !dwarf)
        return;
    available = true;
#define FIND(name)                                                                                 \
    symbol = dlsym(dwarf, #name);                                                                  \
    symbol = symbol ? symbol : dlsym(elf, #name);                                                  \
    memcpy(&dw.name, &symbol, sizeof symbol);                                                      \
    available &= symbol != NULL;
    FUNCTIONS(FIND)
#undef FIND
    available = available && dw.elf_version(EV_CURRENT) != EV_NONE;
}

enum rc codeobj_lines_open(codeobj_lines **out, const void *image, size_t size, struct err *e) {
    pthread_once(&once, find_functions);
    if (!available)
        return err_set(e, RC_UNSUPPORTED,
                       "libdw.so.1 is not installed: no source lines of kernels");
    codeobj_lines *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(e, RC_MEMORY, "no memory for source lines");
    /* libelf writes only when told to, so that the const may be cast away. */
    l->elf = dw.elf_memory((char *)(uintptr_t)image, size);
    l->dwarf = l->elf ? dw.dwarf_begin_elf(l->elf, DWARF_C_READ, NULL) : NULL;
    if (!l->dwarf) {
        codeobj_lines_close(&l);
        return err_set(e, RC_FORMAT, "the code object has no debug information (-g)");
    }
    *out = l;
    return RC_OK;
}

void codeobj_lines_close(codeobj_lines **lines) {
    codeobj_lines *l = *lines;
    *lines = NULL;
    if (!l)
        return;
    if (l->dwarf)
        dw.dwarf_end(l->dwarf);
    if (l->elf)
        dw.elf_end(l->elf);
    free(l);
}

/* ---- lines --------------------------------------------------------------------------------- */

/* The compilation unit with the address. Not every compiler writes the table that dwarf_addrdie()
 * goes by. */
static bool find_unit(codeobj_lines *l, uint64_t address, Dwarf_Die *out) {
    if (dw.dwarf_addrdie(l->dwarf, address, out))
        return true;
    size_t header;
    for (Dwarf_Off at = 0, next; !dw.dwarf_nextcu(l->dwarf, at, &next, &header, NULL, NULL, NULL);
         at = next)
        if (dw.dwarf_offdie(l->dwarf, at + header, out) && dw.dwarf_haspc(out, address) > 0)
            return true;
    return false;
}

static uint32_t number(Dwarf_Die *die, unsigned attribute) {
    Dwarf_Attribute a;
    Dwarf_Word v;
    return dw.dwarf_attr(die, attribute, &a) && !dw.dwarf_formudata(&a, &v) && v <= UINT32_MAX
               ? (uint32_t)v
               : 0;
}

/* The name, which may be given by the declaration that the function refers to. */
static const char *name_of(Dwarf_Die *die) {
    Dwarf_Attribute a;
    return dw.dwarf_attr_integrate(die, DW_AT_name, &a) ? dw.dwarf_formstring(&a) : NULL;
}

/* Where an inlined function was called. */
static void set_call(Dwarf_Die *unit, Dwarf_Die *die, struct codeobj_place *out) {
    Dwarf_Files *files;
    size_t count;
    uint32_t file = number(die, DW_AT_call_file);
    out->line = number(die, DW_AT_call_line);
    out->column = number(die, DW_AT_call_column);
    if (!dw.dwarf_getsrcfiles(unit, &files, &count) && file < count)
        out->file = dw.dwarf_filesrc(files, file, NULL, NULL);
}

static void set_line(Dwarf_Die *unit, uint64_t address, struct codeobj_place *out) {
    Dwarf_Line *line = dw.dwarf_getsrc_die(unit, address);
    int at = 0, column = 0;
    if (!line)
        return;
    out->file = dw.dwarf_linesrc(line, NULL, NULL);
    if (!dw.dwarf_lineno(line, &at) && at > 0)
        out->line = (uint32_t)at;
    if (!dw.dwarf_linecol(line, &column) && column > 0)
        out->column = (uint32_t)column;
}

unsigned codeobj_lines_find(codeobj_lines *l, uint64_t address, struct codeobj_place *out,
                            unsigned room) {
    Dwarf_Die unit, *innermost = NULL, *scopes = NULL;
    if (!find_unit(l, address, &unit))
        return 0;
    struct codeobj_place place = { 0 };
    set_line(&unit, address, &place);
    unsigned found = 0;
    /* What dwarf_getscopes() finds around an inlined function is where that was defined, not where
     * it was called. */
    int count = dw.dwarf_getscopes(&unit, address, &innermost);
    if (count > 0)
        count = dw.dwarf_getscopes_die(&innermost[0], &scopes);
    free(innermost);
    for (int i = 0; i < count; i++) {
        int tag = dw.dwarf_tag(&scopes[i]);
        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        place.function = name_of(&scopes[i]);
        place.inlined = tag == DW_TAG_inlined_subroutine;
        if (found < room)
            out[found] = place;
        found++;
        if (!place.inlined)
            break;
        place = (struct codeobj_place){ 0 };
        set_call(&unit, &scopes[i], &place);
    }
    free(scopes);
    if (!found && place.line) { /* code of no function */
        if (room)
            out[0] = place;
        found = 1;
    }
    return found;
}

/* ---- parameters ---------------------------------------------------------------------------- */

static bool is_function(Dwarf_Die *die, const char *name) {
    Dwarf_Attribute a;
    if (dw.dwarf_tag(die) != DW_TAG_subprogram)
        return false;
    const char *linked = dw.dwarf_attr_integrate(die, DW_AT_linkage_name, &a)
                             ? dw.dwarf_formstring(&a)
                             : name_of(die);
    return linked && !strcmp(linked, name) && dw.dwarf_attr(die, DW_AT_low_pc, &a);
}

/* Functions that have code are at the top level of their unit, or in its namespaces if they are
 * defined where they are declared. */
static bool find_within(Dwarf_Die *parent, const char *name, unsigned depth, Dwarf_Die *out) {
    enum { DEPTH_MAX = 32 };
    Dwarf_Die die;
    if (depth == DEPTH_MAX || dw.dwarf_child(parent, &die))
        return false;
    do {
        if (dw.dwarf_tag(&die) == DW_TAG_namespace && find_within(&die, name, depth + 1, out))
            return true;
        if (is_function(&die, name)) {
            *out = die;
            return true;
        }
    } while (!dw.dwarf_siblingof(&die, &die));
    return false;
}

static bool find_function(codeobj_lines *l, const char *name, Dwarf_Die *out) {
    size_t header;
    for (Dwarf_Off at = 0, next; !dw.dwarf_nextcu(l->dwarf, at, &next, &header, NULL, NULL, NULL);
         at = next) {
        Dwarf_Die unit;
        if (dw.dwarf_offdie(l->dwarf, at + header, &unit) && find_within(&unit, name, 0, out))
            return true;
    }
    return false;
}

unsigned codeobj_lines_parameters(codeobj_lines *l, const char *function, const char **names,
                                  unsigned room) {
    Dwarf_Die die, child;
    unsigned count = 0;
    if (!find_function(l, function, &die) || dw.dwarf_child(&die, &child))
        return 0;
    do {
        if (dw.dwarf_tag(&child) != DW_TAG_formal_parameter)
            continue;
        if (count < room)
            names[count] = name_of(&child);
        count++;
    } while (!dw.dwarf_siblingof(&child, &child));
    return count;
}

/* ---- variables ----------------------------------------------------------------------------- */

struct variables {
    struct codeobj_local *out;
    unsigned room, count;
};

/* The type of a variable or of an element, without its name and qualifiers. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *out) {
    Dwarf_Attribute a;
    return dw.dwarf_attr_integrate(die, DW_AT_type, &a) && dw.dwarf_formref_die(&a, out) &&
           !dw.dwarf_peel_type(out, out);
}

/* The variable's place in the frame; false if it does not have the same one for as long as the
 * function runs. */
static bool frame_offset(Dwarf_Die *die, uint64_t *out) {
    Dwarf_Attribute a;
    Dwarf_Op *ops;
    size_t count;
    if (!dw.dwarf_attr(die, DW_AT_location, &a) || a.form != DW_FORM_exprloc ||
        dw.dwarf_getlocation(&a, &ops, &count) || count != 1 || ops[0].atom != DW_OP_fbreg ||
        (int64_t)ops[0].number < 0)
        return false;
    *out = ops[0].number;
    return true;
}

static void add_variable(struct variables *all, Dwarf_Die *die) {
    struct codeobj_local v = { .name = name_of(die) };
    Dwarf_Die type, element;
    Dwarf_Word bytes;
    if (!frame_offset(die, &v.offset) || !type_of(die, &type) ||
        dw.dwarf_aggregate_size(&type, &bytes) || !bytes)
        return;
    v.bytes = bytes;
    if (dw.dwarf_tag(&type) == DW_TAG_array_type && type_of(&type, &element) &&
        !dw.dwarf_aggregate_size(&element, &bytes))
        v.element = bytes;
    if (all->count < all->room)
        all->out[all->count] = v;
    all->count++;
}

static void find_variables(struct variables *all, Dwarf_Die *parent, unsigned depth) {
    enum { DEPTH_MAX = 64 };
    Dwarf_Die die;
    if (depth == DEPTH_MAX || dw.dwarf_child(parent, &die))
        return;
    do {
        int tag = dw.dwarf_tag(&die);
        if (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter)
            add_variable(all, &die);
        if (tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine)
            find_variables(all, &die, depth + 1);
    } while (!dw.dwarf_siblingof(&die, &die));
}

unsigned codeobj_lines_locals(codeobj_lines *l, const char *function, struct codeobj_local *out,
                              unsigned room) {
    struct variables all = { .out = out, .room = room };
    Dwarf_Die die;
    if (find_function(l, function, &die))
        find_variables(&all, &die, 0);
    return all.count;
}
