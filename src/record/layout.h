/* layout.h - the recording file, byte for byte; shared by the writer and the reader.
 *
 *      header        RECORD_HEADER_BYTES: constants, counters, directory, hash table
 *      chunk 0, 1, …  chunk_bytes each, in the order in which they were needed
 *
 * A chunk holds either events or definitions. event_chunk[i] says where the chunk with the ring
 * positions i * events_per_chunk and up is, definition_chunk[i] the same for the definition stream:
 * the number of the file chunk plus one, 0 if there is none yet. Every number below is in the byte
 * order of the machine that wrote it (byte_order says which).
 *
 * Writers coordinate without locks, because a process can be killed at any instruction and must not
 * stop the others (the flock() on the file only marks it as in use). A chunk is taken by counting
 * file_chunks up and published by a compare-and-swap on its directory entry; the loser of that race
 * leaves its chunk in spare_chunk[] for later.
 *
 * Definitions are records one after the other (16-byte units, never across a chunk's end). Interned
 * ones are found through bucket[], chained lists that only grow. A reader does not need the table:
 * it walks the records, and where one was never completed it looks for the next in steps of 16. */
#ifndef RECORD_LAYOUT_H
#define RECORD_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "record/event.h"

#define RECORD_MAGIC      "greta\x01\r\n" /* \r\n: a transfer that touches line ends is noticed */
#define RECORD_BYTE_ORDER 0x01020304u

enum {
    RECORD_HEADER_BYTES = 128 << 10, /* a multiple of every page size Linux uses */
    RECORD_CHUNK_MIN = 64 << 10,
    RECORD_CHUNK_MAX = 64 << 20,
    RECORD_CHUNK_USUAL = 256 << 10,
    RECORD_EVENT_CHUNKS = 4096,
    RECORD_DEFINITION_CHUNKS = 1024,
    RECORD_BUCKETS = 16384,
    RECORD_UNIT = 16,
    RECORD_SPARES = 8,
    RECORD_STRING_MAX = 32 << 10,
    RECORD_FRAMES_MAX = 48,
    RECORD_SITES_WHOLE = 64 << 10, /* after so many, a call gets the first stack at its address */
};
#define RECORD_EVENTS_MIN     UINT64_C(1024)
#define RECORD_EVENTS_USUAL   (UINT64_C(16) << 20)
#define RECORD_EVENTS_MAX     (UINT64_C(1) << 32)
#define RECORD_DEFINITION_MAX (UINT64_C(1) << 30) /* bytes of definitions */

/* spare_chunk: the chunk is claimed but the disk had no room for it yet. */
#define RECORD_CHUNK_UNBACKED (UINT32_C(1) << 31)

struct record_header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint32_t header_bytes;
    uint32_t event_bytes;
    uint32_t chunk_bytes;       /* a power of two */
    uint32_t event_chunks;      /* of the whole ring; a power of two */
    uint32_t definition_chunks; /* at most */
    uint32_t pid;               /* of the process that created the file */
    uint64_t run_id;            /* random, not 0 */
    uint64_t start_ns;          /* CLOCK_MONOTONIC, and at the same moment */
    uint64_t start_wall_us;     /* CLOCK_REALTIME */
    uint64_t function_hash;     /* of the FUNCTIONS definition */

    _Alignas(128) _Atomic uint64_t next_seq; /* slots claimed so far */

    _Alignas(128) _Atomic uint64_t lost; /* slots claimed and not written */
    _Atomic uint64_t lost_definitions;
    _Atomic uint32_t attached; /* processes that ever wrote */
    _Atomic uint32_t ended;    /* those that said END */
    _Atomic uint32_t images;   /* programs that opened the file; forks are the same image */
    _Atomic uint32_t file_chunks;
    _Atomic uint32_t spare_chunk[RECORD_SPARES];

    _Alignas(128) _Atomic uint64_t next_definition; /* bytes of the definition stream */
    _Atomic uint32_t last_id[16];                   /* numbers given, by definition kind */

    _Alignas(4096) _Atomic uint32_t event_chunk[RECORD_EVENT_CHUNKS];
    _Atomic uint32_t definition_chunk[RECORD_DEFINITION_CHUNKS];
    _Atomic uint32_t bucket[RECORD_BUCKETS]; /* position / RECORD_UNIT + 1 */
};

/* A definition: this, then key_bytes of key, then (from the next multiple of 8) the value. */
struct definition {
    _Atomic uint64_t ready; /* position in the stream + 1, stored last */
    uint32_t size;          /* of all, a multiple of RECORD_UNIT */
    uint16_t kind;          /* enum definition_kind */
    uint16_t key_bytes;
    uint32_t id;
    _Atomic uint32_t next; /* in the bucket; position / RECORD_UNIT + 1 */
    uint64_t hash;
};

/* STRING: the key is the text, the value a NUL. FUNCTIONS: no key; the value is a uint32_t count
 * and that many texts with their NULs. */

/* LAUNCH: the key is an array of struct event_extra, at most EVENT_EXTRA_MAX; there is no value. */

/* SITE: the key is struct site_key, return addresses (uint64_t) and a word that tells apart modules
 * loaded one after another at the same place; the value struct site_value and that many frames. A
 * whole stack (SITE_WHOLE) has all its addresses in the key. In a recording with very many
 * different stacks the key of further ones is the innermost address alone, and the stack is that of
 * the first such call seen. */
enum { SITE_WHOLE = 1 };
struct site_key {
    uint32_t image;
    uint32_t flags;
};
struct site_frame {
    uint64_t address;       /* the return address in that process; of what a signal
                               interrupted, one past the instruction's first byte */
    uint64_t offset;        /* from the module's base */
    uint64_t symbol_offset; /* from the symbol */
    uint32_t module;        /* string: the path */
    uint32_t symbol;        /* string; 0: no exported symbol is near */
};
struct site_value {
    uint32_t count;
    uint32_t reserved;
};

/* MODULE: key and value. */
struct module_key {
    uint32_t image;
    uint32_t reserved;
    uint64_t base;
};
struct module_value {
    uint32_t path;
    uint32_t build_id; /* string of hexadecimal digits; 0: it has none */
};

/* The others have no key. */
struct thread_value {
    uint32_t process;
    uint32_t pid;
    uint32_t tid;
    uint32_t name; /* string */
};
enum { PROCESS_CREATED = 1, PROCESS_JOINED = 2, PROCESS_FORKED = 3 };
struct process_value {
    uint32_t pid;
    uint32_t parent;
    uint32_t image;
    uint32_t how;     /* PROCESS_* */
    uint32_t program; /* string */
    uint32_t reserved;
    uint64_t start_ns;
};
struct stream_value {
    uint64_t handle;
    uint32_t device;
    uint32_t flags;
    int32_t priority;
    uint32_t thread;
};
struct provenance_value {
    uint32_t key;
    uint32_t value;
    uint32_t process;
    uint32_t reserved;
};

static inline uint32_t definition_value_offset(uint32_t key_bytes) {
    return (uint32_t)sizeof(struct definition) + ((key_bytes + 7u) & ~7u);
}

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "processes share the counters");
_Static_assert(sizeof(struct record_header) <= RECORD_HEADER_BYTES, "the header outgrew its room");
_Static_assert(RECORD_VERSION == 2 && offsetof(struct record_header, run_id) == 40 &&
                   offsetof(struct record_header, next_seq) == 128 &&
                   offsetof(struct record_header, lost) == 256 &&
                   offsetof(struct record_header, next_definition) == 384 &&
                   offsetof(struct record_header, event_chunk) == 4096 &&
                   offsetof(struct record_header, bucket) == 24576,
               "bump RECORD_VERSION");
_Static_assert(RECORD_VERSION == 2 && sizeof(struct definition) == 32 &&
                   sizeof(struct site_frame) == 32 && sizeof(struct site_key) == 8 &&
                   sizeof(struct process_value) == 32 && sizeof(struct stream_value) == 24 &&
                   DEFINITION_KINDS <= 16,
               "bump RECORD_VERSION");

#endif
