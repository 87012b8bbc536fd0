/* verdict.h - what one recording says about its run: the cause, the evidence, and what is ruled
 * out.
 *
 * verdict_open() reads a recording once, replays allocations, streams and operations, orders them
 * by HIP's rules, and puts every hypothesis of hypotheses.def to the test. The result is plain data
 * for reports; report.h writes it as text and as JSON.
 *
 * A verdict never says more than the recording can prove: RULED_OUT is a proof over a whole
 * history, so lost events, unknown kernels or an early end make it INCONCLUSIVE, with the reason.
 *
 * Everything in struct verdict belongs to it, is read-only and lives until verdict_close(); nothing
 * refers to the reader any more. Strings are never NULL unless a comment says so. A verdict may be
 * read by any number of threads. */
#ifndef VERDICT_VERDICT_H
#define VERDICT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "record/reader.h"
#include "verdict/sentence.h"

/* HYPOTHESIS_SIZE_MISMATCH, ... */
enum verdict_hypothesis_id {
#define HYPOTHESIS(name, needs, en, es) HYPOTHESIS_##name,
#include "verdict/hypotheses.def"
#undef HYPOTHESIS
    HYPOTHESIS_COUNT
};

enum verdict_status {
    VERDICT_STATUS_CONFIRMED,
    VERDICT_STATUS_RULED_OUT,      /* by proof: reason says over what */
    VERDICT_STATUS_INCONCLUSIVE,   /* reason says what is missing */
    VERDICT_STATUS_NOT_APPLICABLE, /* it does not apply to this run */
};

enum verdict_overall {
    VERDICT_CLEAN,          /* nothing failed and no bug was found */
    VERDICT_ROOT_CAUSE,     /* something failed, and this is why */
    VERDICT_FINDINGS,       /* bugs were found; the program saw nothing fail because of them */
    VERDICT_NOT_REPRODUCED, /* the failure that was looked for did not happen, and no bug was found
                             */
    VERDICT_INCONCLUSIVE,   /* a failure that the recording does not explain, or half a history */
};

/* What an operation does with its bytes. Of one that failed: what it would have done. */
enum verdict_access {
    VERDICT_ACCESS_READS,
    VERDICT_ACCESS_WRITES,
    VERDICT_ACCESS_USES, /* both, or one of the two */
    VERDICT_ACCESS_ALLOCATES,
    VERDICT_ACCESS_FREES,
};

/* One function of a call stack. */
struct verdict_frame {
    const char *function; /* NULL: unknown */
    const char *file;     /* NULL: unknown */
    uint32_t line;        /* 0: unknown */
    bool inlined;         /* into the function after it */
    const char *module;   /* path of the program or library; "": none */
    uint64_t offset;      /* of the return address in it, or the address itself if there is none */
};

/* From the inside out. */
struct verdict_stack {
    const struct verdict_frame *frame;
    size_t count;
    size_t where; /* the frame that site names: the first that is no wrapper */
};

/* A call or operation of the run: the messenger that reported an error, the culprit that caused it,
 * or another that takes part. Exactly one of api and kernel is the better name: kernel if it is
 * set.
 */
struct verdict_actor {
    uint64_t event;             /* its number in the recording; EVENT_NO_SEQ: unknown */
    uint16_t kind;              /* enum event_kind */
    const char *api;            /* HIP function; "" if none is behind it */
    const char *kernel;         /* as its source names it; NULL: not a kernel */
    const char *symbol;         /* of the kernel, as the linker knows it; NULL: not a kernel */
    const char *argument;       /* of the kernel: its name, else "#2"; NULL: none in particular */
    int argument_index;         /* -1: none */
    const char *site;           /* reader_site_text(): "function (file.c:12)"; "-": unknown */
    uint32_t site_id;           /* reader_site(); 0: unknown */
    struct verdict_stack stack; /* count 0: unknown */
    uint32_t stream;            /* reader_stream(); 0: none */
    uint32_t thread;            /* reader_thread(); 0: unknown */
    const char *status;         /* "hipErrorIllegalAddress"; "pending" if the call never returned */
    unsigned status_code;       /* hipError_t or RECORD_PENDING */
    uint64_t t_ns;              /* since the recording's start */
    uint64_t address, len;      /* the bytes in question; len 0: none */
    enum verdict_access access; /* what it did with them */
    bool writes;                /* it wrote (or would have written) them */
    uint64_t replay;            /* captured: the graph launch that ran it; 0: none */
#define ACTOR_FIELD_NAME(name)                 const char *name;
#define ACTOR_FIELD_NUMBER(name)               int64_t name;
#define ACTOR(name, type, en, es, description) ACTOR_FIELD_##type(name)
#include "verdict/actor.def"
};

/* The allocation a finding is about. */
struct verdict_block {
    uint64_t base, bytes;
    unsigned family;        /* DETAIL_FAMILY_* */
    uint64_t alloc, free;   /* events; EVENT_NO_SEQ: none */
    const char *alloc_site; /* "-" if unknown */
    const char *free_site;  /* "-" if it lives or that is unknown */
    struct verdict_stack alloc_stack, free_stack;
    const char *tensor; /* the named range inside it that is meant; NULL: none */
    uint64_t tensor_at, tensor_bytes;
    uint32_t process;
};

struct verdict_finding {
    enum verdict_hypothesis_id hypothesis;
    uint32_t also;                /* bits 1 << id: other hypotheses that the same facts confirm */
    struct verdict_actor culprit; /* the operation that is wrong */
    const struct verdict_actor *other;     /* the one it collides with; NULL: none */
    const struct verdict_actor *messenger; /* the call that reported it; NULL: nothing did */
    const struct verdict_block *block;     /* NULL: none */
    const struct sentence *said;           /* what happened; NULL: only text says */
    const char *text;                      /* the same in English */
    const char *advice;                    /* what to do, in English */
    const struct sentence *advised;        /* the same; NULL: as the hypothesis's row advises */
    uint64_t count;                        /* how often, at the same place */
    const uint64_t *evidence;              /* event numbers, ascending */
    size_t evidence_count;
};

struct verdict_hypothesis {
    enum verdict_hypothesis_id id;
    enum verdict_status status;
    uint64_t checked;            /* how much was examined */
    const struct sentence *said; /* the answer and why; NULL: only text says */
    const char *text;            /* the same in English */
    const uint64_t *evidence;    /* event numbers, ascending, the first few */
    size_t evidence_count;
    uint64_t findings;
};

/* What of the run the recording shows. */
struct verdict_coverage {
#define COVERAGE(name, where, en, es) uint64_t name;
#include "verdict/coverage.def"
    uint64_t unread;    /* of torn: not examined, because it would have cost too much */
    uint64_t unwatched; /* operations whose host memory could not be watched to the end */
    bool complete;      /* no event is missing, and no calls bypassed the audit */
    const char *gaps;   /* what is missing, in English; "" if nothing */
    const struct sentence *gaps_said; /* the same; NULL: nothing, or only gaps says */
    bool ended;                       /* every process came to its end in good order */
    const char *end; /* if not: how and where the history ends, in English; else "" */
    const struct sentence *end_said; /* the same; NULL: nothing, or only end says */
    uint64_t end_event; /* the last one of processes that did not end; EVENT_NO_SEQ: none */
    int exit_signal;    /* what ended the program, as its parent saw; -1: no signal, or unknown */
    int exit_status;    /* its own status; -1: none, or unknown */
    /* The last events of threads of processes that did not end; those in calls first. */
    const struct verdict_actor *ends;
    size_t ends_count;
    uint64_t ends_left_out;
    uint64_t last_event;                 /* the last one there is; EVENT_NO_SEQ: none */
    const struct verdict_actor *pending; /* calls that never returned: where the history ends */
    size_t pending_count;
};

/* How far the results of interpreted machine code can be trusted: what the device stated. */
enum verdict_exactness {
    VERDICT_EXACT,       /* bit for bit as documented */
    VERDICT_PRECISE,     /* within the documented error */
    VERDICT_APPROXIMATE, /* up to what is not documented */
    VERDICT_EXACTNESS_COUNT
};
enum { VERDICT_FIDELITY_LINES = 4 };
struct verdict_fidelity {
    uint64_t launches; /* of machine code that stated it */
    uint64_t followed; /* of those, in which approximate values were followed through registers */
    uint64_t addresses, branches; /* of those, in which one became an address, decided a branch */
    struct {
        uint64_t instructions;    /* wave instructions */
        const char *const *names; /* mnemonics, ascending */
        size_t count;
    } kind[VERDICT_EXACTNESS_COUNT];
    const struct sentence *said[VERDICT_FIDELITY_LINES]; /* the same in words */
    const char *text[VERDICT_FIDELITY_LINES];            /* and in English */
    size_t lines;
};

struct verdict_fact { /* of the provenance */
    const char *key, *value;
};

struct verdict_provenance {
    const struct verdict_fact *facts;
    size_t fact_count;
    const char *commit, *build_id, *model_hash, *command; /* "" if the recording does not say */
    bool dirty;
    const char *expected_commit, *expected_build_id, *expected_model_hash; /* NULL: none was */
    uint64_t run_id, start_wall_us, duration_ns;
};

struct verdict {
    enum verdict_overall overall;
    const char *answer;                 /* the first line of every report, in English */
    const struct sentence *answer_said; /* the same; NULL: only answer says */
    const char *recording;              /* as the options named it; "" if they did not */
    const struct verdict_finding *root; /* the cause; NULL unless ROOT_CAUSE */
    const struct verdict_actor
        *messenger;                      /* the call that first reported the failure; may be NULL */
    const struct verdict_actor *culprit; /* what caused it, or the first finding's; may be NULL */
    struct verdict_hypothesis hypothesis[HYPOTHESIS_COUNT];
    const struct verdict_finding *findings; /* the root cause first, then in order of the run */
    size_t finding_count;
    uint64_t findings_left_out; /* more of the same than are kept */
    const char *const *remarks; /* what is odd, or uncertain, and no finding; in English */
    const struct sentence *const *remarks_said; /* the same; NULL: only remarks says */
    size_t remark_count;
    struct verdict_coverage coverage;
    struct verdict_fidelity fidelity;
    struct verdict_provenance provenance;
    const struct verdict_block *blocks; /* allocations that findings and reports may show: those
                                           of findings, then those alive at the end */
    size_t block_count;
};

typedef struct verdict verdict;

struct verdict_options {
    const char *recording;         /* its name, for reports; may be NULL */
    const char *expect_commit;     /* NULL: no expectation; a prefix of 7 digits or more will do */
    const char *expect_build_id;   /* of the program; the same */
    const char *expect_model_hash; /* NULL: no expectation */
    bool expect_failure;           /* somebody saw this fail: NOT_REPRODUCED instead of CLEAN */
    size_t findings_max;           /* findings kept; 0: 1000 */
};

/* options may be NULL. RC_MEMORY, or RC_FORMAT if the file changed under the reader; on failure
 * *out is untouched. A recording that is cut or damaged is judged as far as it goes. */
NODISCARD enum rc verdict_open(verdict **out, const reader *r,
                               const struct verdict_options *options, struct err *e);
void verdict_close(verdict **v);

/* The exit status of programs that print the verdict: 0 clean, 1 failed or bugs found, 3 refused
 * (stale binary, nothing to judge). */
int verdict_exit_code(const verdict *v);

/* What reports say about the i-th file whose lines are not shown because it is not the one that the
 * program ran; NULL past the last, or without memory. */
const struct sentence *verdict_unused_file(struct arena *a, const reader *r, size_t i);

/* ---- the tables of hypotheses.def ---------------------------------------------------------- */

/* The columns, as hypotheses.def explains them. counted is a template: sentence_count(). */
struct hypothesis_words {
    const char *question, *confirms, *refutes, *counted, *absent, *advice;
};

const char *hypothesis_name(enum verdict_hypothesis_id id); /* "SIZE_MISMATCH" */
const struct hypothesis_words *hypothesis_words(enum lang lang, enum verdict_hypothesis_id id);
const char *verdict_status_name(enum verdict_status status);    /* "RULED_OUT" */
const char *verdict_overall_name(enum verdict_overall overall); /* "ROOT_CAUSE" */
const char *verdict_access_name(enum verdict_access access);    /* "reads" */

#endif
