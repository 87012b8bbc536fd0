/* layout.h - how a kernel's arguments are laid out, which shows the pointers among kernelParams.
 * HIP itself does not say; a source that knows (a table of kernels, the metadata of a code object)
 * fills in a layout. */
#ifndef AUDIT_LAYOUT_H
#define AUDIT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "record/event.h" /* EVENT_ARG_* */

enum { KERNEL_PARAMS_MAX = 64 };

struct kernel_param {
    uint32_t size;   /* bytes */
    uint32_t offset; /* in the argument block, where the layout has offsets */
    uint8_t access;  /* EVENT_ARG_READ | EVENT_ARG_WRITE; 0: not a pointer */
    bool opaque;     /* not a pointer, and may hold some: a struct by value */
    bool leads_on;   /* a pointer to what may hold pointers: to pointers, to structs */
};
struct kernel_layout {
    unsigned count;
    bool has_offsets;
    bool reaches; /* the kernel may find pointers in memory or in structs: what it touches is not
                     known from its arguments */
    struct kernel_param param[KERNEL_PARAMS_MAX];
};

#endif
