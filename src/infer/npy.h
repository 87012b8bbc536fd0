/* npy.h - arrays as .npy files (NumPy format 1.0, little-endian, C order). Not thread-safe. */
#ifndef INFER_NPY_H
#define INFER_NPY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/output.h"

enum npy_type { NPY_F32, NPY_I32 };

/* A file that grows row by row: [rows, width], or [rows] if width is 0. The header is written with
 * the final number of rows by npy_close. */
struct npy {
    struct output out;
    enum npy_type type;
    uint64_t width, rows;
};

NODISCARD enum rc npy_open(struct npy *n, const char *path, enum npy_type type, uint64_t width,
                           struct err *e);
/* count rows of 4-byte elements. */
NODISCARD enum rc npy_add(struct npy *n, const void *rows, uint64_t count, struct err *e);
/* The file appears under its name; with rc, which is what went wrong before, it does not, and rc is
 * returned. Closes in any case; a zeroed struct is fine. */
NODISCARD enum rc npy_close(struct npy *n, enum rc rc, struct err *e);

#endif
