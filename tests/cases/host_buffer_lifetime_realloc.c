/* A registered buffer grows, and moves, while the upload from it may still run.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis HOST_BUFFER_LIFETIME;
 *         also UPSTREAM_KERNEL_FAULT?; culprit hipMemcpyAsync site=upload;
 *         messenger none or hipStreamSynchronize
 * Run:    --watch-host */
#include "case_upload.h"

int main(void) {
    char *host = malloc(BYTES);
    if (!host)
        return 1;
    begin_upload(host);
    char *more = realloc(host, 2 * BYTES);
    if (!more)
        return 1;
    free(more);
    end_upload();
    return 0;
}
