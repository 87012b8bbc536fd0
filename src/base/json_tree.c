#include "base/json_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { DEPTH_MAX = 64 };

struct json_tree {
    struct arena arena;
    const struct json_node *root;
};

struct parser {
    const char *at, *end, *start, *name;
    size_t line; /* number of the first line, for messages */
    struct arena *arena;
    struct err *e;
};

static enum rc bad(struct parser *p, const char *expected) {
    size_t line = p->line, column = 1;
    for (const char *c = p->start; c < p->at; c++) {
        line += *c == '\n';
        column = *c == '\n' ? 1 : column + 1;
    }
    return err_set(p->e, RC_FORMAT, "%s: line %zu, column %zu: expected %s%s", p->name, line,
                   column, expected, p->at == p->end ? ", found the end of the text" : "");
}

static enum rc no_memory(struct parser *p) {
    return err_set(p->e, RC_MEMORY, "%s: out of memory", p->name);
}

static void skip_space(struct parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool accept(struct parser *p, char c) {
    skip_space(p);
    if (p->at >= p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

/* ---- strings ---- */

/* The four digits of \uXXXX; -1 if they are none. */
static int read_hex(struct parser *p) {
    int value = 0;
    if (p->end - p->at < 4)
        return -1;
    for (int i = 0; i < 4; i++, p->at++) {
        char c = *p->at;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static char *put_utf8(char *to, unsigned c) {
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* After "\u". An unpaired surrogate becomes U+FFFD. The 6 bytes of an escape become at most 3, the
 * 12 of a surrogate pair 4. */
static bool read_unicode(struct parser *p, char **to) {
    int c = read_hex(p), low;
    if (c < 0)
        return false;
    if (c >= 0xd800 && c < 0xdc00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
        const char *before = p->at;
        p->at += 2;
        low = read_hex(p);
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        else
            p->at = before;
    }
    *to = put_utf8(*to, c >= 0xd800 && c < 0xe000 ? 0xfffd : (unsigned)c);
    return true;
}

static bool read_escape(struct parser *p, char **to) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = *p->at++;
    if (c == 'u')
        return read_unicode(p, to);
    const char *found = c ? strchr(names, c) : NULL;
    if (found)
        *(*to)++ = values[found - names];
    return found != NULL;
}

static enum rc read_string(struct parser *p, const char **out, size_t *len) {
    if (!accept(p, '"'))
        return bad(p, "a string");
    const char *end = p->at;
    while (end < p->end && *end != '"')
        end += *end == '\\' && end + 1 < p->end ? 2 : 1;
    if (end >= p->end)
        return bad(p, "the end of a string");
    char *to = arena_alloc(p->arena, (size_t)(end - p->at) + 1); /* escapes only get shorter */
    if (!to)
        return no_memory(p);
    *out = to;
    while (p->at < end) {
        char c = *p->at++;
        if ((unsigned char)c < ' ')
            return bad(p, "no control character in a string");
        if (c != '\\')
            *to++ = c;
        else if (!read_escape(p, &to))
            return bad(p, "an escape that JSON has");
    }
    *to = '\0';
    *len = (size_t)(to - *out);
    p->at = end + 1;
    return RC_OK;
}

/* ---- values ---- */

static bool is_digit(const struct parser *p) {
    return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

static bool skip_digits(struct parser *p) {
    bool any = is_digit(p);
    while (is_digit(p))
        p->at++;
    return any;
}

static enum rc read_number(struct parser *p, struct json_node *n) {
    const char *start = p->at;
    bool negative = p->at < p->end && *p->at == '-', plain = true;
    p->at += negative;
    const char *digits = p->at;
    if (!skip_digits(p) || (*digits == '0' && p->at - digits > 1))
        return bad(p, "a value");
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        plain = false;
        if (!skip_digits(p))
            return bad(p, "digits after the point");
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        plain = false;
        p->at += p->at < p->end && (*p->at == '+' || *p->at == '-');
        if (!skip_digits(p))
            return bad(p, "digits of an exponent");
    }
    n->type = JSON_NUMBER;
    n->text = arena_copy_text(p->arena, start, (size_t)(p->at - start));
    if (!n->text)
        return no_memory(p);
    n->len = (size_t)(p->at - start);
    n->number = strtod(n->text, NULL);
    errno = 0;
    n->u64 = plain && !negative ? strtoull(n->text, NULL, 10) : 0;
    n->whole = plain && !negative && errno == 0;
    if (!n->whole)
        n->u64 = 0;
    return RC_OK;
}

static bool accept_word(struct parser *p, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static enum rc read_value(struct parser *p, struct json_node *n, int depth);

/* What an object or array holds; its bracket was taken. */
static enum rc read_members(struct parser *p, struct json_node *n, int depth) {
    char close = n->type == JSON_OBJECT ? '}' : ']';
    const struct json_node **link = &n->first;
    if (depth >= DEPTH_MAX)
        return bad(p, "less nesting");
    if (accept(p, close))
        return RC_OK;
    do {
        struct json_node *member = arena_alloc(p->arena, sizeof *member);
        if (!member)
            return no_memory(p);
        if (n->type == JSON_OBJECT) {
            size_t ignored;
            enum rc rc = read_string(p, &member->key, &ignored);
            if (rc)
                return rc;
            if (!accept(p, ':'))
                return bad(p, "':'");
        }
        enum rc rc = read_value(p, member, depth + 1);
        if (rc)
            return rc;
        *link = member;
        link = &member->next;
    } while (accept(p, ','));
    return accept(p, close) ? RC_OK : bad(p, close == '}' ? "',' or '}'" : "',' or ']'");
}

static enum rc read_value(struct parser *p, struct json_node *n, int depth) {
    n->text = "";
    skip_space(p);
    if (p->at < p->end && *p->at == '"') {
        n->type = JSON_STRING;
        return read_string(p, &n->text, &n->len);
    }
    bool object = accept(p, '{');
    if (object || accept(p, '[')) {
        n->type = object ? JSON_OBJECT : JSON_ARRAY;
        return read_members(p, n, depth);
    }
    if (accept_word(p, "null"))
        return RC_OK;
    n->boolean = accept_word(p, "true");
    if (n->boolean || accept_word(p, "false")) {
        n->type = JSON_BOOL;
        return RC_OK;
    }
    return read_number(p, n);
}

/* ---- documents ---- */

enum rc json_tree_open_line(json_tree **out, const char *text, size_t len, const char *name,
                            size_t line, struct err *e) {
    json_tree *t = calloc(1, sizeof *t);
    struct parser p = {
        .at = text, .end = text + len, .start = text, .name = name, .line = line, .e = e
    };
    struct json_node *root = t ? arena_alloc(&t->arena, sizeof *root) : NULL;
    if (!root) {
        json_tree_close(&t);
        return no_memory(&p);
    }
    p.arena = &t->arena;
    t->root = root;
    enum rc rc = read_value(&p, root, 0);
    if (rc == RC_OK) {
        skip_space(&p);
        if (p.at < p.end)
            rc = bad(&p, "nothing after the value");
    }
    if (rc == RC_OK)
        *out = t;
    else
        json_tree_close(&t);
    return rc;
}

enum rc json_tree_open(json_tree **out, const char *text, size_t len, const char *name,
                       struct err *e) {
    return json_tree_open_line(out, text, len, name, 1, e);
}

enum rc json_tree_open_file(json_tree **out, const char *path, struct err *e) {
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    char *text = NULL;
    size_t len = 0, room = 0, got = 0;
    enum rc rc = RC_OK;
    do {
        len += got;
        if (len == room) {
            room = room ? 2 * room : 1 << 14;
            char *more = realloc(text, room);
            if (!more) {
                rc = err_set(e, RC_MEMORY, "%s: out of memory", path);
                break;
            }
            text = more;
        }
        got = fread(text + len, 1, room - len, f);
    } while (got > 0);
    if (rc == RC_OK && ferror(f))
        rc = err_set(e, RC_IO, "%s: cannot be read: %s", path, strerror(errno));
    fclose(f);
    if (rc == RC_OK)
        rc = json_tree_open(out, text, len, path, e);
    free(text);
    return rc;
}

void json_tree_close(json_tree **t) {
    if (*t)
        arena_clear(&(*t)->arena);
    free(*t);
    *t = NULL;
}

const struct json_node *json_tree_root(const json_tree *t) {
    return t->root;
}

/* ---- looking things up ---- */

const struct json_node *json_tree_get(const struct json_node *n, const char *key) {
    if (!n || n->type != JSON_OBJECT)
        return NULL;
    for (const struct json_node *m = n->first; m; m = m->next)
        if (!strcmp(m->key, key))
            return m;
    return NULL;
}

const char *json_tree_text(const struct json_node *n, const char *key) {
    const struct json_node *m = json_tree_get(n, key);
    return m && m->type == JSON_STRING ? m->text : "";
}

uint64_t json_tree_u64(const struct json_node *n, const char *key) {
    const struct json_node *m = json_tree_get(n, key);
    return m && m->whole ? m->u64 : 0;
}

double json_tree_number(const struct json_node *n, const char *key) {
    const struct json_node *m = json_tree_get(n, key);
    return m && m->type == JSON_NUMBER ? m->number : 0;
}

bool json_tree_bool(const struct json_node *n, const char *key) {
    const struct json_node *m = json_tree_get(n, key);
    return m && m->type == JSON_BOOL && m->boolean;
}

static size_t count_members(const struct json_node *n) {
    size_t count = 0;
    for (const struct json_node *m = n->first; m; m = m->next)
        count++;
    return count;
}

bool json_tree_equal(const struct json_node *a, const struct json_node *b) {
    if (!a || !b)
        return a == b;
    if (a->type != b->type || a->boolean != b->boolean || a->len != b->len ||
        memcmp(a->text, b->text, a->len) != 0 || count_members(a) != count_members(b))
        return false;
    const struct json_node *other = b->first;
    for (const struct json_node *m = a->first; m; m = m->next) {
        if (!json_tree_equal(m, a->type == JSON_OBJECT ? json_tree_get(b, m->key) : other))
            return false;
        other = other ? other->next : NULL;
    }
    return true;
}
