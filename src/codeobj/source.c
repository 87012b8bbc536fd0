/* source.c - reading bytes that may not be there. */
#include "codeobj/source.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "codeobj/bundle.h"

size_t codeobj_peek_memory(void *to, const void *from, size_t bytes) {
    unsigned char *at = to;
    size_t done = 0;
    while (done < bytes) {
        struct iovec local = { at + done, bytes - done };
        struct iovec remote = { (char *)(uintptr_t)from + done, bytes - done };
        ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
            memcpy(to, from, bytes); /* the call is not permitted here: trust the program's size */
            return bytes;
        }
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

size_t source_read(const struct source *s, uint64_t offset, void *to, size_t bytes) {
    if (s->sized) {
        size_t left = offset < s->size ? s->size - (size_t)offset : 0;
        bytes = bytes < left ? bytes : left;
        if (bytes)
            memcpy(to, s->base + offset, bytes);
        return bytes;
    }
    if (offset > UINTPTR_MAX - bytes || (uintptr_t)s->base > UINTPTR_MAX - bytes - offset)
        return 0;
    return codeobj_peek_memory(to, s->base + offset, bytes);
}
