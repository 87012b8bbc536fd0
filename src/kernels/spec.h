/* spec.h - kernel.def as tables: what each kernel's arguments are and what a launch touches.
 *
 * The arguments of a launch have one shape, struct kern_<kernel>: the pass fills it in, checks and
 * footprints read it, native kernels work on it. Between them lies the HIP API, which takes a list
 * of pointers to arguments; spec_list() and spec_gather() are the way into it and out of it.
 *
 * Constant data; thread-safe. */
#ifndef KERNELS_SPEC_H
#define KERNELS_SPEC_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kern.h"

enum spec_access { SPEC_VALUE = 0, SPEC_READ = 1, SPEC_WRITE = 2, SPEC_UPDATE = 3 };
enum spec_type { SPEC_F32, SPEC_I32, SPEC_I8, SPEC_MATRIX, SPEC_CACHE };

/* One argument as the device gets it. */
struct spec_param {
    const char *name;
    uint16_t offset; /* in struct kern_<kernel> */
    uint16_t size;   /* bytes */
    enum spec_access access;
};

/* One buffer: a view, checked before a launch. */
struct spec_view {
    const char *name;
    uint16_t offset;
    enum spec_access access;
    enum spec_type type;
    uint64_t (*bytes)(const void *arguments); /* UINT64_MAX: cannot be counted */
};

struct spec {
    const char *name;
    uint32_t argument_bytes; /* of struct kern_<kernel> */
    const struct spec_param *params;
    uint32_t param_count;
    const struct spec_view *views;
    uint32_t view_count;
    uint64_t (*blocks)(const void *arguments);
    uint32_t threads; /* of a workgroup on a GPU */
    uint64_t (*groups)(const void *arguments);
};

extern const struct spec spec_table[KERN_COUNT];

enum { SPEC_PARAMS_MAX = 40 };

/* Room for the arguments of any kernel. */
union spec_arguments {
#define KERN_BEGIN(k) struct kern_##k k;
#include "kernels/kernel.def"
};

/* The arguments as HIP takes them: params[i] points at argument i. */
void spec_list(const struct spec *s, const void *arguments, void *params[SPEC_PARAMS_MAX]);
/* The arguments of such a list, wherever they lie. Of a view, only what the device gets is set: the
 * pointer and, where the kernel must know it, the type. */
void spec_gather(const struct spec *s, void *const *params, void *arguments);

const char *spec_type_name(enum spec_type type);
bool spec_type_allows(enum spec_type wanted, uint32_t type);

#endif
