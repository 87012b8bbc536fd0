/* An allocation fails and nobody checks; the null pointer is used.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis UNCHECKED_ERROR;
 *         also INVALID_POINTER; findings 2; culprit hipMalloc site=make;
 *         messenger hipMemset site=use */
#include "case.h"

enum { BYTES = 4096 };

void *make(size_t bytes) {
    void *memory = NULL;
    (void)hipMalloc(&memory, bytes);
    return memory;
}

void use(void *memory) {
    CHECK(hipMemset(memory, 0, BYTES));
}

int main(void) {
    void *memory = make(BUG ? (size_t)1 << 60 : BYTES);
    use(memory);
    CHECK(hipFree(memory));
    return 0;
}
