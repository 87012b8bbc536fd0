/* event.h - one event of a recording: 64 bytes, no pointers, no strings.
 *
 * A recording is a sequence of slots of 64 bytes, numbered by a counter in the file (`seq`) that
 * all threads and all processes of a run share; that number is the total order. A slot holds an
 * event, or the further words of the event before it (kind EXTRA), claimed together with it so
 * that the two are neighbours. event.def says what every kind means by its fields.
 *
 * The life of a slot is in its first word, `ready`:
 *
 *      0                      never used, or its first writer is filling it in
 *      EVENT_BUSY | seq+1     a writer of a later turn of the ring is filling it in
 *      EVENT_FINISHING | seq+1     whole; its thread has yet to store status and duration
 *      seq+1                  whole, and no longer owned: the next turn of the ring may take it
 *
 * A slot whose `ready` is none of the last two for the seq that belongs there is torn: the writer
 * was killed half-way, or has not come to it yet. An older or newer seq there means that the ring
 * went round. An open event is whole because status and duration share one aligned 8-byte word with
 * kind and aux, and are replaced in one store.
 *
 * An event about a call is written when the call begins, with status RECORD_PENDING, and completed
 * in place when it returns. A call that never returned stays pending, which shows where the program
 * was when it died. ALLOC is the exception (see event.def).
 *
 *      aux   31              16 15   11 10          0
 *            [ duration       ] [detail] [ function  ]     calls
 *            [ words ] [ total ] [ index ] [ type     ]    EXTRA: 8 bits each
 *
 * The duration is a 16-bit floating number of nanoseconds (6 bits exponent, 10 bits mantissa:
 * exact to 2047 ns, then to 0.1 %). A whole 64-bit duration would make the slot 72 bytes, and a
 * second event for the end of a call would double the cost of the recorder.
 *
 * Values only; safe to copy. */
#ifndef RECORD_EVENT_H
#define RECORD_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_VERSION = 2 };
#define RECORD_PENDING 0xffffu    /* status of a call that has not returned */
#define RECORD_NONE    UINT64_MAX /* seq of an event that was lost */
#define EVENT_NO_SEQ   UINT64_MAX /* a field that refers to an unknown event */

#define EVENT_BUSY      (UINT64_C(1) << 63)
#define EVENT_FINISHING (UINT64_C(1) << 62)

struct event {
    uint64_t ready;         /* see above; only the writer uses it */
    uint64_t t_ns;          /* CLOCK_MONOTONIC; 0 lets record_event() read the clock */
    uint64_t dst, src, len; /* event.def */
    uint32_t stream; /* record_stream(); 0: none, or the default stream of an unknown device */
    uint32_t thread; /* filled in by record_event() */
    uint32_t site;   /* record_site(); 0: unknown */
    uint32_t name;   /* record_string(); 0: none */
    uint16_t kind;   /* enum event_kind */
    uint16_t status; /* hipError_t, or RECORD_PENDING */
    uint32_t aux;    /* event_aux() */
};

enum { EVENT_WORDS = 6, EVENT_EXTRA_MAX = 31 };

/* A slot of kind EXTRA. Callers set word and, with event_extra_init(), type and word count;
 * record_events() numbers them. */
struct event_extra {
    uint64_t ready;
    uint64_t word[EVENT_WORDS];
    uint16_t kind, status;
    uint32_t aux;
};

union event_slot {
    struct event event;
    struct event_extra extra;
    uint64_t word[8];
};

_Static_assert(RECORD_VERSION == 2 && sizeof(struct event) == 64, "bump RECORD_VERSION");
_Static_assert(offsetof(struct event, t_ns) == 8 && offsetof(struct event, dst) == 16 &&
                   offsetof(struct event, len) == 32 && offsetof(struct event, stream) == 40 &&
                   offsetof(struct event, name) == 52 && offsetof(struct event, kind) == 56 &&
                   offsetof(struct event, status) == 58 && offsetof(struct event, aux) == 60,
               "bump RECORD_VERSION");
_Static_assert(sizeof(struct event_extra) == 64 && sizeof(union event_slot) == 64 &&
                   offsetof(struct event_extra, kind) == 56,
               "bump RECORD_VERSION");

/* EVENT_COPY, EVENT_LAUNCH, ... */
enum event_kind {
#define EVENT(number, kind, text, dst, src, len, detail, name, doc) EVENT_##kind = number,
#include "record/event.def"
};

/* DETAIL_FAMILY_PINNED, DETAIL_SCOPE_STREAM, ... */
enum event_detail {
#define EVENT_VALUE(list, number, value, text) DETAIL_##list##_##value = number,
#include "record/event.def"
};

/* EXTRA_ROWS, EXTRA_DIMS, ... */
enum event_extra_type {
#define EVENT_EXTRA(number, type, text, labels) EXTRA_##type = number,
#include "record/event.def"
};

/* DEFINITION_STRING, ... */
enum definition_kind {
#define DEFINITION(number, kind, text, doc) DEFINITION_##kind = number,
#include "record/event.def"
    DEFINITION_KINDS
};

/* ---- aux ----------------------------------------------------------------------------------- */

enum { EVENT_FN_MAX = 2047, EVENT_NO_FN = 2047, EVENT_DETAIL_ASYNC = 8, EVENT_CAPTURED = 16 };

/* fn: enum hip_fn, or EVENT_NO_FN where the event comes from no HIP call. detail: DETAIL_*, with
 * EVENT_DETAIL_ASYNC and EVENT_CAPTURED where they apply. */
static inline uint32_t event_aux(unsigned fn, unsigned detail) {
    return (fn & 0x7ffu) | (detail & 0x1fu) << 11;
}

static inline unsigned event_fn(const struct event *e) {
    return e->aux & 0x7ffu;
}
static inline unsigned event_detail(const struct event *e) {
    return e->aux >> 11 & 0xfu;
}
static inline bool event_is_captured(const struct event *e) {
    return e->aux >> 15 & 1u;
}
static inline bool event_is_pending(const struct event *e) {
    return e->status == RECORD_PENDING;
}

/* Nanoseconds to the 16-bit form, rounded down, and back. */
uint16_t event_duration_encode(uint64_t ns);
uint64_t event_duration_decode(uint16_t code);

static inline uint64_t event_duration_ns(const struct event *e) {
    return event_duration_decode((uint16_t)(e->aux >> 16));
}
/* When the call had returned. */
static inline uint64_t event_end_ns(const struct event *e) {
    return e->t_ns + event_duration_ns(e);
}

/* When a call ended at the latest, given how exact its duration is. What happened during the call
 * was not after this. */
uint64_t event_latest_end_ns(const struct event *e);

/* ---- extras -------------------------------------------------------------------------------- */

/* Clears the slot and makes it an extra of that type with that many words in use. */
static inline uint64_t *event_extra_init(union event_slot *s, enum event_extra_type type,
                                         unsigned words) {
    *s = (union event_slot){ .extra = { .kind = EVENT_EXTRA,
                                        .aux = (uint32_t)type | (uint32_t)words << 24 } };
    return s->extra.word;
}

static inline unsigned event_extra_type(const struct event_extra *x) {
    return x->aux & 0xffu;
}
static inline unsigned event_extra_index(const struct event_extra *x) {
    return x->aux >> 8 & 0xffu;
}
static inline unsigned event_extra_total(const struct event_extra *x) {
    return x->aux >> 16 & 0xffu;
}
/* Words in use, never more than EVENT_WORDS. */
static inline unsigned event_extra_words(const struct event_extra *x) {
    unsigned words = x->aux >> 24;
    return words < EVENT_WORDS ? words : EVENT_WORDS;
}

/* EXTRA_ROWS: width is in bytes, height in rows. */
static inline void event_extra_rows(union event_slot *s, uint64_t dst_pitch, uint64_t src_pitch,
                                    uint64_t width, uint64_t height) {
    uint64_t *w = event_extra_init(s, EXTRA_ROWS, 4);
    w[0] = dst_pitch;
    w[1] = src_pitch;
    w[2] = width;
    w[3] = height;
}

/* EXTRA_SLICES: distance in bytes from one slice of rows to the next, and their number. */
static inline void event_extra_slices(union event_slot *s, uint64_t dst_slice, uint64_t src_slice,
                                      uint64_t depth) {
    uint64_t *w = event_extra_init(s, EXTRA_SLICES, 3);
    w[0] = dst_slice;
    w[1] = src_slice;
    w[2] = depth;
}

/* EXTRA_DIMS: blocks of the grid, threads of a block, bytes of dynamic shared memory. */
struct event_dims {
    uint32_t grid[3], block[3];
    uint64_t shared;
    uint64_t flags; /* EVENT_DIMS_*; upper half: a hash of the arguments that may select a part of
                       a buffer, 0: unknown */
};
enum {
    EVENT_DIMS_COOPERATIVE = 1,
    EVENT_DIMS_REACHES = 2, /* the kernel may find pointers in memory or in structs that it gets by
                               value: its arguments do not say all that it touches */
    EVENT_DIMS_HASH_SHIFT = 32,
};

void event_extra_dims(union event_slot *s, const struct event_dims *dims);
struct event_dims event_dims_of(const struct event_extra *x);

/* EXTRA_ARGS: the arguments of a kernel that are known, pointers and numbers, five per slot. */
enum { EVENT_ARGS_PER_SLOT = 5 };
enum event_arg_flag {
    EVENT_ARG_READ = 1,    /* known to be read through */
    EVENT_ARG_WRITE = 2,   /* known to be written through */
    EVENT_ARG_GUESSED = 4, /* looks like a pointer; the kernel's metadata does not say */
    EVENT_ARG_NUMBER = 8,  /* no pointer: the value of 4 or 8 bytes, not extended */
};
struct event_arg {
    uint64_t value;
    unsigned index; /* position among the kernel's arguments, to 255 */
    unsigned flags; /* enum event_arg_flag */
};

/* Stores up to EVENT_ARGS_PER_SLOT of them; returns how many. */
unsigned event_extra_args(union event_slot *s, const struct event_arg *args, unsigned count);
/* The inverse; out holds EVENT_ARGS_PER_SLOT. */
unsigned event_args_of(const struct event_extra *x, struct event_arg *out);

/* EXTRA_ACCESS: bytes that an operation is known to touch, two ranges per slot. */
enum { EVENT_ACCESSES_PER_SLOT = 2, EVENT_NO_ARGUMENT = 255 };
enum event_access_flag {
    EVENT_ACCESS_SHAPED = 16,  /* bytes is a shape: a product of sizes from the launch */
    EVENT_ACCESS_AT_MOST = 32, /* not more than these; perhaps not all */
};
struct event_access {
    uint64_t address, bytes;
    unsigned access;   /* DETAIL_ACCESS_*, and enum event_access_flag */
    unsigned argument; /* through which argument, or EVENT_NO_ARGUMENT */
};

unsigned event_extra_accesses(union event_slot *s, const struct event_access *a, unsigned count);
unsigned event_accesses_of(const struct event_extra *x, struct event_access *out);

/* EXTRA_PATTERN: the same for bytes at equal distances: slices, `slice` bytes apart, of rows,
 * `pitch` bytes apart, of access.bytes bytes each. */
struct event_pattern {
    struct event_access access;
    uint64_t pitch, rows, slice, slices; /* slices: up to 48 bits */
};

void event_extra_pattern(union event_slot *s, const struct event_pattern *p);
struct event_pattern event_pattern_of(const struct event_extra *x);

/* EXTRA_SAFE: what the caller of a safe copy said about it; tensor is the event's name. */
struct event_safe {
    uint64_t op_id;
    int64_t step, layer;
    uint64_t offset, alloc;
};
void event_extra_safe(union event_slot *s, const struct event_safe *safe);
struct event_safe event_safe_of(const struct event_extra *x);

/* EXTRA_FAULT: which argument led there, and the allocation that was meant. */
struct event_fault {
    uint64_t argument; /* position, or EVENT_NO_ARGUMENT */
    uint64_t value;    /* the argument's value */
    uint64_t alloc_base, alloc_bytes;
    uint64_t alloc_seq; /* its ALLOC event, or EVENT_NO_SEQ */
    uint64_t pc;        /* of the instruction, 0 if unknown */
};
void event_extra_fault(union event_slot *s, const struct event_fault *fault);
struct event_fault event_fault_of(const struct event_extra *x);

/* EXTRA_ARGUMENT: the name of an argument, as a string of the recording. */
static inline void event_extra_argument(union event_slot *s, uint64_t position, uint32_t name) {
    uint64_t *w = event_extra_init(s, EXTRA_ARGUMENT, 2);
    w[0] = position;
    w[1] = name;
}

/* EXTRA_CHECKED: how the device checks the accesses of a launch. A guard catches accesses that are
 * at least `before` bytes in front of a buffer or `after` bytes past its end; the bytes between
 * guard and buffer hold a pattern that reveals writes, but not reads. */
struct event_checked {
    uint64_t how; /* DETAIL_CHECKED_* */
    uint64_t before, after;
    uint64_t flags; /* EVENT_CHECKED_* */
};
enum event_checked_flag {
    EVENT_CHECKED_PATTERN = 1,  /* the bytes between a buffer and its guards are checked */
    EVENT_CHECKED_INIT = 2,     /* uninitialised values are tracked */
    EVENT_CHECKED_RACES = 4,    /* races within the launch are looked for */
    EVENT_CHECKED_BARRIERS = 8, /* barriers that not all threads reach are looked for */
    EVENT_CHECKED_COULD = 16,   /* the device could check more, and was told not to */
};

static inline void event_extra_checked(union event_slot *s, const struct event_checked *checked) {
    uint64_t *w = event_extra_init(s, EXTRA_CHECKED, 4);
    w[0] = checked->how;
    w[1] = checked->before;
    w[2] = checked->after;
    w[3] = checked->flags;
}
static inline struct event_checked event_checked_of(const struct event_extra *x) {
    return (struct event_checked){ x->word[0], x->word[1], x->word[2], x->word[3] };
}

/* EXTRA_LOOKS: the last launch after which the pattern was intact, and the first after which it was
 * not (EVENT_NO_SEQ: none); how many launches in between had the block among their arguments. */
static inline void event_extra_looks(union event_slot *s, uint64_t good, uint64_t bad,
                                     uint64_t launches) {
    uint64_t *w = event_extra_init(s, EXTRA_LOOKS, 3);
    w[0] = good;
    w[1] = bad;
    w[2] = launches;
}

/* EXTRA_CAUGHT: where in the kernel; two places if two accesses are involved, as in a race. */
struct event_caught {
    uint32_t place[2];     /* strings; 0: unknown, or there is no second one */
    uint32_t block[2][3];  /* y and z as far as 16 bits go */
    uint32_t thread[2][3]; /* 10 bits each */
    unsigned access[2];    /* DETAIL_ACCESS_* */
    unsigned space;        /* enum event_space */
    uint32_t count, all;
};
enum event_space {
    EVENT_SPACE_UNKNOWN,
    EVENT_SPACE_GLOBAL,
    EVENT_SPACE_LDS,
    EVENT_SPACE_SCRATCH,
    EVENT_SPACE_VGPR,
    EVENT_SPACE_SGPR,
    /* Blocks that kernels allocate themselves: an access beside one, to a freed one, and a second
     * free. */
    EVENT_SPACE_HEAP,
    EVENT_SPACE_HEAP_FREED,
    EVENT_SPACE_HEAP_TWICE,
    EVENT_SPACE_HOST,      /* host memory that the device cannot reach */
    EVENT_SPACE_MISALIGNED /* an atomic of `all` bytes at an address that is no multiple of them */
};
void event_extra_caught(union event_slot *s, const struct event_caught *caught);
struct event_caught event_caught_of(const struct event_extra *x);

/* EXTRA_EXECUTED: wave instructions that are within the documented error, and approximate ones;
 * strings with the mnemonics of each kind, separated by blanks. */
struct event_executed {
    uint64_t precise, approximate;
    uint32_t exact_names, precise_names, approximate_names;
};
static inline void event_extra_executed(union event_slot *s, const struct event_executed *e) {
    uint64_t *w = event_extra_init(s, EXTRA_EXECUTED, 5);
    w[0] = e->precise;
    w[1] = e->approximate;
    w[2] = e->exact_names;
    w[3] = e->precise_names;
    w[4] = e->approximate_names;
}
static inline struct event_executed event_executed_of(const struct event_extra *x) {
    return (struct event_executed){ x->word[0], x->word[1], (uint32_t)x->word[2],
                                    (uint32_t)x->word[3], (uint32_t)x->word[4] };
}

/* ---- the tables of event.def --------------------------------------------------------------- */

enum event_format {
    EVENT_FORMAT_NONE,
    EVENT_FORMAT_ADDRESS,
    EVENT_FORMAT_BYTES,
    EVENT_FORMAT_NUMBER,
    EVENT_FORMAT_SIGNED,
    EVENT_FORMAT_HEX,
    EVENT_FORMAT_SEQ,
    EVENT_FORMAT_DEFINITION,
};

struct event_field {
    enum event_format format;
    const char *label;
};

struct event_info {
    const char *text; /* "copy"; NULL where no kind has this number */
    struct event_field dst, src, len;
    const char *const *details; /* 16 texts, NULL where a value has none */
    const char *detail_list;    /* "COPY_KIND"; "NONE" */
    const char *name;           /* what name stands for; "" if unused */
    const char *doc;
};

/* Never NULL: the entry of an unknown kind has no text and shows all three fields in hex. */
const struct event_info *event_info(unsigned kind);
/* Never NULL: "?" for a kind this build does not know. */
const char *event_kind_text(unsigned kind);
bool event_names_kernel(unsigned kind); /* is the name of such events that of a kernel? */
/* The kind of that text, 0 if there is none. */
unsigned event_kind_parse(const char *text);
/* The text of the event's detail, NULL if it has none. */
const char *event_detail_text(const struct event *e);
const char *event_extra_text(unsigned type);   /* "?" */
const char *event_extra_labels(unsigned type); /* "" */
const char *definition_text(unsigned kind);    /* "?" */
const char *definition_doc(unsigned kind);     /* "" */

enum { EVENT_KIND_LIMIT = 128 }; /* all kinds are below */

#endif
