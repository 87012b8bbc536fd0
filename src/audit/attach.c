#include "audit/attach.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/code.h"
#include "audit/d2h_internal.h"
#include "audit/decorate.h"
#include "audit/graph_uses.h"
#include "audit/kernel.h"
#include "audit/order.h"
#include "audit/provenance.h"
#include "audit/statements.h"

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;

/* Set while this thread attaches or detaches: a fork in there must not wait for attach_lock. */
static __thread bool attaching __attribute__((tls_model("initial-exec")));

/* attach_lock is held from fork_prepare() on, so that all three handlers find the same ledger. The
 * one thread of the child has a new kernel id. */
static void fork_prepare(void) {
    if (!attaching)
        pthread_mutex_lock(&attach_lock);
    d2h_pending_fork_prepare();
    if (audit.ledger)
        ledger_fork_prepare(audit.ledger);
}
static void fork_parent(void) {
    if (audit.ledger)
        ledger_fork_done(audit.ledger);
    d2h_pending_fork_done();
    if (!attaching)
        pthread_mutex_unlock(&attach_lock);
}
static void fork_child(void) {
    audit_thread.tid = 0;
    fork_parent();
}

/* ---- attaching ------------------------------------------------------------------------------- */

static const char *fn_name(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

static enum rc open_logs(const struct audit_config *config, bool by_option, struct err *e) {
    audit.config = *config;
#if !GRETA_TRACE_MEMCPY
    audit.config.trace_memcpy = false;
#endif
    audit.verbose = audit.config.d2h_audit || audit.config.d2h_debug || audit.config.trace_memcpy;
    enum rc rc = log_open(&audit.log, config->d2h_log, e);
    if (rc != RC_OK)
        return err_prefix(e, "GCORE_D2H_AUDIT_LOG");
    if (config->record.path) {
        struct record_options o = config->record;
        o.fn_count = HIP_FN_COUNT;
        o.fn_name = fn_name;
        rc = record_open(&audit.writer, &o, e);
        if (rc != RC_OK)
            err_prefix(e, by_option ? "record" : "GCORE_RECORD");
    }
    return rc;
}

static void at_exit(void) {
    if (!audit_is_attached())
        return;
    d2h_pending_fail(hipErrorNotReady);
    statements_end();
    record_end(audit.writer);
}

static void register_process_hooks(void) {
    atexit(at_exit);
}

/* Registered when the library is loaded and not at the first HIP call, when a fork by another
 * thread would miss the handlers. Registered before those of open.c and of the preloaded library,
 * which must run first: prepare handlers run in reverse order. */
__attribute__((constructor(AUDIT_FORKS_FIRST))) static void watch_forks(void) {
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void close_all(void) {
    record_close(&audit.writer);
    log_close(&audit.log);
    ledger_close(&audit.ledger);
}

static enum rc attach_locked(struct hip_api *table, const struct audit_options *options,
                             struct err *e) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (audit_is_attached())
        return err_set(e, RC_BUSY,
                       "the audit is attached to a HIP table already; there is one per process: "
                       "use that table, or audit_detach() first");
    struct audit_config config;
    enum rc rc = RC_OK;
    if (options->config)
        config = *options->config;
    else
        rc = audit_config_read(&config, options->record, e);
    if (rc != RC_OK)
        return rc;
    memset(&audit, 0, sizeof audit);
    audit.log.fd = -1;
    audit.on_sticky_error = d2h_pending_fail;
    rc = ledger_open(&audit.ledger, e);
    if (rc == RC_OK)
        rc = open_logs(&config, options->record, e);
    if (rc != RC_OK) {
        close_all();
        return rc;
    }
    audit.raw = *table;
    audit.table = table;
    audit.partial = options->partial;
    audit.hip_major = options->hip_major ? options->hip_major : 6;
    atomic_fetch_add(&audit_attachment, 1);
    pthread_once(&once, register_process_hooks);
    hip_soft_find(&audit.soft, options->library);
    statements_attach();
    if (audit.writer) {
        provenance_write(audit.writer, options->library_path);
        record_provenance(audit.writer, "audit.partial", audit.partial ? "1" : "0");
        atomic_store(&audit.device_unknown, true);
    }
    decorate_table(table);
    atomic_store_explicit(&audit_attached, true, memory_order_release);
    return RC_OK;
}

enum rc audit_attach(struct hip_api *table, const struct audit_options *options, struct err *e) {
    static const struct audit_options plain;
    pthread_mutex_lock(&attach_lock);
    attaching = true;
    enum rc rc = attach_locked(table, options ? options : &plain, e);
    attaching = false;
    pthread_mutex_unlock(&attach_lock);
    return rc;
}

void audit_detach(void) {
    pthread_mutex_lock(&attach_lock);
    attaching = true;
    if (audit_is_attached()) {
        *audit.table = audit.raw;
        atomic_store(&audit_attached, false);
        statements_detach();
        d2h_pending_reset();
        order_reset();
        graph_uses_reset();
        kernel_reset();
        code_reset();
        close_all();
        atomic_fetch_add(&audit_attachment, 1);
    }
    attaching = false;
    pthread_mutex_unlock(&attach_lock);
}
