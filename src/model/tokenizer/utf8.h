/* utf8.h - strict UTF-8, also for output that arrives in pieces.
 *
 * A language model emits bytes: one token may end in the middle of a character that the next one
 * completes. A utf8_stream holds such a beginning back until it is known what becomes of it, so
 * that what comes out is well-formed at every moment. Nothing here allocates or has state of its
 * own; a utf8_stream belongs to one thread at a time. */
#ifndef MODEL_UTF8_H
#define MODEL_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xFFFDu

/* Reads the character at s (n bytes are there). Returns its bytes, 1 to 4, and stores it in *cp, or
 * returns 0 if none starts there: overlong forms, surrogates and values past U+10FFFF are no
 * characters. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Writes cp, at most U+10FFFF, and returns the bytes written, 1 to 4. */
size_t utf8_encode(uint32_t cp, char out[4]);

struct utf8_stream {
    unsigned char held[3]; /* a character's beginning that may still be completed */
    unsigned char count;
}; /* {0} is a stream that holds nothing */

/* Room that the output of `len` more bytes needs at most. */
#define UTF8_STREAM_ROOM(len) (3 * ((size_t)(len) + 1))

/* Takes len bytes, writes all characters that are complete, and returns the bytes written. What can
 * become no character any more is written as U+FFFD, one for each longest beginning of one (the
 * practice of the Unicode Standard, chapter 3.9). */
size_t utf8_stream_push(struct utf8_stream *s, const char *in, size_t len, char *out);

/* Nothing more will come: writes U+FFFD if something is held. Returns the bytes written, 0 or 3. */
size_t utf8_stream_flush(struct utf8_stream *s, char out[3]);

#endif
