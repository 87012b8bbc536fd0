/* Call sites: the call stack of every event.
 *
 * A stack is unwound once and then recognised. Each thread has a memory of stacks it has seen: for
 * a return address and a place on the stack, the words that held the return addresses (unwind.h).
 * Where they are all the same the site is the same, and the call costs a comparison of a few words.
 * Where one differs, another stack that agrees up to there is looked for, by that word; so the many
 * callers of one wrapper are all found without unwinding. Only a stack that is new to the thread is
 * unwound.
 *
 * A memory belongs to one thread, so that it needs no lock and does not change while it is read.
 * A signal handler that interrupts its thread in here does without. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/unwind.h"
#include "record/writer_internal.h"

/* ---- a thread's memory ----------------------------------------------------------------------- */

enum { STACKS = 256, ROOTS = 512, EDGES = 512, WORDS = 4096, PROBES = 8 };

struct site_memory {
    /* Numbers of stacks are 1 and up; 0 is an empty place. */
    struct {
        uintptr_t address, frame;
        uint32_t stack;
    } root[ROOTS];
    struct { /* where word `at` of stack `from` has this value, see stack `to` */
        uint64_t value;
        uint32_t from;
        uint16_t at, to;
    } edge[EDGES];
    struct {
        uint32_t first, count, site;
    } stack[STACKS + 1];
    struct unwind_word word[WORDS];
    uint32_t stacks, words;
    volatile bool busy;
};

/* Where a search ended: the stack that agreed longest, up to word `at`, which has another value. */
struct search {
    uint32_t stack, at;
    uint64_t value;
};

static inline unsigned hash(uint64_t a, uint64_t b, unsigned bits) {
    return (unsigned)(((a ^ b << 7) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - bits));
}
_Static_assert(ROOTS == 1 << 9 && EDGES == 1 << 9, "nine bits of the hash");

__attribute__((no_sanitize("address", "thread"))) static inline uint64_t peek(uintptr_t address) {
    return *(const volatile uint64_t *)address;
}

static inline uint32_t find_root(const struct site_memory *m, uintptr_t address, uintptr_t frame) {
    unsigned at = hash(address, frame, 9);
    for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % ROOTS)
        if (m->root[at].address == address && m->root[at].frame == frame)
            return m->root[at].stack;
        else if (!m->root[at].stack)
            break;
    return 0;
}

static uint32_t find_edge(const struct site_memory *m, const struct search *s) {
    unsigned at = hash(s->value, s->stack * 128u + s->at, 9);
    for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % EDGES)
        if (m->edge[at].value == s->value && m->edge[at].from == s->stack &&
            m->edge[at].at == s->at)
            return m->edge[at].to;
        else if (!m->edge[at].from)
            break;
    return 0;
}

/* Where the stack at hand first differs from these words; count if nowhere. Four words at a time,
 * for they mostly agree. */
static inline uint32_t agree(const struct unwind_word *word, uint32_t from, uint32_t count) {
    for (; from + 4 <= count; from += 4) {
        const struct unwind_word *four = &word[from];
        uint64_t differ =
            (peek(four[0].address) ^ four[0].value) | (peek(four[1].address) ^ four[1].value) |
            (peek(four[2].address) ^ four[2].value) | (peek(four[3].address) ^ four[3].value);
        if (differ)
            break;
    }
    while (from < count && peek(word[from].address) == word[from].value)
        from++;
    return from;
}

/* The site of the stack at hand, 0 if it is new; *s then says where it would go. */
static inline uint32_t recall(const struct site_memory *m, uintptr_t address, uintptr_t frame,
                              struct search *s) {
    uint32_t next = find_root(m, address, frame), at = 0;
    while (next) {
        const struct unwind_word *word = &m->word[m->stack[next].first];
        uint32_t count = m->stack[next].count;
        at = agree(word, at, count);
        if (LIKELY(at == count))
            return m->stack[next].site;
        *s = (struct search){ next, at, peek(word[at].address) };
        next = find_edge(m, s);
        at++;
    }
    return 0;
}

/* ---- remembering ----------------------------------------------------------------------------- */

static void forget_all(struct site_memory *m) {
    memset(m->root, 0, sizeof m->root);
    memset(m->edge, 0, sizeof m->edge);
    m->stacks = m->words = 0;
}

static bool add_root(struct site_memory *m, uintptr_t address, uintptr_t frame, uint32_t stack) {
    unsigned at = hash(address, frame, 9);
    for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % ROOTS)
        if (!m->root[at].stack) {
            m->root[at].address = address;
            m->root[at].frame = frame;
            m->root[at].stack = stack;
            return true;
        }
    return false;
}

static bool add_edge(struct site_memory *m, const struct search *s, uint32_t stack) {
    unsigned at = hash(s->value, s->stack * 128u + s->at, 9);
    for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % EDGES)
        if (!m->edge[at].from) {
            m->edge[at].value = s->value;
            m->edge[at].from = s->stack;
            m->edge[at].at = (uint16_t)s->at;
            m->edge[at].to = (uint16_t)stack;
            return true;
        }
    return false;
}

/* True if the stack in u is the one that the search ended before. */
static bool continues(const struct site_memory *m, const struct search *s, const struct unwind *u) {
    const struct unwind_word *word = &m->word[m->stack[s->stack].first];
    return s->at < u->words && u->word[s->at].address == word[s->at].address &&
           u->word[s->at].value == s->value;
}

static void remember(struct site_memory *m, uintptr_t address, uintptr_t frame,
                     const struct unwind *u, uint32_t site) {
    struct search s = { 0 };
    for (int tries = 0; tries < 2; tries++) {
        if (m->stacks < STACKS && m->words + u->words <= WORDS) {
            uint32_t number = m->stacks + 1;
            m->stack[number].first = m->words;
            m->stack[number].count = u->words;
            m->stack[number].site = site;
            memcpy(&m->word[m->words], u->word, u->words * sizeof u->word[0]);
            if (recall(m, address, frame, &s))
                return;
            if (!s.stack ? add_root(m, address, frame, number)
                         : continues(m, &s, u) && add_edge(m, &s, number)) {
                m->stacks++;
                m->words += u->words;
                return;
            }
        }
        forget_all(m);
        s.stack = 0;
    }
}

/* ---- whose memory ---------------------------------------------------------------------------- */

/* Initial-exec: the general model may allocate memory at the first use. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    uint64_t writer;
    struct site_memory *memory;
    uint32_t wait; /* calls before the next attempt to get one */
} mine;

/* Takes over place i if it is free or its thread has ended. */
static bool take_place(writer *w, unsigned i, uint32_t tid) {
    uint32_t owner = atomic_load_explicit(&w->memory_owner[i], memory_order_relaxed);
    if (owner && owner != tid &&
        (syscall(SYS_tgkill, getpid(), (pid_t)owner, 0) == 0 || errno != ESRCH))
        return false;
    return atomic_compare_exchange_strong(&w->memory_owner[i], &owner, tid);
}

/* A thread of the same number as one that has ended may inherit its memory: stacks are compared
 * before they are believed. */
__attribute__((noinline)) static struct site_memory *get_memory(writer *w) {
    enum { ATTEMPT_EVERY = 1024 };
    if (mine.writer == w->id && mine.wait) {
        mine.wait--;
        return NULL;
    }
    int saved = errno;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    unsigned i = tid % SITE_MEMORIES, tries = 0;
    while (tries < SITE_MEMORIES && !take_place(w, (i + tries) % SITE_MEMORIES, tid))
        tries++;
    struct site_memory *m =
        tries < SITE_MEMORIES ? &w->memories[(i + tries) % SITE_MEMORIES] : NULL;
    if (m)
        m->busy = false;
    mine.memory = m;
    mine.wait = m ? 0 : ATTEMPT_EVERY;
    mine.writer = w->id;
    errno = saved;
    return m;
}

size_t site_memory_bytes(void) {
    return SITE_MEMORIES * sizeof(struct site_memory);
}

/* ---- definitions ----------------------------------------------------------------------------- */

struct site_text {
    struct site_key head;
    uint64_t address[RECORD_FRAMES_MAX + 1]; /* and what tells the modules apart */
};

/* The site of the first `count` frames; they are told apart by the whole stack, or by the return
 * address alone if there are too many stacks already. */
static uint32_t define_site(writer *w, const uintptr_t *frame, unsigned count) {
    struct {
        struct site_value head;
        struct site_frame frame[RECORD_FRAMES_MAX];
    } value = { .head.count = count };
    struct site_text key = { .head = { w->image, SITE_WHOLE } };
    uint64_t modules = 0;
    for (unsigned i = 0; i < count; i++) {
        key.address[i] = frame[i];
        modules = (modules ^ module_describe(w, frame[i], &value.frame[i])) * 0x100000001b3;
    }
    bool crowded = atomic_load_explicit(&w->h->last_id[DEFINITION_SITE], memory_order_relaxed) >
                   RECORD_SITES_WHOLE;
    key.address[count] = modules;
    size_t bytes = sizeof key.head + (size_t)(count + 1) * sizeof key.address[0];
    uint64_t hash = intern_hash(DEFINITION_SITE, &key, bytes);
    uint32_t id = intern_find(w, DEFINITION_SITE, hash, &key, bytes);
    if (!id && crowded) {
        key.head.flags = 0;
        bytes = sizeof key.head + sizeof key.address[0];
        hash = intern_hash(DEFINITION_SITE, &key, bytes);
        id = intern_find(w, DEFINITION_SITE, hash, &key, bytes);
    }
    return id ? id
              : intern_add(w, DEFINITION_SITE, hash, &key, bytes, &value,
                           sizeof value.head + (size_t)count * sizeof value.frame[0]);
}

/* Unwinds, defines the site, and remembers it in m, which is then free again; m may be NULL. The
 * frames of the recorder and of the hooks that call it are left out. */
__attribute__((noinline)) static uint32_t new_site(writer *w, struct site_memory *m,
                                                   uintptr_t address, const void *frame_address) {
    int saved = errno;
    struct unwind u;
    unwind_from(&u, frame_address);
    unsigned first = 0, count;
    while (first < u.frames && u.frame[first] != address && u.frame[first] != address + 1)
        first++;
    count = u.frames - first < RECORD_FRAMES_MAX ? u.frames - first : RECORD_FRAMES_MAX;
    /* Without the address among the frames: code in between could not be unwound, or the address is
     * not on this stack. */
    uint32_t site = count ? define_site(w, &u.frame[first], count) : define_site(w, &address, 1);
    if (m && site && u.repeatable)
        remember(m, address, (uintptr_t)frame_address, &u, site);
    atomic_signal_fence(memory_order_seq_cst);
    if (m)
        m->busy = false;
    errno = saved;
    return site;
}

/* No memory yet, or one that is being used by what a signal handler interrupted. */
__attribute__((noinline)) static uint32_t site_without_memory(writer *w, uintptr_t address,
                                                              const void *frame_address) {
    struct site_memory *m = mine.writer == w->id && mine.memory ? NULL : get_memory(w);
    if (m)
        m->busy = true;
    return new_site(w, m, address, frame_address);
}

/* Inlined always: the frame address is that of the caller, which must stay on the stack. The rare
 * cases are tail calls, which keeps the common path short. */
__attribute__((always_inline)) static inline uint32_t site_of(writer *w, uintptr_t address,
                                                              const void *frame_address) {
    struct search s = { 0 };
    struct site_memory *m = mine.memory;
    if (UNLIKELY(mine.writer != w->id || !m || m->busy))
        return site_without_memory(w, address, frame_address);
    m->busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    uint32_t site = recall(m, address, (uintptr_t)frame_address, &s);
    if (UNLIKELY(!site))
        return new_site(w, m, address, frame_address);
    atomic_signal_fence(memory_order_seq_cst);
    m->busy = false;
    return site;
}

/* Keeps the calling function's frame: its last call is not turned into a jump. */
#define STAY() __asm__ volatile("" ::: "memory")

__attribute__((noinline)) uint32_t record_site(writer *w, const void *return_address) {
    if (!w || !return_address)
        return 0;
    uint32_t site = site_of(w, (uintptr_t)return_address, __builtin_frame_address(0));
    STAY();
    return site;
}

__attribute__((noinline)) uint32_t record_site_full(writer *w, const void *return_address) {
    if (!w)
        return 0;
    const void *address = return_address ? return_address : __builtin_return_address(0);
    uint32_t site = site_of(w, (uintptr_t)address, __builtin_frame_address(0));
    STAY();
    return site;
}
