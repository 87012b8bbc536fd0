#include "infer/upload.h"

#include <string.h>

static void free_buffers(struct upload *u) {
    for (int i = 0; i < UPLOAD_BUFFERS; i++) {
        if (u->buffer[i])
            (void)u->d->hip->hipHostFree(u->buffer[i]);
        u->buffer[i] = NULL;
    }
}

void upload_open(struct upload *u, const struct device *d, bool staged) {
    *u = (struct upload){ .d = d };
    for (int i = 0; staged && i < UPLOAD_BUFFERS; i++)
        staged = d->hip->hipHostMalloc(&u->buffer[i], UPLOAD_PIECE, 0) == hipSuccess;
    if (!staged)
        free_buffers(u);
}

static enum rc wait_for(struct upload *u, unsigned i, struct err *e) {
    struct gcore_d2h_result r;
    return gcore_d2h_wait(&u->op[i], &r) == GCORE_D2H_OK ? RC_OK : device_copy_failed("H2D", &r, e);
}

static enum rc send_piece(struct upload *u, const struct kern_view *to, uint64_t offset,
                          const void *from, uint64_t bytes, int32_t layer, struct err *e) {
    unsigned i = u->next;
    struct gcore_d2h_meta meta = { to->name, -1, layer, offset, bytes, to->bytes };
    struct gcore_d2h_result r;
    enum rc rc = wait_for(u, i, e);
    if (rc)
        return rc;
    memcpy(u->buffer[i], from, bytes); /* this is where the file is read */
    u->next = (i + 1) % UPLOAD_BUFFERS;
    if (gcore_h2d_copy_async(to->ptr, u->buffer[i], &meta, u->d->stream, &u->op[i], &r) ==
        GCORE_D2H_OK)
        return RC_OK;
    return device_copy_failed("H2D", &r, e);
}

enum rc upload_add(struct upload *u, const struct kern_view *to, uint64_t offset, const void *from,
                   uint64_t bytes, int32_t layer, struct err *e) {
    enum rc rc = RC_OK;
    if (!u->buffer[0])
        rc = device_upload_part(u->d, to, offset, from, bytes, -1, layer, e);
    for (uint64_t at = 0; u->buffer[0] && !rc && at < bytes; at += UPLOAD_PIECE) {
        uint64_t rest = bytes - at;
        rc = send_piece(u, to, offset + at, (const char *)from + at,
                        rest < UPLOAD_PIECE ? rest : UPLOAD_PIECE, layer, e);
    }
    return rc ? err_prefix(e, "%s", to->name) : RC_OK;
}

enum rc upload_finish(struct upload *u, struct err *e) {
    enum rc rc = RC_OK;
    for (unsigned i = 0; i < UPLOAD_BUFFERS; i++) {
        enum rc one = wait_for(u, i, rc ? NULL : e);
        rc = rc ? rc : one;
    }
    return rc;
}

void upload_close(struct upload *u) {
    if (!u->d)
        return;
    (void)!upload_finish(u, NULL);
    free_buffers(u);
    *u = (struct upload){ 0 };
}
