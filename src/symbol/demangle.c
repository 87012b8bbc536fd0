/* Uses the machine's C++ library if there is one. Where C++ programs run there is, and greta itself
 * needs none to be built or run. */
#include "symbol/demangle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

typedef char *(*demangle_fn)(const char *symbol, char *out, size_t *length, int *status);

static demangle_fn ask;

static void find_library(void) {
    static const char *const names[] = { "libstdc++.so.6", "libc++abi.so.1" };
    for (size_t i = 0; i < sizeof names / sizeof *names && !ask; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        void *found = library ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&ask, &found, sizeof ask);
    }
}

char *demangle(const char *symbol) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int status = 0;
    if (strncmp(symbol, "_Z", 2) != 0)
        return NULL;
    pthread_once(&once, find_library);
    return ask ? ask(symbol, NULL, NULL, &status) : NULL;
}
