/* Two objects share one buffer, and both free it; no result is checked.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis DOUBLE_FREE; culprit hipFree site=close_view;
 *         messenger hipFree site=close_view */
#include "case.h"

struct view {
    void *memory;
    int owns;
};

static void close_tensor(void *memory) {
    hipFree(memory);
}

void close_view(struct view *v) {
    if (v->owns)
        hipFree(v->memory);
}

int main(void) {
    void *memory;
    hipMalloc(&memory, 4096);
    struct view v = { memory, BUG };
    hipMemset(memory, 0, 4096);
    close_tensor(memory);
    close_view(&v);
    hipDeviceSynchronize();
    return 0;
}
