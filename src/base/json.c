#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"

static void new_line(struct json *j) {
    if (j->indent > 0)
        fprintf(j->out, "\n%*s", j->indent * j->depth, "");
}

/* The length of the UTF-8 sequence at s, or 0 if there is none: overlong forms, surrogates and
 * values past U+10FFFF are none. */
static size_t utf8_length(const unsigned char *s, size_t len) {
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static void write_escaped(FILE *out, unsigned char c) {
    static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *p = short_forms; *p; p += 2) {
        if ((unsigned char)*p == c) {
            fprintf(out, "\\%c", p[1]);
            return;
        }
    }
    fprintf(out, "\\u%04x", c);
}

static void write_quoted(FILE *out, const char *text, size_t len) {
    const unsigned char *s = (const unsigned char *)text;
    putc('"', out);
    for (size_t i = 0; i < len;) {
        size_t n = utf8_length(s + i, len - i);
        if (n == 0) {
            fputs("\xef\xbf\xbd", out);
            i++;
        } else if (n == 1 && (s[i] < 0x20 || s[i] == '"' || s[i] == '\\' || s[i] == 0x7f)) {
            write_escaped(out, s[i]);
            i++;
        } else {
            fwrite(s + i, 1, n, out);
            i += n;
        }
    }
    putc('"', out);
}

/* What stands before any value: comma, line break, key. */
static void start_value(struct json *j, const char *key) {
    int d = j->depth;
    assert(j->is_object[d] == (key != NULL));
    assert(d > 0 || !j->has_values[0]);
    if (j->has_values[d])
        fputs(j->indent ? "," : ", ", j->out);
    if (d > 0)
        new_line(j);
    j->has_values[d] = true;
    if (key) {
        write_quoted(j->out, key, strlen(key));
        fputs(": ", j->out);
    }
}

static void open_level(struct json *j, const char *key, bool object) {
    start_value(j, key);
    assert(j->depth + 1 < JSON_DEPTH_MAX);
    j->depth++;
    j->is_object[j->depth] = object;
    j->has_values[j->depth] = false;
    putc(object ? '{' : '[', j->out);
}

static void close_level(struct json *j, bool object) {
    assert(j->depth > 0 && j->is_object[j->depth] == object);
    bool filled = j->has_values[j->depth];
    j->depth--;
    if (filled)
        new_line(j);
    putc(object ? '}' : ']', j->out);
}

struct json json_begin(FILE *out, int indent) {
    return (struct json){ .out = out, .indent = indent };
}

enum rc json_end(struct json *j, struct err *e) {
    assert(j->depth == 0);
    putc('\n', j->out);
    return output_flush(j->out, "the JSON document", e);
}

void json_object_open(struct json *j, const char *key) {
    open_level(j, key, true);
}

void json_object_close(struct json *j) {
    close_level(j, true);
}

void json_array_open(struct json *j, const char *key) {
    open_level(j, key, false);
}

void json_array_close(struct json *j) {
    close_level(j, false);
}

void json_text(struct json *j, const char *key, const char *text, size_t len) {
    start_value(j, key);
    write_quoted(j->out, text, len);
}

void json_string(struct json *j, const char *key, const char *text) {
    if (text)
        json_text(j, key, text, strlen(text));
    else
        json_null(j, key);
}

void json_format(struct json *j, const char *key, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_string(j, key, n < 0 ? NULL : text);
}

void json_u64(struct json *j, const char *key, uint64_t value) {
    start_value(j, key);
    fprintf(j->out, "%" PRIu64, value);
}

void json_i64(struct json *j, const char *key, int64_t value) {
    start_value(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void json_double(struct json *j, const char *key, double value) {
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    /* The fewest digits that read back as the same number. */
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    /* A locale may have put a comma there; JSON wants a point. */
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.';
    start_value(j, key);
    fputs(text, j->out);
}

void json_bool(struct json *j, const char *key, bool value) {
    start_value(j, key);
    fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key) {
    start_value(j, key);
    fputs("null", j->out);
}
