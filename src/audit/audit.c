#include "audit/audit.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/env.h"

struct audit audit;
_Atomic uint32_t audit_attachment;
__thread struct audit_thread audit_thread __attribute__((tls_model("initial-exec")));

_Atomic bool audit_attached;

/* ---- the environment ------------------------------------------------------------------------- */

enum rc audit_config_read(struct audit_config *out, const char *record, struct err *e) {
    struct audit_config c = { .d2h_log = env_text(ENV_GCORE_D2H_AUDIT_LOG) };
    enum rc rc = env_read_flag(ENV_GCORE_D2H_AUDIT, &c.d2h_audit, e);
    if (rc == RC_OK)
        rc = env_read_flag(ENV_GRETA_D2H_DEBUG, &c.d2h_debug, e);
    if (rc == RC_OK)
        rc = env_read_flag(ENV_GRETA_TRACE_MEMCPY, &c.trace_memcpy, e);
    if (rc == RC_OK)
        rc = record_options_read(&c.record, record, e);
    if (rc == RC_OK)
        *out = c;
    return rc;
}

/* ---- threads --------------------------------------------------------------------------------- */

uint32_t audit_thread_id(void) {
    struct audit_thread *me = audit_me();
    if (!me->tid)
        me->tid = (uint32_t)syscall(SYS_gettid);
    return me->tid;
}

int audit_current_device(void) {
    struct audit_thread *me = audit_me();
    if (me->device && !audit.partial)
        return me->device - 1;
    int device = 0;
    if (audit.raw.hipGetDevice(&device) != hipSuccess)
        return me->device ? me->device - 1 : 0; /* a failed device answers nothing */
    me->device = 1 + device;
    return device;
}

/* ---- errors ---------------------------------------------------------------------------------- */

void audit_note_error(enum hip_fn fn, const void *caller, uint64_t seq, hipError_t error) {
    audit_me()->failed_call = seq + 1; /* RECORD_NONE becomes 0: unknown */
    if (!hip_error_is_sticky(error))
        return;
    int none = 0;
    if (atomic_compare_exchange_strong(&audit.sticky_error, &none, (int)error)) {
        atomic_store(&audit.sticky_fn, (int)fn);
        atomic_store(&audit.sticky_caller, caller);
    }
    if (audit.on_sticky_error)
        audit.on_sticky_error(error);
}

void audit_describe_caller(const void *caller, char *out, size_t size) {
    Dl_info info;
    if (!caller) {
        snprintf(out, size, "an unknown place");
        return;
    }
    /* A return address may already belong to the next function: the call is before it. */
    const char *call = (const char *)caller - 1;
    if (!dladdr(call, &info) || !info.dli_fname) {
        snprintf(out, size, "%p", caller);
    } else {
        const char *slash = strrchr(info.dli_fname, '/');
        const char *file = slash ? slash + 1 : info.dli_fname;
        size_t offset = (size_t)(call - (const char *)info.dli_fbase);
        if (info.dli_sname)
            snprintf(out, size, "%s+0x%zx (%s)", file, offset, info.dli_sname);
        else
            snprintf(out, size, "%s+0x%zx", file, offset);
    }
}

/* ---- the log --------------------------------------------------------------------------------- */

/* Says once that the log cannot be written. */
static void note_lost_lines(enum rc rc, const struct err *e) {
    const struct log_sink to_stderr = { .fd = 2, .owned = false };
    if (rc && audit.log.owned && !atomic_exchange(&audit.log_lost, true))
        log_linef(&to_stderr, "greta: GCORE_D2H_AUDIT_LOG=%s: lines are lost: %s",
                  audit.config.d2h_log, e->msg);
}

void audit_log(const char *fmt, ...) {
    struct err e = { 0 };
    va_list ap;
    va_start(ap, fmt);
    enum rc rc = log_linev(&audit.log, &e, fmt, ap);
    va_end(ap);
    note_lost_lines(rc, &e);
}

void audit_log_lines(const char *text, size_t bytes) {
    struct err e = { 0 };
    note_lost_lines(log_line(&audit.log, text, bytes, &e), &e);
}
