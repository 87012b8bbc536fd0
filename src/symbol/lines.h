/* lines.h - functions, files and lines for the call stacks of a recording.
 *
 * Looked up on demand, outside the program, in the files that the recording names. A file that
 * has changed since (by its build id; without one, by its age) is not used, and a remark says so.
 *
 * "Where" is the innermost place in a function that is not a wrapper. A wrapper is a function that
 * does nothing but call HIP and check the result. Recording and debug information show that:
 *
 *   - all recorded calls that it makes come from one line of it (calls that only read an error do
 *     not count);
 *   - it is called from at least two places;
 *   - it does not also lead to HIP calls through functions that are not wrappers;
 *   - it is short: at most LINES_WRAPPER lines, or at most LINES_BARE if it takes no parameters.
 *
 * Functions are identified by where they are declared, so that all instances of a template, inlined
 * or not, are one. These are wrappers, too: the stub that the compiler makes to launch a kernel,
 * functions with the name of a HIP function, which HIP's headers define, and functions of the C++
 * library. An access to memory inside the C library, by memcpy() say, counts as its caller's.
 * docs/adr/0044-call-stacks.md says why. */
#ifndef SYMBOL_LINES_H
#define SYMBOL_LINES_H

#include "base/err.h"
#include "record/reader.h"

enum { LINES_WRAPPER = 12, LINES_BARE = 4 };

/* Gives the reader a source of lines, unless it has one. Without memory it stays as it was. From
 * then on the reader's functions of places may be called from any thread. */
void lines_attach(reader *r);

/* Why a file could not be used although frames are in it. */
enum lines_reason {
    LINES_CHANGED, /* its build id is another now */
    LINES_NEWER,   /* it has no build id, and is newer than the recording or gone */
    LINES_UNREAD,  /* it cannot be read */
};

/* Those files, one after the other; false past the last. The path lives as long as the reader. */
bool lines_unused(const reader *r, size_t i, const char **path, enum lines_reason *why);

#endif
