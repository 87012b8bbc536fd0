/* function.h - kernels as programs hold them: hipFunction_t is a struct soft_function.
 *
 * A native function lives as long as the process, one of a code object as long as its module.
 * Thread-safe. */
#ifndef SOFT_RUNTIME_FUNCTION_H
#define SOFT_RUNTIME_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <greta/soft.h>

#include "hip/hip_types.h"
#include "soft/runtime/handle.h"

struct soft_function {
    struct soft_handle handle;
    char *name;
    const struct greta_soft_kernel *native; /* NULL: machine code only */
    bool looks; /* native: the slack of some arguments is looked at after a launch */
    const struct soft_machine *machine; /* NULL: native only; machine/machine.h */
    void *module;
    bool (*place)(const struct soft_function *f, uint64_t pc, char *out, size_t size); /* or NULL */
    /* What the code object's metadata says, where there is one. */
    uint32_t kernarg_bytes, shared_bytes, private_bytes, max_threads;
};

/* The pool that all struct soft_function come from, native ones and those of modules: a
 * hipFunction_t is valid if soft_handle_valid() says so. Defined in module.c. */
struct soft_handles *soft_functions(void);
/* The function for a name, made on first use; *out stays valid for the process.
 * hipErrorNotFound if no native kernel has that name. */
hipError_t soft_function_native(const char *name, struct soft_function **out);
/* The function that __hipRegisterFunction tied to a host address. */
hipError_t soft_function_for_host(const void *host, struct soft_function **out);

#endif
