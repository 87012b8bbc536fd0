#include "kernels/cpu/way.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/hash.h"

static const struct way ways[WAY_COUNT] = {
#define WAY(name, bits_, groups_, far, near)                                                       \
    { .bits = (bits_), .groups = (groups_), .ahead = { far, near } },
#define ROWS(name, rows, far) { .bits = 512, .stream = { rows, far } },
#define PASS(name, bits_, shared_, panels_, turn_)                                                 \
    { .several = true, .bits = (bits_), .shared = (shared_), .panels = (panels_), .turn = (turn_) },
#include "kernels/cpu/way.def"
};

static const char *const names[WAY_COUNT] = {
#define WAY(name, bits, groups, far, near)     #name,
#define ROWS(name, rows, far)                  #name,
#define PASS(name, bits, shared, panels, turn) #name,
#include "kernels/cpu/way.def"
};

/* Up to the last type that is packed or a float. */
enum {
    PACKED_TYPES = sizeof pack_sections / sizeof *pack_sections,
    TYPES = (int)PACKED_TYPES > TENSOR_TYPE_BF16 ? (int)PACKED_TYPES : TENSOR_TYPE_BF16 + 1
};

struct choice {
    atomic_int chosen; /* 1 + enum way_id; 0: not yet */
    atomic_uint turn;  /* stretches begun */
    struct {
        atomic_int begun, ended;           /* of the trials below */
        _Atomic uint64_t cost[WAY_TRIALS]; /* see way_note() */
    } trials[WAY_COUNT];
};

static struct choice choices[TYPES][WAY_KINDS];

static unsigned kind_of(size_t tokens) {
    unsigned kind = 0;
    while (kind + 1 < WAY_KINDS && tokens > way_kind_tokens(kind))
        kind++;
    return kind;
}

size_t way_kind_tokens(unsigned kind) {
    static const size_t tokens[WAY_KINDS] = { 1, 2, 4, 8, MM_SHARED, 32, 64, 65 };
    return tokens[kind];
}

int way_trials(size_t tokens) {
    return tokens > 1 ? WAY_TRIALS_FEW : WAY_TRIALS;
}

bool way_is_possible(enum way_id id, enum tensor_type type, size_t tokens) {
    const struct way *way = &ways[id];
    if (tensor_type_is_float(type))
        return way->stream.rows && tokens == 1;
    if (way->stream.rows || way->several != (tokens > 1) || (way->bits < 512 && !mm_narrow()))
        return false;
    if (way->shared)
        return mm()->dot_few && way_kind_tokens(kind_of(tokens)) <= MM_SHARED;
    return way->groups < 2 || mm()->dot_pair;
}

const struct mm_set *way_set(const struct way *way) {
    return way->bits < 512 && mm_narrow() ? mm_narrow() : mm();
}

struct way way_usual(enum tensor_type type, size_t tokens) {
    enum { FEW = 32 };
    struct way way;
    if (way_chosen(type, tokens, &way))
        return way;
    return ways[tensor_type_is_float(type)                  ? WAY_next_rows
                : tokens == 1                               ? WAY_hardware
                : way_is_possible(WAY_shared, type, tokens) ? WAY_shared
                : tokens <= FEW                             ? WAY_alone
                                                            : WAY_four_48];
}

/* ---- the file ------------------------------------------------------------------------------- */

enum { TITLE_BYTES = 160 };

static void find_title(char out[TITLE_BYTES]) {
    char processor[CPU_NAME_BYTES];
    cpu_name(processor);
    snprintf(out, TITLE_BYTES, "greta ways 5: %s, %s\n", processor, mm()->name);
}

static bool find_path(const char *title, char out[CACHE_FOLDER_BYTES]) {
    if (!cache_folder_find(out))
        return false;
    size_t used = strlen(out);
    snprintf(out + used, CACHE_FOLDER_BYTES - used, "/ways-%016llx",
             (unsigned long long)hash_bytes(title, strlen(title), 0));
    return true;
}

static bool has_ways(enum tensor_type type) {
    return pack_is_possible(type) || tensor_type_is_float(type);
}

/* A line is the name of a type, a number of tokens, and the name of a way; others are passed over.
 */
static void read_line(const char *line) {
    char type[24], way[24];
    unsigned tokens;
    if (sscanf(line, "%23s %u %23s", type, &tokens, way) != 3 || !tokens)
        return;
    for (int t = 0; t < TYPES; t++)
        for (int w = 0; w < WAY_COUNT; w++)
            if (has_ways((enum tensor_type)t) &&
                !strcmp(type, tensor_type_name((enum tensor_type)t)) && !strcmp(way, names[w]) &&
                way_is_possible((enum way_id)w, (enum tensor_type)t, tokens))
                atomic_store(&choices[t][kind_of(tokens)].chosen, w + 1);
}

static void read_file(void) {
    char path[CACHE_FOLDER_BYTES], title[TITLE_BYTES], line[TITLE_BYTES];
    find_title(title);
    FILE *in = find_path(title, path) ? fopen(path, "r") : NULL;
    if (!in)
        return;
    if (fgets(line, sizeof line, in) && !strcmp(line, title))
        while (fgets(line, sizeof line, in))
            read_line(line);
    fclose(in);
}

static void write_file(void) {
    char path[CACHE_FOLDER_BYTES], title[TITLE_BYTES], body[TYPES * WAY_KINDS * 56] = "";
    size_t used = 0;
    find_title(title);
    if (!find_path(title, path))
        return;
    for (int i = 0; i < TYPES * WAY_KINDS; i++) {
        const enum tensor_type type = (enum tensor_type)(i / WAY_KINDS);
        const size_t tokens = way_kind_tokens((unsigned)(i % WAY_KINDS));
        const char *way = way_chosen(type, tokens, NULL);
        if (way)
            used += (size_t)snprintf(body + used, sizeof body - used, "%s %zu %s\n",
                                     tensor_type_name(type), tokens, way);
    }
    cache_folder_write(path, title, strlen(title), body, used);
}

/* ---- choosing ------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool ready;

static void make_ready(void) {
    if (atomic_load_explicit(&ready, memory_order_acquire))
        return;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&ready)) {
        read_file();
        atomic_store(&ready, true);
    }
    pthread_mutex_unlock(&lock);
}

void way_reset(void) {
    pthread_mutex_lock(&lock);
    memset(choices, 0, sizeof choices);
    atomic_store(&ready, false);
    pthread_mutex_unlock(&lock);
}

static int by_cost(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t median_of(struct choice *c, int way) {
    uint64_t cost[WAY_TRIALS];
    const int count = atomic_load(&c->trials[way].ended);
    for (int i = 0; i < count; i++)
        cost[i] = atomic_load(&c->trials[way].cost[i]);
    qsort(cost, (size_t)count, sizeof *cost, by_cost);
    return cost[count / 2];
}

static bool is_complete(struct choice *c, enum tensor_type type, size_t tokens) {
    for (int way = 0; way < WAY_COUNT; way++)
        if (way_is_possible((enum way_id)way, type, tokens) &&
            atomic_load(&c->trials[way].ended) < way_trials(tokens))
            return false;
    return true;
}

/* The fastest way; through packed weights for one token, the first one that is as good (way.h). */
static int best_of(struct choice *c, enum tensor_type type, size_t tokens) {
    int best = -1;
    for (int way = 0; way < WAY_COUNT; way++)
        if (way_is_possible((enum way_id)way, type, tokens) &&
            (best < 0 || median_of(c, way) < median_of(c, best)))
            best = way;
    if (tokens > 1 || tensor_type_is_float(type))
        return best;
    const uint64_t most = median_of(c, best) + median_of(c, best) * WAY_TIE_PERCENT / 100;
    for (int way = 0; way < best; way++)
        if (way_is_possible((enum way_id)way, type, tokens) && median_of(c, way) <= most)
            return way;
    return best;
}

static void choose(struct choice *c, enum tensor_type type, size_t tokens) {
    atomic_store(&c->chosen, best_of(c, type, tokens) + 1);
    write_file();
}

void way_note(enum tensor_type type, size_t tokens, enum way_id way, uint64_t cost) {
    struct choice *c = &choices[type][kind_of(tokens)];
    int at = atomic_fetch_add(&c->trials[way].begun, 1);
    if (at >= way_trials(tokens))
        return;
    atomic_store(&c->trials[way].cost[at], cost);
    if (atomic_fetch_add(&c->trials[way].ended, 1) + 1 < way_trials(tokens) ||
        !is_complete(c, type, tokens))
        return;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&c->chosen))
        choose(c, type, tokens);
    pthread_mutex_unlock(&lock);
}

const char *way_chosen(enum tensor_type type, size_t tokens, struct way *way) {
    int chosen = 0;
    if ((int)type < TYPES)
        chosen = atomic_load_explicit(&choices[type][kind_of(tokens)].chosen, memory_order_relaxed);
    if (!chosen)
        return NULL;
    if (way)
        *way = ways[chosen - 1];
    return names[chosen - 1];
}

/* ---- trials --------------------------------------------------------------------------------- */

/* The stretch that this thread measures. */
static _Thread_local struct {
    bool open;   /* it has begun and is not long enough yet */
    bool inside; /* one of its pieces */
    enum tensor_type type;
    size_t tokens;
    enum way_id way;
    const char *next; /* where it goes on */
    uint64_t bytes, ns, start_ns;
} stretch;

/* Some way is always possible. */
static enum way_id next_way(struct choice *c, enum tensor_type type, size_t tokens) {
    for (;;) {
        enum way_id way = (enum way_id)(atomic_fetch_add(&c->turn, 1) / WAY_ROW % WAY_COUNT);
        if (way_is_possible(way, type, tokens))
            return way;
    }
}

struct way way_begin(enum tensor_type type, size_t tokens, const void *at, uint64_t bytes) {
    struct choice *c = &choices[type][kind_of(tokens)];
    stretch.inside = false; /* a piece that ended with a fault does not count */
    make_ready();
    int chosen = atomic_load_explicit(&c->chosen, memory_order_relaxed);
    if (chosen)
        return ways[chosen - 1];
    if (!stretch.open || stretch.type != type || stretch.tokens != tokens || stretch.next != at) {
        stretch.open = true;
        stretch.type = type;
        stretch.tokens = tokens;
        stretch.way = next_way(c, type, tokens);
        stretch.bytes = stretch.ns = 0;
    }
    stretch.inside = true;
    stretch.next = (const char *)at + bytes;
    stretch.bytes += bytes;
    stretch.start_ns = clock_now_ns();
    return ways[stretch.way];
}

void way_end(void) {
    if (!stretch.inside)
        return;
    stretch.inside = false;
    stretch.ns += clock_now_ns() - stretch.start_ns;
    if (stretch.bytes < WAY_LEAST)
        return;
    stretch.open = false;
    way_note(stretch.type, stretch.tokens, stretch.way,
             stretch.ns * 1000 / stretch.tokens * 1024 / (stretch.bytes / 1024));
}
