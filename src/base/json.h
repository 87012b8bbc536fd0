/* json.h - writes JSON to a stream, value by value.
 *
 * The writer takes care of commas, quotes, escapes and indentation; the caller of nesting. Inside
 * an object every value has a key, inside an array and at the top key is NULL; breaking that, or
 * closing what is not open, is a bug of the caller and fails an assert. Text is UTF-8; bytes that
 * are not become U+FFFD, so that the output is always valid. Output errors stay in the stream until
 * json_end.
 *
 * The stream stays the caller's. Not thread-safe. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { JSON_DEPTH_MAX = 64 };

struct json {
    FILE *out;
    int indent; /* spaces per level; 0: everything on one line */
    int depth;
    bool has_values[JSON_DEPTH_MAX]; /* whether the level needs a comma before the next value */
    bool is_object[JSON_DEPTH_MAX];
};

/* A writer at the top level of a new document. */
struct json json_begin(FILE *out, int indent);

/* Ends the document with a newline. RC_IO if the stream has failed at any time. */
NODISCARD enum rc json_end(struct json *j, struct err *e);

void json_object_open(struct json *j, const char *key);
void json_object_close(struct json *j);
void json_array_open(struct json *j, const char *key);
void json_array_close(struct json *j);

void json_string(struct json *j, const char *key, const char *text); /* NULL text: null */
void json_text(struct json *j, const char *key, const char *text, size_t len);
void json_format(struct json *j, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))); /* a string, cut at 1023 bytes */
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value); /* NaN and infinities: null */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
