/* json_tree.h - reads a JSON document into a tree.
 *
 * For small files that greta or a user wrote: the whole document is in memory, nodes and texts
 * belong to the tree and live until json_tree_close(). Strict: what RFC 8259 does not allow is
 * RC_FORMAT with line and column (in bytes). Nesting is bounded, so that no input can exhaust the
 * stack. Of a duplicate key, the first is found.
 *
 * A tree may be read by any number of threads. */
#ifndef BASE_JSON_TREE_H
#define BASE_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_node {
    enum json_type type;
    bool boolean;
    bool whole; /* the number is one from 0 to UINT64_MAX without fraction and exponent: u64 */
    double number;
    uint64_t u64;
    const char *text;              /* JSON_STRING, JSON_NUMBER: as it stands in the file; else "" */
    size_t len;                    /* of text, which holds a zero byte for every \u0000 */
    const char *key;               /* of a member of an object; else NULL */
    const struct json_node *first; /* of an array or object; NULL: empty */
    const struct json_node *next;  /* its neighbour */
};

typedef struct json_tree json_tree;

/* name: of the document, for messages. RC_FORMAT, RC_MEMORY; on failure *out is untouched. */
NODISCARD enum rc json_tree_open(json_tree **out, const char *text, size_t len, const char *name,
                                 struct err *e);
/* The same for a document that begins at that line of a file, as messages then count. */
NODISCARD enum rc json_tree_open_line(json_tree **out, const char *text, size_t len,
                                      const char *name, size_t line, struct err *e);
/* The same from a file; RC_IO too. */
NODISCARD enum rc json_tree_open_file(json_tree **out, const char *path, struct err *e);
void json_tree_close(json_tree **t); /* sets *t to NULL; *t may be NULL */

const struct json_node *json_tree_root(const json_tree *t);

/* The member of an object. NULL if there is none, and if n is NULL or no object: calls nest. */
const struct json_node *json_tree_get(const struct json_node *n, const char *key);

/* A member's value; what is not there or has another type is "", 0 or false. */
const char *json_tree_text(const struct json_node *n, const char *key);
uint64_t json_tree_u64(const struct json_node *n, const char *key);
double json_tree_number(const struct json_node *n, const char *key);
bool json_tree_bool(const struct json_node *n, const char *key);

/* The same value: members of objects in any order, numbers by their text. Two NULLs are the same.
 */
bool json_tree_equal(const struct json_node *a, const struct json_node *b);

#endif
