#include "tools/bench/machine.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "kernels/cpu/isa.h"
#include "tools/bench/loops.h"

enum { PASSES = 4, BESIDE_PASSES = 2, PEAK_ROUNDS = 200000, HUGE_PAGE = 2 << 20 };
static const uint64_t BUFFER_DEFAULT = 2ull << 30, BUFFER_BESIDE = 512ull << 20;

/* ---- threads that do the same thing at the same time ----------------------------------------- */

struct team;
typedef void team_work(const struct team *t, unsigned member);

struct team {
    unsigned threads;
    team_work *work;
    int passes;
    pthread_mutex_t gate; /* held until all members are there, or cannot be */
    bool off;             /* a member could not be started: the others give up */
    bool (*interrupted)(void);
    bool given_up; /* it returned true */
    pthread_barrier_t barrier;
    uint64_t best_ns;   /* of the passes: from the first start to the last end */
    char *map, *buffer; /* what was mapped, and the first huge page in it */
    size_t part;        /* bytes of the buffer per member */
    loops_read *read;
    unsigned streams;
    void (*peak)(uint64_t rounds);
    struct member {
        struct team *team;
        pthread_t id;
        unsigned index;
        uint64_t start_ns, end_ns;
    } * members;
};

/* The index-th processor that this process may run on. */
static void pin(unsigned index) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) || !CPU_COUNT(&all))
        return;
    unsigned nth = index % (unsigned)CPU_COUNT(&all);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all) || nth--)
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void judge_pass(struct team *t) {
    uint64_t start = t->members[0].start_ns, end = t->members[0].end_ns;
    for (unsigned i = 1; i < t->threads; i++) {
        start = t->members[i].start_ns < start ? t->members[i].start_ns : start;
        end = t->members[i].end_ns > end ? t->members[i].end_ns : end;
    }
    if (!t->best_ns || end - start < t->best_ns)
        t->best_ns = end - start;
}

static void *work_along(void *arg) {
    struct member *m = arg;
    struct team *t = m->team;
    pthread_mutex_lock(&t->gate);
    bool off = t->off;
    pthread_mutex_unlock(&t->gate);
    if (off)
        return NULL;
    pin(m->index);
    for (int pass = 0; pass < t->passes; pass++) {
        if (m->index == 0)
            t->given_up = t->interrupted();
        pthread_barrier_wait(&t->barrier);
        if (t->given_up)
            break;
        m->start_ns = clock_now_ns();
        t->work(t, m->index);
        m->end_ns = clock_now_ns();
        pthread_barrier_wait(&t->barrier);
        if (m->index == 0)
            judge_pass(t);
    }
    return NULL;
}

static bool start_team(struct team *t, unsigned *started) {
    pthread_mutex_lock(&t->gate);
    while (*started < t->threads) {
        struct member *m = &t->members[*started];
        *m = (struct member){ .team = t, .index = *started };
        if (pthread_create(&m->id, NULL, work_along, m))
            break;
        ++*started;
    }
    bool all = *started == t->threads;
    t->off = !all;
    pthread_mutex_unlock(&t->gate);
    return all;
}

/* Lets all members do `work` that many times; best_ns is the shortest time it took. The members are
 * threads of their own, so that the caller's thread is not pinned. */
static enum rc run_team(struct team *t, team_work *work, int passes, struct err *e) {
    unsigned started = 0;
    t->work = work;
    t->passes = passes;
    t->best_ns = 0;
    t->members = calloc(t->threads, sizeof *t->members);
    if (!t->members || pthread_barrier_init(&t->barrier, NULL, t->threads)) {
        free(t->members);
        return err_set(e, RC_MEMORY, "out of memory");
    }
    pthread_mutex_init(&t->gate, NULL);
    bool all = start_team(t, &started);
    for (unsigned i = 0; i < started; i++)
        pthread_join(t->members[i].id, NULL);
    pthread_mutex_destroy(&t->gate);
    pthread_barrier_destroy(&t->barrier);
    free(t->members);
    t->members = NULL;
    if (!all)
        return err_set(e, RC_MEMORY, "%u threads cannot be started", t->threads);
    return t->given_up ? err_set(e, RC_BUSY, "interrupted") : RC_OK;
}

/* ---- reading memory ------------------------------------------------------------------------- */

uint64_t machine_default_buffer(void) {
    unsigned long long kib = 0;
    char line[128];
    FILE *in = fopen("/proc/meminfo", "re");
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            break;
    if (in)
        fclose(in);
    uint64_t quarter = kib * 1024 / 4;
    return kib && quarter < BUFFER_DEFAULT ? quarter : BUFFER_DEFAULT;
}

static void fill(const struct team *t, unsigned member) {
    memset(t->buffer + member * t->part, 1 + (int)member, t->part);
}
static void read_all(const struct team *t, unsigned member) {
    t->read(t->buffer + member * t->part, t->part, t->streams);
}

static struct team make_team(unsigned threads, uint64_t buffer, bool (*interrupted)(void)) {
    const size_t grain = (size_t)LOOPS_READ_STEP * LOOPS_STREAMS_MAX;
    return (struct team){ .threads = threads,
                          .part = buffer / threads / grain * grain,
                          .interrupted = interrupted };
}

static void unmap_buffer(struct team *t) {
    if (t->map)
        munmap(t->map, t->part * t->threads + HUGE_PAGE);
    t->map = NULL;
}

/* A buffer with something in it; none after a failure. */
static enum rc map_buffer(struct team *t, unsigned features, struct err *e) {
    size_t bytes = t->part * t->threads;
    char *map =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return err_set(e, RC_MEMORY,
                       "no memory to measure reading with: %zu bytes (--buffer says how many)",
                       bytes);
    t->map = map;
    t->buffer = map + (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE);
    (void)madvise(t->buffer, bytes, MADV_HUGEPAGE);
    t->read = loops_find_read(features);
    enum rc rc = run_team(t, fill, 1, e);
    if (rc)
        unmap_buffer(t);
    return rc;
}

/* *gbps: 1e9 bytes per second in the best pass. */
static enum rc read_passes(struct team *t, int passes, double *gbps, struct err *e) {
    enum rc rc = run_team(t, read_all, passes, e);
    *gbps = !rc && t->best_ns ? (double)(t->part * t->threads) / (double)t->best_ns : 0;
    return rc;
}

static enum rc measure_read(struct machine *m, struct team *t, unsigned features, struct err *e) {
    /* How many streams are fastest depends on the processor. */
    const unsigned streams[] = { 1, 4, LOOPS_STREAMS_MAX };
    enum rc rc = map_buffer(t, features, e);
    for (size_t i = 0; !rc && i < sizeof streams / sizeof *streams; i++) {
        double gbps;
        t->streams = streams[i];
        rc = read_passes(t, PASSES, &gbps, e);
        if (gbps <= m->read_gbps)
            continue;
        m->read_gbps = gbps;
        m->streams = streams[i];
    }
    unmap_buffer(t);
    return rc;
}

/* ---- multiplying ----------------------------------------------------------------------------- */

static void multiply(const struct team *t, unsigned member) {
    (void)member;
    t->peak(PEAK_ROUNDS);
}

static enum rc measure_peaks(struct machine *m, struct team *t, unsigned features, struct err *e) {
    size_t count, found = 0;
    const struct loops_peak *all = loops_peaks(&count);
    enum rc rc = RC_OK;
    for (size_t i = 0; !rc && i < count && found < MACHINE_PEAKS_MAX; i++) {
        if ((all[i].features & features) != all[i].features)
            continue;
        t->peak = all[i].run;
        rc = run_team(t, multiply, PASSES, e);
        if (rc)
            break; /* what an earlier call measured stays */
        struct machine_peak *p = &m->peaks[found++];
        double macs = (double)all[i].macs * PEAK_ROUNDS * t->threads;
        double gops = t->best_ns ? 2 * macs / (double)t->best_ns : 0;
        double best = found <= m->peak_count && p->gops > gops ? p->gops : gops;
        *p = (struct machine_peak){ all[i].set, all[i].instruction, all[i].bits, best };
    }
    if (found > m->peak_count)
        m->peak_count = found;
    return rc;
}

/* The features of all instruction sets up to the one that the kernels use. */
static unsigned allowed_features(void) {
    static const unsigned sets[ISA_COUNT] = {
#define ISA(name, features) features,
#include "kernels/cpu/isa.def"
#undef ISA
    };
    unsigned allowed = 0;
    for (unsigned i = 0; i <= (unsigned)isa_chosen(); i++)
        allowed |= sets[i];
    return cpu_features() & allowed;
}

enum rc machine_measure(struct machine *m, unsigned threads, uint64_t buffer,
                        bool (*interrupted)(void), struct err *e) {
    unsigned features = allowed_features();
    struct team t = make_team(threads, buffer, interrupted);
    if (m->threads != threads)
        *m = (struct machine){ .threads = threads };
    m->buffer = t.part * threads;
    enum rc rc = measure_read(m, &t, features, e);
    return rc ? rc : measure_peaks(m, &t, features, e);
}

/* ---- reading beside something else ----------------------------------------------------------- */

struct machine_reader {
    struct team team;
};

enum rc machine_reader_open(machine_reader **out, const struct machine *m,
                            bool (*interrupted)(void), struct err *e) {
    uint64_t bytes = m->buffer < BUFFER_BESIDE ? m->buffer : BUFFER_BESIDE;
    machine_reader *r = malloc(sizeof *r);
    *out = NULL;
    if (!r)
        return err_set(e, RC_MEMORY, "out of memory");
    r->team = make_team(m->threads, bytes, interrupted);
    r->team.streams = m->streams;
    enum rc rc = map_buffer(&r->team, allowed_features(), e);
    if (rc)
        free(r);
    else
        *out = r;
    return rc;
}

enum rc machine_reader_take(machine_reader *r, double *gbps, struct err *e) {
    return read_passes(&r->team, BESIDE_PASSES, gbps, e);
}

void machine_reader_close(machine_reader **r) {
    if (*r)
        unmap_buffer(&(*r)->team);
    free(*r);
    *r = NULL;
}

const struct machine_peak *machine_best(const struct machine *m, unsigned bits) {
    const struct machine_peak *best = NULL;
    for (size_t i = 0; i < m->peak_count; i++)
        if (m->peaks[i].bits == bits && (!best || m->peaks[i].gops > best->gops))
            best = &m->peaks[i];
    return best;
}
