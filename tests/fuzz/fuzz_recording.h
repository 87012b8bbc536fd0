/* fuzz_recording.h - damaged recordings for the targets that judge, report and compare them.
 *
 * The input is a list of patches (32-bit place, then 8 bytes) to a recording with something of
 * everything in it, because a random file is no recording at all. Places count through the slots
 * and definitions that are there; a few go to the header. */
#ifndef TESTS_FUZZ_FUZZ_RECORDING_H
#define TESTS_FUZZ_FUZZ_RECORDING_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hip/hip_api.h"
#include "record/reader.h"
#include "record/writer.h"

enum { PATCH = 12, PATCHES_MAX = 64, SLOTS = 400, HEADER = 16 << 10 };

static unsigned char *sample;
static size_t sample_bytes;
static char path[64], whole[64]; /* of the damaged one; of the other */
static int file;
static FILE *sink;
static uint64_t slots_at, definitions_at, definitions_bytes;

static const char *fuzz_fn_name(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

/* Events of every kind that fit together as in a run: memory, streams, events, graphs, copies. */
static void fuzz_write_run(writer *w) {
    uint32_t stream[3];
    for (uint64_t i = 0; i < 3; i++) {
        struct record_stream s = { .handle = 0x1000 + i, .flags = i ? hipStreamNonBlocking : 0 };
        stream[i] = record_stream(w, &s);
    }
    record_provenance(w, "run.command", "fuzz");
    for (unsigned n = 0; n < SLOTS / 2; n++) {
        union event_slot s[2];
        unsigned kind = 1 + n * 7 % (EVENT_KIND_LIMIT - 1);
        memset(s, 0, sizeof s);
        s[0].event = (struct event){ .kind = (uint16_t)(n % 4 ? kind : EVENT_ALLOC),
                                     .dst = 0x7f0000000000 + n % 16 * 4096,
                                     .src = n % 3 ? 0x7f0000000000 + n % 8 * 4096 : n / 2,
                                     .len = 64 + n % 5 * 2048,
                                     .stream = stream[n % 3],
                                     .name = record_string(w, n % 2 ? "tensor" : "kernel"),
                                     .aux = event_aux(n % HIP_FN_COUNT, n % 16) };
        event_extra_init(&s[1], (enum event_extra_type)(1 + n % 10), 6);
        for (int i = 0; i < 6; i++) /* addresses, or small numbers: pitches, rows, slices */
            s[1].extra.word[i] =
                n % 3 ? UINT64_C(0x7f0000000000) + n : (uint64_t)(1 + n % 7) << 2 * i;
        record_events(w, s, 1 + n % 2);
    }
}

static void fuzz_prepare(void) {
    snprintf(whole, sizeof whole, "/tmp/fuzz_recording.%d.gcr", (int)getpid());
    struct record_options o = {
        .path = whole, .events = 1024, .fn_count = HIP_FN_COUNT, .fn_name = fuzz_fn_name
    };
    struct stat st;
    writer *w;
    if (record_open(&w, &o, NULL) != RC_OK)
        abort();
    fuzz_write_run(w);
    record_close(&w);
    int fd = open(whole, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        abort();
    sample_bytes = (size_t)st.st_size;
    sample = malloc(sample_bytes);
    if (!sample || pread(fd, sample, sample_bytes, 0) != (ssize_t)sample_bytes)
        abort();
    close(fd);
    unlink(whole);
    file = memfd_create("fuzz", 0);
    int other = memfd_create("whole", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    snprintf(whole, sizeof whole, "/proc/self/fd/%d", other);
    if (pwrite(file, sample, sample_bytes, 0) != (ssize_t)sample_bytes ||
        pwrite(other, sample, sample_bytes, 0) != (ssize_t)sample_bytes)
        abort();
    struct record_header h;
    memcpy(&h, sample, sizeof h);
    slots_at = RECORD_HEADER_BYTES + (uint64_t)(h.event_chunk[0] - 1) * h.chunk_bytes;
    definitions_at = RECORD_HEADER_BYTES + (uint64_t)(h.definition_chunk[0] - 1) * h.chunk_bytes;
    definitions_bytes = h.next_definition;
    sink = fopen("/dev/null", "w");
}

static uint64_t fuzz_place(uint32_t n) {
    uint64_t at = n >> 3;
    switch (n & 7) {
    case 0:
        return at % (HEADER - 8);
    case 1:
    case 2:
        return definitions_at + at % definitions_bytes;
    default:
        return slots_at + at % (SLOTS * sizeof(union event_slot));
    }
}

/* Calls use() with the damaged recording in place. */
static int fuzz_with(const uint8_t *data, size_t size, void (*use)(void)) {
    uint64_t at[PATCHES_MAX];
    unsigned patches = 0;
    if (!sample)
        fuzz_prepare();
    for (; size >= PATCH && patches < PATCHES_MAX; data += PATCH, size -= PATCH) {
        uint32_t n;
        memcpy(&n, data, 4);
        at[patches] = fuzz_place(n);
        if (pwrite(file, data + 4, 8, (off_t)at[patches]) != 8)
            abort();
        patches++;
    }
    use();
    for (unsigned i = 0; i < patches; i++)
        if (pwrite(file, sample + at[i], 8, (off_t)at[i]) != 8)
            abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
