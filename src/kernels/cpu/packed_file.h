/* packed_file.h - repacked matrices (pack.h) in a file that the next start of the engine maps.
 *
 * There is one file per model file, "packed-<hash of its path>.gpk", in a folder of the user's
 * choice. It belongs to a model, a version of greta and a layout: its key is a hash of the names,
 * shapes, types and places of all tensors, of the sizes and times of the model's files, of a sample
 * of every tensor, of pack.def and of greta's version. All instruction sets read the same layout.
 * A file with another key, a wrong length or a wrong hash anywhere is treated as absent.
 *
 *   ┌ header, one page ┐┌ matrix ┐┌ matrix ┐ …  ┌ table: name, place, bytes and hash of each ┐
 *     magic, key, hashes  each from a page on
 *
 * A file appears whole or not at all: it is written under another name, brought to the disk and
 * renamed, so that of two writers the last one wins. Only reading is thread-safe. */
#ifndef KERNELS_CPU_PACKED_FILE_H
#define KERNELS_CPU_PACKED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gguf/gguf.h"

typedef struct packed_file packed_file;
typedef struct packed_writer packed_writer;

/* Bytes that are done and bytes there are; returns false to give up. */
typedef bool (*packed_progress)(uint64_t done, uint64_t total, void *user);

/* Where the file of a model is, in `folder`, or if that is NULL in greta's cache folder, which is
 * made. RC_IO if there is no such folder. */
enum { PACKED_PATH_BYTES = 4096 };
NODISCARD enum rc packed_path(const char *folder, const gguf *g, char path[PACKED_PATH_BYTES],
                              struct err *e);

/* Maps the file and checks every byte of it. RC_IO if there is none or it cannot be read,
 * RC_FORMAT if it is damaged, cut short or of another model or version, RC_BUSY if progress said
 * stop. */
NODISCARD enum rc packed_open(packed_file **out, const char *path, const gguf *g,
                              packed_progress progress, void *user, struct err *e);
/* A matrix by name; NULL if the file has none of that name and size. */
const void *packed_find(const packed_file *f, const char *name, uint64_t bytes);
void packed_close(packed_file **f); /* sets *f to NULL; *f may be NULL */

/* Begins a file for a model; nothing is seen of it until packed_commit(). */
NODISCARD enum rc packed_create(packed_writer **out, const char *path, const gguf *g,
                                struct err *e);
/* Packs a matrix of the model, or rows of one, and appends it. */
NODISCARD enum rc packed_add(packed_writer *w, const char *name, const struct gguf_tensor *t,
                             struct err *e);
/* Frees the writer in any case. On failure (a full disk, say) the old file is still there. */
NODISCARD enum rc packed_commit(packed_writer **w, struct err *e);
void packed_discard(packed_writer **w); /* sets *w to NULL; *w may be NULL */

#endif
