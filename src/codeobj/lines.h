/* lines.h - source lines of the machine code in a code object, from its DWARF.
 *
 * elfutils' libdw reads it. It is opened with dlopen() when the first code object is asked about:
 * this folder is linked into libraries that are loaded into other people's programs, which should
 * not get a dependency that is needed only after a kernel has failed. Without libdw, or in code
 * that was compiled without -g, there are no lines.
 *
 * A codeobj_lines is not thread-safe; opening is. */
#ifndef CODEOBJ_LINES_H
#define CODEOBJ_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct codeobj_lines codeobj_lines;

/* The code of one function at an address; several where functions were inlined into each other.
 * Texts live as long as the codeobj_lines. */
struct codeobj_place {
    const char *function; /* as declared, without its class; NULL: unknown */
    const char *file;     /* NULL: unknown */
    uint32_t line, column;
    bool inlined; /* into the next one */
};

/* The image must stay valid until the lines are closed. RC_UNSUPPORTED if there is no libdw,
 * RC_FORMAT if the image has no debug information that can be read, RC_MEMORY. */
NODISCARD enum rc codeobj_lines_open(codeobj_lines **out, const void *image, size_t size,
                                     struct err *e);
void codeobj_lines_close(codeobj_lines **lines); /* sets *lines to NULL; *lines may be NULL */

/* The places of the instruction at an address of the code object, innermost first; how many, of
 * which at most room are stored. 0 if unknown. */
unsigned codeobj_lines_find(codeobj_lines *lines, uint64_t address, struct codeobj_place *out,
                            unsigned room);

/* The names of the parameters of the function that the linker knows by that name; how many there
 * are, of which at most room are stored (NULL for one without a name). 0 if unknown. */
unsigned codeobj_lines_parameters(codeobj_lines *lines, const char *function, const char **names,
                                  unsigned room);

/* A variable that has a place of its own on the stack of a function. */
struct codeobj_local {
    const char *name; /* NULL: unknown */
    uint64_t offset;  /* in the function's frame */
    uint64_t bytes;
    uint64_t element; /* bytes of an element of an array, of the innermost; else 0 */
};

/* The variables, also of functions inlined into it, of the function that the linker knows by that
 * name; how many there are, of which at most room are stored. Those that are in registers, in
 * parts, or in parts of others are not among them. */
unsigned codeobj_lines_locals(codeobj_lines *lines, const char *function, struct codeobj_local *out,
                              unsigned room);

#endif
