/* Registered memory is unregistered twice: by the ring that used it, and by its owner.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis DOUBLE_FREE; culprit hipHostUnregister site=close_owner;
 *         messenger hipHostUnregister site=close_owner */
#include "case.h"

static char memory[8192];

static void close_ring(void) {
    CHECK(hipHostUnregister(memory));
}

void close_owner(void) {
    CHECK(hipHostUnregister(memory));
}

int main(void) {
    void *device;
    CHECK(hipMalloc(&device, sizeof memory));
    CHECK(hipHostRegister(memory, sizeof memory, hipHostRegisterDefault));
    CHECK(hipMemcpy(device, memory, sizeof memory, hipMemcpyHostToDevice));
    close_ring();
    if (BUG)
        close_owner();
    CHECK(hipFree(device));
    return 0;
}
