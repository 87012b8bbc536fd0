/* audit.h - the state of the audit: one attachment to one HIP table per process.
 *
 * The decorated functions of the table and the checked copies of <gcore/d2h.h> share this state. It
 * is filled by audit_attach() and not changed until audit_detach(), so that it is read without a
 * lock. There is one attachment per process because HIP functions carry no context argument: a hook
 * knows its table only by knowing that there is one.
 *
 * Detaching is for tests and for orderly ends: no other thread may be in a hook or a checked copy.
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/ledger.h"
#include "base/err.h"
#include "base/log.h"
#include "hip/hip_api.h"
#include "hip/hip_load.h"
#include "record/writer.h"

/* What the environment says; read once, at attachment. */
struct audit_config {
    bool d2h_audit;               /* GCORE_D2H_AUDIT */
    bool d2h_debug;               /* GRETA_D2H_DEBUG */
    bool trace_memcpy;            /* GRETA_TRACE_MEMCPY; false where the build left the code out */
    const char *d2h_log;          /* GCORE_D2H_AUDIT_LOG; NULL or "stderr": standard error */
    struct record_options record; /* GCORE_RECORD and relatives; path NULL: off */
};

/* record: where the recording goes; NULL: GCORE_RECORD. RC_USAGE if a variable's value makes no
 * sense; the message names it. */
NODISCARD enum rc audit_config_read(struct audit_config *out, const char *record, struct err *e);

struct order_stream;

/* Memory that the host reaches and that queued work uses: pageable memory of a copy; pinned,
 * registered or managed memory of a copy, a set or a kernel. The work is over when the stream's
 * done reaches mark. */
struct audit_host_use {
    uint64_t address, bytes;
    bool written; /* by the work; else it is read */
    bool vague;   /* from a kernel's pointer: the kernel may touch fewer bytes */
    struct order_stream *stream;
    uint64_t mark, event; /* event: seq of the work */
};

/* The observer of such memory: the preloaded library. Called on the program's threads. */
struct audit_host_observer {
    void (*queued)(const struct audit_host_use *use); /* the runtime took the work */
    /* It is captured: it comes with every launch of its graph. stream is NULL. May be NULL. */
    void (*captured)(const struct audit_host_use *use);
    void (*waited)(void);       /* some stream's done went up; may be NULL */
    void (*waits)(bool begins); /* this thread is in a call that waits; may be NULL */
    /* Work was waited for and is done; the call has yet to return to the caller. May be NULL. */
    void (*lingers)(const void *caller);
    /* The caller queries work that is done but that nothing has waited for since it was queued:
     * should the query answer "not ready" all the same? May be NULL. */
    bool (*withholds)(const void *caller);
    void (*host_fn)(bool begins); /* a host function of the program's on this thread; may be NULL */
    /* The thread's stack ends above audit_thread.stack_use; caller makes a HIP call. */
    void (*returned)(uint64_t stack_end, const void *caller);
};

struct audit {
    struct hip_api raw;    /* the runtime's own functions */
    struct hip_api *table; /* the decorated one */
    ledger *ledger;
    writer *writer; /* NULL: no recording */
    struct audit_config config;
    struct log_sink log;   /* of the D2H lines: audit_log() */
    _Atomic bool log_lost; /* one could not be written, and standard error has a note of it */
    bool verbose;          /* any of config's three D2H switches is on */
    bool partial;
    /* The recording lacks the devices so far: provenance_write_devices(). */
    _Atomic bool device_unknown;
    int hip_major;
    struct hip_soft soft;                   /* all NULL on ROCm */
    const struct audit_host_observer *host; /* NULL: none */
    _Atomic uint64_t next_op_id;
    void (*on_sticky_error)(hipError_t error); /* for each; set while attached */
    /* The first sticky device error: what it was, which call reported it, and where. */
    _Atomic int sticky_error;
    _Atomic int sticky_fn;
    _Atomic(const void *) sticky_caller;
};

extern struct audit audit;

/* Order of the constructors that register fork handlers: attach.c, then open.c, then others. */
enum { AUDIT_FORKS_FIRST = 200, AUDIT_FORKS_SECOND = 201 };

/* True between audit_attach and audit_detach. */
extern _Atomic bool audit_attached;
static inline bool audit_is_attached(void) {
    return atomic_load_explicit(&audit_attached, memory_order_acquire);
}

/* Writes one line of the D2H log. If that fails, a note on standard error reports the first lost
 * line, and the program continues. */
void audit_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for whole lines that are formatted already. */
void audit_log_lines(const char *text, size_t bytes);

/* What lies at an address that is one side of a copy. */
enum d2h_place_kind { D2H_PLACE_NONE, D2H_PLACE_LIVE, D2H_PLACE_FREED };
struct d2h_place {
    uint64_t address; /* what was asked about */
    uint8_t kind;     /* enum d2h_place_kind */
    uint8_t side;     /* enum ledger_side */
    uint8_t family;   /* enum ledger_family */
    bool host;        /* asked about as a host pointer */
    int32_t device;
    uint64_t addr, size;           /* the allocation */
    uint64_t next;                 /* if kind is NONE: where the next block starts; 0: none */
    uint64_t name_addr, name_size; /* the named tensor; size 0: none */
};

/* The calling thread, as the audit sees it. */
struct audit_thread {
    uint32_t attachment;  /* which attachment the rest is about; see audit_me() */
    int device;           /* 1 + current device; 0: ask */
    uint32_t tid;         /* kernel's id; 0: not asked yet */
    uint64_t failed_call; /* 1 + seq of the call whose error hipGetLastError will report */
    uint64_t stack_use;   /* the lowest address on its stack that unfinished work uses; 0: none */
    struct order_stream *own_streams; /* per-thread default streams, one per device */
    /* What the ledger, at this generation, says about addresses that copies used: see d2h_check.c
     */
    uint64_t places_generation;
    uint64_t pageable[4]; /* pages known to be plain host memory */
    struct d2h_place places[4];
};
extern __thread struct audit_thread audit_thread __attribute__((tls_model("initial-exec")));

/* Counts attachments, so that what a thread remembers of an earlier one is not used. */
extern _Atomic uint32_t audit_attachment;

static inline struct audit_thread *audit_me(void) {
    struct audit_thread *me = &audit_thread;
    uint32_t now = atomic_load_explicit(&audit_attachment, memory_order_relaxed);
    if (__builtin_expect(me->attachment != now, 0))
        *me = (struct audit_thread){ .attachment = now, .tid = me->tid };
    return me;
}

uint32_t audit_thread_id(void);

/* The thread's current device; asks the runtime where the audit cannot know. */
int audit_current_device(void);

/* Remembers that fn, called from caller, returned error (not hipSuccess); seq is its event. */
void audit_note_error(enum hip_fn fn, const void *caller, uint64_t seq, hipError_t error);

/* "module+0x1234 (function)" for a return address. */
void audit_describe_caller(const void *caller, char *out, size_t size);

#endif
