/* bytes.h - numbers of bytes as people read them. Thread-safe. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdint.h>

enum { BYTES_TEXT = 24 };

/* "512 B", "1.50 KiB", up to "1.00 TiB" and on in TiB. */
void bytes_format(uint64_t bytes, char out[BYTES_TEXT]);

#endif
