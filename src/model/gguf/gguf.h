/* gguf.h - read-only view of a GGUF model, versions 2 and 3, in one file or several.
 *
 * The file is memory-mapped; strings, number arrays and tensor data point into the mapping and stay
 * valid until gguf_close(). Everything a file says is checked when it is opened: every count,
 * length and offset against the bytes that are there, duplicates, overlaps, alignment. What this
 * interface hands out afterwards needs no further checks. The exception is a file that is truncated
 * while it is mapped (the kernel sends SIGBUS).
 *
 * A gguf is immutable once open: any number of threads may read it. Opening and closing are not
 * thread-safe. */
#ifndef MODEL_GGUF_H
#define MODEL_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/quant/tensor_type.h"

typedef struct gguf gguf;

enum {
    GGUF_MAX_DIMS = 4,
    GGUF_MAX_NAME = 64,          /* bytes of a tensor name */
    GGUF_MAX_DEPTH = 8,          /* arrays inside arrays */
    GGUF_DEFAULT_ALIGNMENT = 32, /* where general.alignment is not given */
};

/* Values are those of the file format. */
enum gguf_type {
    GGUF_U8 = 0,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT,
};

/* Bytes in the mapping: no terminator, any content. */
struct gguf_string {
    const char *data;
    uint64_t len;
};

/* Elements are reached through gguf_array_*(), because numbers lie unaligned in the file. */
struct gguf_array {
    enum gguf_type type; /* of the elements */
    uint64_t count;
    union {
        const uint8_t *numbers;            /* as in the file, packed */
        const struct gguf_string *strings; /* GGUF_STRING */
        const struct gguf_array *arrays;   /* GGUF_ARRAY */
    };
};

struct gguf_value {
    enum gguf_type type;
    union {
        uint64_t u; /* GGUF_U8..GGUF_U64 */
        int64_t i;  /* GGUF_I8..GGUF_I64 */
        double f;   /* GGUF_F32, GGUF_F64 */
        bool b;
        struct gguf_string string;
        struct gguf_array array;
    };
};

struct gguf_key {
    struct gguf_string name; /* printable ASCII */
    uint64_t offset;         /* of the key in its file, for messages */
    struct gguf_value value;
};

struct gguf_tensor {
    char name[GGUF_MAX_NAME + 1]; /* printable, terminated */
    enum tensor_type type;
    uint32_t n_dims;            /* 1 to GGUF_MAX_DIMS */
    uint64_t ne[GGUF_MAX_DIMS]; /* elements, fastest dimension first; 1 beyond n_dims */
    uint64_t elements;          /* product of ne, below 2^63 */
    uint64_t bytes;             /* of data */
    const void *data;           /* aligned as the file aligns it, not as C would */
    uint32_t part;              /* which file of a split model, from 0 */
    uint64_t offset;            /* of data in that file */
};

/* Opens path, and with it all parts of a split model if path is the first of them
 * ("name-00001-of-00003.gguf"). On failure *out is untouched and e names file, field and offset:
 * RC_IO if a file cannot be read, RC_FORMAT if its content is wrong, RC_UNSUPPORTED for version 1
 * and big-endian files. */
NODISCARD enum rc gguf_open(gguf **out, const char *path, struct err *e);

/* The same over bytes that the caller owns and keeps until gguf_close(); name serves for messages.
 * A split model is RC_FORMAT: its other parts have no name here. */
NODISCARD enum rc gguf_open_memory(gguf **out, const void *data, size_t size, const char *name,
                                   struct err *e);

void gguf_close(gguf **g); /* sets *g to NULL; *g may be NULL */

const char *gguf_path(const gguf *g);                     /* as given to gguf_open */
uint32_t gguf_version(const gguf *g);                     /* 2 or 3 */
uint32_t gguf_alignment(const gguf *g);                   /* of the first file */
uint32_t gguf_part_count(const gguf *g);                  /* files, at least 1 */
const char *gguf_part_path(const gguf *g, uint32_t part); /* part < gguf_part_count() */
uint64_t gguf_file_bytes(const gguf *g);                  /* all files together */

/* Metadata of the first file, in file order. Indexes are below the count. */
uint64_t gguf_key_count(const gguf *g);
const struct gguf_key *gguf_key_at(const gguf *g, uint64_t index);
const struct gguf_key *gguf_find_key(const gguf *g, const char *name); /* NULL if absent */

/* Tensors of all files, in file order, as one array; O(log n) by name. */
uint64_t gguf_tensor_count(const gguf *g);
const struct gguf_tensor *gguf_tensor_at(const gguf *g, uint64_t index);
const struct gguf_tensor *gguf_find_tensor(const gguf *g, const char *name); /* NULL if absent */

/* Takes a tensor's data out of this process's memory, where it may still lie in the system's cache
 * of the file; the next access brings it back. Does nothing for a gguf over the caller's bytes. */
void gguf_release_tensor(const gguf *g, const struct gguf_tensor *t);

/* Typed access to one key. A key that is absent is RC_FORMAT, as is a value of another kind or
 * out of range; *out is then untouched. u64 takes every non-negative integer, f64 every number. */
NODISCARD enum rc gguf_get_u32(const gguf *g, const char *key, uint32_t *out, struct err *e);
NODISCARD enum rc gguf_get_f64(const gguf *g, const char *key, double *out, struct err *e);
NODISCARD enum rc gguf_get_bool(const gguf *g, const char *key, bool *out, struct err *e);
NODISCARD enum rc gguf_get_string(const gguf *g, const char *key, struct gguf_string *out,
                                  struct err *e);
/* An array whose elements are of type `type`. */
NODISCARD enum rc gguf_get_array(const gguf *g, const char *key, enum gguf_type type,
                                 const struct gguf_array **out, struct err *e);

/* The same for keys that may be absent: *out keeps the caller's default then, and all is well. A
 * key of the wrong kind is still an error. */
NODISCARD enum rc gguf_try_u64(const gguf *g, const char *key, uint64_t *out, struct err *e);
NODISCARD enum rc gguf_try_u32(const gguf *g, const char *key, uint32_t *out, struct err *e);
NODISCARD enum rc gguf_try_f64(const gguf *g, const char *key, double *out, struct err *e);
NODISCARD enum rc gguf_try_string(const gguf *g, const char *key, struct gguf_string *out,
                                  struct err *e);

/* Element i (below count) of an array of numbers or booleans, widened; 0 for other arrays. A
 * negative integer is converted to unsigned modulo 2^64 by _u64. */
uint64_t gguf_array_u64(const struct gguf_array *a, uint64_t i);
int64_t gguf_array_i64(const struct gguf_array *a, uint64_t i);
double gguf_array_f64(const struct gguf_array *a, uint64_t i);

/* Bytes of one element in the file; 0 for strings and arrays. */
uint32_t gguf_type_bytes(enum gguf_type type);
const char *gguf_type_name(enum gguf_type type); /* "u32", "string", ... */

/* True if s and the C string are the same bytes. */
bool gguf_string_is(struct gguf_string s, const char *text);

#endif
