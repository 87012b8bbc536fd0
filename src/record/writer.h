/* writer.h - writes a recording: events into a ring in a file mapped MAP_SHARED, definitions
 * (strings, call stacks, threads, ...) beside it. docs/recording.md describes the file.
 *
 * What is stored is in the page cache at once and survives any death of the process. Nothing here
 * prints. All functions but record_open and record_close may be called by any number of threads,
 * from a forked child (which goes on in the same file), and from a signal handler: they take no
 * lock that a handler could wait for, allocate no memory, and leave errno alone. An event or a
 * definition that cannot be stored, because the disk is full for instance, is counted and dropped.
 *
 * w may be NULL in all of them: they then do nothing and return RECORD_NONE or 0. */
#ifndef RECORD_WRITER_H
#define RECORD_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "record/event.h"

typedef struct writer writer;

struct record_options {
    const char *path;  /* %p: the pid, %%: a percent sign */
    uint64_t events;   /* ring size, rounded up to a power of two; 0: 16 Mi */
    uint64_t join;     /* go on in path if it holds the recording with this run id; 0: never */
    bool announce;     /* set GCORE_RECORD and GCORE_RECORD_JOIN for programs started later */
    unsigned fn_count; /* HIP functions; their names go into the file, so that a reader of another
                          build prints them right */
    const char *(*fn_name)(unsigned fn); /* may be NULL if fn_count is 0 */
};

/* Fills the first three fields from GCORE_RECORD, GCORE_RECORD_EVENTS and GCORE_RECORD_JOIN; a path
 * that is not NULL takes the place of GCORE_RECORD. If neither names a file, path is NULL and
 * recording is off. RC_USAGE if a number is malformed. The strings are not copied. */
NODISCARD enum rc record_options_read(struct record_options *o, const char *path, struct err *e);

/* Creates path, or joins the recording there. An empty file is taken over. An older recording is
 * kept as path.old. RC_REFUSED, and the file untouched, if it is something else, or a recording
 * that another run is writing, or one to join that another version or build of greta began. RC_IO
 * if it cannot be created or there is no room for its first chunks. On failure *out is untouched.
 */
NODISCARD enum rc record_open(writer **out, const struct record_options *o, struct err *e);

/* Notes that this process ends its recording in good order (event END). The writer stays usable;
 * a second call does nothing. Meant for exit handlers, when other threads may still run. */
void record_end(writer *w);

/* record_end, then frees everything. No other thread may use the writer any more. */
void record_close(writer **w);

const char *record_path(const writer *w); /* absolute; valid until record_close */
uint64_t record_run_id(const writer *w);

/* ---- events -------------------------------------------------------------------------------- */

/* Stores the event; fills in thread, and t_ns if it is 0, in *e too. Returns its seq, or
 * RECORD_NONE if it was lost. */
uint64_t record_event(writer *w, struct event *e);

/* The same for an event in slots[0] with its extras in slots[1] to slots[count - 1], which are
 * numbered here; count is at most 1 + EVENT_EXTRA_MAX. */
uint64_t record_events(writer *w, union event_slot *slots, unsigned count);

/* The same two for an event that the calling thread will complete with record_finish(): its slot is
 * not reused before then, however often the ring goes round, which makes completing it cheap. */
uint64_t record_begin(writer *w, struct event *e);
uint64_t record_begin_slots(writer *w, union event_slot *slots, unsigned count);

/* Completes a pending event. Does nothing if the ring has come round to its slot, or if seq is
 * RECORD_NONE. */
void record_finish(writer *w, uint64_t seq, unsigned status, uint64_t duration_ns);
/* The same, and stores what the call returned: a handle, an address. */
void record_finish_dst(writer *w, uint64_t seq, unsigned status, uint64_t duration_ns,
                       uint64_t dst);

/* ---- definitions --------------------------------------------------------------------------- */

/* The number of the string, the same for the same text in all threads and processes of the run; 0
 * for NULL and "", or if there is no room. Text beyond 32 KiB is cut. */
uint32_t record_string(writer *w, const char *text);
uint32_t record_string_n(writer *w, const char *text, size_t length);

/* The number of the call stack from return_address outwards, for instance
 * __builtin_return_address(0) of the hook: one for every different stack. A stack that the thread
 * has been in before costs a comparison of its return addresses, a new one some microseconds. An
 * address that is not on the stack is a stack of its own. */
uint32_t record_site(writer *w, const void *return_address);

/* The same; NULL stands for the caller's own place. */
uint32_t record_site_full(writer *w, const void *return_address);

struct record_stream {
    uint64_t handle;
    uint32_t device;
    uint32_t flags; /* those of hipStreamCreateWithFlags, and RECORD_STREAM_* */
    int32_t priority;
};
enum {
    RECORD_STREAM_DEFAULT = 1 << 16,    /* the legacy default stream of the device */
    RECORD_STREAM_PER_THREAD = 1 << 17, /* the default stream of the calling thread */
};

/* A new number at each call, because handles are used again. 0 if there is no room. */
uint32_t record_stream(writer *w, const struct record_stream *s);

/* The number of a launch's extras, the same for the same extras in all processes of the run; 0 if
 * there is no room, or if there are none or more than an event can have. */
uint32_t record_launch(writer *w, const union event_slot *extras, unsigned count);

/* A fact about the run; one key may be given several times. */
void record_provenance(writer *w, const char *key, const char *value);

/* The calling thread's number. */
uint32_t record_thread(writer *w);

/* ---- for tests and benches ----------------------------------------------------------------- */

/* Events claimed so far, and events lost, in all processes. */
uint64_t record_count(const writer *w);
uint64_t record_lost(const writer *w);

#endif
