#include "record/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "record/bus.h"
#include "record/extents.h"
#include "record/symbol_tables.h"

/* Definitions of one kind by number; [0] unused. */
typedef const struct definition *definition_ref;
struct index {
    definition_ref *at;
    uint32_t count, room;
};

/* A chunk of the definition stream, as far as the file has data of it. */
struct piece {
    unsigned char *at;
    uint64_t bytes, offset; /* offset: in the file */
};

struct reader {
    const unsigned char *map;
    size_t bytes;
    atomic_bool cut;     /* it has been truncated since: what is gone reads as zeroes */
    struct extents data; /* what of it is not a hole */
    struct reader_info info;
    uint64_t chunk_bytes, slots_per_chunk, slot_mask; /* all powers of two, or one less */
    unsigned slot_shift;                              /* log2 of slots_per_chunk */
    uint32_t *event_chunk; /* copy of the directory: number + 1, 0 if there is none in the file */
    uint32_t event_chunks;
    bool *event_chunk_cut; /* the directory has it, the file does not */
    struct piece *pieces;  /* copies of the definition chunks */
    uint32_t piece_count;
    struct index index[DEFINITION_KINDS];
    const char **function;
    uint32_t functions;
    symbol_tables *symbol_tables; /* has a lock of its own */
    struct reader_source source;
};

/* ---- open ---------------------------------------------------------------------------------- */

/* The folder in which `greta_audit run` puts its reports stands for the recording there. */
static enum rc open_file(const char *path, int *out, struct err *e) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    struct stat st;
    int fd = open(path, flags);
    if (fd < 0)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        int folder = fd;
        fd = openat(folder, "record.gcr", flags);
        close(folder);
        if (fd < 0)
            return err_set(e, RC_IO, "%s: a folder without a record.gcr; name a recording", path);
    }
    *out = fd;
    return RC_OK;
}

static enum rc map_file(reader *r, const char *path, struct err *e) {
    struct stat st;
    int fd = -1;
    enum rc rc = open_file(path, &fd, e);
    if (rc != RC_OK)
        return rc;
    if (fstat(fd, &st))
        rc = err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = err_set(e, RC_IO, "%s: not a regular file", path);
    else if (st.st_size < RECORD_HEADER_BYTES)
        rc = err_set(e, RC_FORMAT,
                     "%s: not a recording of greta, or cut: %lld bytes, the header alone has %d",
                     path, (long long)st.st_size, RECORD_HEADER_BYTES);
    if (rc == RC_OK) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) {
            rc = err_set(e, RC_IO, "%s: cannot be mapped: %s", path, strerror(errno));
        } else {
            r->map = p;
            r->bytes = (size_t)st.st_size;
            bus_guard(p, r->bytes, NULL, 0, &r->cut);
            if (!extents_read(&r->data, fd, r->bytes))
                rc = err_set(e, RC_MEMORY, "%s: no memory to read it", path);
        }
    }
    close(fd);
    return rc;
}

static enum rc damaged(const char *path, const char *what, struct err *e) {
    return err_set(e, RC_FORMAT, "%s: damaged header: %s", path, what);
}

static bool is_power(uint32_t n) {
    return n && !(n & (n - 1));
}

static enum rc check_header(const struct record_header *h, const char *path, struct err *e) {
    if (memcmp(h->magic, RECORD_MAGIC, sizeof h->magic) != 0)
        return err_set(e, RC_FORMAT, "%s: not a recording of greta", path);
    if (h->byte_order != RECORD_BYTE_ORDER)
        return err_set(e, RC_FORMAT, "%s: recorded on a machine of the other byte order", path);
    if (h->version != RECORD_VERSION)
        return err_set(e, RC_FORMAT,
                       "%s: version %u of the format, this build reads version %u; use the greta "
                       "that recorded it",
                       path, h->version, RECORD_VERSION);
    if (h->header_bytes != RECORD_HEADER_BYTES || h->event_bytes != sizeof(union event_slot))
        return damaged(path, "sizes", e);
    if (!is_power(h->chunk_bytes) || h->chunk_bytes < RECORD_CHUNK_MIN ||
        h->chunk_bytes > RECORD_CHUNK_MAX)
        return damaged(path, "chunk size", e);
    if (!is_power(h->event_chunks) || h->event_chunks > RECORD_EVENT_CHUNKS ||
        h->definition_chunks > RECORD_DEFINITION_CHUNKS ||
        (uint64_t)h->definition_chunks * h->chunk_bytes > RECORD_DEFINITION_MAX)
        return damaged(path, "number of chunks", e);
    if (atomic_load(&((struct record_header *)(uintptr_t)h)->next_seq) >= EVENT_FINISHING)
        return damaged(path, "event counter", e);
    return RC_OK;
}

static uint64_t chunk_offset(const reader *r, uint32_t number) {
    return RECORD_HEADER_BYTES + number * r->chunk_bytes;
}

/* Bytes of the file that belong to a chunk: all, or fewer at the end of a file that was cut. */
static uint64_t chunk_present(const reader *r, uint32_t number) {
    uint64_t offset = chunk_offset(r, number);
    if (offset >= r->bytes)
        return 0;
    return r->bytes - offset < r->chunk_bytes ? r->bytes - offset : r->chunk_bytes;
}

static const unsigned char *chunk_at(const reader *r, uint32_t number) {
    return r->map + chunk_offset(r, number);
}

static void read_info(reader *r, struct record_header *h) {
    struct reader_info *i = &r->info;
    uint64_t end = atomic_load(&h->next_seq);
    i->version = h->version;
    i->pid = h->pid;
    i->run_id = h->run_id;
    i->start_ns = h->start_ns;
    i->start_wall_us = h->start_wall_us;
    i->capacity = (uint64_t)h->event_chunks * r->slots_per_chunk;
    i->end_seq = end;
    i->first_seq = end > i->capacity ? end - i->capacity : 0;
    i->overwritten = i->first_seq;
    i->lost = atomic_load(&h->lost);
    i->lost_definitions = atomic_load(&h->lost_definitions);
    i->attached = atomic_load(&h->attached);
    i->ended = atomic_load(&h->ended);
    i->clean = i->attached && i->ended >= i->attached;
    i->file_bytes = r->bytes;
    i->data_bytes = r->data.bytes;
}

/* Chunks that the directory has named so far. A chunk has one place: were it given two, a small
 * file could be read a thousand times over. */
enum { NAMED = 4 * RECORD_EVENT_CHUNKS };
struct named {
    uint32_t entry[NAMED]; /* a hash table */
};

/* True the first time. */
static bool name_chunk(struct named *n, uint32_t entry) {
    size_t i = entry * UINT32_C(0x9e3779b1) % NAMED;
    while (n->entry[i] && n->entry[i] != entry)
        i = (i + 1) % NAMED;
    bool first = !n->entry[i];
    n->entry[i] = entry;
    return first;
}

/* The directory's entry, 0 if it names no chunk, or one that has its place already. */
static uint32_t read_entry(reader *r, _Atomic uint32_t *from, struct named *named) {
    uint32_t entry = atomic_load(from);
    if (!entry || !name_chunk(named, entry))
        return 0;
    if (chunk_present(r, entry - 1) < r->chunk_bytes)
        r->info.truncated = true;
    return entry;
}

static bool copy_directory(reader *r, struct record_header *h, struct named *named) {
    r->event_chunks = h->event_chunks;
    r->event_chunk = calloc(r->event_chunks, sizeof *r->event_chunk);
    r->event_chunk_cut = calloc(r->event_chunks, sizeof *r->event_chunk_cut);
    if (!r->event_chunk || !r->event_chunk_cut)
        return false;
    for (uint32_t i = 0; i < r->event_chunks; i++) {
        uint32_t entry = read_entry(r, &h->event_chunk[i], named);
        if (entry && chunk_present(r, entry - 1) >= sizeof(union event_slot))
            r->event_chunk[i] = entry;
        r->event_chunk_cut[i] = entry && !r->event_chunk[i];
    }
    return true;
}

/* Copies what the file has of [offset, offset + bytes); the rest is zero. */
static bool copy_piece(reader *r, struct piece *p, uint64_t offset, uint64_t bytes) {
    uint64_t end = 0;
    const struct extent *x = extents_find(&r->data, offset), *last = r->data.at + r->data.count;
    for (const struct extent *y = x; y && y < last && y->from < offset + bytes; y++)
        end = (y->to < offset + bytes ? y->to : offset + bytes) - offset;
    end &= ~(uint64_t)(RECORD_UNIT - 1);
    *p = (struct piece){ .bytes = end, .offset = offset };
    if (!end)
        return true;
    p->at = calloc(1, end); /* of a large piece only what is stored takes memory */
    if (!p->at)
        return false;
    for (; x < last && x->from < offset + end; x++) {
        uint64_t from = x->from > offset ? x->from : offset;
        uint64_t to = x->to < offset + end ? x->to : offset + end;
        memcpy(p->at + (from - offset), r->map + from, to - from);
    }
    return true;
}

static bool copy_definitions(reader *r, struct record_header *h, struct named *named) {
    uint64_t used = atomic_load(&h->next_definition);
    r->pieces = calloc((size_t)h->definition_chunks + 1, sizeof *r->pieces);
    if (!r->pieces)
        return false;
    r->piece_count = h->definition_chunks;
    for (uint32_t i = 0; i < h->definition_chunks; i++) {
        uint64_t at = i * r->chunk_bytes;
        uint32_t entry = read_entry(r, &h->definition_chunk[i], named);
        uint64_t n = entry ? chunk_present(r, entry - 1) : 0;
        uint64_t left = used > at ? used - at : 0;
        n = n < left ? n : left;
        if (n && !copy_piece(r, &r->pieces[i], chunk_offset(r, entry - 1), n))
            return false;
    }
    return true;
}

static bool copy_chunks(reader *r, struct record_header *h) {
    struct named *named = calloc(1, sizeof *named);
    bool done = named && copy_directory(r, h, named) && copy_definitions(r, h, named);
    free(named);
    return done;
}

/* Bytes of value that a definition of this kind must have, and whether it must have a key. */
static bool definition_is_sane(const struct definition *d) {
    uint32_t offset = definition_value_offset(d->key_bytes);
    if (offset > d->size)
        return false;
    uint32_t value = d->size - offset;
    switch (d->kind) {
    case DEFINITION_STRING: /* sizes are rounded up: the NUL may be where the key ends or later */
        return d->key_bytes && value && !((const char *)(d + 1))[d->key_bytes];
    case DEFINITION_SITE: {
        struct site_value v;
        if (d->key_bytes < sizeof(struct site_key) || value < sizeof v)
            return false;
        memcpy(&v, (const unsigned char *)d + offset, sizeof v);
        return v.count <= RECORD_FRAMES_MAX &&
               v.count <= (value - sizeof v) / sizeof(struct site_frame);
    }
    case DEFINITION_LAUNCH:
        return d->key_bytes && d->key_bytes % sizeof(struct event_extra) == 0 &&
               d->key_bytes / sizeof(struct event_extra) <= EVENT_EXTRA_MAX;
    case DEFINITION_THREAD:
        return value >= sizeof(struct thread_value);
    case DEFINITION_PROCESS:
        return value >= sizeof(struct process_value);
    case DEFINITION_STREAM:
        return value >= sizeof(struct stream_value);
    case DEFINITION_PROVENANCE:
        return value >= sizeof(struct provenance_value);
    case DEFINITION_FUNCTIONS:
        return value >= sizeof(uint32_t);
    case DEFINITION_MODULE:
        return d->key_bytes >= sizeof(struct module_key) && value >= sizeof(struct module_value);
    default: /* of a later build: nothing here asks for it */
        return false;
    }
}

static bool index_add(struct index *x, const struct definition *d) {
    if (d->id >= x->room) {
        uint32_t room = x->room ? x->room : 64;
        while (room <= d->id)
            room *= 2;
        definition_ref *at = realloc(x->at, room * sizeof(definition_ref));
        if (!at)
            return false;
        memset(at + x->room, 0, (room - x->room) * sizeof(definition_ref));
        x->at = at;
        x->room = room;
    }
    if (!x->at[d->id])
        x->at[d->id] = d;
    x->count = d->id > x->count ? d->id : x->count;
    return true;
}

/* Indexes the definitions of one chunk, the first of which is at `start` in the stream. */
static bool index_piece(reader *r, const struct piece *p, uint64_t start, uint64_t most) {
    for (uint64_t at = 0; at + sizeof(struct definition) <= p->bytes;) {
        const struct extent *x = extents_find(&r->data, p->offset + at);
        if (x && x->from >= p->offset + at + RECORD_UNIT) { /* a hole */
            at = (x->from - p->offset) & ~(uint64_t)(RECORD_UNIT - 1);
            continue;
        }
        const struct definition *d = (const void *)(p->at + at);
        if (__atomic_load_n((const uint64_t *)d, __ATOMIC_RELAXED) != start + at + 1 ||
            d->size < sizeof *d || d->size % RECORD_UNIT || d->size > p->bytes - at) {
            at += RECORD_UNIT; /* torn, or padding before the next chunk */
            continue;
        }
        if (d->id && d->id <= most && definition_is_sane(d)) {
            if (d->kind == DEFINITION_STRING) /* the copy is ours, and texts end up on terminals */
                printable_scrub_wide((char *)(uintptr_t)(d + 1), d->key_bytes);
            if (!index_add(&r->index[d->kind], d))
                return false;
        }
        at += d->size;
    }
    return true;
}

static bool index_definitions(reader *r) {
    /* A number that is out of proportion to the file was never given; an index of such numbers
     * would only cost memory. (Some numbers have no definition: there was no room for it.) */
    uint64_t most = r->data.bytes / sizeof(struct definition) + 65536;
    most = most < UINT32_MAX / 4 ? most : UINT32_MAX / 4;
    for (uint32_t i = 0; i < r->piece_count; i++)
        if (!index_piece(r, &r->pieces[i], i * r->chunk_bytes, most))
            return false;
    return true;
}

static const void *value_of(const struct definition *d) {
    return (const unsigned char *)d + definition_value_offset(d->key_bytes);
}

static const void *find(const reader *r, enum definition_kind kind, uint32_t id) {
    const struct index *x = &r->index[kind];
    return id && id <= x->count ? x->at[id] : NULL;
}

/* The name of a function as it may be shown: in one line, without control characters. The copy is
 * ours. */
static const char *clean_function(const char *name, size_t bytes) {
    enum { NAME_MAX_BYTES = 255 }; /* it is shown with every call */
    char *text = (char *)(uintptr_t)name;
    if (bytes > NAME_MAX_BYTES)
        return "?";
    printable_scrub(text, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\n' || text[i] == '\t')
            text[i] = '?';
    return name;
}

static bool read_functions(reader *r) {
    const struct definition *d = find(r, DEFINITION_FUNCTIONS, 1);
    if (!d)
        return true;
    const char *p = value_of(d), *end = (const char *)d + d->size;
    uint32_t count;
    memcpy(&count, p, sizeof count);
    p += sizeof count;
    count = count < EVENT_FN_MAX ? count : EVENT_FN_MAX;
    r->function = calloc(count ? count : 1, sizeof *r->function);
    if (!r->function)
        return false;
    for (; r->functions < count; r->functions++) {
        const char *nul = memchr(p, 0, (size_t)(end - p));
        if (!nul)
            break;
        r->function[r->functions] = clean_function(p, (size_t)(nul - p));
        p = nul + 1;
    }
    return true;
}

enum rc reader_open(reader **out, const char *path, struct err *e) {
    reader *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(e, RC_MEMORY, "%s: no memory", path);
    r->symbol_tables = symbol_tables_open();
    enum rc rc = map_file(r, path, e);
    if (rc != RC_OK)
        goto fail;
    /* The mapping is read-only; atomics only load from it. */
    struct record_header *h = (struct record_header *)(uintptr_t)r->map;
    rc = check_header(h, path, e);
    if (rc != RC_OK)
        goto fail;
    r->chunk_bytes = h->chunk_bytes;
    r->slots_per_chunk = r->chunk_bytes / sizeof(union event_slot);
    r->slot_shift = (unsigned)__builtin_ctzll(r->slots_per_chunk);
    read_info(r, h);
    r->slot_mask = r->info.capacity - 1;
    if (!copy_chunks(r, h) || !index_definitions(r) || !read_functions(r)) {
        rc = err_set(e, RC_MEMORY, "%s: no memory to read it", path);
        goto fail;
    }
    *out = r;
    return RC_OK;
fail:
    reader_close(&r);
    return rc;
}

void reader_close(reader **r) {
    if (!r || !*r)
        return;
    bus_unguard(&(*r)->cut);
    if ((*r)->map)
        munmap((void *)(uintptr_t)(*r)->map, (*r)->bytes);
    for (int kind = 0; kind < DEFINITION_KINDS; kind++)
        free((*r)->index[kind].at);
    free((*r)->function);
    free((*r)->event_chunk);
    free((*r)->event_chunk_cut);
    for (uint32_t i = 0; i < (*r)->piece_count; i++)
        free((*r)->pieces[i].at);
    free((*r)->pieces);
    extents_free(&(*r)->data);
    if ((*r)->source.close)
        (*r)->source.close((*r)->source.user);
    symbol_tables_close(&(*r)->symbol_tables);
    free(*r);
    *r = NULL;
}

const struct reader_info *reader_info(const reader *r) {
    return &r->info;
}

/* ---- events -------------------------------------------------------------------------------- */

enum slot_state { SLOT_WHOLE = -1 }; /* others: DETAIL_LOSS_* */

/* Why the slot of seq cannot be in the file, and how many from it on cannot for the same reason;
 * SLOT_WHOLE if it can. Only the directory is looked at. */
static int slot_absent(const reader *r, uint64_t seq, uint64_t *run) {
    uint64_t index = seq & r->slot_mask, inside = index & (r->slots_per_chunk - 1);
    uint32_t chunk = (uint32_t)(index >> r->slot_shift), entry = r->event_chunk[chunk];
    uint64_t offset = inside * sizeof(union event_slot);
    *run = r->slots_per_chunk - inside;
    if (!entry && r->event_chunk_cut[chunk])
        return DETAIL_LOSS_TRUNCATED;
    if (!entry) /* there was no room, or the writer died while it made some */
        return r->info.lost ? DETAIL_LOSS_NO_SPACE : DETAIL_LOSS_TORN;
    if (offset + sizeof(union event_slot) > chunk_present(r, entry - 1))
        return DETAIL_LOSS_TRUNCATED;
    offset += chunk_offset(r, entry - 1);
    const struct extent *x = extents_find(&r->data, offset);
    if (x && x->from < offset + sizeof(union event_slot))
        return SLOT_WHOLE;
    uint64_t hole = x ? (x->from - offset) / sizeof(union event_slot) : *run;
    *run = hole < *run ? hole : *run;
    return DETAIL_LOSS_TORN;
}

/* Copies the slot of seq; SLOT_WHOLE, or why it is not there. */
static int slot_read(const reader *r, uint64_t seq, union event_slot *out) {
    uint64_t index = seq & r->slot_mask, run;
    uint32_t entry = r->event_chunk[index >> r->slot_shift];
    uint64_t offset = (index & (r->slots_per_chunk - 1)) * sizeof *out;
    int absent = slot_absent(r, seq, &run);
    if (absent != SLOT_WHOLE)
        return absent;
    const uint64_t *from = (const void *)(chunk_at(r, entry - 1) + offset);
    uint64_t before = __atomic_load_n(from, __ATOMIC_ACQUIRE);
    /* By words: status and duration change in one store. Acquire: `after` is read after them. */
    for (int i = 1; i < 8; i++)
        out->word[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
    uint64_t after = __atomic_load_n(from, __ATOMIC_RELAXED);
    out->word[0] = seq + 1;
    if ((before & ~EVENT_FINISHING) == seq + 1 && (after & ~EVENT_FINISHING) == seq + 1)
        return SLOT_WHOLE;
    /* In a live recording the ring may have come round since reader_open. */
    return (after & ~(EVENT_BUSY | EVENT_FINISHING)) > seq + 1 ? DETAIL_LOSS_OVERWRITTEN
                                                               : DETAIL_LOSS_TORN;
}

/* The extras of a launch that the recording has as a definition. */
static void copy_extras(const reader *r, struct reader_event *out) {
    const struct definition *d =
        out->event.src <= UINT32_MAX ? find(r, DEFINITION_LAUNCH, (uint32_t)out->event.src) : NULL;
    out->extras_lost = !d;
    out->extras = d ? d->key_bytes / sizeof out->extra[0] : 0;
    out->slots = 1;
    if (d)
        memcpy(out->extra, d + 1, d->key_bytes);
}

/* Reads the extras of out->event, which is at out->seq, from the slots after it. Each holds its
 * place and their number, so that those after a torn one are found. */
static void read_extras(const reader *r, struct reader_event *out) {
    union event_slot slot;
    unsigned total = EVENT_EXTRA_MAX, torn = 0;
    if (out->event.kind == EVENT_LAUNCH && out->event.src) {
        copy_extras(r, out);
        return;
    }
    out->extras = 0;
    out->extras_lost = false;
    for (unsigned i = 1; i <= total && out->seq + i < r->info.end_seq; i++) {
        if (slot_read(r, out->seq + i, &slot) != SLOT_WHOLE) {
            torn++;
            continue;
        }
        if (slot.extra.kind != EVENT_EXTRA || event_extra_index(&slot.extra) != i)
            break;
        if (event_extra_total(&slot.extra) < total)
            total = event_extra_total(&slot.extra);
        out->extra[out->extras++] = slot.extra;
        out->extras_lost = torn;
    }
    out->extras_lost |= out->extras && out->extras < total;
    out->slots = 1 + out->extras;
    /* Nothing shows whether a torn slot right after the event was one of its extras. */
    out->extras_lost |= !out->extras && torn && slot_read(r, out->seq + 1, &slot) != SLOT_WHOLE;
}

struct reader_cursor reader_events(const reader *r, uint64_t from, uint64_t to) {
    const struct reader_info *i = &r->info;
    struct reader_cursor c = { .r = r };
    c.next = from > i->first_seq ? from : i->first_seq;
    c.end = to < i->end_seq ? to : i->end_seq;
    uint64_t gone = to < i->first_seq ? to : i->first_seq;
    if (from < gone) {
        c.skipped = gone - from;
        c.skipped_from = from;
    }
    return c;
}

static void count_lost(struct reader_counts *c, int why, uint64_t n) {
    switch (why) {
    case DETAIL_LOSS_NO_SPACE:
        c->lost += n;
        break;
    case DETAIL_LOSS_OVERWRITTEN:
        c->overwritten += n;
        break;
    case DETAIL_LOSS_TRUNCATED:
        c->truncated += n;
        break;
    default:
        c->torn += n;
    }
}

static void make_lost(struct reader_cursor *c, struct reader_event *out, uint64_t first, uint64_t n,
                      int why) {
    count_lost(&c->counts, why, n);
    out->seq = first;
    out->slots = 1;
    out->extras = 0;
    out->extras_lost = false;
    out->event = (struct event){ .ready = first + 1,
                                 .kind = EVENT_LOST,
                                 .dst = first,
                                 .len = n,
                                 .aux = event_aux(EVENT_NO_FN, (unsigned)why) };
}

/* How many slots from seq on are missing for the same reason; those that cannot be in the file are
 * stepped over together. */
static uint64_t lost_run(const reader *r, uint64_t seq, uint64_t end, int why) {
    union event_slot slot;
    uint64_t at = seq, step;
    while (at < end) {
        int absent = slot_absent(r, at, &step);
        if (absent == SLOT_WHOLE)
            step = 1;
        if ((absent == SLOT_WHOLE ? slot_read(r, at, &slot) : absent) != why)
            break;
        at += step < end - at ? step : end - at;
    }
    return at - seq;
}

bool reader_next(struct reader_cursor *c, struct reader_event *out) {
    if (c->skipped) {
        uint64_t n = c->skipped;
        c->skipped = 0;
        make_lost(c, out, c->skipped_from, n, DETAIL_LOSS_OVERWRITTEN);
        return true;
    }
    while (c->next < c->end) {
        union event_slot slot;
        uint64_t seq = c->next;
        int state = slot_read(c->r, seq, &slot);
        if (state != SLOT_WHOLE) {
            uint64_t n = lost_run(c->r, seq, c->end, state);
            n = n ? n : 1; /* it became whole in the meantime */
            c->next += n;
            make_lost(c, out, seq, n, state);
            return true;
        }
        c->next++;
        if (slot.extra.kind == EVENT_EXTRA) {
            c->counts.extras++;
            continue; /* given with its event, or its event is lost */
        }
        out->seq = seq;
        out->event = slot.event;
        c->counts.whole++;
        read_extras(c->r, out);
        return true;
    }
    return false;
}

bool reader_event(const reader *r, uint64_t seq, struct reader_event *out) {
    union event_slot slot;
    if (seq < r->info.first_seq || seq >= r->info.end_seq ||
        slot_read(r, seq, &slot) != SLOT_WHOLE || slot.event.kind == EVENT_EXTRA)
        return false;
    out->seq = seq;
    out->event = slot.event;
    read_extras(r, out);
    return true;
}

void reader_release(const reader *r, uint64_t before) {
    uint64_t first = r->info.first_seq >> r->slot_shift, last = before >> r->slot_shift;
    if (last > first + r->event_chunks)
        last = first + r->event_chunks;
    for (uint64_t i = first; i < last; i++) {
        uint32_t entry = r->event_chunk[i & (r->event_chunks - 1)];
        if (entry && chunk_present(r, entry - 1) == r->chunk_bytes)
            (void)madvise((void *)(uintptr_t)chunk_at(r, entry - 1), r->chunk_bytes, MADV_DONTNEED);
    }
}

const struct event_extra *reader_extra(const struct reader_event *e, enum event_extra_type type) {
    for (unsigned i = 0; i < e->extras; i++)
        if (event_extra_type(&e->extra[i]) == (unsigned)type)
            return &e->extra[i];
    return NULL;
}

/* ---- definitions --------------------------------------------------------------------------- */

uint32_t reader_count(const reader *r, enum definition_kind kind) {
    return r->index[kind].count;
}

const char *reader_string(const reader *r, uint32_t id) {
    const struct definition *d = find(r, DEFINITION_STRING, id);
    return d ? (const char *)(d + 1) : id ? "?" : "";
}

const char *reader_function(const reader *r, unsigned fn) {
    return fn < r->functions ? r->function[fn] : "?";
}

static const void *find_value(const reader *r, enum definition_kind kind, uint32_t id) {
    const struct definition *d = find(r, kind, id);
    return d ? value_of(d) : NULL;
}

const struct thread_value *reader_thread(const reader *r, uint32_t id) {
    return find_value(r, DEFINITION_THREAD, id);
}

const struct process_value *reader_process(const reader *r, uint32_t id) {
    return find_value(r, DEFINITION_PROCESS, id);
}

const struct stream_value *reader_stream(const reader *r, uint32_t id) {
    return find_value(r, DEFINITION_STREAM, id);
}

const struct provenance_value *reader_provenance(const reader *r, uint32_t id) {
    return find_value(r, DEFINITION_PROVENANCE, id);
}

const struct module_value *reader_module(const reader *r, uint32_t id, uint64_t *base) {
    const struct definition *d = find(r, DEFINITION_MODULE, id);
    if (d && base)
        *base = ((const struct module_key *)(d + 1))->base;
    return d ? value_of(d) : NULL;
}

const char *reader_provenance_find(const reader *r, const char *key) {
    for (uint32_t id = 1; id <= reader_count(r, DEFINITION_PROVENANCE); id++) {
        const struct provenance_value *v = reader_provenance(r, id);
        if (v && !strcmp(reader_string(r, v->key), key))
            return reader_string(r, v->value);
    }
    return NULL;
}

const struct site_frame *reader_site(const reader *r, uint32_t id, unsigned *count, bool *whole) {
    const struct definition *d = find(r, DEFINITION_SITE, id);
    *count = 0;
    if (!d)
        return NULL;
    const struct site_value *v = value_of(d);
    *count = v->count;
    if (whole)
        *whole = ((const struct site_key *)(d + 1))->flags & SITE_WHOLE;
    return (const struct site_frame *)(v + 1);
}

struct symbol_tables *reader_symbol_tables(const reader *r) {
    return r->symbol_tables;
}

void reader_set_source(reader *r, const struct reader_source *source) {
    if (r->source.close)
        r->source.close(r->source.user);
    r->source = *source;
}

const struct reader_source *reader_source(const reader *r) {
    return &r->source;
}

const char *reader_kernel(const reader *r, uint32_t symbol) {
    const char *name = r->source.kernel ? r->source.kernel(r->source.user, symbol) : NULL;
    return name ? name : reader_string(r, symbol);
}

const char *reader_kernel_parameter(const reader *r, uint32_t symbol, unsigned index) {
    return r->source.parameter ? r->source.parameter(r->source.user, symbol, index) : NULL;
}

const char *reader_event_name(const reader *r, const struct event *e) {
    return event_names_kernel(e->kind) ? reader_kernel(r, e->name) : reader_string(r, e->name);
}
