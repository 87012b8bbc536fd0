#include "infer/device.h"

#include <stdio.h>
#include <string.h>

#include <gcore/audit.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "base/env.h"

static enum rc hip_failed(const struct device *d, const char *what, hipError_t error,
                          struct err *e) {
    return err_set(e, RC_DEVICE, "%s failed: %s", what, d->hip->hipGetErrorString(error));
}

static enum rc open_on(struct device *d, int ordinal, enum kern_exec code, struct err *e) {
    d->ordinal = ordinal;
    enum rc rc = device_use(d, e);
    if (rc)
        return rc;
    hipError_t r = d->hip->hipStreamCreateWithFlags(&d->stream, hipStreamNonBlocking);
    if (r != hipSuccess)
        return hip_failed(d, "hipStreamCreateWithFlags", r, e);
    rc = kern_open(&d->kernels, gcore_runtime(), d->hip, code, e);
    if (rc)
        device_close(d);
    return rc == RC_UNSUPPORTED ? RC_REFUSED : rc; /* a device without kernels cannot be used */
}

enum rc device_open(struct device *d, const char *choice, const char *exec, const char *record,
                    struct err *e) {
    enum kern_exec code;
    *d = (struct device){ 0 };
    enum rc rc = kern_exec_find(&code, exec, e);
    if (rc)
        return err_prefix(e, "--exec");
    rc = audit_open(choice, record, e);
    d->hip = rc ? NULL : gcore_hip(e);
    if (!d->hip)
        return e->rc;
    const struct hip_runtime *runtime = gcore_runtime();
    if (!runtime)
        return err_set(e, RC_REFUSED, "no HIP runtime is open");
    int devices = 0;
    hipError_t r = d->hip->hipGetDeviceCount(&devices);
    if (r == hipErrorNoDevice || (r == hipSuccess && devices == 0))
        return err_set(e, RC_REFUSED, "the HIP runtime shows no device: see HIP_VISIBLE_DEVICES");
    if (r != hipSuccess)
        return hip_failed(d, "hipGetDeviceCount", r, e);
    return open_on(d, 0, code, e);
}

enum rc device_count(const struct device *d, int *count, struct err *e) {
    hipError_t r = d->hip->hipGetDeviceCount(count);
    return r == hipSuccess ? RC_OK : hip_failed(d, "hipGetDeviceCount", r, e);
}

enum rc device_open_beside(struct device *d, struct device *first, int ordinal, const char *exec,
                           struct err *e) {
    enum kern_exec code;
    *d = (struct device){ .hip = first->hip, .shared = true };
    first->shared = true;
    enum rc rc = kern_exec_find(&code, exec, e);
    return rc ? rc : open_on(d, ordinal, code, e);
}

enum rc device_move(struct device *d, int ordinal, const char *exec, struct err *e) {
    struct device there;
    if (d->ordinal == ordinal)
        return RC_OK;
    enum rc rc = device_open_beside(&there, d, ordinal, exec, e);
    if (rc)
        return rc;
    device_close(d);
    *d = there;
    return RC_OK;
}

/* The thread is left with d current. */
void device_reach(const struct device *d, const struct device *other) {
    int can = 0;
    if (d->hip->hipSetDevice(d->ordinal) != hipSuccess ||
        d->hip->hipDeviceCanAccessPeer(&can, d->ordinal, other->ordinal) != hipSuccess || !can)
        return;
    if (d->hip->hipDeviceEnablePeerAccess(other->ordinal, 0) != hipSuccess)
        (void)d->hip->hipGetLastError(); /* it may be enabled already */
}

enum rc device_use(const struct device *d, struct err *e) {
    hipError_t r = d->shared ? d->hip->hipSetDevice(d->ordinal) : hipSuccess;
    return r == hipSuccess ? RC_OK : hip_failed(d, "hipSetDevice", r, e);
}

/* Whether the choice was ours, and fell on a GPU. */
static bool may_choose_again(const char *choice, const char *exec) {
    const struct hip_runtime *runtime = gcore_runtime();
    choice = choice ? choice : env_text(ENV_GRETA_DEVICE);
    return !exec && !strcmp(choice, "auto") && runtime && runtime->kind == HIP_DEVICE_ROCM;
}

enum rc device_open_usable(struct device *d, const char *choice, const char *exec,
                           const char *record, struct err *gpu, struct err *e) {
    bool ours = !audit_is_attached();
    *gpu = (struct err){ 0 };
    enum rc rc = device_open(d, choice, exec, record, e);
    if (rc != RC_REFUSED || !ours || !may_choose_again(choice, exec))
        return rc;
    *gpu = *e;
    gcore_close();
    return device_open(d, "soft", NULL, record, e);
}

void device_close(struct device *d) {
    if (d->shared)
        (void)d->hip->hipSetDevice(d->ordinal);
    kern_close(&d->kernels);
    if (d->stream)
        (void)d->hip->hipStreamDestroy(d->stream);
    *d = (struct device){ 0 };
}

void device_describe(const struct device *d, char *text, size_t size) {
    char name[128] = "?";
    size_t free_bytes = 0, total = 0;
    (void)!device_use(d, NULL);
    (void)d->hip->hipDeviceGetName(name, sizeof name, d->ordinal);
    (void)d->hip->hipMemGetInfo(&free_bytes, &total);
    snprintf(text, size, "%s, %.1f of %.1f GiB free", name, (double)free_bytes / (1 << 30),
             (double)total / (1 << 30));
}

enum rc device_free_bytes(const struct device *d, uint64_t *out, struct err *e) {
    size_t free_bytes, total;
    enum rc rc = device_use(d, e);
    if (rc)
        return rc;
    hipError_t r = d->hip->hipMemGetInfo(&free_bytes, &total);
    if (r != hipSuccess)
        return hip_failed(d, "hipMemGetInfo", r, e);
    *out = free_bytes;
    return RC_OK;
}

enum rc device_alloc(const struct device *d, struct kern_view *out, const char *name,
                     enum tensor_type type, uint64_t bytes, struct err *e) {
    void *ptr = NULL;
    *out = (struct kern_view){ 0 };
    enum rc rc = device_use(d, e);
    if (rc)
        return rc;
    hipError_t r = d->hip->hipMalloc(&ptr, bytes);
    if (r != hipSuccess)
        return err_set(e, r == hipErrorOutOfMemory ? RC_MEMORY : RC_DEVICE,
                       "%s: the device has no room for %llu bytes: %s", name,
                       (unsigned long long)bytes, d->hip->hipGetErrorString(r));
    *out = (struct kern_view){ ptr, bytes, type, name };
    if (bytes)
        (void)gcore_name_range(ptr, bytes, name); /* works without a name, too */
    return RC_OK;
}

enum rc device_map(const struct device *d, struct kern_view *out, const char *name,
                   enum tensor_type type, const void *memory, uint64_t bytes, struct err *e) {
    void *host = (void *)(uintptr_t)memory, *ptr = NULL;
    enum rc rc = device_use(d, e);
    if (rc)
        return rc;
    hipError_t r = d->hip->hipHostRegister(host, bytes, hipHostRegisterMapped);
    if (r == hipSuccess) {
        r = d->hip->hipHostGetDevicePointer(&ptr, host, 0);
        if (r != hipSuccess)
            device_unmap(d, memory);
    }
    if (r != hipSuccess)
        return err_set(e, RC_DEVICE, "%s: the device cannot read it in place: %s", name,
                       d->hip->hipGetErrorString(r));
    *out = (struct kern_view){ ptr, bytes, type, name };
    (void)gcore_name_range(ptr, bytes, name);
    return RC_OK;
}

void device_unmap(const struct device *d, const void *memory) {
    (void)d->hip->hipHostUnregister((void *)(uintptr_t)memory);
}

void device_free(const struct device *d, struct kern_view *v) {
    if (v->ptr)
        (void)d->hip->hipFree(v->ptr);
    *v = (struct kern_view){ 0 };
}

enum rc device_copy_failed(const char *direction, const struct gcore_d2h_result *r, struct err *e) {
    enum rc rc = r->code == GCORE_D2H_DEVICE_ERROR ? RC_DEVICE : RC_REFUSED;
    return err_set(e, rc, "hipMemcpy %s failed: %s", direction, r->message);
}

enum rc device_upload_part(const struct device *d, const struct kern_view *to, uint64_t offset,
                           const void *from, uint64_t bytes, int64_t step, int32_t layer,
                           struct err *e) {
    struct gcore_d2h_meta meta = { to->name, step, layer, offset, bytes, to->bytes };
    struct gcore_d2h_result r;
    enum rc rc = device_use(d, e);
    if (rc)
        return rc;
    if (gcore_h2d_copy(to->ptr, from, &meta, d->stream, &r) == GCORE_D2H_OK)
        return RC_OK;
    return device_copy_failed("H2D", &r, e);
}

enum rc device_upload(const struct device *d, const struct kern_view *to, const void *from,
                      uint64_t bytes, int64_t step, int32_t layer, struct err *e) {
    return device_upload_part(d, to, 0, from, bytes, step, layer, e);
}

enum rc device_download(const struct device *d, void *to, const struct kern_view *from,
                        uint64_t bytes, int64_t step, int32_t layer, struct err *e) {
    struct gcore_d2h_meta meta = { from->name, step, layer, 0, bytes, from->bytes };
    struct gcore_d2h_result r;
    enum rc rc = device_use(d, e);
    if (rc)
        return rc;
    if (gcore_d2h_copy(to, from->ptr, &meta, d->stream, &r) == GCORE_D2H_OK)
        return RC_OK;
    return device_copy_failed("D2H", &r, e);
}

enum rc device_copy_from(const struct device *d, const struct kern_view *to,
                         const struct kern_view *from, uint64_t bytes, int64_t step, int32_t layer,
                         struct err *e) {
    struct gcore_d2h_meta meta = { from->name, step, layer, 0, bytes, from->bytes };
    struct gcore_d2h_result r;
    enum rc rc = device_use(d, e);
    if (rc)
        return rc;
    if (gcore_d2d_copy_async(to->ptr, from->ptr, &meta, d->stream, NULL, &r) == GCORE_D2H_OK)
        return RC_OK;
    return device_copy_failed("D2D", &r, e);
}

enum rc device_wait(const struct device *d, const char *what, struct err *e) {
    hipError_t r = d->hip->hipStreamSynchronize(d->stream);
    return r == hipSuccess ? RC_OK : hip_failed(d, what, r, e);
}
