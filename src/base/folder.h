/* folder.h - folders for what a program writes. Thread-safe; several processes may make the same
 * folder at once. */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include <stdbool.h>

/* Makes a folder and those above it, where they are not there; false with errno. */
bool folder_make(const char *path);

/* Makes the folders above a file. A name without a slash needs none. */
bool folder_make_parents(const char *file);

#endif
