/* lines_internal.h - what the files that implement lines.h share. */
#ifndef SYMBOL_LINES_INTERNAL_H
#define SYMBOL_LINES_INTERNAL_H

#include <pthread.h>

#include "base/arena.h"
#include "symbol/dwarf_file.h"
#include "symbol/lines.h"

enum { LINES_FILES_MAX = 64 };

/* A frame's functions, innermost first. */
struct known {
    uint32_t module;
    uint64_t offset;
    unsigned count;
    struct dwarf_function *function;
};

/* One function of a stack, frames and inlined functions in one row. */
struct flat {
    unsigned frame, depth; /* depth: of the functions of that frame */
    uint32_t module;
    const struct dwarf_function *function;
    uint64_t identity; /* the same for all instances of the function */
    uint64_t position; /* in that function */
};
enum { FLAT_MAX = 96 };

struct wrapper;
struct kernels;

struct lines {
    const reader *r;
    pthread_mutex_t lock;
    struct arena memory;
    struct {
        uint32_t path;
        dwarf_file *dwarf; /* NULL: cannot be used */
    } file[LINES_FILES_MAX];
    size_t file_count;
    struct {
        const char *path;
        enum lines_reason why;
    } unused[LINES_FILES_MAX];
    _Atomic size_t unused_count;
    struct known *known; /* open addressing; module 0 and offset 0: empty */
    size_t known_count, known_room;
    struct wrapper *functions; /* the same; NULL: not looked at yet */
    size_t function_count, function_room;
    unsigned char *host; /* of each site: 1 if it is where host code accessed memory; or NULL */
    uint32_t host_count;
    struct kernels *kernels; /* NULL: not needed yet */
};

/* All that follows is called under the lock. */

/* frames.c: the file of that path, if it is the one that the program ran; else NULL, and a remark
 * says why. The functions of a frame; NULL without memory. */
dwarf_file *frames_file(struct lines *l, uint32_t path);
const struct known *frames_find(struct lines *l, const struct site_frame *f);

/* wrapper.c: a call stack as one row of functions; the first of the row of a site that is no
 * wrapper. */
unsigned wrapper_flatten(struct lines *l, uint32_t site, struct flat out[static FLAT_MAX]);
unsigned wrapper_skip(struct lines *l, uint32_t site, const struct flat *row, unsigned count);
void wrapper_free(struct lines *l);

/* kernels.c: names of kernels and of their parameters, by the string that is the symbol; NULL:
 * unknown. */
const char *kernels_name(struct lines *l, uint32_t symbol);
const char *kernels_parameter(struct lines *l, uint32_t symbol, unsigned index);
void kernels_free(struct lines *l);

#endif
