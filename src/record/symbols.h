/* symbols.h - the functions that frames of call stacks are in.
 *
 * The recorder knows exported symbols only. Where the program's file is still there, and is the
 * same by its build id (or, if it has none, is older than the recording), its symbol table knows
 * the others. Thread-safe. */
#ifndef RECORD_SYMBOLS_H
#define RECORD_SYMBOLS_H

#include "record/reader.h"

/* The function of a frame and how far the return address is in it: what the recording says, else
 * what the symbol table of the module's file says. NULL if neither knows. The name lives as long as
 * the reader. */
const char *symbols_of_frame(const reader *r, const struct site_frame *f, uint64_t *inside);

/* Whether a file that the recording names, by its string, may be the one that the program ran. */
enum symbols_file {
    SYMBOLS_FILE_UNKNOWN, /* not a path, or the recording contradicts itself about it */
    SYMBOLS_FILE_NEWER,   /* it had no build id, and is newer than the recording or gone */
    SYMBOLS_FILE_USABLE,  /* if its build id is *build_id; 0: it has none */
};
enum symbols_file symbols_file(const reader *r, uint32_t path, uint32_t *build_id);

#endif
