#include "record/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/tick.h"
#include "record/bus.h"
#include "record/writer_internal.h"

/* ---- who writes ---------------------------------------------------------------------------- */

/* What a thread remembers of the writers it used; more than one is rare. Initial-exec: the general
 * model may allocate memory at the first use, which a signal handler must not. */
enum { MEMORIES = 4 };
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    uint64_t writer;
    uint32_t process;
    uint32_t thread;
} memories[MEMORIES];

static void define_process(writer *w, uint32_t process, unsigned how) {
    struct process_value value = { .pid = (uint32_t)getpid(),
                                   .parent = (uint32_t)getppid(),
                                   .image = w->image,
                                   .how = how,
                                   .program = record_string(w, program_invocation_name),
                                   .start_ns = clock_now_ns() };
    define(w, DEFINITION_PROCESS, process, &value, sizeof value);
    struct event e = { .kind = how == PROCESS_FORKED ? EVENT_FORK : EVENT_JOIN,
                       .dst = value.pid,
                       .src = value.parent,
                       .name = value.program,
                       .aux = event_aux(EVENT_NO_FN, 0) };
    record_event(w, &e);
}

/* Attaches this process if it is not yet; `how` it came. Only one thread's attempt counts. */
static uint32_t attach(writer *w, unsigned how) {
    uint32_t process = 0, fresh = define_take_id(w, DEFINITION_PROCESS);
    atomic_store(&w->page->pid, (uint32_t)getpid());
    if (!atomic_compare_exchange_strong(&w->page->process, &process, fresh))
        return process;
    atomic_fetch_add(&w->h->attached, 1);
    define_process(w, fresh, how);
    return fresh;
}

/* The number of this process, 0 if it has not attached. */
static inline uint32_t known_process(writer *w) {
    if (UNLIKELY(w->check_pid) && atomic_load(&w->page->pid) != (uint32_t)getpid())
        *w->page = (struct process_page){ 0 };
    return atomic_load_explicit(&w->page->process, memory_order_relaxed);
}

/* The number of the calling process; attaches it if this is its first use of the writer. */
static uint32_t process_number(writer *w) {
    uint32_t process = known_process(w);
    return LIKELY(process) ? process : attach(w, PROCESS_FORKED);
}

__attribute__((noinline)) static uint32_t new_thread(writer *w, uint32_t process) {
    int saved = errno;
    char name[17] = "";
    uint32_t thread = define_take_id(w, DEFINITION_THREAD);
    memories[w->id % MEMORIES].writer = w->id;
    memories[w->id % MEMORIES].process = process;
    memories[w->id % MEMORIES].thread = thread;
    prctl(PR_GET_NAME, name, 0, 0, 0);
    struct thread_value value = { .process = process,
                                  .pid = (uint32_t)getpid(),
                                  .tid = (uint32_t)syscall(SYS_gettid),
                                  .name = record_string(w, name) };
    define(w, DEFINITION_THREAD, thread, &value, sizeof value);
    errno = saved;
    return thread;
}

static inline uint32_t thread_number(writer *w) {
    uint32_t process = process_number(w);
    unsigned m = w->id % MEMORIES;
    if (LIKELY(memories[m].writer == w->id && memories[m].process == process))
        return memories[m].thread;
    return new_thread(w, process);
}

uint32_t record_thread(writer *w) {
    return w ? thread_number(w) : 0;
}

/* ---- streams and provenance, with the thread or process that reported them ------------------ */

uint32_t record_stream(writer *w, const struct record_stream *s) {
    if (!w)
        return 0;
    struct stream_value value = { .handle = s->handle,
                                  .device = s->device,
                                  .flags = s->flags,
                                  .priority = s->priority,
                                  .thread = record_thread(w) };
    return define_next(w, DEFINITION_STREAM, &value, sizeof value);
}

void record_provenance(writer *w, const char *key, const char *text) {
    if (!w)
        return;
    struct provenance_value value = { .key = record_string(w, key),
                                      .value = record_string(w, text),
                                      .process = process_number(w) };
    define_next(w, DEFINITION_PROVENANCE, &value, sizeof value);
}

/* ---- events -------------------------------------------------------------------------------- */

static bool slot_lost(writer *w) {
    atomic_fetch_add_explicit(&w->h->lost, 1, memory_order_relaxed);
    return false;
}

/* The slot of seq in this process's memory, NULL if there is none. */
static inline union event_slot *slot_of(writer *w, uint64_t seq) {
    uint64_t index = seq & w->event_mask;
    unsigned chunk = (unsigned)(index >> w->event_shift);
    if (UNLIKELY(atomic_load_explicit(&w->event_mapped[chunk], memory_order_acquire) !=
                 CHUNK_MAPPED) &&
        !grow_map_chunk(w, CHUNK_EVENTS, chunk, false))
        return NULL;
    return &w->events[index];
}

/* The thread that fills the middle of a chunk prepares the next one, so that no thread waits for
 * it. */
__attribute__((noinline)) static void prepare_next_chunk(writer *w, uint64_t seq) {
    uint64_t next = (seq + w->chunk_mask + 1) & w->event_mask;
    grow_map_chunk(w, CHUNK_EVENTS, (unsigned)(next >> w->event_shift), true);
}

/* The last eight bytes of an event, which are replaced together. */
struct tail {
    uint16_t kind, status;
    uint32_t aux;
};
_Static_assert(sizeof(struct tail) == 8 && offsetof(struct event, kind) == 56, "one word");

/* Two neighbours in memory as one word, by arithmetic. */
static inline uint64_t pair(uint32_t first, uint32_t second) {
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? first | (uint64_t)second << 32
                                                     : second | (uint64_t)first << 32;
}

static inline uint64_t tail_word(struct tail t) {
    uint32_t first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? t.kind | (uint32_t)t.status << 16
                                                               : t.status | (uint32_t)t.kind << 16;
    return pair(first, t.aux);
}

/* True if this writer may fill the slot. In the ring's first turn it always may, because nobody
 * else stores into a slot that has never held anything, however long its writer takes. In later
 * turns it has to take the slot over, which fails if the previous writer has not written or not
 * completed it (or died), or if a writer of a later turn was faster. */
static inline bool slot_claim(const writer *w, uint64_t *ready, uint64_t seq) {
    uint64_t old = __atomic_load_n(ready, __ATOMIC_RELAXED);
    if (LIKELY(seq <= w->event_mask))
        return LIKELY(old == 0);
    return LIKELY(old != 0 && old <= seq) && /* EVENT_BUSY, EVENT_FINISHING: more than any seq */
           LIKELY(__atomic_compare_exchange_n(ready, &old, EVENT_BUSY | (seq + 1), false,
                                              __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
}

/* The event as words. Its fields were stored one by one a moment ago, some of them 32 and 16 bits
 * wide; a wider load would wait until all of them have left the store buffer. Volatile keeps the
 * compiler from making one. */
static inline void event_words(const struct event *e, uint64_t word[8]) {
    const volatile struct event *v = e;
    word[1] = v->t_ns;
    word[2] = v->dst;
    word[3] = v->src;
    word[4] = v->len;
    word[5] = pair(v->stream, v->thread);
    word[6] = pair(v->site, v->name);
    struct tail tail = { v->kind, v->status, v->aux };
    word[7] = tail_word(tail);
}

/* mark: EVENT_FINISHING, or 0. False, and counted as lost, if there is no room or the slot is not
 * free.
 */
static inline bool slot_write(writer *w, uint64_t seq, const uint64_t word[8], uint64_t mark) {
    if (UNLIKELY((seq & w->chunk_mask) == w->chunk_mask / 2))
        prepare_next_chunk(w, seq);
    union event_slot *slot = slot_of(w, seq);
    if (UNLIKELY(!slot))
        return slot_lost(w);
    uint64_t *ready = &slot->event.ready;
    if (UNLIKELY(!slot_claim(w, ready, seq)))
        return slot_lost(w);
    for (int i = 1; i < 8; i++)
        __atomic_store_n(&slot->word[i], word[i], __ATOMIC_RELAXED);
    /* Stored last: a reader that sees seq + 1 sees the whole event. */
    __atomic_store_n(ready, mark | (seq + 1), __ATOMIC_RELEASE);
    return true;
}

/* The next events go to memory that is no longer in the caches: prefetch it while the program does
 * something else. An event with many slots is likely to be followed by another such. */
static inline void slot_prefetch(const writer *w, uint64_t next, unsigned slots) {
    for (unsigned i = 0; i < slots; i++)
        __builtin_prefetch(&w->events[(next + i) & w->event_mask], 1);
}

static inline uint64_t write_event(writer *w, struct event *e, uint64_t mark) {
    if (!w)
        return RECORD_NONE;
    e->thread = thread_number(w);
    if (!e->t_ns)
        e->t_ns = tick_now_ns();
    uint64_t seq = atomic_fetch_add_explicit(&w->h->next_seq, 1, memory_order_relaxed);
    uint64_t word[8];
    event_words(e, word);
    bool stored = slot_write(w, seq, word, mark);
    slot_prefetch(w, seq + 1, 2);
    return LIKELY(stored) ? seq : RECORD_NONE;
}

uint64_t record_event(writer *w, struct event *e) {
    return write_event(w, e, 0);
}

uint64_t record_begin(writer *w, struct event *e) {
    return write_event(w, e, EVENT_FINISHING);
}

static inline uint64_t write_events(writer *w, union event_slot *slots, unsigned count,
                                    uint64_t mark) {
    if (!w || !count || count > 1 + EVENT_EXTRA_MAX)
        return RECORD_NONE;
    struct event *e = &slots[0].event;
    e->thread = thread_number(w);
    if (!e->t_ns)
        e->t_ns = tick_now_ns();
    for (unsigned i = 1; i < count; i++)
        slots[i].extra.aux = (slots[i].extra.aux & 0xff0000ffu) | i << 8 | (count - 1) << 16;
    uint64_t seq = atomic_fetch_add_explicit(&w->h->next_seq, count, memory_order_relaxed);
    bool stored = false;
    /* The event comes last: a reader that sees it whole finds its extras. */
    for (unsigned i = count; i-- > 0;)
        stored = slot_write(w, seq + i, slots[i].word, i ? 0 : mark);
    slot_prefetch(w, seq + count, 8);
    return stored ? seq : RECORD_NONE;
}

uint64_t record_events(writer *w, union event_slot *slots, unsigned count) {
    return write_events(w, slots, count, 0);
}

uint64_t record_begin_slots(writer *w, union event_slot *slots, unsigned count) {
    return write_events(w, slots, count, EVENT_FINISHING);
}

/* True if nobody else stores into the slot until its `ready` says that it is whole. An event of
 * record_begin() belongs to its thread until then; any other has to be claimed first. */
static inline bool slot_reopen(uint64_t *ready, uint64_t seq) {
    uint64_t whole = seq + 1;
    return LIKELY(__atomic_load_n(ready, __ATOMIC_RELAXED) == (EVENT_FINISHING | whole)) ||
           __atomic_compare_exchange_n(ready, &whole, EVENT_FINISHING | (seq + 1), false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void finish(writer *w, uint64_t seq, unsigned status, uint64_t duration_ns,
                          const uint64_t *dst) {
    union event_slot *slot = w && seq != RECORD_NONE ? slot_of(w, seq) : NULL;
    if (UNLIKELY(!slot) || UNLIKELY(!slot_reopen(&slot->event.ready, seq)))
        return;
    if (dst)
        __atomic_store_n(&slot->event.dst, *dst, __ATOMIC_RELAXED);
    struct tail tail = { slot->event.kind, (uint16_t)status,
                         (slot->event.aux & 0xffffu) | (uint32_t)event_duration_encode(duration_ns)
                                                           << 16 };
    __atomic_store_n(&slot->word[7], tail_word(tail), __ATOMIC_RELEASE);
    __atomic_store_n(&slot->event.ready, seq + 1, __ATOMIC_RELEASE);
}

void record_finish(writer *w, uint64_t seq, unsigned status, uint64_t duration_ns) {
    finish(w, seq, status, duration_ns, NULL);
}

void record_finish_dst(writer *w, uint64_t seq, unsigned status, uint64_t duration_ns,
                       uint64_t dst) {
    finish(w, seq, status, duration_ns, &dst);
}

/* ---- open and close ------------------------------------------------------------------------ */

enum rc record_options_read(struct record_options *o, const char *path, struct err *e) {
    o->path = path ? path : env_text(ENV_GCORE_RECORD);
    o->join = 0;
    o->events = 0;
    if (!o->path)
        return RC_OK;
    const char *join = env_text(ENV_GCORE_RECORD_JOIN);
    if (join) {
        char *end;
        errno = 0;
        o->join = strtoull(join, &end, 16);
        if (*end || errno)
            return err_set(e, RC_USAGE,
                           "GCORE_RECORD_JOIN: expected the hexadecimal run id of a recording, "
                           "found '%s'",
                           join);
    }
    return env_read_number(ENV_GCORE_RECORD_EVENTS, &o->events, e);
}

/* Tells programs started by this one where to record: the path that was asked for, with %p, but
 * made absolute, because they may run in another directory. */
static enum rc announce(const writer *w, const char *asked, struct err *e) {
    char id[24], name[PATH_MAX] = "";
    snprintf(id, sizeof id, "%016" PRIx64, w->h->run_id);
    if (asked[0] != '/') {
        char here[PATH_MAX];
        size_t n = 0;
        if (!getcwd(here, sizeof here))
            return err_set(e, RC_IO, "%s: current directory: %s", w->path, strerror(errno));
        for (const char *p = here; *p && n < sizeof name - 3; p++) {
            if (*p == '%')
                name[n++] = '%';
            name[n++] = *p;
        }
        name[n++] = '/';
        name[n] = 0;
    }
    size_t used = strlen(name);
    if (strlen(asked) >= sizeof name - used)
        return err_set(e, RC_USAGE, "%.80s...: file name too long", asked);
    memcpy(name + used, asked, strlen(asked) + 1);
    if (setenv("GCORE_RECORD", name, 1) || setenv("GCORE_RECORD_JOIN", id, 1))
        return err_set(e, RC_MEMORY, "%s: no memory for the environment", w->path);
    return RC_OK;
}

/* Memory of this process: flags, call stacks, the page that forks wipe, address space. */
static enum rc allocate(writer *w, struct err *e) {
    const struct record_header *h = w->h;
    static _Atomic uint64_t last_id;
    enum { ALIGN = 2 << 20 }; /* of page tables: lets large folios be mapped whole */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    w->chunk_shift = (unsigned)__builtin_ctz(h->chunk_bytes);
    w->event_shift = w->chunk_shift - (unsigned)__builtin_ctz(sizeof(union event_slot));
    w->chunk_mask = (UINT64_C(1) << w->event_shift) - 1;
    w->event_mask = ((uint64_t)h->event_chunks << w->event_shift) - 1;
    w->id = atomic_fetch_add(&last_id, 1) + 1;
    w->event_mapped = calloc(h->event_chunks, 1);
    w->definition_mapped = calloc(h->definition_chunks, 1);
    w->frames = calloc(KNOWN_FRAMES, sizeof *w->frames);
    /* Most of this is never touched. */
    void *memories = mmap(NULL, site_memory_bytes(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    w->memories = memories == MAP_FAILED ? NULL : memories;
    void *own = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    w->page = own == MAP_FAILED ? NULL : own;
    if (!w->event_mapped || !w->definition_mapped || !w->frames || !w->memories || !w->page)
        return err_set(e, RC_MEMORY, "%s: no memory for a recorder", w->path);
    w->check_pid = madvise(w->page, page, MADV_WIPEONFORK) != 0;

    size_t ring = (size_t)h->event_chunks << w->chunk_shift;
    ring = (ring + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    w->reserved_bytes = ring + ((size_t)h->definition_chunks << w->chunk_shift) + ALIGN;
    w->reserved = mmap(NULL, w->reserved_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->reserved == MAP_FAILED) {
        w->reserved = NULL;
        return err_set(e, RC_MEMORY,
                       "%s: cannot reserve %zu MiB of address space: %s; a smaller "
                       "GCORE_RECORD_EVENTS needs less",
                       w->path, w->reserved_bytes >> 20, strerror(errno));
    }
    uintptr_t base = ((uintptr_t)w->reserved + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1);
    w->events = (union event_slot *)base;
    w->definitions = (unsigned char *)base + ring;
    return RC_OK;
}

/* The header of a file we join was written by a process of our own run; still, nothing in it may
 * lead us out of our memory. */
static enum rc check_geometry(const writer *w, struct err *e) {
    const struct record_header *h = w->h;
    bool power = h->chunk_bytes && !(h->chunk_bytes & (h->chunk_bytes - 1)) && h->event_chunks &&
                 !(h->event_chunks & (h->event_chunks - 1));
    if (!power || h->chunk_bytes < RECORD_CHUNK_MIN || h->chunk_bytes > RECORD_CHUNK_MAX ||
        h->event_bytes != sizeof(union event_slot) || h->event_chunks > RECORD_EVENT_CHUNKS ||
        !h->definition_chunks || h->definition_chunks > RECORD_DEFINITION_CHUNKS)
        return err_set(e, RC_FORMAT, "%s: damaged header", w->path);
    return RC_OK;
}

enum { FUNCTIONS_ROOM = 60 << 10 };

/* Lists the names of the HIP functions in buffer; returns the bytes used, 0 if they do not fit. */
static size_t list_functions(const struct record_options *o, char *buffer) {
    uint32_t count = o->fn_count;
    size_t used = sizeof count;
    memcpy(buffer, &count, sizeof count);
    for (unsigned fn = 0; fn < count; fn++) {
        const char *name = o->fn_name(fn);
        size_t length = strlen(name) + 1;
        if (length > FUNCTIONS_ROOM - used)
            return 0;
        memcpy(buffer + used, name, length);
        used += length;
    }
    return used;
}

/* A new recording gets the list; a joined one must have the same list. */
static enum rc agree_on_functions(writer *w, const struct record_options *o, bool joined,
                                  struct err *e) {
    if (!o->fn_count)
        return RC_OK;
    char *list = malloc(FUNCTIONS_ROOM);
    size_t bytes = list ? list_functions(o, list) : 0;
    uint64_t hash = bytes ? intern_hash(DEFINITION_FUNCTIONS, list, bytes) : 0;
    enum rc rc = RC_OK;
    if (!list)
        rc = err_set(e, RC_MEMORY, "%s: no memory for a recorder", w->path);
    else if (!bytes || o->fn_count > EVENT_FN_MAX)
        rc = err_set(e, RC_RANGE, "%u HIP functions are more than a recording can name",
                     o->fn_count);
    else if (joined && w->h->function_hash && w->h->function_hash != hash)
        rc = err_set(e, RC_REFUSED,
                     "%s: the run is being recorded by another build of greta, whose list of HIP "
                     "functions differs; use one build for both programs",
                     w->path);
    else if (!w->h->function_hash) {
        w->h->function_hash = hash;
        define_next(w, DEFINITION_FUNCTIONS, list, bytes);
    }
    free(list);
    return rc;
}

/* Frees everything without writing to the file. */
static void release(writer *w) {
    bus_unguard(&w->cut);
    if (w->reserved)
        munmap(w->reserved, w->reserved_bytes);
    if (w->page)
        munmap(w->page, (size_t)sysconf(_SC_PAGESIZE));
    if (w->h)
        munmap(w->h, RECORD_HEADER_BYTES);
    if (atomic_load(&w->fd) >= 0)
        close(atomic_load(&w->fd));
    free((void *)w->event_mapped);
    free((void *)w->definition_mapped);
    if (w->memories)
        munmap(w->memories, site_memory_bytes());
    free(w->frames);
    free(w);
}

enum rc record_open(writer **out, const struct record_options *o, struct err *e) {
    bool joined = false;
    writer *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(e, RC_MEMORY, "no memory for a recorder");
    atomic_store(&w->fd, -1);
    enum rc rc = create_file(w, o, &joined, e);
    if (rc != RC_OK)
        goto fail;
    if ((rc = check_geometry(w, e)) != RC_OK || (rc = allocate(w, e)) != RC_OK)
        goto abandon;
    bus_guard(w->h, RECORD_HEADER_BYTES, w->reserved, w->reserved_bytes, &w->cut);
    if (!grow_map_chunk(w, CHUNK_DEFINITIONS, 0, false) ||
        !grow_map_chunk(w, CHUNK_EVENTS, 0, false)) {
        rc = err_set(e, RC_IO, "%s: no room for a recording", w->path);
        goto abandon;
    }
    if ((rc = agree_on_functions(w, o, joined, e)) != RC_OK)
        goto abandon;
    if (!joined && (rc = create_publish(w, e)) != RC_OK)
        goto abandon;
    if (o->announce && (rc = announce(w, o->path, e)) != RC_OK)
        goto fail;
    tick_start();
    w->image = atomic_fetch_add(&w->h->images, 1) + 1;
    attach(w, joined ? PROCESS_JOINED : PROCESS_CREATED);
    *out = w;
    return RC_OK;
abandon:
    if (!joined)
        create_abandon(w);
fail:
    release(w);
    return rc;
}

void record_end(writer *w) {
    /* A forked child that never wrote has nothing to end. */
    if (!w || !known_process(w) || atomic_exchange(&w->page->ended, 1))
        return;
    struct event e = { .kind = EVENT_END,
                       .dst = (uint32_t)getpid(),
                       .aux = event_aux(EVENT_NO_FN, 0) };
    record_event(w, &e);
    atomic_fetch_add(&w->h->ended, 1);
}

void record_close(writer **w) {
    if (!w || !*w)
        return;
    record_end(*w);
    release(*w);
    *w = NULL;
}

const char *record_path(const writer *w) {
    return w ? w->path : "";
}
uint64_t record_run_id(const writer *w) {
    return w ? w->h->run_id : 0;
}
uint64_t record_count(const writer *w) {
    return w ? atomic_load(&w->h->next_seq) : 0;
}
uint64_t record_lost(const writer *w) {
    return w ? atomic_load(&w->h->lost) : 0;
}
