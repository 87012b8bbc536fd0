/* Compares hip_api.def with what ROCm's libamdhip64.so.5 exports (ABI_LIBRARY): names and version
 * nodes of the symbols, and the names of error codes. */
#include "hip/hip_api.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct symbol {
    const char *name;
    const char *version;
};

static struct {
    unsigned char *file;
    size_t size;
    struct symbol *symbols;
    size_t count;
} library;

static const void *section_data(const Elf64_Shdr *s) {
    assert_true(s->sh_offset <= library.size && s->sh_size <= library.size - s->sh_offset);
    return library.file + s->sh_offset;
}

/* The name of version node `index`, from the section of version definitions. */
static const char *version_name(const Elf64_Shdr *definitions, const char *strings,
                                unsigned index) {
    const unsigned char *at = section_data(definitions);
    for (unsigned i = 0; i < definitions->sh_info; i++) {
        const Elf64_Verdef *d = (const Elf64_Verdef *)(const void *)at;
        const Elf64_Verdaux *name = (const Elf64_Verdaux *)(const void *)(at + d->vd_aux);
        if (d->vd_ndx == index)
            return strings + name->vda_name;
        at += d->vd_next;
    }
    return "";
}

static void read_symbols(const Elf64_Shdr *dynsym, const Elf64_Shdr *versym,
                         const Elf64_Shdr *verdef, const char *strings) {
    size_t total = dynsym->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbols = section_data(dynsym);
    const Elf64_Half *versions = section_data(versym);
    library.symbols = calloc(total, sizeof(*library.symbols));
    assert_non_null(library.symbols);
    for (size_t i = 0; i < total; i++) {
        /* Index 1 is the library itself: the names of the nodes. */
        unsigned version = versions[i] & 0x7fff;
        if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_shndx == SHN_ABS || version < 2)
            continue;
        library.symbols[library.count++] =
            (struct symbol){ strings + symbols[i].st_name, version_name(verdef, strings, version) };
    }
}

static int open_library(void **state) {
    (void)state;
    int fd = open(ABI_LIBRARY, O_RDONLY | O_CLOEXEC);
    struct stat st;
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    library.size = (size_t)st.st_size;
    library.file = mmap(NULL, library.size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(library.file != MAP_FAILED);
    close(fd);

    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)library.file;
    assert_memory_equal(header->e_ident, ELFMAG, SELFMAG);
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(library.file + header->e_shoff);
    const Elf64_Shdr *dynsym = NULL, *versym = NULL, *verdef = NULL;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type == SHT_DYNSYM)
            dynsym = &sections[i];
        else if (sections[i].sh_type == SHT_GNU_versym)
            versym = &sections[i];
        else if (sections[i].sh_type == SHT_GNU_verdef)
            verdef = &sections[i];
    }
    assert_true(dynsym && versym && verdef);
    read_symbols(dynsym, versym, verdef, section_data(&sections[dynsym->sh_link]));
    return 0;
}

static int close_library(void **state) {
    (void)state;
    free(library.symbols);
    return munmap(library.file, library.size);
}

static const struct symbol *find_symbol(const char *name) {
    for (size_t i = 0; i < library.count; i++)
        if (strcmp(library.symbols[i].name, name) == 0)
            return &library.symbols[i];
    return NULL;
}

static bool is_later(const char *name) {
    static const char *const later[] = {
#define ABI_LATER(function) #function,
#define ABI_OTHER(symbol, reason)
#include "abi_symbols.def"
#undef ABI_LATER
#undef ABI_OTHER
    };
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        if (strcmp(later[i], name) == 0)
            return true;
    return false;
}

static bool is_other(const char *symbol) {
    static const char *const other[] = {
#define ABI_LATER(function)
#define ABI_OTHER(symbol, reason) #symbol,
#include "abi_symbols.def"
#undef ABI_LATER
#undef ABI_OTHER
    };
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        if (strcmp(other[i], symbol) == 0)
            return true;
    return false;
}

/* The symbol that 5.2 has for a function: its name, or its C++ name. */
static const char *symbol_of(enum hip_fn fn) {
    switch (fn) {
#define HIP_CXX(name, symbol)                                                                      \
    case HIP_FN_##name:                                                                            \
        return #symbol;
#include "hip/hip_cxx.def"
#undef HIP_CXX
    default:
        return hip_fn_name(fn);
    }
}

static void every_line_up_to_5_2_is_exported_with_its_node(void **state) {
    (void)state;
    size_t checked = 0, wrong = 0;
    for (int i = 0; i < HIP_FN_COUNT; i++) {
        enum hip_fn fn = (enum hip_fn)i;
        if (strcmp(hip_fn_version(fn), "hip_5.2") > 0 || is_later(hip_fn_name(fn)))
            continue;
        checked++;
        const struct symbol *s = find_symbol(symbol_of(fn));
        if (s && strcmp(s->version, hip_fn_version(fn)) == 0)
            continue;
        wrong++;
        print_message("# %s: expected %s (hip_api.def), found %s (%s)\n", hip_fn_name(fn),
                      hip_fn_version(fn), s ? s->version : "no symbol", ABI_LIBRARY);
    }
    assert_true(checked > 350);
    assert_int_equal(wrong, 0);
}

static void every_exported_function_is_a_line(void **state) {
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < library.count; i++) {
        const char *name = library.symbols[i].name;
        if (hip_fn_find(name) != HIP_FN_COUNT || is_other(name))
            continue;
        bool listed = false;
#define HIP_CXX(function, symbol) listed = listed || strcmp(name, #symbol) == 0;
#include "hip/hip_cxx.def"
#undef HIP_CXX
#define HIP_COMPILER(symbol) listed = listed || strcmp(name, #symbol) == 0;
#include "hip/hip_compiler.def"
#undef HIP_COMPILER
        if (listed)
            continue;
        wrong++;
        print_message("# %s (%s): exported, but no line of hip_api.def\n", name,
                      library.symbols[i].version);
    }
    assert_true(library.count > 350);
    assert_int_equal(wrong, 0);
}

static void exceptions_are_still_exceptions(void **state) {
    (void)state;
#define ABI_LATER(function)                                                                        \
    assert_int_not_equal(hip_fn_find(#function), HIP_FN_COUNT);                                    \
    assert_null(find_symbol(#function));
#define ABI_OTHER(symbol, reason) assert_non_null(find_symbol(#symbol));
#include "abi_symbols.def"
#undef ABI_LATER
#undef ABI_OTHER
}

/* A pure function: it needs no device. hipGetErrorString of 5.2 gives the name too; the texts of
 * hip_error.def are those of 6.x. */
static void error_names_are_those_of_the_library(void **state) {
    (void)state;
    void *handle = dlopen(ABI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        print_message("# %s\n", dlerror());
    assert_non_null(handle);
    void *symbol = dlsym(handle, "hipGetErrorName");
    assert_non_null(symbol);
    const char *(*get_name)(hipError_t);
    memcpy(&get_name, &symbol, sizeof(get_name));
    size_t wrong = 0;
#define HIP_ERR(name, value, kind, message)                                                        \
    if (strcmp(get_name(name), hip_error_name(name)) != 0) {                                       \
        wrong++;                                                                                   \
        print_message("# %d: expected %s, found %s\n", name, get_name(name),                       \
                      hip_error_name(name));                                                       \
    }
#define HIP_ERR6(name, value, kind, message)
#define HIP_ERR_ALIAS(name, value, primary)
#include "hip/hip_error.def"
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_up_to_5_2_is_exported_with_its_node),
        cmocka_unit_test(every_exported_function_is_a_line),
        cmocka_unit_test(exceptions_are_still_exceptions),
        cmocka_unit_test(error_names_are_those_of_the_library),
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
