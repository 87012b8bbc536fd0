/* A registered mapping grows with mremap, and may move, while the upload from it may still run.
 *
 * Expect: verdict ROOT_CAUSE|FINDINGS; hypothesis HOST_BUFFER_LIFETIME;
 *         also UPSTREAM_KERNEL_FAULT?; culprit hipMemcpyAsync site=upload;
 *         messenger none or hipStreamSynchronize
 * Run:    --watch-host */
#include "case_upload.h"

int main(void) {
    char *host = map_bytes();
    begin_upload(host);
    char *more = mremap(host, BYTES, 4 * BYTES, MREMAP_MAYMOVE);
    if (more == MAP_FAILED)
        return 1;
    end_upload();
    munmap(more, 4 * BYTES);
    return 0;
}
