/* The host touches memory of work that it has not waited for: touches FAMILY WORK ACCESS [waited].
 * FAMILY: pinned, registered, shared (registered, of a shared mapping), managed. WORK: d2h and h2d
 * copies, set, kernel; all asynchronous. ACCESS: read or write by the program itself; sysread,
 * syswrite, pread, fread, fwrite, writev and send by the system. Every access must work; after
 * waiting, what comes out is always the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <greta/soft.h>

#include "program.h"

enum { BYTES = 32768 };

static unsigned char *host;
static void *device;
static hipStream_t stream;

static void fill_run(const struct greta_soft_work *work, void *const *args) {
    unsigned char *out = *(unsigned char *const *)args[0];
    if (work->first == 0)
        memset(out, 7, BYTES);
}
static const struct greta_soft_param fill_params[] = { { "out", 8, GRETA_SOFT_POINTER } };
static const struct greta_soft_kernel fill = { "fill", fill_run, fill_params, 1 };
static char fill_stub; /* its address stands for the kernel in launches */

static int is(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

static void allocate(const char *family) {
    void *memory = NULL;
    if (is(family, "pinned")) {
        CHECK(hipHostMalloc(&memory, BYTES, 0));
    } else if (is(family, "managed")) {
        CHECK(hipMallocManaged(&memory, BYTES, 1));
    } else {
        int sharing = is(family, "shared") ? MAP_SHARED : MAP_PRIVATE;
        memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
        CHECK(hipHostRegister(memory, BYTES, 0));
    }
    host = memory;
    memset(host, 1, BYTES);
}

static void release(const char *family) {
    if (is(family, "pinned")) {
        CHECK(hipHostFree(host));
    } else if (is(family, "managed")) {
        CHECK(hipFree(host));
    } else {
        CHECK(hipHostUnregister(host));
        munmap(host, BYTES);
    }
}

static void launch(void) {
    void *symbol = dlsym(RTLD_DEFAULT, "greta_soft_kernel_register");
    int (*kernel_register)(const struct greta_soft_kernel *);
    memcpy(&kernel_register, &symbol, sizeof symbol);
    if (!symbol || kernel_register(&fill) != 0)
        exit(99);
    const void *stub = &fill_stub;
    __hipRegisterFunction(NULL, stub, NULL, "fill", 0, NULL, NULL, NULL, NULL, NULL);
    void *args[] = { &host };
    dim3 one = { 1, 1, 1 };
    CHECK(hipLaunchKernel(stub, one, one, args, 0, stream));
}

static void queue(const char *work) {
    if (is(work, "d2h"))
        CHECK(hipMemcpyAsync(host, device, BYTES, hipMemcpyDeviceToHost, stream));
    else if (is(work, "h2d"))
        CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
    else if (is(work, "set"))
        CHECK(hipMemsetAsync(host, 5, BYTES, stream));
    else
        launch();
}

/* A file with 8 bytes per value from 0 on. */
static FILE *make_file(void) {
    FILE *file = tmpfile();
    for (int i = 0; file && i < BYTES; i++)
        putc(i & 127, file);
    if (!file || fflush(file) != 0)
        exit(98);
    rewind(file);
    return file;
}

/* Bytes that went through the system; it must not notice that anybody is watching. */
ssize_t touch(const char *access);
__attribute__((noinline)) ssize_t touch(const char *access) {
    FILE *file = make_file();
    int fd = fileno(file), pair[2] = { -1, -1 };
    struct iovec list[2] = { { host, 100 }, { host + 8192, 100 } };
    ssize_t n = -1;
    if (is(access, "read"))
        n = *(volatile unsigned char *)&host[5000] < 100;
    else if (is(access, "write"))
        n = (*(volatile unsigned char *)&host[5000] = 2) == 2;
    else if (is(access, "sysread"))
        n = read(fd, host, BYTES);
    else if (is(access, "syswrite"))
        n = write(fd, host, BYTES);
    else if (is(access, "pread"))
        n = pread(fd, host + 100, 4096, 100);
    else if (is(access, "fread"))
        n = (ssize_t)fread(host, 1, BYTES, file);
    else if (is(access, "fwrite"))
        n = (ssize_t)fwrite(host, 1, BYTES, file);
    else if (is(access, "writev"))
        n = writev(fd, list, 2);
    else if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
        n = send(pair[0], host, 1000, 0);
    if (pair[0] >= 0) {
        close(pair[0]);
        close(pair[1]);
    }
    fclose(file);
    return n;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipMemset(device, 9, BYTES));
    CHECK(hipDeviceSynchronize());
    allocate(argv[1]);
    queue(argv[2]);
    if (argc > 4)
        CHECK(hipStreamSynchronize(stream));
    printf("moved=%zd\n", touch(argv[3]));
    CHECK(hipStreamSynchronize(stream));
    long sum = 0;
    for (int i = 0; i < BYTES; i++)
        sum += host[i];
    printf("sum=%ld\n", sum);
    release(argv[1]);
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
