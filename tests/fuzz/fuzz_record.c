/* fuzz_record - the reader against damaged recordings. The input is a list of patches (32-bit
 * offset, then 8 bytes) to a small valid recording, because a random file of 256 KiB is no
 * recording at all. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/format.h"
#include "record/writer.h"

enum { SIZE = (128 + 2 * 64) << 10, PATCH = 12, PATCHES_MAX = 256 };

static unsigned char *sample;
static char path[64];
static int file;
static FILE *sink;

static void make_sample(void) {
    char name[64];
    snprintf(name, sizeof name, "/tmp/fuzz_record.%d.gcr", (int)getpid());
    struct record_options o = { .path = name, .events = 1024 };
    writer *w;
    if (record_open(&w, &o, NULL) != RC_OK)
        abort();
    record_provenance(w, "commit", "0123456789abcdef");
    for (unsigned n = 0; n < 600; n++) {
        union event_slot s[3] = { { .event = { .kind = (uint16_t)(n % EVENT_KIND_LIMIT),
                                               .dst = n,
                                               .name = record_string(w, "tensor"),
                                               .site = record_site_full(w, NULL),
                                               .aux = event_aux(n, n % 16) } } };
        event_extra_init(&s[1], (enum event_extra_type)(n % 10), 6);
        event_extra_init(&s[2], (enum event_extra_type)(n % 10), 3);
        record_events(w, s, 1 + n % 3);
    }
    record_close(&w);
    int fd = open(name, O_RDONLY);
    sample = malloc(SIZE);
    if (!sample || pread(fd, sample, SIZE, 0) != SIZE)
        abort();
    close(fd);
    unlink(name);
    file = memfd_create("fuzz_record", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (pwrite(file, sample, SIZE, 0) != SIZE)
        abort();
    sink = fopen("/dev/null", "w");
}

static void read_all(void) {
    static struct reader_event e;
    reader *r;
    if (reader_open(&r, path, NULL) != RC_OK)
        return;
    struct reader_cursor c = reader_events(r, 0, UINT64_MAX);
    for (unsigned n = 0; reader_next(&c, &e); n++)
        if (n < 200)
            format_event(sink, r, &e);
    for (uint32_t id = 0; id < 100; id++) {
        unsigned count;
        const struct site_frame *f = reader_site(r, id, &count, NULL);
        for (unsigned i = 0; i < count; i++)
            format_frame(sink, r, &f[i], "");
        reader_module(r, id, NULL);
        format_text(sink, reader_string(r, id));
    }
    reader_provenance_find(r, "none");
    reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t at[PATCHES_MAX];
    unsigned patches = 0;
    if (!sample)
        make_sample();
    for (; size >= PATCH && patches < PATCHES_MAX; data += PATCH, size -= PATCH) {
        memcpy(&at[patches], data, 4);
        at[patches] %= SIZE - 8;
        if (pwrite(file, data + 4, 8, at[patches]) != 8)
            abort();
        patches++;
    }
    read_all();
    for (unsigned i = 0; i < patches; i++)
        if (pwrite(file, sample + at[i], 8, at[i]) != 8)
            abort();
    return 0;
}
