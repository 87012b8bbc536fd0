#include "symbol/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/grow.h"

struct range {
    Dwarf_Addr low, high;
    Dwarf_Off unit; /* of its DIE */
};

struct dwarf_file {
    int fd, debug_fd;
    Elf *elf, *debug_elf;
    Dwarf *dwarf;
    uint64_t lowest;
    struct range *ranges; /* of the units, sorted */
    size_t range_count, range_room;
    struct arena names;
};

/* ---- opening --------------------------------------------------------------------------------- */

static int open_regular(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* The build id as text, "" if there is none. */
static void build_id_text(Elf *elf, char *out, size_t room) {
    const void *bytes;
    ssize_t count = elf ? dwelf_elf_gnu_build_id(elf, &bytes) : 0;
    *out = '\0';
    for (ssize_t i = 0; i < count && (size_t)(2 * i + 3) <= room; i++)
        snprintf(out + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
}

enum { ID_TEXT = 2 * 64 + 1 };

static bool find_lowest(Elf *elf, uint64_t *out) {
    enum { PAGE = 4096 };
    size_t count = 0;
    *out = UINT64_MAX;
    if (elf_getphdrnum(elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
            segment.p_vaddr < *out)
            *out = segment.p_vaddr;
    }
    *out &= ~(uint64_t)(PAGE - 1);
    return *out <= UINT64_MAX - PAGE;
}

/* ---- separate files -------------------------------------------------------------------------- */

static uint32_t checksum(int fd) {
    unsigned char bytes[16384];
    uint32_t crc = UINT32_MAX;
    ssize_t n;
    off_t at = 0;
    while ((n = pread(fd, bytes, sizeof bytes, at)) > 0) {
        at += n;
        for (ssize_t i = 0; i < n; i++) {
            crc ^= bytes[i];
            for (int bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
        }
    }
    return ~crc;
}

/* Takes path as the debug information if it belongs to this file. */
static bool try_debug_file(dwarf_file *f, const char *path, const char *id, const uint32_t *crc) {
    char found[ID_TEXT];
    int fd = open_regular(path);
    if (fd < 0)
        return false;
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    build_id_text(elf, found, sizeof found);
    bool same = *id ? !strcmp(id, found) : crc && checksum(fd) == *crc;
    Dwarf *dwarf = same ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    if (dwarf) {
        f->debug_fd = fd;
        f->debug_elf = elf;
        f->dwarf = dwarf;
        return true;
    }
    elf_end(elf);
    close(fd);
    return false;
}

static void find_debug_file(dwarf_file *f, const char *path) {
    static const char store[] = "/usr/lib/debug";
    char id[ID_TEXT], name[2 * PATH_MAX];
    build_id_text(f->elf, id, sizeof id);
    if (strlen(id) > 2) {
        snprintf(name, sizeof name, "%s/.build-id/%.2s/%s.debug", store, id, id + 2);
        if (try_debug_file(f, name, id, NULL))
            return;
    }
    GElf_Word crc = 0;
    const char *link = dwelf_elf_gnu_debuglink(f->elf, &crc);
    const char *slash = strrchr(path, '/');
    if (!link || strchr(link, '/') || !slash)
        return;
    int folder = (int)(slash - path);
    const char *const patterns[] = { "", "/.debug" };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        snprintf(name, sizeof name, "%.*s%s/%s", folder, path, patterns[i], link);
        if (strcmp(name, path) != 0 && try_debug_file(f, name, id, &crc))
            return;
    }
    snprintf(name, sizeof name, "%s%.*s/%s", store, folder, path, link);
    try_debug_file(f, name, id, &crc);
}

/* ---- units ----------------------------------------------------------------------------------- */

static int by_low(const void *a, const void *b) {
    const struct range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

static bool add_range(dwarf_file *f, Dwarf_Addr low, Dwarf_Addr high, Dwarf_Off unit) {
    struct range *more = grow_array(f->ranges, &f->range_room, f->range_count, sizeof *more);
    if (!more)
        return false;
    f->ranges = more;
    f->ranges[f->range_count++] = (struct range){ low, high, unit };
    return true;
}

/* Which unit an address is in: from the units themselves, because clang writes no .debug_aranges.
 */
static void list_units(dwarf_file *f) {
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (dwarf_get_units(f->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
        Dwarf_Addr base, low, high;
        ptrdiff_t at = 0;
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        while ((at = dwarf_ranges(&die, at, &base, &low, &high)) > 0)
            if (low < high && !add_range(f, low, high, dwarf_dieoffset(&die)))
                return;
    }
    if (f->range_count)
        qsort(f->ranges, f->range_count, sizeof *f->ranges, by_low);
}

static bool find_unit(dwarf_file *f, Dwarf_Addr address, Dwarf_Die *line_die, Dwarf_Die *tree) {
    size_t low = 0, high = f->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->ranges[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || address >= f->ranges[low - 1].high ||
        !dwarf_offdie(f->dwarf, f->ranges[low - 1].unit, line_die))
        return false;
    uint8_t type = 0;
    *tree = *line_die;
    /* Split DWARF keeps the functions in a file of its own, the lines here. */
    if (dwarf_cu_info(line_die->cu, NULL, &type, NULL, tree, NULL, NULL, NULL) != 0 ||
        type != DW_UT_skeleton || !tree->addr)
        *tree = *line_die;
    return true;
}

enum rc dwarf_file_open(dwarf_file **out, const char *path, const char *build_id, struct err *e) {
    char found[ID_TEXT];
    dwarf_file *f = calloc(1, sizeof *f);
    if (!f)
        return err_set(e, RC_MEMORY, "%s: no memory", path);
    elf_version(EV_CURRENT);
    f->debug_fd = -1;
    f->fd = open_regular(path);
    enum rc rc = RC_OK;
    if (f->fd < 0) {
        rc = err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    } else if (!(f->elf = elf_begin(f->fd, ELF_C_READ_MMAP, NULL)) ||
               elf_kind(f->elf) != ELF_K_ELF || !find_lowest(f->elf, &f->lowest)) {
        rc = err_set(e, RC_FORMAT, "%s: not an ELF file with segments", path);
    } else {
        build_id_text(f->elf, found, sizeof found);
        if (*build_id && strcmp(build_id, found) != 0)
            rc = err_set(e, RC_REFUSED, "%s: has another build id", path);
    }
    if (rc != RC_OK) {
        dwarf_file_close(&f);
        return rc;
    }
    f->dwarf = dwarf_begin_elf(f->elf, DWARF_C_READ, NULL);
    if (f->dwarf)
        list_units(f);
    if (!f->range_count) { /* no units: frames only, or nothing */
        dwarf_end(f->dwarf);
        f->dwarf = NULL;
        find_debug_file(f, path);
        if (f->dwarf)
            list_units(f);
    }
    *out = f;
    return RC_OK;
}

void dwarf_file_close(dwarf_file **f) {
    if (!*f)
        return;
    dwarf_end((*f)->dwarf);
    elf_end((*f)->debug_elf);
    elf_end((*f)->elf);
    if ((*f)->debug_fd >= 0)
        close((*f)->debug_fd);
    if ((*f)->fd >= 0)
        close((*f)->fd);
    free((*f)->ranges);
    arena_clear(&(*f)->names);
    free(*f);
    *f = NULL;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool has_code_inside(int tag) {
    return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
           tag == DW_TAG_inlined_subroutine || tag == DW_TAG_try_block ||
           tag == DW_TAG_catch_block || tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_module;
}

static bool is_scope_of_names(int tag) {
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_union_type || tag == DW_TAG_module;
}

enum { CHAIN_MAX = 16, DEPTH_MAX = 64 };

struct chain {
    Dwarf_Die function[CHAIN_MAX]; /* outermost first */
    unsigned count;
};

/* Goes down the tree to the innermost function at address. True if the way led to one. */
static bool descend(Dwarf_Die *parent, Dwarf_Addr address, struct chain *c, unsigned depth) {
    Dwarf_Die die;
    if (depth == DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return false;
    do {
        int tag = dwarf_tag(&die);
        if (!has_code_inside(tag))
            continue;
        if (is_scope_of_names(tag)) {
            if (descend(&die, address, c, depth + 1))
                return true;
            continue;
        }
        if (dwarf_haspc(&die, address) <= 0)
            continue;
        bool function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
        if (function && c->count < CHAIN_MAX)
            c->function[c->count++] = die;
        return descend(&die, address, c, depth + 1) || function;
    } while (dwarf_siblingof(&die, &die) == 0);
    return false;
}

/* The declaration of a function, which stands where its class or namespace is. */
static Dwarf_Die declaration_of(Dwarf_Die die) {
    static const unsigned links[] = { DW_AT_abstract_origin, DW_AT_specification };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        Dwarf_Attribute attribute;
        Dwarf_Die to;
        if (dwarf_attr(&die, links[i], &attribute) && dwarf_formref_die(&attribute, &to))
            die = to;
    }
    return die;
}

/* "engine::buffer<float>::upload" */
static const char *full_name(dwarf_file *f, Dwarf_Die *die) {
    const char *own = dwarf_diename(die);
    if (!own)
        return NULL;
    char text[1024] = "";
    size_t used = 0;
    Dwarf_Die declared = declaration_of(*die), *scopes = NULL;
    int count = dwarf_getscopes_die(&declared, &scopes);
    for (int i = count - 1; i > 0; i--) {
        if (!is_scope_of_names(dwarf_tag(&scopes[i])))
            continue;
        const char *name = dwarf_diename(&scopes[i]);
        int n = snprintf(text + used, sizeof text - used, "%s::", name ? name : "(anonymous)");
        used += n > 0 && (size_t)n < sizeof text - used ? (size_t)n : 0;
    }
    free(scopes);
    int n = snprintf(text + used, sizeof text - used, "%s", own);
    used += n > 0 && (size_t)n < sizeof text - used ? (size_t)n : 0;
    return arena_copy_text(&f->names, text, used);
}

static unsigned count_parameters(Dwarf_Die function) {
    Dwarf_Attribute attribute;
    Dwarf_Die origin, die;
    unsigned count = 0;
    if (dwarf_attr(&function, DW_AT_abstract_origin, &attribute) &&
        dwarf_formref_die(&attribute, &origin))
        function = origin;
    if (dwarf_child(&function, &die) != 0)
        return 0;
    do
        count += dwarf_tag(&die) == DW_TAG_formal_parameter;
    while (dwarf_siblingof(&die, &die) == 0);
    return count;
}

/* The last line of the function's code in the file where it is declared. Code inlined from
 * elsewhere in that file counts, too, so a line far after the function need not be its own. */
static uint32_t last_line(Dwarf_Die *unit, Dwarf_Die *function, const char *file, uint32_t first) {
    Dwarf_Lines *lines;
    Dwarf_Attribute attribute;
    Dwarf_Word call = 0; /* an inlined function's code begins with the line of the call */
    size_t count;
    uint32_t last = 0;
    if (dwarf_attr(function, DW_AT_call_line, &attribute))
        dwarf_formudata(&attribute, &call);
    if (!file || dwarf_getsrclines(unit, &lines, &count) != 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *line = dwarf_onesrcline(lines, i);
        Dwarf_Addr at;
        int number = 0;
        bool ends = true;
        if (dwarf_lineaddr(line, &at) != 0 || dwarf_haspc(function, at) <= 0 ||
            dwarf_lineendsequence(line, &ends) != 0 || ends || dwarf_lineno(line, &number) != 0 ||
            number < (int)first || (uint32_t)number <= last || (Dwarf_Word)number == call)
            continue;
        const char *source = dwarf_linesrc(line, NULL, NULL);
        if (source && !strcmp(source, file))
            last = (uint32_t)number;
    }
    return last;
}

static const char *file_number(Dwarf_Die *unit, Dwarf_Word number) {
    Dwarf_Files *files;
    size_t count;
    if (dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count)
        return NULL;
    const char *name = dwarf_filesrc(files, number, NULL, NULL);
    return name && strcmp(name, "???") != 0 ? name : NULL;
}

/* Where a function is declared. Not by dwarf_decl_file(), which does not accept file 0, the first
 * one of DWARF 5. */
static const char *declared_file(Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    Dwarf_Die unit;
    if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
        dwarf_formudata(&attribute, &number) != 0 ||
        !dwarf_cu_die(attribute.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL))
        return NULL;
    return file_number(&unit, number);
}

/* Where an inlined function was called. */
static void call_position(Dwarf_Die *unit, Dwarf_Die *inlined, struct dwarf_function *caller) {
    Dwarf_Attribute attribute;
    Dwarf_Word file, line;
    if (dwarf_attr(inlined, DW_AT_call_line, &attribute) && dwarf_formudata(&attribute, &line) == 0)
        caller->line = (uint32_t)line;
    if (dwarf_attr(inlined, DW_AT_call_file, &attribute) && dwarf_formudata(&attribute, &file) == 0)
        caller->file = file_number(unit, file);
}

static void describe(dwarf_file *f, Dwarf_Die *unit, Dwarf_Die *die, struct dwarf_function *out) {
    int line = 0;
    out->name = full_name(f, die);
    out->inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
    out->declared = declared_file(die);
    if (dwarf_decl_line(die, &line) == 0 && line > 0)
        out->declared_line = (uint32_t)line;
    out->last_line = last_line(unit, die, out->declared, out->declared_line);
    out->parameters = count_parameters(*die);
}

unsigned dwarf_file_find(dwarf_file *f, uint64_t offset, struct dwarf_function *out,
                         unsigned room) {
    Dwarf_Die unit, tree;
    struct chain c = { .count = 0 };
    Dwarf_Addr address = f->lowest + offset;
    if (!room || !f->dwarf || !find_unit(f, address, &unit, &tree))
        return 0;
    descend(&tree, address, &c, 0);
    unsigned count = c.count < room ? c.count : room;
    memset(out, 0, (count ? count : 1) * sizeof *out);
    Dwarf_Line *line = dwarf_getsrc_die(&unit, address);
    int number = 0;
    if (line && dwarf_lineno(line, &number) == 0 && number > 0) {
        out[0].line = (uint32_t)number;
        out[0].file = dwarf_linesrc(line, NULL, NULL);
    }
    for (unsigned i = 0; i < count; i++) {
        Dwarf_Die *die = &c.function[c.count - 1 - i];
        describe(f, &unit, die, &out[i]);
        if (i + 1 < count)
            call_position(&unit, die, &out[i + 1]);
    }
    return count ? count : out[0].line ? 1 : 0;
}

const void *dwarf_file_section(const dwarf_file *f, const char *name, size_t *size) {
    size_t strings;
    if (elf_getshdrstrndx(f->elf, &strings) != 0)
        return NULL;
    for (Elf_Scn *s = NULL; (s = elf_nextscn(f->elf, s));) {
        GElf_Shdr header;
        const char *own =
            gelf_getshdr(s, &header) ? elf_strptr(f->elf, strings, header.sh_name) : NULL;
        const Elf_Data *data =
            own && !strcmp(own, name) && header.sh_type != SHT_NOBITS ? elf_rawdata(s, NULL) : NULL;
        if (data && data->d_buf) {
            *size = data->d_size;
            return data->d_buf;
        }
    }
    return NULL;
}
