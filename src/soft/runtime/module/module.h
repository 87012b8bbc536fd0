/* module.h - shared by module*.c, symbol.c and occupancy.c: loaded code objects.
 *
 * A module is one code object on one device, or, without an image, a name for all native kernels
 * (see SOFT_NATIVE_IMAGE). Modules that a program loads live until it unloads them; those of fat
 * binaries belong to symbol.c. All functions are thread-safe; using a module while another thread
 * closes it is the caller's error, as in HIP. */
#ifndef SOFT_RUNTIME_MODULE_H
#define SOFT_RUNTIME_MODULE_H

#include <greta/soft.h>

#include "codeobj/bundle.h"
#include "codeobj/codeobj.h"
#include "codeobj/image.h"
#include "hip/hip_types.h"
#include "soft/runtime/function.h"
#include "soft/runtime/machine/machine.h"

/* These eight bytes are an image: hipModuleLoadData gives a module with no code of its own, whose
 * functions are the kernels that greta_soft_kernel_register() has made known. So a program in C,
 * built without hipcc, can launch through hipModuleGetFunction. */
#define SOFT_NATIVE_IMAGE GRETA_SOFT_NATIVE_IMAGE

/* ---- module_image.c: the code object for this device in what a program hands over ----------- */

struct soft_image {
    unsigned char *bytes; /* malloc'd; NULL with native */
    size_t size;
    bool native;
};

/* From memory of unknown size: a code object, an offload bundle, the wrapper of a fat binary, or
 * SOFT_NATIVE_IMAGE. What cannot be read is an invalid image, not a crash. */
hipError_t soft_image_from_memory(const void *image, struct soft_image *out);
hipError_t soft_image_from_file(const char *path, struct soft_image *out);
/* What HIP says where a code object cannot be read. */
hipError_t soft_image_error(enum rc rc);

/* ---- module.c ------------------------------------------------------------------------------ */

struct soft_module;

/* A struct soft_function as the pool holds it. A native function has no kernel. */
struct soft_module_function {
    struct soft_function function;
    const struct codeobj_kernel *kernel; /* the module's list owns it */
    struct soft_machine machine;         /* function.machine, unless its descriptor is malformed */
    _Atomic int max_dynamic_shared;      /* hipFuncSetAttribute; 0: not set */
};

/* Loads image (taken over in any case) on a device. */
hipError_t soft_module_open(struct soft_module **out, int device, struct soft_image *image);
/* Waits for the device, then frees functions and variables. module may be NULL. */
void soft_module_close(struct soft_module *module);

/* A kernel of the module or, if it has none of that name, a native one. hipErrorNotFound. */
hipError_t soft_module_function(struct soft_module *module, const char *name,
                                struct soft_function **out);
/* A variable of the module. hipErrorNotFound. */
hipError_t soft_module_variable(struct soft_module *module, const char *name, uint64_t *addr,
                                uint64_t *size);
/* Stores a pointer in a variable of 8 bytes, if the module has it: a managed variable's address. */
void soft_module_set_pointer(struct soft_module *module, const char *name, uint64_t pointer);

/* Creates the pool of modules, which is otherwise created on first use. */
void soft_module_prepare(void);

/* The locks of module.c and symbol.c. For forks. */
pthread_mutex_t *soft_module_lock(void);
pthread_mutex_t *soft_symbol_lock(void);

/* Where in the sources an instruction of the function's module is: "saxpy at saxpy.hip:12", where
 * it was compiled with -g and libdw is installed; false if that is not known. Slow. */
static inline bool soft_module_place(const struct soft_function *function, uint64_t pc, char *out,
                                     size_t size) {
    return function->place && function->place(function, pc, out, size);
}

/* ---- symbol.c ------------------------------------------------------------------------------ */

/* The device variable that __hipRegisterVar tied to a host address, on the current device.
 * hipErrorInvalidSymbol. */
hipError_t soft_symbol_find(const void *symbol, uint64_t *addr, uint64_t *size);

/* [offset, offset + bytes) of it, or hipErrorInvalidValue if that leaves the variable. */
hipError_t soft_symbol_range(const void *symbol, size_t offset, size_t bytes, uint64_t *addr);

/* The name that __hipRegisterFunction gave, or NULL. */
const char *soft_symbol_function_name(const void *host);

#endif
