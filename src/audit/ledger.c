/* Three range maps under one lock: live allocations, freed ones, and names.
 *
 * Live allocations and names are disjoint by nature. Freed ones are not: an address is allocated
 * and freed many times. The freed map holds for every address the newest free, as pieces: entering
 * a range first cuts it out of what is there, and an entry lives as long as it has a piece. So a
 * big block whose front was reused is still known by its tail. */
#include "audit/ledger.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rangemap.h"

struct ledger {
    struct readlock lock;
    struct rangemap live, freed, names; /* values: ledger_entry, ledger_entry, ledger_name */
    struct ledger_entry *freed_oldest, *freed_newest;
    struct ledger_counts counts;
    uint64_t next_serial;
    _Alignas(64) _Atomic uint64_t generation;
    _Atomic uint64_t name_count;
};

static const struct {
    const char *text;
    enum ledger_side side;
} families[LEDGER_FAMILY_COUNT] = {
#define LEDGER_FAMILY(name, text, side) [LEDGER_##name] = { text, LEDGER_SIDE_##side },
#include "audit/ledger_family.def"
#undef LEDGER_FAMILY
};

const char *ledger_family_text(enum ledger_family family) {
    return (unsigned)family < LEDGER_FAMILY_COUNT ? families[family].text : "?";
}

enum ledger_side ledger_family_side(enum ledger_family family) {
    return (unsigned)family < LEDGER_FAMILY_COUNT ? families[family].side : LEDGER_SIDE_NONE;
}

enum rc ledger_open(ledger **out, struct err *e) {
    ledger *l = aligned_alloc(64, sizeof *l);
    if (!l)
        return err_set(e, RC_MEMORY, "no memory for the allocation ledger");
    memset(l, 0, sizeof *l);
    l->next_serial = 1;
    *out = l;
    return RC_OK;
}

static void free_values(struct rangemap *m) {
    for (struct range *r = rangemap_first(m); r; r = rangemap_next(m, r))
        free(r->value);
    rangemap_clear(m);
}

void ledger_close(ledger **ref) {
    ledger *l = *ref;
    if (!l)
        return;
    *ref = NULL;
    free_values(&l->live);
    free_values(&l->names);
    rangemap_clear(&l->freed);
    for (struct ledger_entry *entry = l->freed_oldest, *next; entry; entry = next) {
        next = entry->newer;
        free(entry);
    }
    free(l);
}

static void write_begin(ledger *l) {
    readlock_write_take(&l->lock);
    atomic_fetch_add_explicit(&l->generation, 1, memory_order_release);
}

static void write_end(ledger *l) {
    atomic_store_explicit(&l->name_count, l->names.count, memory_order_release);
    readlock_write_give(&l->lock);
}

static uint64_t entry_last(const struct ledger_entry *entry) {
    return entry->addr + (entry->size - 1);
}

/* ---- freed memory ---------------------------------------------------------------------------- */

static void freed_unlink(ledger *l, struct ledger_entry *entry) {
    *(entry->older ? &entry->older->newer : &l->freed_oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &l->freed_newest) = entry->older;
    l->counts.freed_kept--;
    free(entry);
}

/* A piece is dropped if there is no memory for it: the history gets shorter, never wrong. */
static void freed_put(ledger *l, uint64_t addr, uint64_t len, struct ledger_entry *entry) {
    if (rangemap_insert(&l->freed, addr, len, entry, NULL) == RC_OK)
        entry->pieces++;
}

/* Takes [lo, hi] out of the freed map. */
static void freed_cut(ledger *l, uint64_t lo, uint64_t hi) {
    struct range *r;
    while ((r = rangemap_find_first_at_or_after(&l->freed, lo)) && r->addr <= hi) {
        struct ledger_entry *entry = r->value;
        uint64_t first = r->addr, last = r->addr + (r->len - 1);
        (void)rangemap_remove(&l->freed, first, NULL);
        entry->pieces--;
        if (first < lo)
            freed_put(l, first, lo - first, entry);
        if (last > hi)
            freed_put(l, hi + 1, last - hi, entry);
        if (entry->pieces == 0)
            freed_unlink(l, entry);
    }
}

/* Forgets the oldest free entirely. */
static void freed_forget_oldest(ledger *l) {
    struct ledger_entry *entry = l->freed_oldest;
    uint64_t last = entry_last(entry);
    struct range *r = rangemap_find_first_at_or_after(&l->freed, entry->addr);
    while (r && r->addr <= last) {
        uint64_t first = r->addr;
        r = rangemap_next(&l->freed, r);
        if (rangemap_find(&l->freed, first)->value == entry)
            (void)rangemap_remove(&l->freed, first, NULL);
    }
    freed_unlink(l, entry);
    l->counts.freed_forgotten++;
}

static void drop_names(ledger *l, uint64_t lo, uint64_t hi) {
    struct range *r;
    while ((r = rangemap_find_first_at_or_after(&l->names, lo)) && r->addr <= hi) {
        free(r->value);
        (void)rangemap_remove(&l->names, r->addr, NULL);
    }
}

/* Moves a live entry to the freed ones. */
static void enter_free(ledger *l, struct ledger_entry *entry, const struct ledger_act *who) {
    (void)rangemap_remove(&l->live, entry->addr, NULL);
    l->counts.live--;
    l->counts.live_bytes -= entry->size;
    l->counts.freed++;
    if (entry->names)
        drop_names(l, entry->addr, entry_last(entry));
    entry->names = 0;
    entry->state = LEDGER_FREED;
    entry->freed = *who;
    freed_cut(l, entry->addr, entry_last(entry));
    entry->older = l->freed_newest;
    entry->newer = NULL;
    *(l->freed_newest ? &l->freed_newest->newer : &l->freed_oldest) = entry;
    l->freed_newest = entry;
    l->counts.freed_kept++;
    freed_put(l, entry->addr, entry->size, entry);
    if (entry->pieces == 0)
        freed_unlink(l, entry);
    else if (l->counts.freed_kept > LEDGER_FREED_MAX)
        freed_forget_oldest(l);
}

/* ---- live memory ----------------------------------------------------------------------------- */

static struct ledger_entry *live_overlapping(ledger *l, uint64_t lo, uint64_t hi) {
    struct range *r = rangemap_find_first_at_or_after(&l->live, lo);
    return r && r->addr <= hi ? r->value : NULL;
}

static enum rc add(ledger *l, const struct ledger_entry *what, bool keep, struct err *e) {
    if (what->size == 0 || what->size - 1 > UINT64_MAX - what->addr)
        return err_set(e, RC_RANGE, "0x%" PRIx64 " + %" PRIu64 " bytes is no address range",
                       what->addr, what->size);
    struct ledger_entry *entry = malloc(sizeof *entry), *old;
    if (!entry)
        goto lost;
    *entry = *what;
    entry->state = LEDGER_LIVE;
    entry->names = entry->pieces = 0;
    entry->older = entry->newer = NULL;
    entry->freed = (struct ledger_act){ .event = LEDGER_NO_EVENT };

    write_begin(l);
    while ((old = live_overlapping(l, entry->addr, entry_last(entry)))) {
        if (keep) {
            write_end(l);
            free(entry);
            return RC_OK;
        }
        /* An allocation that was being freed is no surprise here: its free just has not returned.
         */
        l->counts.superseded += old->state == LEDGER_LIVE;
        enter_free(l, old, &entry->made);
    }
    if (rangemap_insert(&l->live, entry->addr, entry->size, entry, e) != RC_OK) {
        write_end(l);
        goto lost;
    }
    freed_cut(l, entry->addr, entry_last(entry));
    entry->serial = l->next_serial++;
    l->counts.live++;
    l->counts.live_bytes += entry->size;
    l->counts.made++;
    write_end(l);
    return RC_OK;

lost:
    free(entry);
    write_begin(l);
    l->counts.lost++;
    write_end(l);
    return err_set(e, RC_MEMORY, "no memory to enter an allocation of %" PRIu64 " bytes",
                   what->size);
}

enum rc ledger_add(ledger *l, const struct ledger_entry *what, struct err *e) {
    return add(l, what, false, e);
}

enum rc ledger_add_found(ledger *l, const struct ledger_entry *what, struct err *e) {
    return add(l, what, true, e);
}

struct ledger_free ledger_free_begin(ledger *l, uint64_t addr) {
    struct ledger_free f = { .kind = LEDGER_FREE_NULL };
    if (addr == 0)
        return f;
    write_begin(l);
    struct range *r = rangemap_find(&l->live, addr);
    struct ledger_entry *entry = r ? r->value : NULL;
    if (!entry) {
        r = rangemap_find(&l->freed, addr);
        entry = r ? r->value : NULL;
        f.kind = entry && entry->addr == addr ? LEDGER_FREE_DOUBLE : LEDGER_FREE_UNKNOWN;
        l->counts.double_frees += f.kind == LEDGER_FREE_DOUBLE;
        l->counts.unknown_frees += f.kind == LEDGER_FREE_UNKNOWN;
    } else if (entry->state == LEDGER_FREEING) {
        f.kind = LEDGER_FREE_DOUBLE;
        l->counts.double_frees++;
    } else if (entry->addr != addr) {
        f.kind = LEDGER_FREE_INTERIOR;
    } else {
        f.kind = LEDGER_FREE_LIVE;
        entry->state = LEDGER_FREEING;
    }
    if (entry)
        f.entry = *entry;
    write_end(l);
    return f;
}

void ledger_free_end(ledger *l, const struct ledger_free *f, bool done,
                     const struct ledger_act *who) {
    if (f->kind != LEDGER_FREE_LIVE)
        return;
    write_begin(l);
    struct range *r = rangemap_find(&l->live, f->entry.addr);
    struct ledger_entry *entry = r ? r->value : NULL;
    /* Another serial: the runtime gave the address away before its free returned here. */
    if (entry && entry->serial == f->entry.serial) {
        if (done)
            enter_free(l, entry, who);
        else
            entry->state = LEDGER_LIVE;
    }
    write_end(l);
}

static size_t free_all(ledger *l, bool by_device, int device, uint64_t owner,
                       const struct ledger_act *who) {
    size_t n = 0;
    write_begin(l);
    for (struct range *r = rangemap_first(&l->live), *next; r; r = next) {
        struct ledger_entry *entry = r->value;
        next = rangemap_next(&l->live, r);
        if (by_device ? entry->device == device : entry->owner == owner) {
            enter_free(l, entry, who);
            n++;
        }
    }
    write_end(l);
    return n;
}

size_t ledger_free_device(ledger *l, int device, const struct ledger_act *who) {
    return free_all(l, true, device, 0, who);
}

size_t ledger_free_owner(ledger *l, uint64_t owner, const struct ledger_act *who) {
    return owner ? free_all(l, false, 0, owner, who) : 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static enum rc set_name(ledger *l, struct ledger_name *fresh, struct err *e) {
    uint64_t last = fresh->addr + (fresh->len - 1);
    struct range *r = rangemap_find(&l->live, fresh->addr);
    struct ledger_entry *entry = r ? r->value : NULL;
    if (!entry || entry->state != LEDGER_LIVE)
        return err_set(e, RC_REFUSED, "no live allocation at 0x%" PRIx64, fresh->addr);
    if (last > entry_last(entry))
        return err_set(e, RC_REFUSED,
                       "'%s' (%" PRIu64 " bytes at 0x%" PRIx64 ") leaves its allocation of %" PRIu64
                       " bytes at 0x%" PRIx64,
                       fresh->text, fresh->len, fresh->addr, entry->size, entry->addr);
    r = rangemap_find_first_at_or_after(&l->names, fresh->addr);
    if (r && r->addr <= last) {
        struct ledger_name *old = r->value;
        if (old->addr != fresh->addr || old->len != fresh->len)
            return err_set(e, RC_BUSY,
                           "'%s' (%" PRIu64 " bytes at 0x%" PRIx64 ") overlaps '%s' (%" PRIu64
                           " bytes at 0x%" PRIx64 ")",
                           fresh->text, fresh->len, fresh->addr, old->text, old->len, old->addr);
        r->value = fresh;
        free(old);
        return RC_OK;
    }
    enum rc rc = rangemap_insert(&l->names, fresh->addr, fresh->len, fresh, e);
    if (rc == RC_OK)
        entry->names++;
    return rc;
}

enum rc ledger_set_name(ledger *l, uint64_t addr, uint64_t len, const char *name, uint32_t tag,
                        struct err *e) {
    if (len == 0 || len - 1 > UINT64_MAX - addr)
        return err_set(e, RC_RANGE, "0x%" PRIx64 " + %" PRIu64 " bytes is no address range", addr,
                       len);
    struct ledger_name *fresh = malloc(sizeof *fresh);
    if (!fresh)
        return err_set(e, RC_MEMORY, "no memory for the name '%s'", name);
    *fresh = (struct ledger_name){ .addr = addr, .len = len, .tag = tag };
    strncpy(fresh->text, name, sizeof fresh->text - 1);
    write_begin(l);
    enum rc rc = set_name(l, fresh, e);
    write_end(l);
    if (rc != RC_OK)
        free(fresh);
    return rc;
}

enum rc ledger_drop_name(ledger *l, uint64_t addr, struct err *e) {
    void *name = NULL;
    write_begin(l);
    enum rc rc = rangemap_remove(&l->names, addr, &name);
    struct range *r = rc == RC_OK ? rangemap_find(&l->live, addr) : NULL;
    if (r)
        ((struct ledger_entry *)r->value)->names--;
    write_end(l);
    free(name);
    if (rc != RC_OK)
        return err_set(e, RC_RANGE, "no named range starts at 0x%" PRIx64, addr);
    return RC_OK;
}

/* ---- looking up ------------------------------------------------------------------------------ */

readlock_token ledger_read_begin(ledger *l) {
    return readlock_take(&l->lock);
}

readlock_token ledger_read_try(ledger *l) {
    return readlock_try(&l->lock);
}

const struct ledger_entry *ledger_at(const ledger *l, uint64_t addr) {
    struct range *r = rangemap_find(&l->live, addr);
    return r ? r->value : NULL;
}

const struct ledger_entry *ledger_at_or_after(const ledger *l, uint64_t addr) {
    struct range *r = rangemap_find_first_at_or_after(&l->live, addr);
    return r ? r->value : NULL;
}

const struct ledger_entry *ledger_before(const ledger *l, uint64_t addr) {
    struct range *r = rangemap_find_last_before(&l->live, addr);
    return r ? r->value : NULL;
}

const struct ledger_entry *ledger_freed_at(const ledger *l, uint64_t addr) {
    struct range *r = rangemap_find(&l->freed, addr);
    return r ? r->value : NULL;
}

const struct ledger_name *ledger_name_at(const ledger *l, uint64_t addr) {
    struct range *r = rangemap_find(&l->names, addr);
    return r ? r->value : NULL;
}

bool ledger_has_names(const ledger *l) {
    return atomic_load_explicit(&l->name_count, memory_order_acquire) != 0;
}

uint64_t ledger_generation(const ledger *l) {
    return atomic_load_explicit(&l->generation, memory_order_acquire);
}

struct ledger_counts ledger_count(ledger *l) {
    readlock_token t = ledger_read_begin(l);
    struct ledger_counts counts = l->counts;
    ledger_read_end(t);
    return counts;
}

void ledger_each(ledger *l, void (*visit)(const struct ledger_entry *entry, void *user),
                 void *user) {
    readlock_token t = ledger_read_begin(l);
    for (struct range *r = rangemap_first(&l->live); r; r = rangemap_next(&l->live, r))
        visit(r->value, user);
    ledger_read_end(t);
}

void ledger_fork_prepare(ledger *l) {
    readlock_write_take(&l->lock);
}

void ledger_fork_done(ledger *l) {
    readlock_write_give(&l->lock);
}
