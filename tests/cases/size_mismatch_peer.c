/* Parts of an array are gathered from a second device; the last part is shorter, and so is its
 * copy's source.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; culprit hipMemcpyPeer site=gather;
 *         messenger hipMemcpyPeer site=gather
 * Run:    GRETA_SOFT_DEVICES=2 */
#include "case.h"

enum { PART = 4096, REST = 1000 };

void gather(char *all, void *const *part) {
    for (int i = 0; i < 3; i++)
        CHECK(hipMemcpyPeer(all + i * PART, 0, part[i], 1, i < 2 || BUG ? PART : REST));
}

int main(void) {
    void *all, *part[3];
    CHECK(hipMalloc(&all, 3 * PART));
    CHECK(hipSetDevice(1));
    for (int i = 0; i < 3; i++) {
        CHECK(hipMalloc(&part[i], i < 2 ? PART : REST));
        CHECK(hipMemset(part[i], i, i < 2 ? PART : REST));
    }
    CHECK(hipDeviceSynchronize());
    CHECK(hipSetDevice(0));
    gather(all, part);
    CHECK(hipDeviceSynchronize());
    CHECK(hipSetDevice(1));
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < 3; i++)
        CHECK(hipFree(part[i]));
    CHECK(hipFree(all));
    return 0;
}
