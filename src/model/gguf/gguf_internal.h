/* gguf_internal.h - what the files of this folder share. Not for other modules. */
#ifndef MODEL_GGUF_INTERNAL_H
#define MODEL_GGUF_INTERNAL_H

#include "model/gguf/gguf.h"

/* One file of a model: its bytes and what stands in its header. */
struct gguf_file {
    char *path;          /* owned */
    const uint8_t *data; /* size bytes */
    uint64_t size;
    bool mapped; /* data is ours to unmap */
    uint32_t version, alignment;
    struct gguf_key *keys; /* owned, with the tables of their arrays */
    uint64_t key_count;
    uint32_t *key_order;         /* owned: indexes of keys by name */
    struct gguf_tensor *tensors; /* owned */
    uint64_t tensor_count;
};

/* Reads the header, keys and tensor list of f->data into f. On failure f holds what was read so
 * far; gguf_file_clear() frees it. */
NODISCARD enum rc gguf_parse_file(struct gguf_file *f, struct err *e);

/* Frees everything in f, unmaps it, and leaves it zeroed. */
void gguf_file_clear(struct gguf_file *f);

/* The key of that name in f, or NULL. */
const struct gguf_key *gguf_file_find_key(const struct gguf_file *f, const char *name);

/* The conversions behind gguf_get_*: k was found in the file called path. */
enum rc gguf_value_u64(const char *path, const struct gguf_key *k, uint64_t *out, struct err *e);
enum rc gguf_value_f64(const char *path, const struct gguf_key *k, double *out, struct err *e);
/* RC_FORMAT: the key does not hold what was expected. */
enum rc gguf_wrong_kind(const char *path, const struct gguf_key *k, const char *expected,
                        struct err *e);

#endif
