/* dwarf_file.h - functions, files and lines of the code in one ELF file, from its DWARF.
 *
 * The debug information is in the file itself or in a separate one: by build id under
 * /usr/lib/debug/.build-id, or by the name in .gnu_debuglink beside the file, in .debug there, or
 * under /usr/lib/debug. A separate file must have the same build id or the checksum of the link.
 * Nothing is fetched from a network. Names belong to the dwarf_file. Not thread-safe. */
#ifndef SYMBOL_DWARF_FILE_H
#define SYMBOL_DWARF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct dwarf_file dwarf_file;

/* One function at an address, innermost first when several were inlined. */
struct dwarf_function {
    const char *name;     /* with its namespaces and classes; NULL: it has none */
    const char *file;     /* of the code at hand; NULL: unknown */
    uint32_t line;        /* 0: unknown */
    bool inlined;         /* into the next one */
    const char *declared; /* file, and */
    uint32_t declared_line;
    uint32_t last_line; /* of its code, in the file where it is declared; 0: unknown */
    unsigned parameters;
};

/* build_id: hexadecimal digits that the file must have; "": any will do. RC_IO if it cannot be
 * read, RC_FORMAT if it is no ELF file, RC_REFUSED if its build id is another, RC_MEMORY. A file
 * without debug information can be opened. On failure *out is untouched. */
NODISCARD enum rc dwarf_file_open(dwarf_file **out, const char *path, const char *build_id,
                                  struct err *e);
void dwarf_file_close(dwarf_file **f);

/* The functions at offset bytes from where the file's lowest page is mapped; 0 if unknown. */
unsigned dwarf_file_find(dwarf_file *f, uint64_t offset, struct dwarf_function *out, unsigned room);

/* The bytes of the section with that name, in the file itself; NULL if there is none. They live as
 * long as the dwarf_file. */
const void *dwarf_file_section(const dwarf_file *f, const char *name, size_t *size);

#endif
