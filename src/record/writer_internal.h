/* writer_internal.h - what the parts of the writer share: writer.c (events), grow.c (chunks),
 * create.c (the file), intern.c (definitions), site.c (call stacks), module.c
 * (what they run through). */
#ifndef RECORD_WRITER_INTERNAL_H
#define RECORD_WRITER_INTERNAL_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "record/layout.h"
#include "record/writer.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A page that the kernel clears in a forked child (MADV_WIPEONFORK), however the fork was made:
 * what is here belongs to one process. */
struct process_page {
    _Atomic uint32_t process; /* number of the PROCESS definition; 0: not attached yet */
    _Atomic uint32_t ended;
    _Atomic uint32_t pid; /* only used where the kernel cannot wipe */
};

/* Frames that have been described: filled once and never changed. */
enum { KNOWN_FRAMES = 4096 };
enum known_frame_state { FRAME_NONE, FRAME_COMING, FRAME_KNOWN };
struct known_frame {
    _Atomic uint32_t state;
    uint64_t stamp; /* of the module */
    struct site_frame frame;
};

/* Threads that can remember stacks at one time; others unwind at each call. */
enum { SITE_MEMORIES = 128 };
struct site_memory;

enum chunk_use { CHUNK_EVENTS, CHUNK_DEFINITIONS };
enum chunk_state { CHUNK_ABSENT, CHUNK_COMING, CHUNK_MAPPED };

/* Read-only after record_open but for what is atomic. */
struct writer {
    struct record_header *h;
    union event_slot *events;      /* address space for the whole ring; chunks appear in it */
    unsigned char *definitions;    /* the same for the definition stream */
    uint64_t event_mask;           /* ring size - 1 */
    uint64_t chunk_mask;           /* events per chunk - 1 */
    unsigned event_shift;          /* log2 of events per chunk */
    unsigned chunk_shift;          /* log2 of bytes per chunk */
    _Atomic uint8_t *event_mapped; /* enum chunk_state of this process, a byte per chunk */
    _Atomic uint8_t *definition_mapped;
    struct process_page *page;
    bool check_pid; /* the kernel lacks MADV_WIPEONFORK: compare pids */
    uint64_t id;    /* unique in this address space, for the threads' caches */
    uint32_t image;
    struct known_frame *frames; /* KNOWN_FRAMES of them */
    struct site_memory *memories;
    _Atomic uint32_t memory_owner[SITE_MEMORIES]; /* thread ids */

    void *reserved; /* the address space of events and definitions */
    size_t reserved_bytes;
    _Atomic int fd;
    dev_t device; /* of the file: shows whether fd was closed and its number reused for another file
                   */
    ino_t inode;
    atomic_bool cut;           /* the file was truncated: it gets no more chunks; bus.h */
    _Atomic uint64_t retry_ns; /* the disk was full: do not ask again before */
    char path[PATH_MAX];
};

/* ---- grow.c -------------------------------------------------------------------------------- */

/* Makes chunk `index` usable in this process, adding it to the file if need be. False if there is
 * no room. `ahead`: it is not needed yet; do not wait for another thread that is mapping it. */
bool grow_map_chunk(writer *w, enum chunk_use use, unsigned index, bool ahead);

/* Backs [offset, offset + bytes) of fd with zeroed disk blocks. 0 or an errno value; never raises
 * SIGXFSZ. */
int grow_back_range(int fd, off_t offset, size_t bytes);
/* Moves a descriptor of the recording to a high number and marks the file as in use. */
int grow_hold_fd(int fd);

/* ---- create.c ------------------------------------------------------------------------------ */

/* Fills w's file fields and header mapping. *joined: to a recording in progress. */
NODISCARD enum rc create_file(writer *w, const struct record_options *o, bool *joined,
                              struct err *e);
/* Gives a new file its name; until then it has a temporary one. */
NODISCARD enum rc create_publish(writer *w, struct err *e);
/* Removes a new file that create_publish() was never called for. */
void create_abandon(writer *w);

/* ---- intern.c ------------------------------------------------------------------------------ */

uint64_t intern_hash(enum definition_kind kind, const void *key, size_t bytes);
/* The number of the definition with that key; 0 if there is none. */
uint32_t intern_find(writer *w, enum definition_kind kind, uint64_t hash, const void *key,
                     size_t key_bytes);
/* Adds one unless another thread was faster; returns the number that counts, 0 for no room. */
uint32_t intern_add(writer *w, enum definition_kind kind, uint64_t hash, const void *key,
                    size_t key_bytes, const void *value, size_t value_bytes);
/* Adds one without a key, under a number the caller took from last_id. */
bool define(writer *w, enum definition_kind kind, uint32_t id, const void *value, size_t bytes);
/* The same, with a fresh number. */
uint32_t define_next(writer *w, enum definition_kind kind, const void *value, size_t bytes);
uint32_t define_take_id(writer *w, enum definition_kind kind);

/* ---- module.c ------------------------------------------------------------------------------ */

/* Describes where a return address is. The result distinguishes its module from others that were or
 * will be loaded at that place; 0: it is in none. */
uint64_t module_describe(writer *w, uintptr_t address, struct site_frame *out);

/* ---- site.c -------------------------------------------------------------------------------- */

/* Bytes that hold the stacks remembered by all threads; zeroed memory means none are. */
size_t site_memory_bytes(void);

#endif
