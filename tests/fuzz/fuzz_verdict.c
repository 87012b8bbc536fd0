/* fuzz_verdict - the verdict on damaged recordings. */
#include "fuzz_recording.h"

#include "verdict/verdict.h"

static void judge(void) {
    reader *r;
    verdict *v = NULL;
    if (reader_open(&r, path, NULL) != RC_OK)
        return;
    if (verdict_open(&v, r, NULL, NULL) == RC_OK && !v->answer[0])
        abort();
    verdict_close(&v);
    reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_with(data, size, judge);
}
