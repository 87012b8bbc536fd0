/* fidelity.c - how the instructions of machine code were executed: what the device stated, added
 * up.
 */
#include "verdict/replay.h"

#include <stdlib.h>
#include <string.h>

/* A recording can hold any text; real names are mnemonics, which stay below these limits. */
enum { NAMES_MAX = 4096, NAME_BYTES_MAX = 64 };

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_mnemonic(const char *name, size_t bytes) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return bytes && bytes <= NAME_BYTES_MAX && strspn(name, letters) >= bytes;
}

static int compare(const char *name, size_t bytes, const char *other) {
    int order = strncmp(name, other, bytes);
    return order ? order : -(other[bytes] != '\0');
}

static void add_name(struct replay *r, struct name_list *l, const char *name, size_t bytes) {
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(name, bytes, l->at[middle]);
        if (!order)
            return;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    if (l->count == NAMES_MAX)
        return;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        const char **at = realloc((void *)l->at, room * sizeof *at);
        r->no_memory |= !at;
        if (!at)
            return;
        l->at = at;
        l->room = room;
    }
    const char *copy = arena_copy_text(&r->arena, name, bytes);
    r->no_memory |= !copy;
    if (!copy)
        return;
    memmove((void *)(l->at + low + 1), (void *)(l->at + low), (l->count - low) * sizeof *l->at);
    l->at[low] = copy;
    l->count++;
}

/* The names in a string, which is read once however many launches have it. */
static void add_names(struct replay *r, struct name_list *l, uint32_t string) {
    static char read;
    if (!string || table_find(&l->read, string))
        return;
    if (!table_set(&l->read, string, &read))
        r->no_memory = true;
    const char *at = reader_string(r->r, string);
    while (at && *at) {
        size_t bytes = strcspn(at, " ");
        if (is_mnemonic(at, bytes))
            add_name(r, l, at, bytes);
        at += bytes + (at[bytes] == ' ');
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

void fidelity_on_event(struct replay *r, const struct reader_event *e) {
    const struct event_extra *x = reader_extra(e, EXTRA_EXECUTED);
    struct verdict_fidelity *f = &r->fidelity.seen;
    unsigned reached = event_detail(&e->event);
    if (!x)
        return;
    struct event_executed at = event_executed_of(x);
    f->launches++;
    f->followed += reached != DETAIL_REACHED_UNKNOWN;
    f->addresses += reached == DETAIL_REACHED_ADDRESS || reached == DETAIL_REACHED_BOTH;
    f->branches += reached == DETAIL_REACHED_BRANCH || reached == DETAIL_REACHED_BOTH;
    f->kind[VERDICT_EXACT].instructions += e->event.dst;
    f->kind[VERDICT_PRECISE].instructions += at.precise;
    f->kind[VERDICT_APPROXIMATE].instructions += at.approximate;
    add_names(r, &r->fidelity.names[VERDICT_EXACT], at.exact_names);
    add_names(r, &r->fidelity.names[VERDICT_PRECISE], at.precise_names);
    add_names(r, &r->fidelity.names[VERDICT_APPROXIMATE], at.approximate_names);
}

void fidelity_close(struct replay *r) {
    for (unsigned k = 0; k < VERDICT_EXACTNESS_COUNT; k++) {
        free((void *)r->fidelity.names[k].at);
        table_clear(&r->fidelity.names[k].read);
    }
}
