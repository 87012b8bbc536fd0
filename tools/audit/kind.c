#include "tools/audit/kind.h"

#include <string.h>

/* Stores the text if it is valid. */
static enum rc keep_if(bool good, void *to, const char *text, const char *expected, struct err *e) {
    *(const char **)to = text;
    return good ? RC_OK : err_set(e, RC_USAGE, "%s", expected);
}

static enum rc read_lang(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    return lang_parse(text, to) ? RC_OK : err_set(e, RC_USAGE, "en or es");
}

static enum rc read_word(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    return keep_if(*text, to, text, "a value", e);
}

static enum rc read_folder(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    return keep_if(*text, to, text, "a folder", e);
}

static enum rc read_name(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    bool good = *text && !strchr(text, '/') && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
    return keep_if(good, to, text, "a file name", e);
}

static bool is_hexadecimal(const char *text) {
    return *text && !text[strspn(text, "0123456789abcdefABCDEF")];
}

static enum rc read_commit(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    return keep_if(is_hexadecimal(text) && strlen(text) >= 7, to, text, "7 digits or more", e);
}

static enum rc read_model_hash(void *to, const char *text, void *all, struct err *e) {
    (void)all;
    return keep_if(is_hexadecimal(text), to, text, "hexadecimal digits", e);
}

const struct option_kind option_lang = { .read = read_lang, .choices = "en es" };
const struct option_kind option_word = { .read = read_word };
const struct option_kind option_folder = { .read = read_folder };
const struct option_kind option_name = { .read = read_name };
const struct option_kind option_commit = { .read = read_commit };
const struct option_kind option_model_hash = { .read = read_model_hash };
