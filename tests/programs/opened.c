/* Opens the runtime itself and asks it for its functions, by three ways: dlsym, dlvsym and
 * hipGetProcAddress. Not linked with any HIP library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "hip/hip_types.h"

typedef hipError_t (*malloc_fn)(void **, size_t);
typedef hipError_t (*free_fn)(void *);
typedef hipError_t (*set_fn)(void *, int, size_t);
typedef hipError_t (*get_fn)(const char *, void **, int, uint64_t,
                             hipDriverProcAddressQueryResult *);

int main(void) {
    void *library = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    void *symbol = dlsym(library, "hipMalloc");
    malloc_fn get;
    memcpy(&get, &symbol, sizeof symbol);
    symbol = dlvsym(library, "hipFree", "hip_4.2");
    free_fn give;
    memcpy(&give, &symbol, sizeof symbol);
    symbol = dlsym(library, "hipGetProcAddress");
    get_fn address;
    memcpy(&address, &symbol, sizeof symbol);
    void *device = NULL;
    if (get(&device, 64) != hipSuccess)
        return 1;
    symbol = NULL;
    if (address("hipMemset", &symbol, 600, 0, NULL) == hipSuccess && symbol) {
        set_fn set;
        memcpy(&set, &symbol, sizeof symbol);
        set(device, 1, 64);
        printf("set\n");
    }
    if (give(device) != hipSuccess)
        return 1;
    printf("nothing=%d\n", dlsym(library, "hipNothingOfThatName") != NULL);
    printf("own=%d\n", dlsym(RTLD_DEFAULT, "puts") != NULL && dlsym(library, "greta_soft_version"));
    return 0;
}
