/* Host memory of a copy that nobody has waited for: freed, unmapped, read, written; or, with a
 * second argument, all of that after waiting. */
#include <string.h>
#include <sys/mman.h>

#include "program.h"

enum { BYTES = 8192 };

static void queue_copy(void *host, hipMemcpyKind kind, int wait) {
    static void *device;
    static hipStream_t stream;
    if (!device) {
        CHECK(hipMalloc(&device, BYTES));
        CHECK(hipMemset(device, 9, BYTES));
        CHECK(hipDeviceSynchronize());
        CHECK(hipStreamCreate(&stream));
    }
    if (kind == hipMemcpyHostToDevice)
        CHECK(hipMemcpyAsync(device, host, BYTES, kind, stream));
    else
        CHECK(hipMemcpyAsync(host, device, BYTES, kind, stream));
    if (wait)
        CHECK(hipStreamSynchronize(stream));
}

int touch_early(volatile unsigned char *pinned);
__attribute__((noinline)) int touch_early(volatile unsigned char *pinned) {
    volatile int before = 1;
    return before + pinned[100];
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int wait = argc > 2;
    unsigned char *memory;
    if (strcmp(how, "free") == 0) {
        memory = malloc(BYTES);
        CHECK(hipHostRegister(memory, BYTES, 0));
        queue_copy(memory, hipMemcpyDeviceToHost, wait);
        free(memory);
    } else if (strcmp(how, "unmap") == 0) {
        memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        queue_copy(memory, hipMemcpyDeviceToHost, wait);
        munmap(memory, BYTES);
    } else {
        CHECK(hipHostMalloc((void **)&memory, BYTES, 0));
        memset(memory, 1, BYTES);
        queue_copy(memory, strcmp(how, "write") ? hipMemcpyDeviceToHost : hipMemcpyHostToDevice,
                   wait);
        if (strcmp(how, "write") == 0)
            memory[5000] = 2;
        else if (strcmp(how, "read") == 0)
            (void)touch_early(memory);
        CHECK(hipDeviceSynchronize());
        printf("last=%d\n", memory[BYTES - 1]);
        CHECK(hipHostFree(memory));
    }
    return 0;
}
