/* Tensors are laid out one after the other in one allocation whose size forgot the last of them.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis BAD_OFFSET; culprit hipMemsetAsync site=clear;
 *         messenger hipMemsetAsync site=clear */
#include "case.h"

static const size_t sizes[] = { 4096, 1024, 16384, 2048 };
enum { TENSORS = sizeof sizes / sizeof *sizes };

void clear(char *arena, size_t offset, size_t bytes, hipStream_t stream) {
    CHECK(hipMemsetAsync(arena + offset, 0, bytes, stream));
}

int main(void) {
    size_t total = 0, offset = 0;
    void *arena;
    hipStream_t stream;
    for (int i = 0; i < (BUG ? TENSORS - 1 : TENSORS); i++)
        total += sizes[i];
    CHECK(hipStreamCreate(&stream));
    CHECK(hipMalloc(&arena, total));
    for (int i = 0; i < TENSORS; offset += sizes[i++])
        clear(arena, offset, sizes[i], stream);
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipFree(arena));
    CHECK(hipStreamDestroy(stream));
    return 0;
}
