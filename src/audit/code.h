/* code.h - the code objects that the program handed to HIP, and what they say about kernels.
 *
 * Modules are known by the handle HIP gave for them: what __hipRegisterFatBinary returned, or a
 * hipModule_t. A fat binary stays where it is while it is registered and is read when one of its
 * kernels is first launched; the image of a module is the program's to free, and is read at once.
 *
 * Thread-safe, without locks: a child of fork() finds no lock held. What a module is known to hold
 * stays until audit_detach(). */
#ifndef AUDIT_CODE_H
#define AUDIT_CODE_H

#include <stdbool.h>

#include "audit/layout.h"

struct code_module;

void code_enter_fatbin(const void *handle, const void *wrapper);
void code_enter_image(const void *handle, const void *image);
void code_enter_file(const void *handle, const char *path);
/* The handle is given back: a fat binary's memory may be gone. */
void code_leave(const void *handle);

/* The module that the handle stands for now, or NULL. */
struct code_module *code_find(const void *handle);

/* Fills *out with how the kernel's arguments lie and tells the recording their names. False if the
 * module does not say. m may be NULL. */
bool code_layout(struct code_module *m, const char *kernel, struct kernel_layout *out);

/* code_types.c: completes a layout with what the kernel's mangled name says about types: pointers
 * to const, structs, pointers to pointers. Without types, what they would rule out is taken to be
 * possible. */
void code_add_types(const char *kernel, struct kernel_layout *layout);
/* The same from a demangled name, "saxpy(int, float const*)"; false, and nothing done, if its list
 * of parameters is not one of layout->count. */
bool code_add_signature(const char *demangled, struct kernel_layout *layout);

void code_reset(void);

#endif
