#include "infer/npy.h"

#include <errno.h>
#include <string.h>

enum { HEADER = 128 }; /* bytes before the data, a multiple of 64 */

static enum rc write_failed(const struct npy *n, struct err *e) {
    return err_set(e, RC_IO, "%s: cannot be written: %s", n->out.path, strerror(errno));
}

/* Magic, version, length of the description, the description padded with spaces. */
static bool write_header(struct npy *n) {
    char shape[64], head[HEADER + 1];
    if (n->width)
        snprintf(shape, sizeof shape, "(%llu, %llu)", (unsigned long long)n->rows,
                 (unsigned long long)n->width);
    else
        snprintf(shape, sizeof shape, "(%llu,)", (unsigned long long)n->rows);
    int used = snprintf(head + 10, sizeof head - 10,
                        "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                        n->type == NPY_F32 ? "<f4" : "<i4", shape);
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    head[8] = (char)((HEADER - 10) & 0xff);
    head[9] = (char)((HEADER - 10) >> 8);
    memset(head + 10 + used, ' ', (size_t)(HEADER - 11 - used));
    head[HEADER - 1] = '\n';
    return fwrite(head, 1, HEADER, n->out.file) == HEADER;
}

enum rc npy_open(struct npy *n, const char *path, enum npy_type type, uint64_t width,
                 struct err *e) {
    n->type = type;
    n->width = width;
    n->rows = 0;
    enum rc rc = output_open(&n->out, path, e);
    if (rc == RC_OK && !write_header(n))
        rc = output_close(&n->out, write_failed(n, e), e);
    return rc;
}

enum rc npy_add(struct npy *n, const void *rows, uint64_t count, struct err *e) {
    uint64_t elements = count * (n->width ? n->width : 1);
    if (fwrite(rows, 4, elements, n->out.file) != elements)
        return write_failed(n, e);
    n->rows += count;
    return RC_OK;
}

enum rc npy_close(struct npy *n, enum rc rc, struct err *e) {
    if (n->out.file && rc == RC_OK && (fseek(n->out.file, 0, SEEK_SET) || !write_header(n)))
        rc = write_failed(n, e);
    return output_close(&n->out, rc, e);
}
