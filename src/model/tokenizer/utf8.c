#include "model/tokenizer/utf8.h"

#include <string.h>

/* What the first byte of a character determines: the number of bytes (0 if no character begins with
 * it), and the range of the second byte, which is narrower than 80..BF after E0, ED, F0 and F4
 * (table 3-7 of the Unicode Standard). */
struct utf8_form {
    unsigned char total, low, high;
};

static struct utf8_form utf8_form_of(unsigned char b) {
    if (b < 0x80)
        return (struct utf8_form){ 1, 0, 0 };
    if (b < 0xC2 || b > 0xF4)
        return (struct utf8_form){ 0, 0, 0 };
    if (b < 0xE0)
        return (struct utf8_form){ 2, 0x80, 0xBF };
    if (b < 0xF0)
        return (struct utf8_form){ 3, b == 0xE0 ? 0xA0 : 0x80, b == 0xED ? 0x9F : 0xBF };
    return (struct utf8_form){ 4, b == 0xF0 ? 0x90 : 0x80, b == 0xF4 ? 0x8F : 0xBF };
}

size_t utf8_decode(const char *s, size_t n, uint32_t *cp) {
    if (n == 0)
        return 0;
    const unsigned char *b = (const unsigned char *)s;
    struct utf8_form form = utf8_form_of(b[0]);
    if (form.total == 0 || form.total > n)
        return 0;
    if (form.total == 1) {
        *cp = b[0];
        return 1;
    }
    if (b[1] < form.low || b[1] > form.high)
        return 0;
    uint32_t value = b[0] & (0x7Fu >> form.total);
    for (size_t i = 1; i < form.total; i++) {
        if ((b[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (b[i] & 0x3Fu);
    }
    *cp = value;
    return form.total;
}

size_t utf8_encode(uint32_t cp, char out[4]) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (cp >> 18 & 0x07));
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

/* Whether b can be the next byte of the character whose beginning is held. */
static int utf8_stream_accepts(const struct utf8_stream *s, unsigned char b) {
    if (s->count > 1)
        return (b & 0xC0) == 0x80;
    struct utf8_form form = utf8_form_of(s->held[0]);
    return b >= form.low && b <= form.high;
}

size_t utf8_stream_push(struct utf8_stream *s, const char *in, size_t len, char *out) {
    size_t written = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char b = (unsigned char)in[i];
        if (s->count > 0 && utf8_stream_accepts(s, b)) {
            if (s->count + 1u < utf8_form_of(s->held[0]).total) {
                s->held[s->count++] = b;
                continue;
            }
            memcpy(out + written, s->held, s->count);
            written += s->count;
            out[written++] = (char)b;
            s->count = 0;
            continue;
        }
        written += utf8_stream_flush(s, out + written);
        unsigned total = utf8_form_of(b).total;
        if (total > 1)
            s->held[s->count++] = b;
        else if (total == 1)
            out[written++] = (char)b;
        else
            written += utf8_encode(UTF8_REPLACEMENT, out + written);
    }
    return written;
}

size_t utf8_stream_flush(struct utf8_stream *s, char out[3]) {
    if (s->count == 0)
        return 0;
    s->count = 0;
    char whole[4];
    size_t n = utf8_encode(UTF8_REPLACEMENT, whole);
    memcpy(out, whole, n);
    return n;
}
