#include "model/tokenizer/tokenizer_pre.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "model/tokenizer/utf8.h"

enum { PRE_MAX_EXPRESSIONS = 4 };

struct pre_kind {
    const char *names; /* separated by spaces */
    unsigned flags;
    const char *expressions[PRE_MAX_EXPRESSIONS];
};

static const struct pre_kind pre_kinds[] = {
#define TOKENIZER_PRE(names, flags, ...) { names, flags, { __VA_ARGS__ } },
#include "model/tokenizer/tokenizer_pre.def"
#undef TOKENIZER_PRE
};

struct tokenizer_pre {
    unsigned flags;
    size_t count;
    pcre2_code *expressions[PRE_MAX_EXPRESSIONS];
    pcre2_match_context *context;
};

static bool pre_names_contain(const char *names, const char *name, size_t len) {
    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, name, len) == 0)
            return true;
        at += n;
    }
    return false;
}

static const struct pre_kind *pre_find_kind(const char *name, size_t len, struct err *e) {
    if (len == 0) {
        name = "default";
        len = strlen(name);
    }
    const size_t count = sizeof pre_kinds / sizeof *pre_kinds;
    for (size_t i = 0; i < count; i++)
        if (pre_names_contain(pre_kinds[i].names, name, len))
            return &pre_kinds[i];
    char known[320] = "";
    for (size_t i = 0; i < count; i++) {
        strncat(known, pre_kinds[i].names, sizeof known - strlen(known) - 1);
        if (i + 1 < count)
            strncat(known, " ", sizeof known - strlen(known) - 1);
    }
    err_set(e, RC_UNSUPPORTED, "tokenizer.ggml.pre is '%.*s'; greta knows %s",
            (int)(len < 64 ? len : 64), name, known);
    return NULL;
}

static enum rc pre_compile(tokenizer_pre *p, const char *expression, struct err *e) {
    int code;
    PCRE2_SIZE at;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (!re) {
        char why[128] = "";
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return err_set(e, RC_UNSUPPORTED,
                       "this PCRE2 cannot compile a pre-tokenizer (%s at byte %zu); "
                       "greta needs PCRE2 10.30 or newer with Unicode support",
                       why, (size_t)at);
    }
    /* Where machine code is not possible or not permitted, PCRE2 interprets: slower, same result.
     */
    (void)pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);
    p->expressions[p->count++] = re;
    return RC_OK;
}

enum rc tokenizer_pre_open(tokenizer_pre **out, const char *name, size_t len, struct err *e) {
    const struct pre_kind *kind = pre_find_kind(name, len, e);
    if (!kind)
        return RC_UNSUPPORTED;
    enum rc rc = RC_MEMORY;
    tokenizer_pre *p = calloc(1, sizeof *p);
    if (!p || !(p->context = pcre2_match_context_create(NULL))) {
        err_set(e, rc, "no memory for the pre-tokenizer");
        goto fail;
    }
    /* The limit guards against runaway expressions. These backtrack over a run of blanks at most
     * once, but in a text of megabytes that may exceed the default. */
    pcre2_set_match_limit(p->context, UINT32_MAX);
    p->flags = kind->flags;
    for (size_t i = 0; i < PRE_MAX_EXPRESSIONS && kind->expressions[i]; i++)
        if ((rc = pre_compile(p, kind->expressions[i], e)) != RC_OK)
            goto fail;
    *out = p;
    return RC_OK;
fail:
    tokenizer_pre_close(&p);
    return rc;
}

void tokenizer_pre_close(tokenizer_pre **p) {
    if (!*p)
        return;
    for (size_t i = 0; i < (*p)->count; i++)
        pcre2_code_free((*p)->expressions[i]);
    pcre2_match_context_free((*p)->context);
    free(*p);
    *p = NULL;
}

unsigned tokenizer_pre_flags(const tokenizer_pre *p) {
    return p->flags;
}

enum pre_class { PRE_CLASS_L, PRE_CLASS_N, PRE_CLASS_M, PRE_CLASS_P, PRE_CLASS_S };

/* The old character of a class that stands in for new ones: three bytes long, four bytes long. */
static const uint32_t pre_stand_ins[][2] = {
    [PRE_CLASS_L] = { 0x4E00, 0x20000 }, [PRE_CLASS_N] = { 0x2160, 0x1D7CE },
    [PRE_CLASS_M] = { 0x20D0, 0x1D165 }, [PRE_CLASS_P] = { 0x2010, 0x10100 },
    [PRE_CLASS_S] = { 0x2200, 0x1F600 },
};

static const struct pre_range {
    uint32_t first, last;
    enum pre_class class;
} pre_ranges[] = {
#define UNICODE_RANGE(first, last, class) { first, last, PRE_CLASS_##class },
#include "model/tokenizer/tokenizer_unicode.def"
#undef UNICODE_RANGE
};

/* The character that PCRE2 is shown instead of cp: cp itself for nearly all, else one that it
 * surely knows and that is as long. */
static uint32_t pre_stand_in(uint32_t cp) {
    if (cp < pre_ranges[0].first)
        return cp;
    if (cp >= 0xD800 && cp <= 0xDFFF)
        return UTF8_REPLACEMENT; /* PCRE2 rejects surrogates */
    size_t low = 0, high = sizeof pre_ranges / sizeof *pre_ranges;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (cp > pre_ranges[mid].last)
            low = mid + 1;
        else if (cp < pre_ranges[mid].first)
            high = mid;
        else
            return pre_stand_ins[pre_ranges[mid].class][cp >= 0x10000];
    }
    return cp;
}

/* Reads a character as the tools that made the reference lists do: by the pattern of lead and
 * continuation bytes alone, so that overlong forms and surrogates pass. Everything else is U+FFFD,
 * one byte at a time. */
static size_t pre_decode(const char *s, size_t n, uint32_t *cp) {
    const unsigned char *b = (const unsigned char *)s;
    size_t total = b[0] < 0x80 ? 1 : b[0] < 0xC0 ? 0 : b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
    if (total == 1) {
        *cp = b[0];
        return 1;
    }
    *cp = UTF8_REPLACEMENT;
    if (total == 0 || total > n || b[0] >= 0xF8)
        return 1;
    uint32_t value = b[0] & (0x7Fu >> total);
    for (size_t i = 1; i < total; i++) {
        if ((b[i] & 0xC0) != 0x80)
            return 1;
        value = value << 6 | (b[i] & 0x3Fu);
    }
    if (value > 0x10FFFF)
        return 1;
    *cp = value;
    return total;
}

/* True if PCRE2 can be given the text as it is. */
static bool pre_is_plain(const char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = (unsigned char)text[i] < 0x80 ? 1 : utf8_decode(text + i, len - i, &cp);
        if (n == 0 || (n > 1 && pre_stand_in(cp) != cp))
            return false;
        i += n;
    }
    return true;
}

/* Makes the corrected text and, after it, the text to match, which is as long. */
static enum rc pre_correct(const char *text, size_t len, struct tokenizer_words *words,
                           size_t *corrected, const char **match, struct err *e) {
    size_t room = 3 * len; /* a byte may become U+FFFD */
    char *copies = malloc(2 * room);
    if (!copies)
        return err_set(e, RC_MEMORY, "no memory to correct a text of %zu bytes", len);
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        char bytes[4];
        i += pre_decode(text + i, len - i, &cp);
        size_t count = utf8_encode(cp, bytes);
        memcpy(copies + n, bytes, count);
        utf8_encode(pre_stand_in(cp), bytes);
        memcpy(copies + room + n, bytes, count);
        n += count;
    }
    words->copies = copies;
    words->text = copies;
    *corrected = n;
    *match = copies + room;
    return RC_OK;
}

struct pre_ends {
    uint32_t *end;
    size_t count, room;
};

static bool pre_ends_add(struct pre_ends *list, uint32_t end) {
    uint32_t *grown = grow_array(list->end, &list->room, list->count, sizeof *grown);
    if (!grown)
        return false;
    list->end = grown;
    list->end[list->count++] = end;
    return true;
}

/* Finds the next match in text[from] to text[to]; nothing beyond that exists for it. Returns 1, 0,
 * or PCRE2's negative error. */
static int pre_match(const tokenizer_pre *p, size_t which, const char *text, uint32_t from,
                     uint32_t to, pcre2_match_data *data) {
    PCRE2_SPTR subject = (PCRE2_SPTR)text + from;
    int rc = pcre2_match(p->expressions[which], subject, to - from, 0, PCRE2_NO_UTF_CHECK, data,
                         p->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(p->expressions[which], subject, to - from, 0,
                         PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, p->context);
    return rc == PCRE2_ERROR_NOMATCH ? 0 : rc < 0 ? rc : 1;
}

/* Cuts text[from] to text[to] by one expression. */
static enum rc pre_cut(const tokenizer_pre *p, size_t which, const char *text, uint32_t from,
                       uint32_t to, pcre2_match_data *data, struct pre_ends *out, struct err *e) {
    while (from < to) {
        int rc = pre_match(p, which, text, from, to, data);
        if (rc < 0) {
            char why[128] = "";
            pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
            return err_set(e, RC_MEMORY, "pre-tokenizer stopped at byte %u of the text: %s", from,
                           why);
        }
        uint32_t first = to, last = to;
        const PCRE2_SIZE *found = pcre2_get_ovector_pointer(data);
        if (rc > 0 && found[1] > 0) {
            first = from + (uint32_t)found[0];
            last = from + (uint32_t)found[1];
        }
        if ((first > from && !pre_ends_add(out, first)) ||
            (last > first && !pre_ends_add(out, last)))
            return err_set(e, RC_MEMORY, "no memory for the words of a text");
        from = last;
    }
    return RC_OK;
}

static enum rc pre_cut_all(const tokenizer_pre *p, const char *text, uint32_t len,
                           pcre2_match_data *data, struct pre_ends *ends, struct err *e) {
    struct pre_ends next = { 0 };
    enum rc rc = pre_ends_add(ends, len) ? RC_OK : err_set(e, RC_MEMORY, "no memory for words");
    for (size_t which = 0; rc == RC_OK && which < p->count; which++) {
        next.count = 0;
        uint32_t from = 0;
        for (size_t i = 0; rc == RC_OK && i < ends->count; i++) {
            rc = pre_cut(p, which, text, from, ends->end[i], data, &next, e);
            from = ends->end[i];
        }
        struct pre_ends swap = *ends;
        *ends = next;
        next = swap;
    }
    free(next.end);
    return rc;
}

enum rc tokenizer_pre_split(const tokenizer_pre *p, const char *text, size_t len,
                            struct tokenizer_words *words, struct err *e) {
    *words = (struct tokenizer_words){ .text = text };
    if (len == 0)
        return RC_OK;
    if (len > INT32_MAX / 4)
        return err_set(e, RC_RANGE, "a text of %zu bytes is longer than greta tokenizes", len);
    const char *match = text;
    enum rc rc = RC_OK;
    struct pre_ends ends = { 0 };
    pcre2_match_data *data = NULL;
    if (!pre_is_plain(text, len) && (rc = pre_correct(text, len, words, &len, &match, e)) != RC_OK)
        goto fail;
    data = pcre2_match_data_create(1, NULL);
    if (!data) {
        rc = err_set(e, RC_MEMORY, "no memory for the pre-tokenizer");
        goto fail;
    }
    if ((rc = pre_cut_all(p, match, (uint32_t)len, data, &ends, e)) != RC_OK)
        goto fail;
    pcre2_match_data_free(data);
    words->end = ends.end;
    words->count = ends.count;
    return RC_OK;
fail:
    pcre2_match_data_free(data);
    free(ends.end);
    tokenizer_words_close(words);
    return rc;
}

void tokenizer_words_close(struct tokenizer_words *words) {
    free(words->end);
    free(words->copies);
    *words = (struct tokenizer_words){ 0 };
}
