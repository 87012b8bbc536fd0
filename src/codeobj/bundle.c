#include "codeobj/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codeobj/codeobj.h"
#include "codeobj/source.h"

static const char BUNDLE_MAGIC[] = "__CLANG_OFFLOAD_BUNDLE__";
static const char COMPRESSED_MAGIC[] = "CCOB";

enum { HEADER_BYTES = 64, ENTRIES_MAX = 4096, ID_MAX = 512 };
enum { WRAPPER_MAGIC = 0x48495046, WRAPPER_VERSION = 1 };

/* What __hipRegisterFatBinary gets. */
struct wrapper {
    uint32_t magic, version;
    const void *binary;
    const void *unused;
};

/* ---- reading ------------------------------------------------------------------------------- */

static bool peek(const struct source *s, uint64_t offset, void *to, size_t bytes) {
    return source_read(s, offset, to, bytes) == bytes;
}

static enum rc extract(const struct source *s, uint64_t offset, uint64_t bytes,
                       struct codeobj_image *out, struct err *e) {
    if (!bytes || bytes > SOURCE_BYTES_MAX || (s->sized && bytes > s->size))
        return err_set(e, RC_FORMAT, "a code object of %llu bytes", (unsigned long long)bytes);
    unsigned char *copy = malloc((size_t)bytes);
    if (!copy)
        return err_set(e, RC_MEMORY, "no memory for a code object of %llu bytes",
                       (unsigned long long)bytes);
    if (!peek(s, offset, copy, (size_t)bytes)) {
        free(copy);
        return err_set(e, RC_FORMAT, "a code object's bytes cannot be read");
    }
    *out = (struct codeobj_image){ .bytes = copy, .size = (size_t)bytes };
    return RC_OK;
}

/* ---- targets ------------------------------------------------------------------------------- */

/* Code for a family of processors that runs on each of them. */
static const char *const generic[][2] = {
    { "gfx9-generic", "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c" },
    { "gfx9-4-generic", "gfx940 gfx941 gfx942 gfx950" },
    { "gfx10-1-generic", "gfx1010 gfx1011 gfx1012 gfx1013" },
    { "gfx10-3-generic", "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036" },
    { "gfx11-generic", "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153" },
    { "gfx12-generic", "gfx1200 gfx1201" },
};

/* Is [word, word + length) one of the words of a list? */
static bool has_word(const char *list, const char *word, size_t length) {
    for (; *list; list += strcspn(list, " "), list += *list == ' ')
        if (strcspn(list, " ") == length && !strncmp(list, word, length))
            return true;
    return false;
}

static bool is_generic_for(const char *id, size_t id_length, const char *target, size_t length) {
    for (size_t i = 0; i < sizeof generic / sizeof *generic; i++)
        if (strlen(generic[i][0]) == id_length && !strncmp(id, generic[i][0], id_length))
            return has_word(generic[i][1], target, length);
    return false;
}

/* A feature that code names (":xnack-") must be what the device has; the more it names, the better
 * it fits. -1: it does not fit. */
static int rate_features(const char *wanted, const char *have) {
    int rating = 0;
    while (*wanted == ':') {
        size_t length = strcspn(wanted + 1, ":") + 1;
        const char *at = have;
        while (*at == ':' &&
               (strcspn(at + 1, ":") + 1 != length || strncmp(at, wanted, length) != 0))
            at += strcspn(at + 1, ":") + 1;
        if (*at != ':')
            return -1;
        rating++;
        wanted += length;
    }
    return rating;
}

int codeobj_rate_target(const char *id, const char *target) {
    static const char TRIPLE[] = "-amdgcn-amd-amdhsa-";
    if (!strncmp(id, "hipv4", 5))
        id += 5;
    else if (!strncmp(id, "hip", 3))
        id += 3;
    if (strncmp(id, TRIPLE, sizeof TRIPLE - 1) != 0)
        return 0;
    id += sizeof TRIPLE - 1;
    id += *id == '-';
    if (!target)
        return strncmp(id, "gfx", 3) == 0;
    size_t code = strcspn(id, ":"), device = strcspn(target, ":");
    bool same = code == device && !strncmp(id, target, code);
    if (!same && !is_generic_for(id, code, target, device))
        return 0;
    int features = rate_features(id + code, target + device);
    return features < 0 ? 0 : (same ? 100 : 1) + features;
}

/* ---- bundles ------------------------------------------------------------------------------- */

/* { magic, count, count times { offset, size, id length, id } }, offsets from the magic. */
static enum rc from_bundle(const struct source *s, const char *target, struct codeobj_image *out,
                           struct err *e) {
    uint64_t count, at = sizeof BUNDLE_MAGIC - 1, best_offset = 0, best_size = 0;
    int best = 0;
    if (!peek(s, at, &count, sizeof count) || count > ENTRIES_MAX)
        return err_set(e, RC_FORMAT, "an offload bundle with too many entries");
    at += sizeof count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t entry[3];
        char id[ID_MAX + 1] = { 0 };
        if (!peek(s, at, entry, sizeof entry) || entry[2] > ID_MAX ||
            !peek(s, at + sizeof entry, id, (size_t)entry[2]))
            return err_set(e, RC_FORMAT, "entry %llu of an offload bundle leaves it",
                           (unsigned long long)i);
        id[entry[2]] = 0;
        at += sizeof entry + entry[2];
        int rating = entry[1] ? codeobj_rate_target(id, target) : 0;
        if (rating > best) {
            best = rating;
            best_offset = entry[0];
            best_size = entry[1];
        }
    }
    if (!best)
        return err_set(e, RC_UNSUPPORTED, "the offload bundle has no code for %s",
                       target ? target : "an AMD GPU");
    return extract(s, best_offset, best_size, out, e);
}

/* ---- any image ----------------------------------------------------------------------------- */

static enum rc from_elf(const struct source *s, struct codeobj_image *out, struct err *e) {
    unsigned char header[HEADER_BYTES];
    if (!peek(s, 0, header, sizeof header))
        return err_set(e, RC_FORMAT, "a code object ends inside its header");
    return extract(s, 0, s->sized ? s->size : codeobj_elf_size(header), out, e);
}

static bool starts_with(const struct source *s, const char *magic) {
    char head[sizeof BUNDLE_MAGIC];
    size_t length = strlen(magic);
    return peek(s, 0, head, length) && !memcmp(head, magic, length);
}

static enum rc from_source(const struct source *s, const char *target, struct codeobj_image *out,
                           struct err *e) {
    if (starts_with(s, "\177ELF"))
        return from_elf(s, out, e);
    if (starts_with(s, BUNDLE_MAGIC))
        return from_bundle(s, target, out, e);
    if (!starts_with(s, COMPRESSED_MAGIC))
        return err_set(e, RC_FORMAT, "neither a code object nor an offload bundle");

    unsigned char *plain;
    size_t size;
    enum rc rc = source_decompress(s, &plain, &size, e);
    if (rc)
        return rc;
    struct source inner = { .base = plain, .size = size, .sized = true };
    /* A compressed bundle holds a bundle, never another compressed one. */
    rc = starts_with(&inner, BUNDLE_MAGIC)
             ? from_bundle(&inner, target, out, e)
             : err_set(e, RC_FORMAT, "a compressed offload bundle holds no bundle");
    free(plain);
    return rc;
}

enum rc codeobj_from_memory(const void *image, const char *target, struct codeobj_image *out,
                            struct err *e) {
    struct source s = { .base = image };
    struct wrapper w;
    if (peek(&s, 0, &w, sizeof w) && w.magic == WRAPPER_MAGIC) {
        if (w.version != WRAPPER_VERSION || !w.binary)
            return err_set(e, RC_FORMAT, "the wrapper of a fat binary with version %u", w.version);
        s.base = w.binary;
    }
    return from_source(&s, target, out, e);
}

enum rc codeobj_from_bytes(const void *bytes, size_t size, const char *target,
                           struct codeobj_image *out, struct err *e) {
    struct source s = { .base = bytes, .size = size, .sized = true };
    return from_source(&s, target, out, e);
}

static enum rc read_file(int fd, const char *path, unsigned char **bytes, size_t *size,
                         struct err *e) {
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return err_set(e, RC_FORMAT, "%s: not a regular file", path);
    if (st.st_size <= 0 || st.st_size > SOURCE_BYTES_MAX)
        return err_set(e, RC_FORMAT, "%s: a code object of %lld bytes", path,
                       (long long)st.st_size);
    *size = 0;
    *bytes = malloc((size_t)st.st_size);
    if (!*bytes)
        return err_set(e, RC_MEMORY, "%s: no memory for %lld bytes", path, (long long)st.st_size);
    while (*size < (size_t)st.st_size) {
        ssize_t n = read(fd, *bytes + *size, (size_t)st.st_size - *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        *size += (size_t)n;
    }
    return RC_OK;
}

enum rc codeobj_from_file(const char *path, const char *target, struct codeobj_image *out,
                          struct err *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    unsigned char *bytes = NULL;
    size_t size = 0;
    enum rc rc = read_file(fd, path, &bytes, &size, e);
    close(fd);
    if (!rc)
        rc = codeobj_from_bytes(bytes, size, target, out, e);
    free(bytes);
    return rc;
}
