/* Linked with the runtime, but asks the dynamic linker for its functions: by RTLD_DEFAULT, by
 * RTLD_NEXT, by version, and by a handle of the whole program. A constructor's thread does the same
 * while main runs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "program.h"

typedef hipError_t (*malloc_fn)(void **, size_t);
typedef hipError_t (*free_fn)(void *);
typedef hipError_t (*set_fn)(void *, int, size_t);

static pthread_t early;

static void take(void *out, void *symbol) {
    if (!symbol) {
        printf("missing: %s\n", dlerror());
        exit(1);
    }
    memcpy(out, &symbol, sizeof symbol);
}

static void *round_trip(void *handle) {
    malloc_fn get;
    free_fn give;
    set_fn set;
    void *device = NULL;
    take(&get, dlsym(handle ? RTLD_NEXT : RTLD_DEFAULT, "hipMalloc"));
    take(&set, dlsym(handle ? handle : RTLD_DEFAULT, "hipMemset"));
    take(&give, dlvsym(handle ? RTLD_NEXT : RTLD_DEFAULT, "hipFree", "hip_4.2"));
    CHECK(get(&device, 64));
    CHECK(set(device, 1, 64));
    CHECK(give(device));
    return NULL;
}

__attribute__((constructor)) static void start_early(void) {
    if (pthread_create(&early, NULL, round_trip, NULL) != 0)
        exit(1);
}

int main(void) {
    int count = 0;
    void *all = dlopen(NULL, RTLD_LAZY);
    CHECK(hipGetDeviceCount(&count)); /* what the program is linked for */
    round_trip(NULL);
    round_trip(all);
    pthread_join(early, NULL);
    printf("devices=%d same=%d\n", count,
           dlsym(all, "hipMalloc") == dlsym(RTLD_DEFAULT, "hipMalloc"));
    return 0;
}
