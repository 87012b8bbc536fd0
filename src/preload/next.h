/* next.h - the C library's own functions (or those of another preloaded library) behind the ones
 * that this library exports.
 *
 * dlsym itself cannot be found with dlsym here, so it is looked up in the C library's symbol table;
 * the others are found with RTLD_NEXT, once each. Thread-safe. */
#ifndef PRELOAD_NEXT_H
#define PRELOAD_NEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

typedef void *(*next_dlsym_fn)(void *handle, const char *name);
typedef void *(*next_dlvsym_fn)(void *handle, const char *name, const char *version);

/* Never NULL: a process whose C library lacks them is ended. */
next_dlsym_fn next_dlsym(void);
next_dlvsym_fn next_dlvsym(void);

/* The next definition of name after this library's; NULL if there is none. */
void *next_find(const char *name);

/* Calls found() for each of the count names that is exported by the first loaded library whose file
 * name starts with `beginning`. Allocates nothing and takes no lock but the dynamic linker's, which
 * is recursive: a signal handler that interrupted dlopen() may call this. False if there is no such
 * library. */
bool next_each_in(const char *beginning, const char *(*name)(unsigned i), unsigned count,
                  void (*found)(unsigned i, void *symbol, void *user), void *user);

/* The next function `name`, as a pointer of its own type; remembered. The slot is atomic: two
 * threads that race find the same function. */
#define NEXT(name)                                                                                 \
    __extension__({                                                                                \
        static _Atomic(void *) slot;                                                               \
        void *found = atomic_load_explicit(&slot, memory_order_relaxed);                           \
        if (__builtin_expect(!found, 0)) {                                                         \
            found = next_find(#name);                                                              \
            atomic_store_explicit(&slot, found, memory_order_relaxed);                             \
        }                                                                                          \
        __typeof__(&name) function;                                                                \
        memcpy(&function, &found, sizeof found);                                                   \
        function;                                                                                  \
    })

#endif
