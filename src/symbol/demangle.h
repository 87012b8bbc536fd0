/* demangle.h - C++ names as they are written in the source. */
#ifndef SYMBOL_DEMANGLE_H
#define SYMBOL_DEMANGLE_H

/* The name that a mangled symbol stands for, to be freed by the caller; NULL if it is not mangled,
 * or no C++ library is there to ask. Thread-safe. */
char *demangle(const char *symbol);

#endif
