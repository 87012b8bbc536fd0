/* A mapping is unmapped while the upload from it may still run.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis HOST_BUFFER_LIFETIME;
 *         also UPSTREAM_KERNEL_FAULT?; culprit hipMemcpyAsync site=upload;
 *         messenger none or hipStreamSynchronize
 * Run:    --watch-host */
#include "case_upload.h"

int main(void) {
    char *host = map_bytes();
    begin_upload(host);
    munmap(host, BYTES);
    end_upload();
    return 0;
}
