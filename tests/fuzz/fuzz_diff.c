/* fuzz_diff - a damaged recording beside a whole one, both ways. */
#include "fuzz_recording.h"

#include "diff/diff.h"

static void compare(void) {
    reader *a, *b;
    if (reader_open(&a, path, NULL) != RC_OK)
        return;
    if (reader_open(&b, whole, NULL) != RC_OK)
        abort();
    for (int turn = 0; turn < 2; turn++) {
        diff *d = NULL;
        if (diff_open(&d, turn ? b : a, turn ? a : b, NULL) == RC_OK)
            diff_close(&d);
    }
    reader_close(&a);
    reader_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_with(data, size, compare);
}
