#include "verdict/vclock.h"

#include <stdlib.h>
#include <string.h>

#include "verdict/effort.h"

static bool reserve(struct vclock *c, uint32_t size) {
    if (size <= c->room)
        return true;
    uint32_t room = c->room ? c->room : 8;
    if (size > UINT32_C(1) << 31)
        return false;
    while (room < size)
        room *= 2;
    if (!effort_bytes((size_t)room * sizeof *c->at, 0)) {
        (void)effort_bytes(0, (size_t)room * sizeof *c->at);
        return false;
    }
    uint32_t *at = realloc(c->at, (size_t)room * sizeof *at);
    (void)effort_bytes(0, (size_t)(at ? c->room : room) * sizeof *at);
    if (!at)
        return false;
    c->at = at;
    c->room = room;
    return true;
}

/* Going through that many lanes; several at a time. */
static bool may_look_at(uint32_t lanes) {
    return effort_steps(8 + lanes / 4);
}

/* Lanes up to size exist, those that are new at 0. */
static bool extend(struct vclock *c, uint32_t size) {
    if (size <= c->size)
        return true;
    if (!reserve(c, size))
        return false;
    memset(c->at + c->size, 0, (size_t)(size - c->size) * sizeof *c->at);
    c->size = size;
    return true;
}

bool vclock_raise(struct vclock *c, uint32_t lane, uint32_t number) {
    if (vclock_get(c, lane) >= number)
        return true;
    if (!extend(c, lane + 1))
        return false;
    c->at[lane] = number;
    return true;
}

bool vclock_join(struct vclock *c, const struct vclock *from) {
    if (c == from || !from->size)
        return true;
    if (!may_look_at(from->size))
        return false;
    if (!extend(c, from->size))
        return false;
    for (uint32_t i = 0; i < from->size; i++)
        if (c->at[i] < from->at[i])
            c->at[i] = from->at[i];
    return true;
}

bool vclock_copy(struct vclock *c, const struct vclock *from) {
    if (c == from)
        return true;
    if (!may_look_at(from->size) || !reserve(c, from->size))
        return false;
    if (from->size)
        memcpy(c->at, from->at, (size_t)from->size * sizeof *c->at);
    c->size = from->size;
    return true;
}

bool vclock_includes(const struct vclock *c, const struct vclock *other) {
    (void)may_look_at(other->size);
    for (uint32_t i = 0; i < other->size; i++)
        if (vclock_get(c, i) < other->at[i])
            return false;
    return true;
}

void vclock_free(struct vclock *c) {
    (void)effort_bytes(0, (size_t)c->room * sizeof *c->at);
    free(c->at);
    *c = (struct vclock){ 0 };
}
