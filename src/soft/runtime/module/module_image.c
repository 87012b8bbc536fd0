/* module_image.c - finding the code object for this device.
 *
 * HIP passes images without their size. The size follows from headers that may lie, so that bytes
 * of the program are copied by the kernel (process_vm_readv on ourselves), which refuses where a
 * plain read would crash. The copy is what modules keep. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "soft/runtime/module/module.h"

static const char BUNDLE_MAGIC[] = "__CLANG_OFFLOAD_BUNDLE__";
static const char COMPRESSED_MAGIC[] = "CCOB";

enum { HEADER_BYTES = 64, ENTRIES_MAX = 4096, ID_MAX = 512 };
enum { IMAGE_MAX = 1 << 30 };

/* Where images are read from: a buffer of known size, or the program's memory. */
struct source {
    const unsigned char *base;
    size_t size;
    bool sized;
};

static bool copy_program_memory(void *to, const void *from, size_t bytes) {
    unsigned char *at = to;
    for (size_t done = 0; done < bytes;) {
        struct iovec local = { at + done, bytes - done };
        struct iovec remote = { (char *)(uintptr_t)from + done, bytes - done };
        ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
            memcpy(to, from, bytes); /* forbidden here: the program's word must do */
            return true;
        }
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool peek(const struct source *s, uint64_t offset, void *to, size_t bytes) {
    if (s->sized) {
        if (bytes > s->size || offset > s->size - bytes)
            return false;
        memcpy(to, s->base + offset, bytes);
        return true;
    }
    if (offset > UINTPTR_MAX - bytes || (uintptr_t)s->base > UINTPTR_MAX - bytes - offset)
        return false;
    return copy_program_memory(to, s->base + offset, bytes);
}

static hipError_t extract(const struct source *s, uint64_t offset, uint64_t bytes,
                          struct soft_image *out) {
    if (!bytes || bytes > IMAGE_MAX)
        return hipErrorInvalidImage;
    unsigned char *copy = malloc((size_t)bytes);
    if (!copy)
        return hipErrorOutOfMemory;
    if (!peek(s, offset, copy, (size_t)bytes)) {
        free(copy);
        return hipErrorInvalidImage;
    }
    *out = (struct soft_image){ .bytes = copy, .size = (size_t)bytes };
    return hipSuccess;
}

/* ---- bundles ------------------------------------------------------------------------------- */

/* How well an entry fits; 0: not at all. Ids are "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"; older
 * compilers wrote "hip-" and one dash. A feature that is named must be what the device has. */
static int rate_target(const char *id) {
    static const char TRIPLE[] = "-amdgcn-amd-amdhsa-";
    if (!strncmp(id, "hipv4", 5))
        id += 5;
    else if (!strncmp(id, "hip", 3))
        id += 3;
    if (strncmp(id, TRIPLE, sizeof TRIPLE - 1))
        return 0;
    id += sizeof TRIPLE - 1;
    id += *id == '-';
    size_t processor = strcspn(id, ":");
    int rating = 0;
    if (processor == 6 && !strncmp(id, "gfx90a", 6))
        rating = 100;
    else if (processor == 6 && !strncmp(id, "gfx942", 6))
        rating = 1;
    if (strstr(id + processor, ":sramecc-") || strstr(id + processor, ":xnack+"))
        rating = 0;
    for (const char *c = id + processor; rating && *c; c++)
        rating += *c == ':';
    return rating;
}

/* { magic, count, count times { offset, size, id length, id } }, offsets from the magic. */
static hipError_t from_bundle(const struct source *s, struct soft_image *out) {
    uint64_t count, at = sizeof BUNDLE_MAGIC - 1, best_offset = 0, best_size = 0;
    int best = 0;
    if (!peek(s, at, &count, sizeof count) || count > ENTRIES_MAX)
        return hipErrorInvalidImage;
    at += sizeof count;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t entry[3];
        char id[ID_MAX + 1];
        if (!peek(s, at, entry, sizeof entry) || entry[2] > ID_MAX ||
            !peek(s, at + sizeof entry, id, (size_t)entry[2]))
            return hipErrorInvalidImage;
        id[entry[2]] = 0;
        at += sizeof entry + entry[2];
        int rating = entry[1] ? rate_target(id) : 0;
        if (rating > best) {
            best = rating;
            best_offset = entry[0];
            best_size = entry[1];
        }
    }
    return best ? extract(s, best_offset, best_size, out) : hipErrorNoBinaryForGpu;
}

/* ---- any image ----------------------------------------------------------------------------- */

static hipError_t from_elf(const struct source *s, struct soft_image *out) {
    unsigned char header[HEADER_BYTES];
    if (!peek(s, 0, header, sizeof header))
        return hipErrorInvalidImage;
    uint64_t size = s->sized ? s->size : codeobj_elf_size(header);
    return extract(s, 0, size, out);
}

static hipError_t refuse_compressed(void) {
    static _Atomic bool said;
    if (!atomic_exchange(&said, true))
        fprintf(stderr, "greta: compressed offload bundles are not supported by the software "
                        "device; build with --no-offload-compress\n");
    return hipErrorNotSupported;
}

static hipError_t from_source(const struct source *s, struct soft_image *out) {
    char magic[sizeof BUNDLE_MAGIC - 1];
    if (!peek(s, 0, magic, 4))
        return hipErrorInvalidImage;
    if (!memcmp(magic, "\177ELF", 4))
        return from_elf(s, out);
    if (!memcmp(magic, COMPRESSED_MAGIC, 4))
        return refuse_compressed();
    if (peek(s, 0, magic, 8) && !memcmp(magic, SOFT_NATIVE_IMAGE, 8)) {
        *out = (struct soft_image){ .native = true };
        return hipSuccess;
    }
    if (peek(s, 0, magic, sizeof magic) && !memcmp(magic, BUNDLE_MAGIC, sizeof magic))
        return from_bundle(s, out);
    return hipErrorInvalidImage;
}

hipError_t soft_image_from_memory(const void *image, struct soft_image *out) {
    struct source s = { .base = image };
    struct hip_fatbin_wrapper wrapper;
    if (peek(&s, 0, &wrapper, sizeof wrapper) && wrapper.magic == HIP_FATBIN_MAGIC) {
        if (wrapper.version != HIP_FATBIN_VERSION || !wrapper.binary)
            return hipErrorInvalidImage;
        s.base = wrapper.binary;
    }
    return from_source(&s, out);
}

static hipError_t read_file(int fd, unsigned char **bytes, size_t *size) {
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > IMAGE_MAX)
        return hipErrorInvalidImage;
    *size = 0;
    *bytes = malloc((size_t)st.st_size);
    if (!*bytes)
        return hipErrorOutOfMemory;
    while (*size < (size_t)st.st_size) {
        ssize_t n = read(fd, *bytes + *size, (size_t)st.st_size - *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        *size += (size_t)n;
    }
    return *size ? hipSuccess : hipErrorInvalidImage;
}

hipError_t soft_image_from_file(const char *path, struct soft_image *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hipErrorFileNotFound;
    unsigned char *bytes = NULL;
    size_t size;
    hipError_t r = read_file(fd, &bytes, &size);
    close(fd);
    if (r == hipSuccess) {
        struct source s = { .base = bytes, .size = size, .sized = true };
        r = from_source(&s, out);
    }
    free(bytes);
    return r;
}
