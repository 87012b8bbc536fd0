#include "hip/hip_soft.h"

#include <dlfcn.h>
#include <string.h>

/* dlsym() returns functions as object pointers; POSIX guarantees that the bits are the same. */
static void find(void *library, const char *name, void *out) {
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(out, &symbol, sizeof symbol);
}

void hip_soft_find(struct hip_soft *out, void *library) {
#define HIP_SOFT(name) find(library, "greta_soft_" #name, &out->name);
#include "hip/hip_soft.def"
#undef HIP_SOFT
}
