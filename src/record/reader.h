/* reader.h - read-only view of a recording, whole or not.
 *
 * A file may be cut, damaged, hostile, or still being written: whatever is in it, reading is safe,
 * and returns what can be recovered; what is cut off while it is open here reads as zeroes (bus.h).
 * Definitions are copied at reader_open, events are read from the file on demand; of a live
 * recording one sees the events that had been claimed when it was opened.
 *
 * After reader_open nothing changes, so that any number of threads may read, each with a cursor of
 * its own. Strings and structs returned belong to the reader and live until reader_close. */
#ifndef RECORD_READER_H
#define RECORD_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "record/event.h"
#include "record/layout.h"

typedef struct reader reader;

struct reader_info {
    uint32_t version, pid;
    uint64_t run_id;
    uint64_t start_ns, start_wall_us; /* the same moment on both clocks */
    uint64_t capacity;                /* slots of the ring */
    uint64_t first_seq, end_seq;      /* what the ring can hold of the run: [first, end) */
    uint64_t overwritten;             /* slots before first_seq */
    uint64_t lost, lost_definitions;  /* the writers' own count */
    uint32_t attached, ended;         /* processes that wrote; those that closed in good order */
    bool clean;                       /* all of them did */
    bool truncated;                   /* the file is shorter than its directory says */
    uint64_t file_bytes;
    uint64_t data_bytes; /* of these, those that are not holes */
};

/* path: a recording, or a folder with a record.gcr. RC_IO if it cannot be read, RC_FORMAT if it is
 * no recording, or one of another version or byte order, or its header is damaged. On failure *out
 * is untouched. */
NODISCARD enum rc reader_open(reader **out, const char *path, struct err *e);
void reader_close(reader **r);

const struct reader_info *reader_info(const reader *r);

/* ---- events -------------------------------------------------------------------------------- */

/* An event with its extras: those in the slots after it, or those of a launch's definition. */
struct reader_event {
    uint64_t seq;
    struct event event;
    unsigned slots;   /* of the ring, with those of its extras */
    unsigned extras;  /* how many there are */
    bool extras_lost; /* more extras than these were recorded, or may have been */
    struct event_extra extra[EVENT_EXTRA_MAX];
};

/* Slots met so far. whole counts events, extras their extras. */
struct reader_counts {
    uint64_t whole, extras, torn, lost, overwritten, truncated;
};

/* A position in the events. Counts grow with every reader_next. */
struct reader_cursor {
    const reader *r;
    uint64_t next, end;
    uint64_t skipped, skipped_from; /* overwritten slots not reported yet, and the first of them */
    struct reader_counts counts;
};

/* Starts at the first event whose seq is >= from, and ends before to (UINT64_MAX: all). */
struct reader_cursor reader_events(const reader *r, uint64_t from, uint64_t to);

/* The next event in order of seq; false at the end. Where slots are missing it is a LOST event
 * made up here: dst is the seq of the first, len their number, detail the reason (DETAIL_LOSS_*),
 * thread 0. */
bool reader_next(struct reader_cursor *c, struct reader_event *out);

/* The event with that seq; false if it is not there whole, or is an extra. */
bool reader_event(const reader *r, uint64_t seq, struct reader_event *out);

/* Events before that one will not be read soon: their pages need not stay in this process's memory.
 * They can still be read, from the file. */
void reader_release(const reader *r, uint64_t before);

/* The first extra of that type, NULL if there is none. */
const struct event_extra *reader_extra(const struct reader_event *e, enum event_extra_type type);

/* ---- definitions --------------------------------------------------------------------------- */

/* Numbers given: valid ids are 1 to this. */
uint32_t reader_count(const reader *r, enum definition_kind kind);

/* Never NULL: "" for 0, "?" for a number that is not there. */
const char *reader_string(const reader *r, uint32_t id);
/* The name of a HIP function as the recording's own build had it; "?" if it did not say. */
const char *reader_function(const reader *r, unsigned fn);

/* NULL if there is none of that number. */
const struct thread_value *reader_thread(const reader *r, uint32_t id);
const struct process_value *reader_process(const reader *r, uint32_t id);
const struct stream_value *reader_stream(const reader *r, uint32_t id);
const struct provenance_value *reader_provenance(const reader *r, uint32_t id);
const struct module_value *reader_module(const reader *r, uint32_t id, uint64_t *base);

/* The value of the first provenance with that key, NULL if there is none. */
const char *reader_provenance_find(const reader *r, const char *key);

/* Frames of a site, innermost first; *count may be 0. whole (may be NULL): the stack is exact, not
 * that of the first call from there. */
const struct site_frame *reader_site(const reader *r, uint32_t id, unsigned *count, bool *whole);

/* The reader's place for symbol tables of the program's files (symbols.h); NULL: no memory. */
struct symbol_tables *reader_symbol_tables(const reader *r);

/* ---- places in the source ------------------------------------------------------------------- */

/* A function that a frame is in: the one whose code it is, or one that was inlined there. */
struct reader_line {
    const char *function; /* NULL: unknown */
    const char *file;     /* NULL: unknown */
    uint32_t line;        /* 0: unknown */
    bool inlined;         /* into the function after it */
};

/* The line of a stack that is meant by "where". */
struct reader_place {
    unsigned frame; /* of the site */
    unsigned depth; /* of reader_frame_lines() of that frame */
    struct reader_line line;
};

/* The source of lines, which needs the program's files: src/symbol. */
struct reader_source {
    unsigned (*lines)(void *user, const struct site_frame *f, struct reader_line *out,
                      unsigned room);
    bool (*where)(void *user, uint32_t site, struct reader_place *out);
    const char *(*kernel)(void *user, uint32_t symbol);
    const char *(*parameter)(void *user, uint32_t symbol, unsigned index);
    void (*close)(void *user);
    void *user;
};

/* Takes the source over; reader_close() closes it. */
void reader_set_source(reader *r, const struct reader_source *source);
const struct reader_source *reader_source(const reader *r); /* its members may be NULL */

enum { READER_LINES_MAX = 16 };

/* A kernel's name as its source has it, "math::reduce<double, 128>", of the string that is its
 * symbol; without a source, or where that cannot tell, the symbol itself. Lives as long as the
 * reader. */
const char *reader_kernel(const reader *r, uint32_t symbol);

/* The name of a parameter of that kernel in its source; NULL if that is not known. */
const char *reader_kernel_parameter(const reader *r, uint32_t symbol, unsigned index);

/* The name of an event for people: reader_kernel() where it is a kernel's, else the string. */
const char *reader_event_name(const reader *r, const struct event *e);

/* The functions that a frame is in, innermost first; never none. Without a source, or where it does
 * not know the file, the function that symbols_of_frame() says, without a line. */
unsigned reader_frame_lines(const reader *r, const struct site_frame *f, struct reader_line *out,
                            unsigned room);

/* The place that a site stands for: the first function, from the inside, that does more than to
 * call HIP and check the result. False if the site is not known. */
bool reader_site_where(const reader *r, uint32_t id, struct reader_place *out);

/* Writes "function (file.c:12)", with " -> wrapper (file.c:3)" if the call was made by one,
 * "symbol+0x12 (module)" or "module+0x1234" of that place, "-" for none. */
void reader_site_text(const reader *r, uint32_t id, char *out, size_t room);

#endif
