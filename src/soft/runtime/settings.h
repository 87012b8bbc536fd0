/* settings.h - what the environment asks of the software device; read once, at the start.
 * Thread-safe after soft_settings_read(). */
#ifndef SOFT_RUNTIME_SETTINGS_H
#define SOFT_RUNTIME_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { SOFT_DEVICES_MAX = 16 };
enum { SOFT_SERIALIZE_BEFORE = 1, SOFT_SERIALIZE_AFTER = 2 };
enum soft_policy { SOFT_FAST, SOFT_EAGER, SOFT_LAZY, SOFT_RANDOM };
enum soft_arch {
#define ARCH(name, ...) SOFT_ARCH_##name,
#include "soft/runtime/arch.def"
#undef ARCH
    SOFT_ARCHES
};

/* What is checked; the words of check.def combine these. INIT and the races need BOUNDS.
 * SOME_RACES: races in recorded programs, within a budget. */
enum soft_check {
    SOFT_CHECK_BOUNDS = 1,
    SOFT_CHECK_INIT = 2,
    SOFT_CHECK_RACE = 4,
    SOFT_CHECK_SOME_RACES = 8
};

struct soft_settings {
    unsigned devices; /* visible devices: GRETA_SOFT_DEVICES filtered by HIP_VISIBLE_DEVICES */
    unsigned visible[SOFT_DEVICES_MAX]; /* ordinal -> physical number, for names and bus ids */
    uint64_t memory;                    /* bytes per device: GRETA_SOFT_MEMORY */
    unsigned checks;                    /* set of enum soft_check: GRETA_SOFT_CHECK */
    enum soft_policy policy;
    uint64_t seed;         /* of SOFT_RANDOM */
    bool fault_aborts;     /* GRETA_SOFT_FAULT=abort */
    enum soft_arch arch;   /* GRETA_SOFT_ARCH */
    bool takes_other_code; /* if there is none for arch; a GPU would refuse the program */
    unsigned serialize_kernel, serialize_copy; /* AMD_SERIALIZE_*: bit 0 before, bit 1 after */
    unsigned threads;                          /* GRETA_SOFT_THREADS; 0: all cores */
    unsigned watchdog_s;                       /* GRETA_SOFT_WATCHDOG; 0: none */
    bool pin;        /* a core for every worker of a pool that uses all: GRETA_SOFT_PIN */
    bool watch_host; /* the recorder closes pages to the host: GCORE_WATCH_HOST */
};

/* Reads the environment, once, at start. RC_USAGE names the variable, what it may be and what it
 * is. */
NODISCARD enum rc soft_settings_read(struct err *e);
/* What was read. */
const struct soft_settings *soft_settings(void);
/* A GPU that the device can be. */
struct soft_arch_info {
    const char *name, *target, *product; /* "gfx90a", "gfx90a:sramecc+:xnack-" as in bundles */
    int units;                           /* compute units */
    int clock, memory_clock;             /* kHz */
    int bus;                             /* bits */
    int l2;                              /* bytes */
    int minor, number;                   /* of the instruction set: 9.minor; as ROCm 5 says it */
    bool images;                         /* arrays, textures, surfaces */
};
const struct soft_arch_info *soft_arch_info(enum soft_arch arch);

#endif
