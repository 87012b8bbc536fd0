/* function.h - kernels as programs hold them: hipFunction_t is a struct soft_function.
 *
 * A native function lives as long as the process, one of a code object as long as its module.
 * Thread-safe. */
#ifndef SOFT_RUNTIME_FUNCTION_H
#define SOFT_RUNTIME_FUNCTION_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <greta/soft.h>

#include "hip/hip_types.h"
#include "soft/runtime/handle.h"

/* Limits of a launch: parameters and bytes of arguments of a native kernel, threads of a block. */
enum { SOFT_PARAMS_MAX = 128, SOFT_ARGUMENT_BYTES_MAX = 4096, SOFT_THREADS_MAX = 1024 };

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
 * hipFunction_t is valid if soft_handle_valid() says so. */
struct soft_handles *soft_functions(void);

/* Where an argument of `size` bytes goes in op->data when the ones before it end at `at`. */
static inline uint32_t soft_param_offset(uint32_t at, uint32_t size) {
    uint32_t lowest_bit = size & (~size + 1), align = lowest_bit < 8 ? lowest_bit : 8;
    return align ? (at + align - 1) / align * align : at;
}

/* ---- native kernels: those that greta_soft_kernel_register() has made known ------------------ */

/* NULL if none has that name. */
const struct greta_soft_kernel *soft_kernel_find(const char *name);
/* The function's native twin is kernel; NULL: it has none. */
void soft_function_set_native(struct soft_function *f, const struct greta_soft_kernel *kernel);
/* The lock of the native kernels. For forks. */
pthread_mutex_t *soft_kernel_lock(void);
/* The function for a name, made on first use; *out stays valid for the process.
 * hipErrorNotFound if no native kernel has that name. */
hipError_t soft_function_native(const char *name, struct soft_function **out);

/* The function that __hipRegisterFunction tied to a host address. Defined in module/symbol.c. */
hipError_t soft_function_for_host(const void *host, struct soft_function **out);

#endif
