/* A kernel writes past its buffer; the copy after it gets the error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include <greta/soft.h>

#include "program.h"

static void fill_run(const struct greta_soft_work *work, void *const *args) {
    unsigned char *out = *(unsigned char *const *)args[0];
    uint64_t bytes = *(const uint64_t *)args[1];
    if (work->first == 0)
        memset(out, 7, bytes);
}

static const struct greta_soft_param fill_params[] = { { "out", 8, GRETA_SOFT_POINTER },
                                                       { "bytes", 8, GRETA_SOFT_VALUE } };
static const struct greta_soft_kernel fill = { "fill", fill_run, fill_params, 2 };

/* Its address stands for the kernel in launches, as a function's does in compiled HIP code. */
static char fill_stub;

int main(int argc, char **argv) {
    uint64_t bytes = 4096, written = argc > 1 ? strtoull(argv[1], NULL, 0) : 8192;
    void *symbol = dlsym(RTLD_DEFAULT, "greta_soft_kernel_register");
    int (*kernel_register)(const struct greta_soft_kernel *);
    memcpy(&kernel_register, &symbol, sizeof symbol);
    if (!symbol || kernel_register(&fill) != 0)
        return 99;
    const void *stub = &fill_stub;
    __hipRegisterFunction(NULL, stub, NULL, "fill", 0, NULL, NULL, NULL, NULL, NULL);
    void *device = NULL;
    unsigned char *host = malloc(bytes);
    CHECK(hipMalloc(&device, bytes));
    void *args[] = { &device, &written };
    dim3 one = { 1, 1, 1 };
    CHECK(hipLaunchKernel(stub, one, one, args, 0, NULL));
    CHECK(hipMemcpy(host, device, bytes, hipMemcpyDeviceToHost));
    printf("first=%d\n", host[0]);
    free(host);
    CHECK(hipFree(device));
    return 0;
}
