/* Tokens to text. */
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer_internal.h"

/* The byte that a token text "<0xNN>" stands for, or -1. */
static int byte_of(const char *text, size_t len) {
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    int value = 0;
    for (size_t i = 3; i < 5; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* U+2581 becomes a space. Returns the bytes written, at most len. */
static size_t piece_of_spm(const char *text, size_t len, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        if (len - i >= 3 && memcmp(text + i, "\xE2\x96\x81", 3) == 0) {
            out[n++] = ' ';
            i += 3;
        } else {
            out[n++] = text[i++];
        }
    }
    return n;
}

/* Characters of the alphabet become the bytes they stand for; others stay what they are. */
static size_t piece_of_bpe(const char *text, size_t len, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t count = utf8_decode(text + i, len - i, &cp);
        int byte = count ? tokenizer_bpe_byte(cp) : -1;
        if (byte >= 0) {
            out[n++] = (char)byte;
        } else {
            count = count ? count : 1;
            memcpy(out + n, text + i, count);
            n += count;
        }
        i += count;
    }
    return n;
}

static size_t piece_of(const tokenizer *t, uint32_t id, char *out) {
    const char *text = vocab_table_text(&t->tokens, id);
    size_t len = vocab_table_length(&t->tokens, id);
    uint8_t is = t->attributes[id];
    if (is & (TOKEN_SPECIAL | TOKEN_USER_DEFINED)) {
        memcpy(out, text, len);
        return len;
    }
    if (is & TOKEN_NORMAL)
        return t->kind == TOKENIZER_SPM ? piece_of_spm(text, len, out)
                                        : piece_of_bpe(text, len, out);
    int byte = is & TOKEN_BYTE ? byte_of(text, len) : -1;
    if (byte >= 0) {
        out[0] = (char)byte;
        return 1;
    }
    return 0; /* unused tokens say nothing */
}

enum rc tokenizer_build_pieces(tokenizer *t, struct err *e) {
    uint32_t count = t->tokens.count;
    t->pieces = malloc((size_t)t->tokens.start[count] + 1);
    t->piece_start = malloc(((size_t)count + 1) * sizeof *t->piece_start);
    if (!t->pieces || !t->piece_start)
        return err_set(e, RC_MEMORY, "no memory for the texts of %u tokens", count);
    uint32_t at = 0;
    for (uint32_t id = 0; id < count; id++) {
        t->piece_start[id] = at;
        at += (uint32_t)piece_of(t, id, t->pieces + at);
    }
    t->piece_start[count] = at;
    return RC_OK;
}

struct gguf_string tokenizer_piece(const tokenizer *t, int32_t id) {
    if (id < 0 || (uint32_t)id >= t->tokens.count)
        return (struct gguf_string){ 0 };
    uint32_t start = t->piece_start[id];
    return (struct gguf_string){ t->pieces + start, t->piece_start[id + 1] - start };
}

void tokenizer_decoder_init(struct tokenizer_decoder *d, const tokenizer *t, bool whole,
                            bool show_control) {
    *d = (struct tokenizer_decoder){ .tokenizer = t,
                                     .show_control = show_control,
                                     .strip_space = whole && t->add_space_prefix };
}

static enum rc token_text_reserve(struct token_text *text, size_t more, struct err *e) {
    if (text->room - text->len >= more)
        return RC_OK;
    size_t room = text->len + more > 2 * text->room ? text->len + more : 2 * text->room;
    char *data = realloc(text->data, room);
    if (!data)
        return err_set(e, RC_MEMORY, "no memory for a text of %zu bytes", room);
    text->data = data;
    text->room = room;
    return RC_OK;
}

enum rc token_text_add(struct token_text *text, const char *s, size_t len, struct err *e) {
    enum rc rc = token_text_reserve(text, len, e);
    if (rc == RC_OK && len > 0) {
        memcpy(text->data + text->len, s, len);
        text->len += len;
    }
    return rc;
}

void token_text_close(struct token_text *text) {
    free(text->data);
    *text = (struct token_text){ 0 };
}

enum rc tokenizer_decoder_push(struct tokenizer_decoder *d, int32_t id, struct token_text *out,
                               struct err *e) {
    const tokenizer *t = d->tokenizer;
    if (id < 0 || (uint32_t)id >= t->tokens.count)
        return err_set(e, RC_RANGE, "token %d is outside the vocabulary of %u tokens", id,
                       t->tokens.count);
    bool special = t->attributes[id] & TOKEN_SPECIAL;
    struct gguf_string piece = tokenizer_piece(t, id);
    if ((special && !d->show_control) || piece.len == 0)
        return RC_OK;
    enum rc rc = token_text_reserve(out, UTF8_STREAM_ROOM(piece.len), e);
    if (rc != RC_OK)
        return rc;
    size_t skip = d->strip_space && !special && piece.data[0] == ' ';
    if (!special)
        d->strip_space = false;
    out->len +=
        utf8_stream_push(&d->stream, piece.data + skip, piece.len - skip, out->data + out->len);
    return RC_OK;
}

enum rc tokenizer_decoder_flush(struct tokenizer_decoder *d, struct token_text *out,
                                struct err *e) {
    enum rc rc = token_text_reserve(out, UTF8_STREAM_ROOM(0), e);
    if (rc != RC_OK)
        return rc;
    out->len += utf8_stream_flush(&d->stream, out->data + out->len);
    return RC_OK;
}
