/* order.h - which streams may have unfinished work.
 *
 * Every stream has two numbers: how many operations were submitted through the table, and how many
 * of them the host is known to have waited for. A stream where they differ is busy.
 *
 * The submitted number is raised after the runtime took the operation and before its caller goes
 * on; the number that a synchronisation proves is read before it starts. So both err on the side of
 * waiting.
 *
 * Thread-safe. Streams live as long as the process; a destroyed one keeps an event that stands for
 * its last work. */
#ifndef AUDIT_ORDER_H
#define AUDIT_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/handles.h"
#include "base/spin.h"
#include "hip/hip_types.h"

enum order_kind {
    ORDER_DEFAULT,    /* a device's legacy default stream */
    ORDER_PER_THREAD, /* a thread's default stream */
    ORDER_CREATED,
};

struct order_stream {
    struct handle_node node; /* key: the handle; unused for default streams */
    hipStream_t handle;
    enum order_kind kind;
    /* Atomic because a node is revived while others walk past it. */
    _Atomic int device;
    _Atomic unsigned flags; /* of hipStreamCreateWithFlags */
    _Atomic bool live;
    _Atomic bool orphan; /* per-thread: its thread has ended, another may take it over when idle */
    _Atomic uint64_t submitted, done;
    _Atomic uint64_t waits;       /* order_waits when it was last given work */
    _Atomic uint32_t capture;     /* number of the capture it takes part in, 0: none */
    uint64_t capture_seq;         /* of the event that began it */
    _Atomic uint32_t record_id;   /* in the recording, 0: not defined yet */
    _Atomic uint64_t soft_number; /* greta_soft_stream_number(), 0: unknown */
    _Atomic uint64_t ran;         /* launches that the recording knows to be done */
    struct spin lock;             /* the next two */
    hipEvent_t event;
    uint64_t event_at;             /* value of submitted that event stands for */
    struct order_stream *next;     /* of all streams; never changes */
    struct order_stream *next_own; /* of its thread's */
};

/* The stream behind a handle: NULL and hipStreamLegacy are the current device's default stream,
 * hipStreamPerThread the thread's own. An unknown one is entered with what the runtime says about
 * it. NULL without memory. */
struct order_stream *order_stream(hipStream_t handle);
/* The same for functions whose name ends in _spt, where NULL is the thread's own. */
struct order_stream *order_stream_spt(hipStream_t handle);

/* The legacy default stream of a device. */
struct order_stream *order_default(int device);

/* A stream was created on the current device, or was destroyed. */
struct order_stream *order_created(hipStream_t handle, unsigned flags);
void order_destroyed(struct order_stream *s);
/* True if the handle is known and its stream was destroyed. */
bool order_is_destroyed(hipStream_t handle);
/* hipDeviceReset: no stream or event of the device is left, nor any work. */
void order_device_reset(int device);

/* Counts calls that may have waited for any work, of whatever stream. */
extern _Atomic uint64_t order_waits;
static inline void order_note_wait(void) {
    atomic_fetch_add_explicit(&order_waits, 1, memory_order_relaxed);
}

/* The runtime took an operation. */
static inline void order_submitted(struct order_stream *s) {
    if (!s)
        return;
    atomic_fetch_add_explicit(&s->submitted, 1, memory_order_release);
    atomic_store_explicit(&s->waits, atomic_load_explicit(&order_waits, memory_order_relaxed),
                          memory_order_relaxed);
}

/* The runtime took work on some stream; when it last did, as far as it was noted (0: never). */
void order_note_queued(void);
uint64_t order_last_queued(void);

/* order_mark: the work that a synchronisation starting now will prove done; order_prove: it has. */
static inline uint64_t order_mark(const struct order_stream *s) {
    return s ? atomic_load_explicit(&s->submitted, memory_order_acquire) : 0;
}
void order_prove(struct order_stream *s, uint64_t mark);

static inline bool order_is_busy(const struct order_stream *s) {
    /* done first: it never passes submitted, so that equal values cannot come from a race. */
    uint64_t done = atomic_load_explicit(&s->done, memory_order_acquire);
    return done != order_mark(s);
}

/* Busy, and nothing at all has been waited for since its last operation was submitted: the program
 * cannot know that it is done. */
bool order_is_unwaited(const struct order_stream *s);

/* Records how many launches of s the software device is done with, if that has changed. */
void order_note_ran(struct order_stream *s);

/* ---- events ---------------------------------------------------------------------------------- */

struct order_event {
    struct handle_node node;
    struct spin lock; /* all below */
    bool live;
    struct order_stream *stream; /* of the last record */
    uint64_t mark;               /* what it stands for */
    uint64_t seq;                /* of its event in the recording, or RECORD_NONE */
    uint32_t capture;            /* recorded into this capture, 0: none */
    bool unwaited;               /* order_is_unwaited() of the stream at that time */
    uint64_t waits;              /* order_waits at that time */
};

/* What is known about an event; made if need be. NULL without memory. */
struct order_event *order_event(hipEvent_t handle);
/* A copy of it, without its lock. */
struct order_event order_event_read(struct order_event *ev);
void order_event_recorded(struct order_event *ev, struct order_stream *s, uint64_t mark,
                          uint64_t seq);
/* True if the program cannot know that the event has happened. */
bool order_event_is_unwaited(struct order_event *ev);
/* The host knows that the event has happened. */
void order_event_done(struct order_event *ev);

/* ---- captures -------------------------------------------------------------------------------- */

/* Streams that take part in a capture now; zero is the usual answer. */
bool order_any_capture(void);
/* s begins one; s, which just waited for ev, joins ev's; the one that s began has ended. */
void order_capture_begin(struct order_stream *s, uint64_t seq);
void order_capture_join(struct order_stream *s, struct order_event *ev);
void order_capture_end(struct order_stream *s);
static inline bool order_is_capturing(const struct order_stream *s) {
    return s && atomic_load_explicit(&s->capture, memory_order_acquire) != 0;
}

/* The stream's number in the recording; 0 if there is none. */
uint32_t order_define(struct order_stream *s);
static inline uint32_t order_record_id(struct order_stream *s) {
    uint32_t id = atomic_load_explicit(&s->record_id, memory_order_acquire);
    return id ? id : order_define(s);
}

/* All streams, linked by next. */
struct order_stream *order_first(void);

/* Forgets everything; for audit_detach. Events are destroyed if the runtime still works. */
void order_reset(void);

#endif
