/* symtab.h - names of the functions in an ELF file, those that it does not export among them.
 *
 * The file is read, not mapped, and nothing in it is trusted: it may be truncated, damaged,
 * hostile, or have been replaced. A symtab is read-only after symtab_open(), so that any number of
 * threads may look into it; names belong to it and live until symtab_close(). 64-bit files of this
 * machine's byte order only. */
#ifndef BASE_SYMTAB_H
#define BASE_SYMTAB_H

#include <stdint.h>

#include "base/err.h"

typedef struct symtab symtab;

/* build_id: hexadecimal digits; NULL or "": any file will do. RC_IO if it cannot be read, RC_FORMAT
 * if it is no such file or has no symbol table, RC_REFUSED if its build id is another, RC_MEMORY.
 * On failure *out is untouched. */
NODISCARD enum rc symtab_open(symtab **out, const char *path, const char *build_id, struct err *e);
void symtab_close(symtab **s);

/* The function at offset bytes from where the file's lowest page is mapped, and how far into it
 * that is. NULL if there is none. */
const char *symtab_find(const symtab *s, uint64_t offset, uint64_t *inside);

#endif
