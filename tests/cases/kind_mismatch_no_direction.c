/* The direction comes from a configuration that was never read.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis KIND_MISMATCH; culprit hipMemcpy site=transfer;
 *         messenger hipMemcpy site=transfer */
#include "case.h"

struct settings {
    int direction;
};

static char host[128];

void transfer(void *device, const struct settings *s) {
    CHECK(hipMemcpy(device, host, sizeof host, (hipMemcpyKind)s->direction));
}

int main(void) {
    struct settings s;
    void *device;
    memset(&s, 0x5a, sizeof s);
    if (!BUG)
        s.direction = hipMemcpyHostToDevice;
    CHECK(hipMalloc(&device, sizeof host));
    transfer(device, &s);
    CHECK(hipFree(device));
    return 0;
}
