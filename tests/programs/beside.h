/* beside.h - for programs that try calls with memory on a page of which other bytes are in use by
 * an unfinished copy. `PROGRAM CALL`, or all of them; prints one line for each with its result and
 * errno. The copy uses the first 64 bytes of a page of pinned memory, the call the bytes from 2048
 * on. */
#ifndef PROGRAMS_BESIDE_H
#define PROGRAMS_BESIDE_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program.h"

enum { USED = 64, AT = 2048, PART = 512 };

static int pipe_fd[2], pair[2], grams[2], file;
static unsigned char *page;
static void *device;
static hipStream_t stream;

struct beside_call {
    const char *name;
    long (*run)(void *p); /* the result is what the call returned */
};

static void try(const struct beside_call *c) {
    memset(page, 1, 4096);
    CHECK(hipMemcpyAsync(page, device, USED, hipMemcpyDeviceToHost, stream));
    errno = 0;
    long r = c->run(page + AT);
    int error = r < 0 ? errno : 0;
    CHECK(hipStreamSynchronize(stream));
    printf("%s %ld %s %d\n", c->name, r, error ? strerror(error) : "ok", page[0]);
    fflush(stdout);
}

static int try_all(const struct beside_call *calls, size_t count, const char *only) {
    static char fill[PART];
    FILE *f = tmpfile();
    if (!f || pipe(pipe_fd) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
        socketpair(AF_UNIX, SOCK_DGRAM, 0, grams))
        return 98;
    file = fileno(f);
    if (pwrite(file, fill, sizeof fill, 0) != sizeof fill)
        return 97;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, 4096));
    CHECK(hipMemset(device, 9, 4096));
    CHECK(hipDeviceSynchronize());
    CHECK(hipHostMalloc((void **)&page, 4096, 0));
    for (size_t i = 0; i < count; i++)
        if (!only || !strcmp(only, calls[i].name))
            try(&calls[i]);
    CHECK(hipHostFree(page));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}

#define BESIDE_ROW(name) { #name, do_##name },
#define BESIDE_MAIN(EACH)                                                                          \
    int main(int argc, char **argv) {                                                              \
        static const struct beside_call calls[] = { EACH(BESIDE_ROW) };                            \
        return try_all(calls, sizeof calls / sizeof *calls, argc > 1 ? argv[1] : NULL);            \
    }

#endif
