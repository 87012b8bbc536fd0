/* inject.h - injects faults, to see that the audit names them.
 *
 * --inject KIND[:TENSOR][@LAYER[.STEP]] makes the engine do, once, what inject.def says, with real
 * calls of the HIP table, which are recorded like those of any program. What a fault does to the
 * engine's buffers is undone when the injection is closed, so that the engine ends in order.
 *
 * An engine without injections has none of this: inject_point() is a comparison. Used by one
 * thread at a time. */
#ifndef INFER_INJECT_H
#define INFER_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "infer/device.h"
#include "infer/kvcache.h"
#include "infer/weights.h"
#include "model/config.h"

typedef struct inject inject;
struct forward_batch;
struct forward_shape;

enum inject_when { INJECT_OPEN, INJECT_BEFORE, INJECT_AFTER };

/* A sentence for the user; may be NULL. */
typedef void (*inject_note)(const char *text, void *user);

/* The kinds, one line each. */
void inject_print_kinds(FILE *out);

/* RC_USAGE, with a list of what there is, for an unknown kind or an impossible place. count 0 gives
 * NULL. On failure *out is untouched. */
NODISCARD enum rc inject_open(inject **out, const char *const *specs, size_t count,
                              inject_note note, void *user, struct err *e);

/* What an engine has that can be broken. Everything stays the engine's and outlives the
 * injection. */
struct inject_scene {
    const struct device *device;
    struct config *config;
    struct weights *weights;
    struct kvcache *cache;
    struct kern_view *buffers;         /* forward_views() */
    const struct forward_shape *shape; /* what they have room for */
};

/* Changes the configuration as the injections ask, before anything is sized by it. *guard_rail
 * becomes false if the guard rail would refuse the change. i may be NULL. */
NODISCARD enum rc inject_configure(inject *i, struct config *c, bool *guard_rail, struct err *e);
/* Records false claims about the program, once there is a device and a recording. i may be NULL. */
void inject_claim(inject *i);
/* Once everything is loaded. RC_USAGE for a tensor or a layer that the model does not have. i may
 * be NULL. */
NODISCARD enum rc inject_attach(inject *i, const struct inject_scene *scene, struct err *e);

/* RC_USAGE if one waits for a step from `end` on. i may be NULL. */
NODISCARD enum rc inject_check_steps(const inject *i, int64_t end, struct err *e);

NODISCARD enum rc inject_strike(inject *i, enum inject_when when, uint32_t layer,
                                const struct forward_batch *b, struct err *e);

/* A place in the forward pass where a fault may strike. i may be NULL. */
NODISCARD static inline enum rc inject_point(inject *i, enum inject_when when, uint32_t layer,
                                             const struct forward_batch *b, struct err *e) {
    return i ? inject_strike(i, when, layer, b, e) : RC_OK;
}

/* Undoes what was done to the engine's buffers, while its device is still open. Notes what never
 * struck; RC_USAGE then. Sets *i to NULL; *i may be NULL. */
NODISCARD enum rc inject_close(inject **i, struct err *e);

#endif
