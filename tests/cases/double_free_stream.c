/* Two owners destroy one stream.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis DOUBLE_FREE;
 *         culprit hipStreamDestroy site=close_second;
 *         messenger hipStreamDestroy site=close_second */
#include "case.h"

void close_first(hipStream_t stream) {
    CHECK(hipStreamDestroy(stream));
}

void close_second(hipStream_t stream) {
    CHECK(hipStreamDestroy(stream));
}

int main(void) {
    hipStream_t stream, other;
    CHECK(hipStreamCreate(&stream));
    CHECK(hipStreamCreate(&other));
    close_first(stream);
    close_second(BUG ? stream : other);
    return 0;
}
