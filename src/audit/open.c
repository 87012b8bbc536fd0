/* gcore_open and gcore_close: the audit over a runtime that it loads itself. */
#include <gcore/audit.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "audit/call.h"
#include "audit/d2h_internal.h"
#include "greta_build.h"

static struct {
    pthread_mutex_t lock;
    struct hip_runtime runtime;
    bool open;   /* runtime is loaded and attached */
    bool failed; /* and why */
    struct err err;
    char *record; /* path of the recording, if it was given as an option */
} gcore = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The thread has the lock. A signal handler that interrupts it there must not wait for it, nor must
 * a fork that the runtime makes while it is loaded. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

static bool enter(void) {
    if (inside)
        return false;
    inside = true;
    pthread_mutex_lock(&gcore.lock);
    return true;
}

static void leave(void) {
    pthread_mutex_unlock(&gcore.lock);
    inside = false;
}

/* Whether a fork took the lock, in the thread that forks. */
static __thread bool forking __attribute__((tls_model("initial-exec")));

static void fork_prepare(void) {
    forking = enter();
}

static void fork_done(void) {
    if (forking)
        leave();
    forking = false;
}

__attribute__((constructor(AUDIT_FORKS_SECOND))) static void watch_forks(void) {
    pthread_atfork(fork_prepare, fork_done, fork_done);
}

/* A runtime that is in the process before the audit loads one was linked or opened by other code,
 * which may call it directly. */
static bool runtime_is_present(void) {
    static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                         "libamdhip64.so" };
    static bool ours; /* an earlier gcore_open() left it there: libraries are never unloaded */
    if (ours)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            dlclose(library);
            return true;
        }
    }
    ours = true;
    return false;
}

/* Where `greta_audit run` has put an audit in front of this program already, that one stands back:
 * this one knows the program's names. */
static void take_over(void) {
    void *symbol = dlsym(RTLD_DEFAULT, "greta_preload_yield");
    void (*yield)(void);
    memcpy(&yield, &symbol, sizeof symbol);
    if (symbol)
        yield();
}

static enum rc open_locked(const char *device, const char *record, struct err *e) {
    free(gcore.record);
    gcore.record = record ? strdup(record) : NULL;
    if (record && !gcore.record)
        return err_set(e, RC_MEMORY, "out of memory");
    take_over();
    bool present = runtime_is_present();
    enum rc rc = hip_load(&gcore.runtime, device, e);
    if (rc != RC_OK)
        return rc;
    struct audit_options options = {
        .library = gcore.runtime.library,
        .library_path = gcore.runtime.path,
        .hip_major = hip_runtime_major(&gcore.runtime),
        .record = gcore.record,
        .partial = present,
    };
    rc = audit_attach(&gcore.runtime.api, &options, e);
    if (rc != RC_OK)
        hip_unload(&gcore.runtime);
    gcore.open = rc == RC_OK;
    return rc;
}

/* A process has one recording, and the option comes too late once it is under way. */
static enum rc check_record(const char *record, struct err *e) {
    const char *now = audit.config.record.path;
    if (!record || (now && !strcmp(now, record)))
        return RC_OK;
    return err_set(e, RC_USAGE, "record: this process already %s%s; '%s' cannot be added",
                   now ? "records to " : "runs without a recording", now ? now : "", record);
}

/* Slow part of audit_ready: loads, or repeats an earlier failure. */
static enum rc open_once(const char *device, const char *record, struct err *e) {
    if (!enter())
        return err_set(e, RC_BUSY,
                       "this thread is loading HIP: a signal handler has to try again later");
    int saved = errno;
    enum rc rc = RC_OK;
    if (audit_is_attached()) {
        rc = check_record(record, e);
    } else {
        if (!gcore.failed) {
            gcore.err = (struct err){ 0 };
            gcore.failed = open_locked(device, record, &gcore.err) != RC_OK;
        }
        if (gcore.failed) {
            rc = gcore.err.rc;
            if (e)
                *e = gcore.err;
        }
    }
    leave();
    errno = saved;
    return rc;
}

enum rc audit_ready(struct err *e) {
    return audit_is_attached() ? RC_OK : open_once(NULL, NULL, e);
}

const struct hip_api *gcore_hip(struct err *e) {
    return audit_ready(e) == RC_OK ? audit.table : NULL;
}

const struct hip_runtime *gcore_runtime(void) {
    if (!enter())
        return NULL;
    const struct hip_runtime *runtime = gcore.open ? &gcore.runtime : NULL;
    leave();
    return runtime;
}

enum rc audit_open(const char *device, const char *record, struct err *e) {
    return open_once(device, record, e);
}

int gcore_open(const char *device, char *message, size_t size) {
    struct err e = { 0 };
    enum rc rc = open_once(device, NULL, &e);
    if (message && size)
        snprintf(message, size, "%s", rc == RC_OK ? "" : e.msg);
    return rc == RC_OK ? 0 : -1;
}

void gcore_close(void) {
    if (!enter())
        return;
    if (gcore.open) {
        audit_detach();
        hip_unload(&gcore.runtime);
    }
    gcore.open = gcore.failed = false;
    free(gcore.record);
    gcore.record = NULL;
    leave();
}

const char *gcore_version(void) {
    return GRETA_VERSION;
}

const char *gcore_device_kind(void) {
    if (!enter())
        return "none";
    const char *kind = gcore.open ? hip_device_kind_name(gcore.runtime.kind) : "none";
    leave();
    return kind;
}

gcore_function gcore_hip_function(const char *name) {
    const struct hip_api *table = name ? gcore_hip(NULL) : NULL;
    enum hip_fn fn = table ? hip_fn_find(name) : HIP_FN_COUNT;
    if (fn == HIP_FN_COUNT)
        return NULL;
    /* struct hip_api is nothing but function pointers, in the order of enum hip_fn. */
    _Static_assert(sizeof(struct hip_api) == HIP_FN_COUNT * sizeof(gcore_function), "layout");
    gcore_function out;
    memcpy(&out, (const char *)table + (size_t)fn * sizeof out, sizeof out);
    return out;
}

void *gcore_runtime_symbol(const char *name) {
    if (!name || audit_ready(NULL) != RC_OK)
        return NULL;
    if (!enter())
        return NULL;
    void *library = gcore.open ? gcore.runtime.library : NULL;
    leave();
    return library ? dlsym(library, name) : NULL;
}

/* The kind of a mark, by its whole name; 0: one of the program's own. */
static unsigned mark_kind(const char *text) {
    const char *const *names = event_info(EVENT_MARK)->details;
    for (unsigned kind = 1; kind < 16; kind++)
        if (names[kind] && !strcmp(text, names[kind]))
            return kind;
    return 0;
}

void gcore_mark(const char *text, uint64_t a, uint64_t b, uint64_t c) {
    if (audit_ready(NULL) != RC_OK || !audit.writer)
        return;
    struct event ev = {
        .kind = EVENT_MARK,
        .dst = a,
        .src = b,
        .len = c,
        .name = record_string(audit.writer, text),
        .site = record_site(audit.writer, __builtin_return_address(0)),
        .aux = event_aux(EVENT_NO_FN, mark_kind(text)),
    };
    record_event(audit.writer, &ev);
}

void gcore_count(struct gcore_counts *out) {
    *out = (struct gcore_counts){ 0 };
    if (!audit_is_attached())
        return;
    struct ledger_counts l = ledger_count(audit.ledger);
    out->allocations_live = l.live;
    out->bytes_live = l.live_bytes;
    out->allocations_made = l.made;
    out->allocations_freed = l.freed;
    out->freed_forgotten = l.freed_forgotten;
    out->double_frees = l.double_frees;
    out->unknown_frees = l.unknown_frees;
    if (audit.writer) {
        out->events = record_count(audit.writer);
        out->events_lost = record_lost(audit.writer);
    }
}
