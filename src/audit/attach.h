/* attach.h - putting the audit over a HIP table, and taking it off again (attach.c); loading a
 * runtime for that (open.c). */
#ifndef AUDIT_ATTACH_H
#define AUDIT_ATTACH_H

#include "audit/audit.h"
#include "hip/hip_load.h"

struct audit_options {
    const struct audit_config *config; /* NULL: audit_config_read() */
    const char *record;                /* for audit_config_read(); NULL: GCORE_RECORD */
    void *library;                     /* the runtime's, for greta_soft_*; NULL: none */
    const char *library_path;          /* for provenance; may be NULL */
    int hip_major;                     /* 5, 6 or 7; 0: 6 */
    /* The program also calls the runtime directly, so that the ledger and the streams' work are
     * known in part only. Checked copies then ask the runtime and wait for the device. */
    bool partial;
};

/* Replaces every entry of *table by one that tells the ledger and the recorder and then calls the
 * entry that was there. *table must stay valid until audit_detach(). RC_BUSY if the process is
 * attached already, RC_USAGE, RC_IO or RC_REFUSED if a log or a recording cannot be opened,
 * RC_MEMORY; on failure nothing is changed. */
NODISCARD enum rc audit_attach(struct hip_api *table, const struct audit_options *options,
                               struct err *e);

/* Puts the original entries back, ends the recording and closes the logs. */
void audit_detach(void);

/* Loads a runtime and attaches if that has not happened yet. Cheap afterwards. */
enum rc audit_ready(struct err *e);

/* gcore_open() with the recording as an option: record is its path, or NULL for GCORE_RECORD.
 * RC_USAGE if the process is attached already and its recording is not that one. */
enum rc audit_open(const char *device, const char *record, struct err *e);

/* The decorated table; loads a runtime and attaches first if that has not happened (see gcore_open
 * in <gcore/audit.h>). NULL, with the reason in e, if there is none. */
const struct hip_api *gcore_hip(struct err *e);

/* The runtime that gcore_open loaded; its table is the decorated one. NULL if none is open. */
const struct hip_runtime *gcore_runtime(void);

#endif
