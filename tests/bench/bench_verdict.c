/* bench_verdict - how long it takes to judge a recording of ten million events, and how much
 * memory.
 *
 * The limits are 60 s and 2 GB for ten million events. There are two recordings: `engine`, one
 * stream with many buffers, kernels with known footprints, copies and waits, like those of
 * greta_infer; and `streams`, 64 streams with events between them, stream-ordered memory, and
 * copies of ranges that never repeat, which are hard for the map of accesses. Each is judged in its
 * own process, whose peak memory (with the mapped pages of the recording) is printed. One line per
 * figure; exit status 1 if a limit is exceeded or a verdict has findings, which would be wrong.
 *
 *   bench_verdict [EVENTS]       with another number of events, without limits */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "hip/hip_api.h"
#include "record/writer.h"
#include "support/promise.h"
#include "verdict/verdict.h"

enum { SECONDS_MAX = 60, BLOCKS = 300, STREAMS = 64 };
static const double GB_MAX = 2.0;
static const uint64_t BLOCK = 1 << 20, AT = UINT64_C(0x7f0000000000),
                      PINNED = UINT64_C(0x7e0000000000);

static char path[256];
static writer *w;
static uint64_t written;

static const char *fn_name(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

static uint64_t put(struct event e) {
    written++;
    return record_event(w, &e);
}

static void put_launch(uint32_t stream, uint32_t name, const struct event_access *a,
                       unsigned count) {
    union event_slot s[8];
    unsigned slots = 2, done = 0;
    s[0].event = (struct event){ .kind = EVENT_LAUNCH,
                                 .aux = event_aux(HIP_FN_hipModuleLaunchKernel, 0),
                                 .stream = stream,
                                 .name = name };
    event_extra_dims(&s[1], &(struct event_dims){ { 32, 1, 1 }, { 64, 1, 1 }, 0, 0 });
    for (; done < count; slots++)
        done += event_extra_accesses(&s[slots], &a[done], count - done);
    written++;
    record_events(w, s, slots);
}

static void put_alloc(uint64_t at, uint64_t bytes, unsigned family, unsigned fn) {
    put((struct event){
        .kind = EVENT_ALLOC, .aux = event_aux(fn, family), .dst = at, .len = bytes });
}

static void put_free(uint64_t at, unsigned fn) {
    put((struct event){ .kind = EVENT_FREE, .aux = event_aux(fn, 0), .dst = at, .len = 1 });
}

static void put_sync(uint32_t stream) {
    put((struct event){ .kind = EVENT_SYNC,
                        .aux = event_aux(HIP_FN_hipStreamSynchronize, DETAIL_SCOPE_STREAM),
                        .stream = stream });
}

static void put_copy(unsigned kind, uint64_t dst, uint64_t src, uint64_t bytes, uint32_t stream) {
    put((struct event){ .kind = EVENT_COPY,
                        .aux = event_aux(HIP_FN_hipMemcpyAsync, kind | EVENT_DETAIL_ASYNC),
                        .dst = dst,
                        .src = src,
                        .len = bytes,
                        .stream = stream });
}

/* ---- the two recordings ---------------------------------------------------------------------- */

static void write_engine(uint64_t events) {
    uint32_t stream = record_stream(w, &(struct record_stream){ .handle = 1, .flags = 1 });
    uint32_t kernel = record_string(w, "matmul");
    for (uint64_t i = 0; i < BLOCKS; i++)
        put_alloc(AT + i * 2 * BLOCK, BLOCK, DETAIL_FAMILY_DEVICE, HIP_FN_hipMalloc);
    for (uint64_t i = 0; i < BLOCKS; i++)
        put_copy(hipMemcpyHostToDevice, AT + i * 2 * BLOCK, 0x550000000000, BLOCK, stream);
    for (uint64_t i = 0; written + BLOCKS < events; i++) {
        uint64_t a = AT + i * 7 % BLOCKS * 2 * BLOCK, b = AT + i * 11 % BLOCKS * 2 * BLOCK;
        uint64_t c = AT + (i * 13 + 1) % BLOCKS * 2 * BLOCK;
        struct event_access used[3] = { { a, 4096, DETAIL_ACCESS_READ_WRITE, 0 },
                                        { b, BLOCK, DETAIL_ACCESS_READ, 1 },
                                        { c, 8192, DETAIL_ACCESS_READ, 3 } };
        put_launch(stream, kernel, used, 3);
        if (i % 50 == 49) {
            put_copy(hipMemcpyDeviceToHost, 0x550000000000, a, 4096, stream);
            put_sync(stream);
        }
    }
    for (uint64_t i = 0; i < BLOCKS; i++)
        put_free(AT + i * 2 * BLOCK, HIP_FN_hipFree);
}

static void write_streams(uint64_t events) {
    uint32_t stream[STREAMS];
    for (uint32_t i = 0; i < STREAMS; i++) {
        stream[i] = record_stream(w, &(struct record_stream){ .handle = i + 1, .flags = 1 });
        put((struct event){ .kind = EVENT_EVENT_CREATE, .dst = i + 1, .aux = event_aux(0, 0) });
    }
    uint64_t span = (uint64_t)8 << 30;
    put_alloc(AT, span, DETAIL_FAMILY_DEVICE, HIP_FN_hipMalloc);
    put_alloc(PINNED, span, DETAIL_FAMILY_PINNED, HIP_FN_hipHostMalloc);
    for (uint64_t i = 0; written + 2 < events; i++) {
        uint64_t step = i / 5, share = span / STREAMS;
        uint32_t s = (uint32_t)(step % STREAMS);
        uint64_t at = share * s + step / STREAMS * 640 % (share - 640);
        switch (i % 5) {
        case 0:
            put_copy(hipMemcpyHostToDevice, AT + at, PINNED + at, 256, stream[s]);
            break;
        case 1:
            put_copy(hipMemcpyHostToDevice, AT + at + 320, PINNED + at + 320, 256, stream[s]);
            break;
        case 2: {
            uint64_t record = put((struct event){ .kind = EVENT_EVENT_RECORD,
                                                  .aux = event_aux(HIP_FN_hipEventRecord, 0),
                                                  .dst = s + 1,
                                                  .stream = stream[s] });
            put((struct event){ .kind = EVENT_EVENT_WAIT,
                                .aux = event_aux(HIP_FN_hipStreamWaitEvent, 0),
                                .dst = s + 1,
                                .src = record,
                                .stream = stream[(s + 1) % STREAMS] });
            break;
        }
        case 3: {
            uint64_t block = AT + span + (i % 1000) * 4096;
            put((struct event){ .kind = EVENT_ALLOC,
                                .aux = event_aux(HIP_FN_hipMallocAsync, DETAIL_FAMILY_ASYNC),
                                .dst = block,
                                .len = 1024,
                                .stream = stream[s] });
            put((struct event){ .kind = EVENT_FREE,
                                .aux = event_aux(HIP_FN_hipFreeAsync, 0),
                                .dst = block,
                                .len = 1024,
                                .stream = stream[s] });
            break;
        }
        default:
            if (i % 1000 == 4)
                put_sync(stream[s]);
            else
                put_copy(hipMemcpyDeviceToHost, PINNED + at, AT + at, 256, stream[s]);
        }
    }
    put_free(AT, HIP_FN_hipFree);
    put_free(PINNED, HIP_FN_hipHostFree);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void write_run(void (*run)(uint64_t), uint64_t events) {
    struct err e = { 0 };
    struct record_options o = {
        .path = path, .events = UINT64_C(64) << 20, .fn_count = HIP_FN_COUNT, .fn_name = fn_name
    };
    written = 0;
    if (record_open(&w, &o, &e) != RC_OK) {
        fprintf(stderr, "bench_verdict: %s\n", e.msg);
        exit(2);
    }
    run(events);
    record_close(&w);
}

struct result {
    double seconds, gigabytes;
    uint64_t pairs, findings;
    char answer[200];
};

static void judge_in_child(int to) {
    struct err e = { 0 };
    struct result out = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    uint64_t start = clock_now_ns();
    if (reader_open(&r, path, &e) != RC_OK || verdict_open(&v, r, NULL, &e) != RC_OK) {
        fprintf(stderr, "bench_verdict: %s\n", e.msg);
        _exit(2);
    }
    out.seconds = (double)(clock_now_ns() - start) / 1e9;
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    out.gigabytes = (double)use.ru_maxrss * 1024 / 1e9;
    out.pairs = v->coverage.pairs;
    out.findings = v->finding_count;
    snprintf(out.answer, sizeof out.answer, "%s", v->answer);
    _exit(write(to, &out, sizeof out) == (ssize_t)sizeof out ? 0 : 2);
}

static bool measure(const char *name, void (*run)(uint64_t), uint64_t events, bool limited) {
    int fds[2], status;
    struct result x = { 0 };
    write_run(run, events);
    if (pipe(fds) != 0)
        return false;
    pid_t child = fork();
    if (child == 0)
        judge_in_child(fds[1]);
    close(fds[1]);
    bool ok = read(fds[0], &x, sizeof x) == (ssize_t)sizeof x;
    close(fds[0]);
    waitpid(child, &status, 0);
    unlink(path);
    ok = ok && !status && x.findings == 0;
    printf("verdict.%s.events %llu\n", name, (unsigned long long)events);
    printf("verdict.%s.pairs %llu\n", name, (unsigned long long)x.pairs);
    printf("verdict.%s.answer %s\n", name, x.answer);
    char seconds[64], memory[64];
    snprintf(seconds, sizeof seconds, "verdict.%s.seconds", name);
    snprintf(memory, sizeof memory, "verdict.%s.peak_gb", name);
    int missed = promise_at_most(seconds, x.seconds, limited ? SECONDS_MAX : INFINITY);
    missed |= promise_at_most(memory, x.gigabytes, limited ? GB_MAX : INFINITY);
    return ok && !missed;
}

int main(int argc, char **argv) {
    uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/bench_verdict.%d.gcr", dir && *dir ? dir : "/tmp",
             (int)getpid());
    bool ok = measure("engine", write_engine, events, argc == 1);
    ok = measure("streams", write_streams, events, argc == 1) && ok;
    if (!ok)
        puts("verdict: over a limit, or a wrong answer");
    return ok ? 0 : 1;
}
