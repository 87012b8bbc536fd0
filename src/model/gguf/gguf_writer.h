/* gguf_writer.h - writes a GGUF file (version 3) that appears whole or not at all.
 *
 * Use: open; add metadata and tensors; begin; write the data of every tensor, in any order and from
 * any thread; commit. Until gguf_writer_commit() the bytes live in a file without a name (or, where
 * the file system cannot do that, under a temporary one beside the target), so that a run that is
 * interrupted leaves nothing behind and never harms a file that was there before.
 *
 * Adding never fails by itself: the first problem is kept and reported by gguf_writer_begin(). Only
 * gguf_writer_write() may be called from several threads at once. */
#ifndef MODEL_GGUF_WRITER_H
#define MODEL_GGUF_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gguf/gguf.h"

typedef struct gguf_writer gguf_writer;

/* Prepares to write path. RC_IO if its folder cannot be written to, or if something that is not a
 * regular file is in the way. On failure *out is untouched. */
NODISCARD enum rc gguf_writer_open(gguf_writer **out, const char *path, struct err *e);

/* Frees the writer; without a commit before, everything written is gone. *w may be NULL. */
void gguf_writer_close(gguf_writer **w);

/* Metadata, in the order it will have in the file. Keys must be distinct: readers refuse
 * duplicates. */
void gguf_writer_add_u32(gguf_writer *w, const char *key, uint32_t value);
void gguf_writer_add_u64(gguf_writer *w, const char *key, uint64_t value);
void gguf_writer_add_f32(gguf_writer *w, const char *key, float value);
void gguf_writer_add_bool(gguf_writer *w, const char *key, bool value);
void gguf_writer_add_string(gguf_writer *w, const char *key, const char *text);
/* count elements of a fixed-width type, as they lie in memory. */
void gguf_writer_add_array(gguf_writer *w, const char *key, enum gguf_type type, const void *data,
                           uint64_t count);
void gguf_writer_add_strings(gguf_writer *w, const char *key, const struct gguf_string *strings,
                             uint64_t count);
/* A key of another file with its value, whatever it is. */
void gguf_writer_copy_key(gguf_writer *w, const struct gguf_key *key);

/* Declares the next tensor; returns its index. Data is laid out in this order, aligned to
 * general.alignment if that key was added, else to 32. */
uint64_t gguf_writer_add_tensor(gguf_writer *w, const char *name, enum tensor_type type,
                                uint32_t n_dims, const uint64_t *ne);

/* Writes the header and reserves the space. Afterwards nothing can be added. */
NODISCARD enum rc gguf_writer_begin(gguf_writer *w, struct err *e);

/* Writes bytes of a tensor's data at an offset within it; thread-safe after begin. */
NODISCARD enum rc gguf_writer_write(gguf_writer *w, uint64_t tensor, uint64_t offset,
                                    const void *data, uint64_t bytes, struct err *e);

/* Gives the finished file its name, replacing what was there. RC_RANGE if less data was written
 * than the tensors have; the file then does not appear. */
NODISCARD enum rc gguf_writer_commit(gguf_writer *w, struct err *e);

uint64_t gguf_writer_tensor_count(const gguf_writer *w);
enum tensor_type gguf_writer_tensor_type(const gguf_writer *w, uint64_t tensor);
uint64_t gguf_writer_tensor_elements(const gguf_writer *w, uint64_t tensor);

#endif
