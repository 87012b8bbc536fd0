/* cache_folder.h - where greta keeps what it can rebuild: $XDG_CACHE_HOME/greta or
 * ~/.cache/greta. Thread-safe. */
#ifndef BASE_CACHE_FOLDER_H
#define BASE_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

enum { CACHE_FOLDER_BYTES = 600, CACHE_FOLDER_NAME = 200 };

/* The folder, made if it is missing; a file name of CACHE_FOLDER_NAME bytes fits after it. False if
 * there is no place for one; out is then undefined. */
bool cache_folder_find(char out[CACHE_FOLDER_BYTES]);

/* Writes a file as a whole: other processes see the old one or the new one. Failure leaves the old
 * file, or none. */
void cache_folder_write(const char *path, const void *head, size_t head_bytes, const void *body,
                        size_t body_bytes);

#endif
