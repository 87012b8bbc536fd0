/* option_kind.c - how texts of the command line become values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/env.h"
#include "tools/common/option.h"

static enum rc read_switch(void *to, const char *text, void *all, struct err *e) {
    (void)text, (void)all, (void)e;
    *(bool *)to = true;
    return RC_OK;
}

static enum rc read_text(void *to, const char *text, void *all, struct err *e) {
    (void)all, (void)e;
    *(const char **)to = text;
    return RC_OK;
}

static enum rc read_device(void *to, const char *text, void *all, struct err *e) {
    bool known = !strcmp(text, "auto") || !strcmp(text, "hip") || !strcmp(text, "soft");
    return known ? read_text(to, text, all, e) : err_set(e, RC_USAGE, "auto, hip or soft");
}

static enum rc read_exec(void *to, const char *text, void *all, struct err *e) {
    bool known = !strcmp(text, "native") || !strcmp(text, "isa");
    return known ? read_text(to, text, all, e) : err_set(e, RC_USAGE, "native or isa");
}

static enum rc read_kv_type(void *to, const char *text, void *all, struct err *e) {
    bool known = !strcasecmp(text, "F16") || !strcasecmp(text, "Q8_0");
    return known ? read_text(to, text, all, e) : err_set(e, RC_USAGE, "F16 or Q8_0");
}

static enum rc read_list(void *to, const char *text, void *all, struct err *e) {
    struct option_list *list = to;
    (void)all;
    if (list->count == OPTION_LIST_MAX || !*text)
        return err_set(e, RC_USAGE, "at most %d texts, none empty", OPTION_LIST_MAX);
    list->items[list->count++] = text;
    return RC_OK;
}

/* Digits up to a comma or the end; returns where they end, or NULL. */
static const char *read_digits(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    bool good = !errno && *text >= '0' && *text <= '9' && (!*end || *end == ',');
    return good ? end : NULL;
}

static enum rc read_count(void *to, const char *text, void *all, struct err *e) {
    struct option_count *count = to;
    (void)all;
    const char *end = read_digits(text, &count->value);
    count->given = true;
    if (end && !*end)
        return RC_OK;
    return err_set(e, RC_USAGE, "%s",
                   text[0] == '-'    ? "a whole number that is not negative"
                   : errno == ERANGE ? "a smaller number"
                                     : "a whole number");
}

static enum rc read_counts(void *to, const char *text, void *all, struct err *e) {
    struct option_counts *list = to;
    (void)all;
    list->count = 0;
    for (;; text++) {
        uint64_t value;
        text = read_digits(text, &value);
        if (!text || value > UINT32_MAX)
            return err_set(e, RC_USAGE, "whole numbers with commas between them");
        if (list->count == OPTION_LIST_MAX)
            return err_set(e, RC_USAGE, "at most %d numbers", OPTION_LIST_MAX);
        list->items[list->count++] = (uint32_t)value;
        if (!*text)
            return RC_OK;
    }
}

static bool parse_double(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end;
}

static enum rc read_number(void *to, const char *text, void *all, struct err *e) {
    struct option_number *number = to;
    (void)all;
    number->given = true;
    return parse_double(text, &number->value) ? RC_OK : err_set(e, RC_USAGE, "a number");
}

static enum rc read_integer(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    return env_parse_u64(text, to) ? RC_OK : err_set(e, RC_USAGE, "a number");
}

static enum rc read_size(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    return env_parse_u64(text, to) ? RC_OK : err_set(e, RC_USAGE, "bytes such as 512M");
}

static enum rc read_threads(void *to, const char *text, void *all, struct err *e) {
    uint64_t n;
    (void)all;
    const char *end = read_digits(text, &n);
    if (!end || *end || n < 1 || n > 256)
        return err_set(e, RC_USAGE, "1 to 256");
    *(unsigned *)to = (unsigned)n;
    return RC_OK;
}

static enum rc read_wait(void *to, const char *text, void *all, struct err *e) {
    double *seconds = to;
    (void)all;
    return parse_double(text, seconds) && *seconds >= 0 && *seconds < 1e9
               ? RC_OK
               : err_set(e, RC_USAGE, "seconds");
}

static enum rc read_timeout(void *to, const char *text, void *all, struct err *e) {
    enum rc rc = read_wait(to, text, all, e);
    return !rc && *(double *)to == 0 ? err_set(e, RC_USAGE, "seconds") : rc;
}

const struct option_kind option_switch = { .read = read_switch, .bare = true };
const struct option_kind option_text = { .read = read_text };
const struct option_kind option_optional = { .read = read_text, .optional = true };
const struct option_kind option_device = { .read = read_device, .choices = "auto hip soft" };
const struct option_kind option_exec = { .read = read_exec, .choices = "native isa" };
const struct option_kind option_kv_type = { .read = read_kv_type, .choices = "F16 Q8_0" };
const struct option_kind option_list = { .read = read_list, .several = true };
const struct option_kind option_count = { .read = read_count };
const struct option_kind option_counts = { .read = read_counts };
const struct option_kind option_number = { .read = read_number };
const struct option_kind option_integer = { .read = read_integer };
const struct option_kind option_size = { .read = read_size };
const struct option_kind option_threads = { .read = read_threads };
const struct option_kind option_wait = { .read = read_wait };
const struct option_kind option_timeout = { .read = read_timeout };
