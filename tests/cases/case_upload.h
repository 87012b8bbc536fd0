/* case_upload.h - for programs that take a host buffer away while an upload from it may still run:
 * the upload, which the fixed twin waits for, and the end of the program. */
#ifndef CASES_CASE_UPLOAD_H
#define CASES_CASE_UPLOAD_H

#include <sys/mman.h>

#include "case.h"

enum { BYTES = 256 << 10 };

static hipStream_t stream;
static void *device;

void upload(const void *host) {
    CHECK(hipMemcpyAsync(device, host, BYTES, hipMemcpyHostToDevice, stream));
}

/* host: BYTES of memory of the program's own. */
static inline void begin_upload(void *host) {
    memset(host, 1, BYTES);
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&device, BYTES));
    CHECK(hipHostRegister(host, BYTES, hipHostRegisterDefault));
    upload(host);
    if (!BUG) {
        CHECK(hipStreamSynchronize(stream));
        CHECK(hipHostUnregister(host));
    }
}

static inline void end_upload(void) {
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(device));
    CHECK(hipStreamDestroy(stream));
}

static inline void *map_bytes(void) {
    void *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED)
        exit(1);
    return host;
}

#endif
