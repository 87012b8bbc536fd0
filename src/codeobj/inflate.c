/* inflate.c - compressed offload bundles.
 *
 *   version 1   "CCOB" u16 version, u16 method, u32 plain bytes, u64 hash
 *   version 2   "CCOB" u16 version, u16 method, u32 file bytes, u32 plain bytes, u64 hash
 *   version 3   "CCOB" u16 version, u16 method, u64 file bytes, u64 plain bytes, u64 hash
 *
 * then one zlib stream (method 0) or zstd frame (method 1). Version 1 does not say how long that
 * is, so the stream is read in pieces until it ends by itself. The result grows as it is produced:
 * a header alone cannot make us allocate a gigabyte. The hash is that of LLVM's own implementation
 * (a truncated MD5 or xxHash, by version) and is not compared: zlib and zstd have checksums. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "codeobj/source.h"

enum { CHUNK = 1 << 16, METHOD_ZLIB = 0, METHOD_ZSTD = 1 };

struct stream {
    const struct source *source;
    uint64_t at, end; /* offsets of what is left to read; end is UINT64_MAX if unknown */
    unsigned char *plain;
    size_t used, room, limit; /* limit: what the header says it is */
    unsigned char chunk[CHUNK];
};

static uint64_t little(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* The next piece of compressed bytes; 0 at their end. */
static size_t refill(struct stream *s) {
    uint64_t left = s->end - s->at;
    size_t got = source_read(s->source, s->at, s->chunk, left < CHUNK ? (size_t)left : CHUNK);
    s->at += got;
    return got;
}

/* Makes room for more output; false if there is as much as the header said, or no memory. */
static bool grow(struct stream *s) {
    if (s->used < s->room)
        return true;
    if (s->room == s->limit)
        return false;
    size_t room = s->room ? 4 * s->room : 4 * CHUNK;
    if (room > s->limit)
        room = s->limit;
    unsigned char *more = realloc(s->plain, room);
    if (!more)
        return false;
    s->plain = more;
    s->room = room;
    return true;
}

/* True if the stream ended in good order with exactly the bytes it promised. */
static bool run_zlib(struct stream *s) {
    z_stream z = { 0 };
    if (inflateInit(&z) != Z_OK)
        return false;
    int r = Z_OK;
    while (r == Z_OK) {
        if (!z.avail_in) {
            z.next_in = s->chunk;
            z.avail_in = (uInt)refill(s);
        }
        unsigned char spare;
        bool full = !grow(s);
        size_t room = full ? 1 : s->room - s->used;
        z.next_out = full ? &spare : s->plain + s->used;
        z.avail_out = (uInt)room;
        r = inflate(&z, Z_NO_FLUSH);
        size_t made = room - z.avail_out;
        if (full && made)
            r = Z_DATA_ERROR; /* more than promised */
        s->used += full ? 0 : made;
    }
    inflateEnd(&z);
    return r == Z_STREAM_END && s->used == s->limit;
}

static bool run_zstd(struct stream *s) {
    ZSTD_DStream *z = ZSTD_createDStream();
    if (!z)
        return false;
    ZSTD_inBuffer in = { s->chunk, 0, 0 };
    size_t left = 1;
    bool good = true;
    while (good && left) {
        if (in.pos == in.size)
            in = (ZSTD_inBuffer){ s->chunk, refill(s), 0 };
        unsigned char spare;
        bool full = !grow(s);
        ZSTD_outBuffer out = { full ? &spare : s->plain + s->used, full ? 1 : s->room - s->used,
                               0 };
        size_t before = in.pos;
        left = ZSTD_decompressStream(z, &out, &in);
        good =
            !ZSTD_isError(left) && !(full && out.pos) && (left == 0 || in.pos > before || out.pos);
        s->used += full ? 0 : out.pos;
    }
    ZSTD_freeDStream(z);
    return good && s->used == s->limit;
}

static enum rc read_header(struct stream *s, uint64_t *method, struct err *e) {
    unsigned char head[32];
    size_t got = source_read(s->source, 0, head, sizeof head);
    unsigned version = got >= 8 ? (unsigned)little(head + 4, 2) : 0;
    static const size_t bytes[] = { 0, 20, 24, 32 };
    if (got < 8 || !version)
        return err_set(e, RC_FORMAT, "a compressed offload bundle ends inside its header");
    if (version >= sizeof bytes / sizeof *bytes)
        return err_set(e, RC_UNSUPPORTED,
                       "compressed offload bundle of version %u; known are 1 to 3", version);
    if (got < bytes[version])
        return err_set(e, RC_FORMAT, "a compressed offload bundle ends inside its header");
    *method = little(head + 6, 2);
    int word = version == 3 ? 8 : 4;
    uint64_t file = version == 1 ? UINT64_MAX : little(head + 8, word);
    uint64_t plain = little(head + 8 + (version == 1 ? 0 : word), word);
    if (plain > SOURCE_BYTES_MAX || !plain || file < bytes[version])
        return err_set(e, RC_FORMAT, "a compressed offload bundle of %llu bytes",
                       (unsigned long long)plain);
    s->at = bytes[version];
    s->end = file;
    s->limit = (size_t)plain;
    return RC_OK;
}

enum rc source_decompress(const struct source *source, unsigned char **out, size_t *size,
                          struct err *e) {
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, RC_MEMORY, "no memory for a compressed offload bundle");
    s->source = source;
    uint64_t method = 0;
    enum rc rc = read_header(s, &method, e);
    if (!rc && method != METHOD_ZLIB && method != METHOD_ZSTD)
        rc = err_set(e, RC_UNSUPPORTED, "compressed offload bundle by method %llu",
                     (unsigned long long)method);
    if (!rc && !(method == METHOD_ZLIB ? run_zlib(s) : run_zstd(s)))
        rc = err_set(e, RC_FORMAT, "a compressed offload bundle does not hold what it says");
    if (rc) {
        free(s->plain);
    } else {
        *out = s->plain;
        *size = s->used;
    }
    free(s);
    return rc;
}
