#include "base/symtab.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTIONS_MAX = 1 << 16, SEGMENTS_MAX = 1 << 10, NOTES_MAX = 64 << 10 };
#define TABLE_MAX (UINT64_C(1) << 29) /* bytes of symbols, of names */

struct function {
    uint64_t start, size;
    uint32_t name; /* in the strings */
    uint32_t rank; /* of several at one address, the lowest is its name */
};

struct symtab {
    uint64_t lowest; /* address of the lowest mapped page, as the file counts */
    char *strings;
    struct function *functions;
    size_t count;
};

struct file {
    int fd;
    uint64_t size;
    const char *path;
    Elf64_Ehdr head;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* [at, at + bytes) of the file with a NUL after it; NULL if that is not there whole. */
static void *read_range(const struct file *f, uint64_t at, uint64_t bytes, uint64_t max) {
    if (bytes > max || at > f->size || bytes > f->size - at)
        return NULL;
    char *out = calloc(1, bytes + 1);
    for (uint64_t done = 0; out && done < bytes;) {
        ssize_t n = pread(f->fd, out + done, bytes - done, (off_t)(at + done));
        if (n > 0) {
            done += (uint64_t)n;
        } else if (n == 0 || errno != EINTR) {
            free(out);
            return NULL;
        }
    }
    return out;
}

static enum rc open_file(struct file *f, const char *path, struct err *e) {
    struct stat st;
    f->path = path;
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (f->fd < 0)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(e, RC_IO, "%s: not a regular file", path);
    f->size = (uint64_t)st.st_size;
    void *head = read_range(f, 0, sizeof f->head, sizeof f->head);
    if (head)
        memcpy(&f->head, head, sizeof f->head);
    free(head);
    const unsigned char *ident = f->head.e_ident;
    bool ours =
        head && !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS64 &&
        ident[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) &&
        f->head.e_phentsize == sizeof(Elf64_Phdr) && f->head.e_shentsize == sizeof(Elf64_Shdr);
    return ours ? RC_OK : err_set(e, RC_FORMAT, "%s: not a 64-bit ELF file", path);
}

/* ---- is it the same file? -------------------------------------------------------------------- */

static bool same_id(const unsigned char *bytes, size_t count, const char *text) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++, text += 2)
        if (text[0] != digits[bytes[i] >> 4] || text[1] != digits[bytes[i] & 15])
            return false;
    return count > 0 && *text == '\0';
}

/* Is the build id among these notes, and the wanted one? */
static bool has_build_id(const unsigned char *at, size_t bytes, const char *wanted) {
    while (bytes >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, at, sizeof note);
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t body = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > bytes - sizeof note || body > bytes - sizeof note - name)
            return false;
        const unsigned char *text = at + sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(text, "GNU", 4))
            return same_id(text + name, note.n_descsz, wanted);
        at += sizeof note + name + body;
        bytes -= sizeof note + name + body;
    }
    return false;
}

/* The lowest address, and whether the build id is the wanted one. */
static enum rc read_segments(const struct file *f, const char *build_id, uint64_t *lowest,
                             struct err *e) {
    enum { PAGE = 4096 };
    uint64_t bytes = (uint64_t)f->head.e_phnum * sizeof(Elf64_Phdr);
    Elf64_Phdr *segment = read_range(f, f->head.e_phoff, bytes, SEGMENTS_MAX * sizeof(Elf64_Phdr));
    if (!segment || !f->head.e_phnum) {
        free(segment);
        return err_set(e, RC_FORMAT, "%s: its segments cannot be read", f->path);
    }
    bool same = !build_id || !*build_id;
    *lowest = UINT64_MAX;
    for (unsigned i = 0; i < f->head.e_phnum; i++) {
        if (segment[i].p_type == PT_LOAD && segment[i].p_vaddr < *lowest)
            *lowest = segment[i].p_vaddr;
        if (segment[i].p_type != PT_NOTE || same)
            continue;
        unsigned char *notes = read_range(f, segment[i].p_offset, segment[i].p_filesz, NOTES_MAX);
        same = notes && has_build_id(notes, segment[i].p_filesz, build_id);
        free(notes);
    }
    free(segment);
    if (*lowest == UINT64_MAX)
        return err_set(e, RC_FORMAT, "%s: nothing to load in it", f->path);
    *lowest &= ~(uint64_t)(PAGE - 1);
    return same ? RC_OK : err_set(e, RC_REFUSED, "%s: has another build id", f->path);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b) {
    const struct function *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static enum rc take_functions(symtab *s, const Elf64_Sym *symbols, size_t count,
                              uint64_t strings_bytes) {
    s->functions = malloc((count + 1) * sizeof *s->functions);
    if (!s->functions)
        return RC_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const Elf64_Sym *from = &symbols[i];
        unsigned type = ELF64_ST_TYPE(from->st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || from->st_shndx == SHN_UNDEF ||
            from->st_name >= strings_bytes || !s->strings[from->st_name])
            continue;
        s->functions[s->count++] = (struct function){
            from->st_value,
            from->st_size,
            from->st_name,
            ELF64_ST_BIND(from->st_info) == STB_GLOBAL ? 0 : 1,
        };
    }
    qsort(s->functions, s->count, sizeof *s->functions, by_start);
    return RC_OK;
}

static enum rc read_symbols(symtab *s, const struct file *f, struct err *e) {
    Elf64_Shdr *section =
        read_range(f, f->head.e_shoff, (uint64_t)f->head.e_shnum * sizeof *section,
                   SECTIONS_MAX * sizeof *section);
    unsigned table = 0;
    for (unsigned i = 1; section && i < f->head.e_shnum; i++)
        if (section[i].sh_type == SHT_SYMTAB && section[i].sh_link < f->head.e_shnum)
            table = i;
    enum rc rc = RC_FORMAT;
    if (table) {
        const Elf64_Shdr *names = &section[section[table].sh_link];
        Elf64_Sym *symbols =
            read_range(f, section[table].sh_offset, section[table].sh_size, TABLE_MAX);
        s->strings = read_range(f, names->sh_offset, names->sh_size, TABLE_MAX);
        if (symbols && s->strings)
            rc = take_functions(s, symbols, section[table].sh_size / sizeof *symbols,
                                names->sh_size);
        free(symbols);
    }
    free(section);
    return rc == RC_OK ? rc : err_set(e, rc, "%s: no symbol table that can be read", f->path);
}

enum rc symtab_open(symtab **out, const char *path, const char *build_id, struct err *e) {
    struct file f = { .fd = -1 };
    symtab *s = calloc(1, sizeof *s);
    enum rc rc = s ? open_file(&f, path, e) : err_set(e, RC_MEMORY, "%s: no memory", path);
    if (rc == RC_OK)
        rc = read_segments(&f, build_id, &s->lowest, e);
    if (rc == RC_OK)
        rc = read_symbols(s, &f, e);
    if (f.fd >= 0)
        close(f.fd);
    if (rc == RC_OK)
        *out = s;
    else
        symtab_close(&s);
    return rc;
}

void symtab_close(symtab **s) {
    if (!*s)
        return;
    free((*s)->functions);
    free((*s)->strings);
    free(*s);
    *s = NULL;
}

const char *symtab_find(const symtab *s, uint64_t offset, uint64_t *inside) {
    enum { BACK = 16, UNSIZED = 256 }; /* few functions lie inside others */
    uint64_t address = s->lowest + offset;
    size_t low = 0, high = s->count;
    while (low < high) { /* the first that starts after address */
        size_t middle = low + (high - low) / 2;
        if (s->functions[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct function *best = NULL;
    for (size_t i = low; i-- > 0 && low - i <= BACK;) {
        const struct function *f = &s->functions[i];
        if (best && f->start != best->start)
            break;
        /* Hand-written code may not say how long it is. */
        if (address - f->start < f->size ||
            (f->size == 0 && i + 1 == low && address - f->start < UNSIZED))
            best = f;
    }
    if (!best)
        return NULL;
    *inside = address - best->start;
    return s->strings + best->name;
}
