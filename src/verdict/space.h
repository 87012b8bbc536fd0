/* space.h - the memory of one process as its allocations and frees tell it: what is alive, what was
 * freed and not used again, which parts have names.
 *
 * Addresses mean something inside a process only, so that every process of a recording has a space
 * of its own. Of freed blocks the newest SPACE_FREED_MAX are remembered, as long as nothing new
 * lies where they were.
 *
 * Blocks belong to the space. A pointer to one is valid until the block is forgotten; whoever needs
 * it longer copies it. Not thread-safe. */
#ifndef VERDICT_SPACE_H
#define VERDICT_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rangemap.h"
#include "verdict/shadow.h"
#include "verdict/table.h"

enum {
    SPACE_FREED_MAX = 1 << 20,
    SPACE_HULLS = 4,
    SPACE_NULLS = 16,
    SPACE_UNKNOWNS = 16,
    SPACE_DEVICES = 32
};

/* Whose side memory is on. Pinned, registered and managed memory is on both. */
enum space_side { SPACE_UNKNOWN, SPACE_DEVICE, SPACE_BOTH };

/* What is made and released by handle; see resources.c. */
enum space_resource {
    SPACE_RESOURCE_STREAM,
    SPACE_RESOURCE_EVENT,
    SPACE_RESOURCE_GRAPH,
    SPACE_RESOURCE_EXEC,
    SPACE_RESOURCE_MODULE,
    SPACE_RESOURCE_POOL,
    SPACE_RESOURCE_TEXTURE,
    SPACE_RESOURCE_SURFACE,
    SPACE_RESOURCES,
};

struct block {
    uint64_t base, bytes;
    uint64_t alloc, free; /* events; EVENT_NO_SEQ: none */
    uint32_t alloc_site, free_site;
    uint32_t stream;       /* it was allocated in, for stream-ordered allocation; 0: none */
    uint32_t name;         /* of a freed block that was one tensor: string; 0: none */
    uint16_t device;       /* ordinal */
    uint8_t family;        /* DETAIL_FAMILY_* */
    bool found;            /* its allocation is not in the recording: its past is unknown */
    bool free_async;       /* freed in the order of a stream */
    bool given_back;       /* host memory that was freed under a copy */
    bool outlasts;         /* work used it that may outlast its call */
    bool leaves_mark;      /* kernels of unknown extent may have written to it */
    uint64_t upload;       /* the last copy into it that may have brought addresses; 0: none */
    uint64_t owner;        /* module of a symbol, 0: none */
    struct block_use *use; /* what operations of several lanes do with it, NULL: nothing yet */
    struct handed *handed; /* which threads use it: handover.c; NULL: none yet */
    struct block *older, *newer; /* of the freed ones */
};

/* How lanes share a block; only kept where operations of more than one lane use it. */
struct block_use {
    struct { /* bytes that copies, sets and known footprints of a lane took up */
        uint32_t lane;
        uint64_t low, high; /* high 0: unused */
    } hull[SPACE_HULLS];
    struct vague *vague; /* kernels that got a pointer and may go anywhere from there */
    unsigned vague_count, vague_room;
    struct suspect *suspects;
};

struct space_name {
    uint64_t at, bytes;
    uint32_t text; /* string of the recording */
};

struct space {
    uint32_t process; /* definition; 0: of threads that are unknown */
    struct rangemap live, freed, names;
    struct block *oldest_freed, *newest_freed;
    size_t freed_count;
    uint64_t freed_forgotten;
    struct block *recent[4]; /* live blocks that were looked up lately */
    unsigned recent_next;
    shadow *shadow;
    struct table events, graphs, execs, tokens; /* by handle */
    struct table resources[SPACE_RESOURCES];    /* by handle; see resources.c */
    size_t resources_gone[SPACE_RESOURCES];     /* how many of them are destroyed */
    struct table submitted;                     /* what tokens pass on: handover.c */
    struct table host_fns, op_clocks;           /* see host_fn.c */
    struct table host_pages;                    /* pages that copies have taken for plain memory */
    struct stream **streams;                    /* those that are not destroyed */
    size_t stream_count, stream_room;
    struct stream *null[SPACE_NULLS]; /* legacy default streams, by device */
    struct vclock drained;            /* the work of destroyed streams */
    struct stream **dirty; /* blocking streams with work that a default stream must wait for */
    size_t dirty_count, dirty_room;
    struct vclock published; /* what host threads knew before calls that have ended */
    uint32_t
        peers[SPACE_DEVICES]; /* by device: bits 1 << n, it may use memory of device n: peers.c */
    bool peers_unknown;       /* or what it may use is not recorded */
    uint32_t threads;
    bool ended;   /* END was seen */
    bool stopped; /* the last call failed: it was the end of the program */
    /* Sticky errors of the process; see errors.c. */
    uint64_t sticky, fault;
    uint64_t gap;             /* event before which the history has a hole; 0: none */
    uint64_t variable_upload; /* the last copy to a device variable; 0: none */
    uint64_t table_upload;    /* the newest upload that a launch of unknown bytes could read */
    uint64_t unknown_launch;  /* last launch about which nothing is known; EVENT_NO_SEQ: none */
    struct {
        uint32_t lane, number;
    } unknown[SPACE_UNKNOWNS]; /* the last such of each lane */
    unsigned unknown_count;
    struct {
        uint32_t lane, number;
    } array_use[SPACE_UNKNOWNS]; /* the last copy from or to an array of each lane */
    unsigned array_uses;
    /* Called before what is kept in block->use goes. */
    void (*settle)(struct space *s, struct block *b, void *user);
    void *user;
};

/* NULL without memory. */
struct space *space_open(uint32_t process);
void space_close(struct space **s);

/* What lies in its way counts as freed by it. The shadow is cleared. NULL without memory, or if the
 * range is empty or wraps. */
struct block *space_add(struct space *s, const struct block *what);

/* The block is freed: no longer live, remembered for a while. False without memory. */
bool space_free(struct space *s, struct block *b, uint64_t seq, uint32_t site, bool async);

/* The live block that contains addr, NULL if there is none. */
struct block *space_at(struct space *s, uint64_t addr);
/* The freed one. */
struct block *space_freed_at(const struct space *s, uint64_t addr);
/* The block, live or freed, that ends nearest before addr or starts nearest after it, and how far
 * that is; NULL if there is none. */
struct block *space_near(const struct space *s, uint64_t addr, uint64_t *distance);

/* Names; false without memory. A name that is in the way goes. */
bool space_set_name(struct space *s, uint64_t at, uint64_t bytes, uint32_t text);
void space_drop_name(struct space *s, uint64_t at);
const struct space_name *space_name_at(const struct space *s, uint64_t addr);
/* Is addr where a name, or the block, ends? */
bool space_is_boundary(const struct space *s, const struct block *b, uint64_t addr);

enum space_side space_side(const struct block *b);

static inline uint64_t block_end(const struct block *b) {
    return b->base + b->bytes;
}

/* Settles and frees what is kept about how lanes share the block. */
void space_forget_use(struct space *s, struct block *b);

#endif
