/* The allocation goes into a copy of the pointer, so that the caller's stays null.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis INVALID_POINTER; culprit hipMemcpy site=upload;
 *         messenger hipMemcpy site=upload */
#include "case.h"

static float host[256];

static void *make_by_value(void *out) {
    CHECK(hipMalloc(&out, sizeof host));
    return out;
}

void upload(void *device) {
    CHECK(hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice));
}

int main(void) {
    void *device = NULL, *made = make_by_value(device);
    upload(BUG ? device : made);
    CHECK(hipFree(made));
    return 0;
}
