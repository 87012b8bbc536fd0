/* ledger.h - every allocation the program has: where, how big, made and freed by whom.
 *
 * The ledger answers "what is at this address?" for live memory, for memory that was freed (the
 * newest LEDGER_FREED_MAX allocations are remembered) and for named tensors inside allocations. It
 * knows nothing of HIP calls; the hooks of the decorated table tell it what happened.
 *
 * Freeing has two steps, because the address may be given to another thread before the runtime's
 * free has returned: ledger_free_begin() before the runtime's call, ledger_free_end() after it.
 * Where the runtime hands out an address that the ledger believes live, the runtime is right, and
 * the old allocation counts as freed.
 *
 * Thread-safe. Entries are the ledger's; a pointer to one is valid inside the read section
 * (ledger_read_begin, ledger_read_end) that found it. Inside a read section only ledger_at() to
 * ledger_name_at(), ledger_has_names() and ledger_generation() may be called: the others take the
 * lock. */
#ifndef AUDIT_LEDGER_H
#define AUDIT_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/readlock.h"
#include "base/err.h"

enum {
    LEDGER_FREED_MAX = 65536,
    LEDGER_NAME_MAX = 128, /* bytes of a range's name with its end; longer ones are cut */
};

#define LEDGER_NO_EVENT UINT64_MAX

enum ledger_family {
#define LEDGER_FAMILY(name, text, side) LEDGER_##name,
#include "audit/ledger_family.def"
#undef LEDGER_FAMILY
    LEDGER_FAMILY_COUNT
};

enum ledger_side { LEDGER_SIDE_DEVICE, LEDGER_SIDE_HOST, LEDGER_SIDE_BOTH, LEDGER_SIDE_NONE };

const char *ledger_family_text(enum ledger_family family); /* "pinned host memory" */
enum ledger_side ledger_family_side(enum ledger_family family);

enum ledger_state {
    LEDGER_LIVE,
    LEDGER_FREEING, /* between ledger_free_begin and ledger_free_end */
    LEDGER_FREED,
};

/* The call that allocated or freed. */
struct ledger_act {
    const char *api;    /* static: "hipFree" */
    const void *caller; /* return address of the call */
    uint64_t t_ns;      /* clock_now_ns() */
    uint64_t event;     /* its number in the recording, or LEDGER_NO_EVENT */
    uint32_t thread;    /* kernel's thread id */
};

struct ledger_entry {
    uint64_t addr, size; /* bytes; never changes */
    uint64_t serial;     /* from 1, in order of allocation; never reused */
    enum ledger_family family;
    enum ledger_state state;
    int device;      /* ordinal, -1: unknown */
    uint64_t stream; /* handle it was allocated in, 0: none */
    uint64_t owner;  /* module, pool or external memory object it lives in, 0: none */
    struct ledger_act made, freed;
    uint32_t names; /* named ranges inside */
    /* The ledger's own: order of frees, and pieces of the range that newer memory has not taken. */
    struct ledger_entry *older, *newer;
    uint32_t pieces;
};

struct ledger_name {
    uint64_t addr, len;
    uint32_t tag; /* the caller's: the name's number in the recording */
    char text[LEDGER_NAME_MAX];
};

struct ledger_counts {
    uint64_t live, live_bytes;
    uint64_t made, freed;
    uint64_t freed_kept;      /* freed allocations still remembered */
    uint64_t freed_forgotten; /* remembered no more: the history is that much shorter */
    uint64_t double_frees, unknown_frees;
    uint64_t superseded; /* live allocations whose address the runtime gave away again */
    uint64_t lost;       /* not entered for want of memory */
};

typedef struct ledger ledger;

/* RC_MEMORY; on failure *out is untouched. */
NODISCARD enum rc ledger_open(ledger **out, struct err *e);
void ledger_close(ledger **l);

/* Enters new memory: of `what` addr, size, family, device, stream, owner and made are used. Live
 * memory it overlaps becomes freed (by made). RC_RANGE if it is empty or wraps, RC_MEMORY. */
enum rc ledger_add(ledger *l, const struct ledger_entry *what, struct err *e);

/* The same, but whatever live memory is there already stays and the call does nothing: for what the
 * runtime was asked about, where two threads may bring the same answer. */
enum rc ledger_add_found(ledger *l, const struct ledger_entry *what, struct err *e);

enum ledger_free_kind {
    LEDGER_FREE_LIVE,     /* the address of a live allocation: it is now LEDGER_FREEING */
    LEDGER_FREE_NULL,     /* address 0: allowed, no effect */
    LEDGER_FREE_INTERIOR, /* inside a live allocation, not its start */
    LEDGER_FREE_DOUBLE,   /* freed before (or being freed right now) */
    LEDGER_FREE_UNKNOWN,  /* never heard of */
};

struct ledger_free {
    enum ledger_free_kind kind;
    struct ledger_entry entry; /* a copy of what was found; unused for NULL and UNKNOWN */
};

/* What freeing addr means. Only LEDGER_FREE_LIVE needs a ledger_free_end, which enters the free (by
 * who) if the runtime did it, and otherwise makes the allocation live again. */
struct ledger_free ledger_free_begin(ledger *l, uint64_t addr);
void ledger_free_end(ledger *l, const struct ledger_free *f, bool done,
                     const struct ledger_act *who);

/* Everything of a device (hipDeviceReset) or of an owner (module, pool) is freed. Returns how many
 * allocations that were. */
size_t ledger_free_device(ledger *l, int device, const struct ledger_act *who);
size_t ledger_free_owner(ledger *l, uint64_t owner, const struct ledger_act *who);

/* Names [addr, addr + len). RC_REFUSED if it is not inside one live allocation; RC_BUSY if it
 * overlaps a name with other bounds (e names it); RC_RANGE, RC_MEMORY. The same range: renames. */
enum rc ledger_set_name(ledger *l, uint64_t addr, uint64_t len, const char *name, uint32_t tag,
                        struct err *e);
/* Takes the name that starts at addr away; RC_RANGE if there is none. */
enum rc ledger_drop_name(ledger *l, uint64_t addr, struct err *e);

/* ---- looking up ------------------------------------------------------------------------------ */

readlock_token ledger_read_begin(ledger *l);
/* For signal handlers: NULL if the ledger is being changed, maybe by what they interrupted. */
readlock_token ledger_read_try(ledger *l);
static inline void ledger_read_end(readlock_token t) {
    readlock_give(t);
}

/* The live (or FREEING) allocation that contains addr, or NULL. */
const struct ledger_entry *ledger_at(const ledger *l, uint64_t addr);
/* The same or, if there is none, the first one after addr, or NULL. */
const struct ledger_entry *ledger_at_or_after(const ledger *l, uint64_t addr);
/* The live allocation that ends nearest before addr, or NULL. */
const struct ledger_entry *ledger_before(const ledger *l, uint64_t addr);
/* The newest freed allocation at addr that no live one has replaced, or NULL. */
const struct ledger_entry *ledger_freed_at(const ledger *l, uint64_t addr);
/* The named range that contains addr, or NULL. */
const struct ledger_name *ledger_name_at(const ledger *l, uint64_t addr);

/* False if no range is named at all, without a lock. */
bool ledger_has_names(const ledger *l);

/* Grows with every change. An answer "nothing there" holds as long as it stays the same. */
uint64_t ledger_generation(const ledger *l);

struct ledger_counts ledger_count(ledger *l);
/* Calls visit for every live allocation in address order, inside a read section. */
void ledger_each(ledger *l, void (*visit)(const struct ledger_entry *entry, void *user),
                 void *user);

/* For fork(): holds the ledger still in the parent and makes it usable in the child. */
void ledger_fork_prepare(ledger *l);
void ledger_fork_done(ledger *l);

#endif
