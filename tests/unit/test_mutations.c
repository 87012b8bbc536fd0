/* Recordings with random damage, from headers to the last slot: dump, verdict, every report and
 * diff come back. test_mutations [COUNT [SEED]]; by hand with 50000. */
#include <stdint.h>
#include <time.h>

#include "fuzz/fuzz_recording.h"

#include "diff/diff.h"
#include "record/format.h"
#include "report/report.h"
#include "report/report_html.h"
#include "report/report_md.h"
#include "report/report_perfetto.h"
#include "verdict/verdict.h"

enum { COUNT = 100 };

static uint64_t state = 1;
static uint64_t opened, judged;

static uint64_t next(void) { /* splitmix64 */
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void use_all(void) {
    static struct reader_event e;
    reader *r, *other;
    verdict *v = NULL;
    diff *d = NULL;
    if (reader_open(&r, path, NULL) != RC_OK)
        return;
    opened++;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    while (reader_next(&c, &e))
        format_event(sink, r, &e);
    if (verdict_open(&v, r, NULL, NULL) == RC_OK) {
        judged++;
        (void)!report_text(sink, v, NULL, NULL);
        (void)!report_json(sink, v, NULL);
        (void)!report_md(sink, v, r, NULL, NULL);
        (void)!report_html(sink, v, r, NULL, NULL);
        (void)!report_perfetto(sink, v, r, NULL);
    }
    verdict_close(&v);
    if (reader_open(&other, whole, NULL) == RC_OK) {
        if (diff_open(&d, r, other, NULL) == RC_OK)
            diff_close(&d);
        reader_close(&other);
    }
    reader_close(&r);
}

/* What a field may hold that matters: anything, little, a bit of the sample, or the limits. */
static uint64_t value(void) {
    uint64_t piece;
    switch (next() % 5) {
    case 0:
        return next();
    case 1:
        return next() % 64;
    case 2:
        memcpy(&piece, sample + next() % (sample_bytes - sizeof piece), sizeof piece);
        return piece;
    case 3:
        return UINT64_C(1) << next() % 64;
    default:
        return UINT64_MAX - next() % 3;
    }
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    static uint8_t input[PATCHES_MAX * PATCH];
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : COUNT;
    double longest = 0;
    state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    fuzz_prepare();
    for (unsigned long i = 0; i < count; i++) {
        unsigned patches = 1 + (unsigned)(next() % (next() % 8 ? 8 : PATCHES_MAX));
        for (unsigned k = 0; k < patches; k++) {
            uint32_t place = (uint32_t)next();
            uint64_t what = value();
            memcpy(input + k * PATCH, &place, sizeof place);
            memcpy(input + k * PATCH + sizeof place, &what, sizeof what);
        }
        double before = seconds();
        fuzz_with(input, patches * PATCH, use_all);
        double took = seconds() - before;
        longest = took > longest ? took : longest;
    }
    bool ok = judged && opened == judged;
    printf(
        "1..1\n%sok 1 - %lu damaged recordings: %llu open, %llu judged, the longest took %.2f s\n",
        ok ? "" : "not ", count, (unsigned long long)opened, (unsigned long long)judged, longest);
    return !ok;
}
