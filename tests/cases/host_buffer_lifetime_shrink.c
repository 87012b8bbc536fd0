/* A registered buffer is cut to half its size with realloc while the upload from it may still run.
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
    char *less = realloc(host, BYTES / 2);
    if (!less)
        return 1;
    end_upload();
    free(less);
    return 0;
}
