/* Every way a checked copy is refused: nothing reaches the runtime, no byte changes, the line is
 * the documented one, the code is the right one, and the program goes on. */
#include "unit/audit_fake.h"

enum { SIZE = 4096 };

static unsigned char host[2 * SIZE];

static void *device_memory(size_t size) {
    void *p = NULL;
    assert_int_equal(api.hipMalloc(&p, size), hipSuccess);
    return p;
}

static struct gcore_d2h_meta meta(const char *tensor, size_t offset, size_t size, size_t alloc) {
    return (struct gcore_d2h_meta){
        .tensor = tensor, .step = 3, .layer = 7, .offset = offset, .size = size, .alloc = alloc
    };
}

/* The end of what every refusal must be: nothing copied, one line, the next copy works. */
static void expect_refusal(enum gcore_d2h_code code, enum gcore_d2h_code expected,
                           const struct gcore_d2h_result *r, const char *line) {
    if (code != expected)
        fail_msg("%s, not %s: %s", gcore_d2h_code_name(code), gcore_d2h_code_name(expected),
                 r->message);
    assert_int_equal(r->code, expected);
    assert_int_equal(r->hip_error, hipSuccess);
    assert_non_null(strstr(r->message, "expected"));
    assert_non_null(strstr(r->message, "found"));
    assert_int_equal(fake_copies(), 0);
    for (size_t i = 0; i < sizeof host; i++)
        assert_int_equal(host[i], 0xa5);
    const char *log = fake_log();
    if (strncmp(log, line, strlen(line)) != 0)
        fail_msg("the log is\n%s\nand not\n%s", log, line);
    assert_ptr_equal(strchr(log, '\n'), log + strlen(log) - 1);

    void *p = device_memory(16);
    struct gcore_d2h_meta m = meta("ok", 0, 16, 16);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(fake_copies(), 1);
}

static int setup(void **state) {
    memset(host, 0xa5, sizeof host);
    return fake_attach(state);
}

static void expect_d2h(void *to, const void *from, struct gcore_d2h_meta m,
                       enum gcore_d2h_code expected, const char *line) {
    struct gcore_d2h_result r;
    expect_refusal(gcore_d2h_copy(to, from, &m, NULL, &r), expected, &r, line);
}

/* ---- pointers -------------------------------------------------------------------------------- */

static void null_source(void **state) {
    (void)state;
    expect_d2h(host, NULL, meta("t", 0, 16, 0), GCORE_D2H_NULL_POINTER,
               "[D2H_ERROR] reason=NULL_POINTER tensor=t step=3 layer=7 src_ptr=0x0 ");
}

static void null_destination(void **state) {
    (void)state;
    expect_d2h(NULL, device_memory(SIZE), meta("t", 0, 16, 0), GCORE_D2H_NULL_POINTER,
               "[D2H_ERROR] reason=NULL_POINTER tensor=t step=3 layer=7 ");
}

static void unknown_source(void **state) {
    (void)state;
    static char stray[SIZE];
    expect_d2h(host, stray, meta("t", 0, 16, 0), GCORE_D2H_UNKNOWN_POINTER,
               "[D2H_ERROR] reason=UNKNOWN_POINTER tensor=t ");
}

static void freed_source_names_who_freed_it(void **state) {
    (void)state;
    void *p = device_memory(SIZE);
    assert_int_equal(api.hipFree(p), hipSuccess);
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_d2h_copy(host, p, &m, NULL, &r);
    assert_non_null(strstr(r.message, "freed by hipFree in test_d2h_refusals"));
    expect_refusal(code, GCORE_D2H_FREED, &r, "[D2H_ERROR] reason=FREED tensor=t step=3 layer=7 ");
}

static void source_freed_in_stream_order(void **state) {
    (void)state;
    void *p = NULL;
    assert_int_equal(api.hipMallocAsync(&p, SIZE, NULL), hipSuccess);
    assert_int_equal(api.hipFreeAsync(p, NULL), hipSuccess);
    expect_d2h(host, p, meta("t", 0, 16, 0), GCORE_D2H_FREED, "[D2H_ERROR] reason=FREED ");
}

static void memory_of_a_reset_device(void **state) {
    (void)state;
    void *p = device_memory(SIZE);
    assert_int_equal(api.hipDeviceReset(), hipSuccess);
    expect_d2h(host, p, meta("t", 0, 16, 0), GCORE_D2H_FREED, "[D2H_ERROR] reason=FREED ");
}

static void freed_pinned_destination(void **state) {
    (void)state;
    /* Really gone, as after hipHostFree: plain memory at a reused address would be fine. */
    void *pinned = NULL, *p = device_memory(SIZE);
    fake.next_pointer = (void *)0x10000;
    assert_int_equal(api.hipHostMalloc(&pinned, SIZE, 0), hipSuccess);
    assert_int_equal(api.hipHostFree(pinned), hipSuccess);
    expect_d2h(pinned, p, meta("t", 0, 16, 0), GCORE_D2H_FREED, "[D2H_ERROR] reason=FREED ");
}

/* ---- sides, kinds and devices ---------------------------------------------------------------- */

static void host_memory_as_device_source(void **state) {
    (void)state;
    void *pinned = NULL;
    assert_int_equal(api.hipHostMalloc(&pinned, SIZE, 0), hipSuccess);
    expect_d2h(host, pinned, meta("t", 0, 16, 0), GCORE_D2H_WRONG_SIDE,
               "[D2H_ERROR] reason=WRONG_SIDE ");
}

static void device_memory_as_host_destination(void **state) {
    (void)state;
    expect_d2h(device_memory(SIZE), device_memory(SIZE), meta("t", 0, 16, 0), GCORE_D2H_WRONG_SIDE,
               "[D2H_ERROR] reason=WRONG_SIDE ");
}

static void array_handle_as_source(void **state) {
    (void)state;
    hipArray_t array = NULL;
    assert_int_equal(api.hipMallocArray(&array, NULL, 4, 4, 0), hipSuccess);
    expect_d2h(host, array, meta("t", 0, 1, 0), GCORE_D2H_WRONG_SIDE,
               "[D2H_ERROR] reason=WRONG_SIDE ");
}

static void swapped_pointers_contradict_the_kind(void **state) {
    (void)state;
    void *p = device_memory(SIZE);
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_copy(p, host, hipMemcpyDeviceToHost, &m, NULL, &r);
    expect_refusal(code, GCORE_D2H_KIND_MISMATCH, &r, "[D2H_ERROR] reason=KIND_MISMATCH ");
}

static void host_to_host_is_no_device_copy(void **state) {
    (void)state;
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_copy(host, host + SIZE, hipMemcpyHostToHost, &m, NULL, &r);
    expect_refusal(code, GCORE_D2H_KIND_MISMATCH, &r, "[D2H_ERROR] reason=KIND_MISMATCH ");
}

static void a_kind_that_does_not_exist(void **state) {
    (void)state;
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_copy(host, device_memory(SIZE), 99, &m, NULL, &r);
    expect_refusal(code, GCORE_D2H_KIND_MISMATCH, &r, "[D2H_ERROR] reason=KIND_MISMATCH ");
}

static void two_host_pointers_with_kind_default(void **state) {
    (void)state;
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_copy(host, host + SIZE, hipMemcpyDefault, &m, NULL, &r);
    expect_refusal(code, GCORE_D2H_KIND_MISMATCH, &r, "[D2H_ERROR] reason=KIND_MISMATCH ");
}

static void memory_of_another_device(void **state) {
    (void)state;
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    void *p = device_memory(SIZE);
    assert_int_equal(api.hipSetDevice(0), hipSuccess);
    expect_d2h(host, p, meta("t", 0, 16, 0), GCORE_D2H_WRONG_DEVICE,
               "[D2H_ERROR] reason=WRONG_DEVICE ");
}

static void stream_of_another_device(void **state) {
    (void)state;
    hipStream_t stream = NULL;
    void *p = device_memory(SIZE);
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    assert_int_equal(api.hipStreamCreateWithFlags(&stream, 0), hipSuccess);
    assert_int_equal(api.hipSetDevice(0), hipSuccess);
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_d2h_copy(host, p, &m, stream, &r);
    expect_refusal(code, GCORE_D2H_WRONG_DEVICE, &r, "[D2H_ERROR] reason=WRONG_DEVICE ");
}

/* A stream of either may make it, one of a third may not. */
static void a_copy_between_two_devices(void **state) {
    (void)state;
    hipStream_t stream = NULL;
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    char *here = device_memory(SIZE);
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    void *there = device_memory(SIZE);
    assert_int_equal(api.hipStreamCreateWithFlags(&stream, 0), hipSuccess);
    assert_int_equal(api.hipSetDevice(0), hipSuccess);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_d2d_copy(here + SIZE / 2, here, &m, stream, &r);
    expect_refusal(code, GCORE_D2H_WRONG_DEVICE, &r, "[D2H_ERROR] reason=WRONG_DEVICE ");
    assert_int_equal(gcore_d2d_copy(there, here, &m, stream, &r), GCORE_D2H_OK);
    assert_int_equal(gcore_d2d_copy(there, here, &m, NULL, &r), GCORE_D2H_OK);
}

static void destroyed_stream(void **state) {
    (void)state;
    hipStream_t stream = NULL;
    void *p = device_memory(SIZE);
    assert_int_equal(api.hipStreamCreateWithFlags(&stream, 0), hipSuccess);
    assert_int_equal(api.hipStreamDestroy(stream), hipSuccess);
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_d2h_copy(host, p, &m, stream, &r);
    expect_refusal(code, GCORE_D2H_BAD_STREAM, &r, "[D2H_ERROR] reason=BAD_STREAM ");
}

static void capturing_stream(void **state) {
    (void)state;
    hipStream_t stream = NULL;
    void *p = device_memory(SIZE);
    assert_int_equal(api.hipStreamCreateWithFlags(&stream, 0), hipSuccess);
    assert_int_equal(api.hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_d2h_copy_async(host, p, &m, stream, NULL, &r);
    expect_refusal(code, GCORE_D2H_BAD_STREAM, &r, "[D2H_ERROR] reason=BAD_STREAM ");
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void size_beyond_the_ledgers_allocation(void **state) {
    (void)state;
    /* The caller's claim agrees with its size; the ledger knows better. */
    expect_d2h(host, device_memory(SIZE), meta("logits", 0, SIZE + 1, SIZE + 1),
               GCORE_D2H_OUT_OF_ALLOCATION,
               "[D2H_BOUNDS] tensor=logits offset=0 size=4097 alloc=4096\n");
}

static void offset_beyond_the_ledgers_allocation(void **state) {
    (void)state;
    expect_d2h(host, device_memory(SIZE), meta("logits", SIZE - 8, 16, 0),
               GCORE_D2H_OUT_OF_ALLOCATION,
               "[D2H_BOUNDS] tensor=logits offset=4088 size=16 alloc=4096\n");
}

static void interior_base_counts_from_itself(void **state) {
    (void)state;
    char *p = device_memory(SIZE);
    expect_d2h(host, p + 96, meta("logits", 0, SIZE, SIZE), GCORE_D2H_OUT_OF_ALLOCATION,
               "[D2H_BOUNDS] tensor=logits offset=0 size=4096 alloc=4000\n");
}

static void range_beyond_the_callers_claim(void **state) {
    (void)state;
    expect_d2h(host, device_memory(SIZE), meta("logits", 8, 96, 100), GCORE_D2H_OUT_OF_ALLOCATION,
               "[D2H_BOUNDS] tensor=logits offset=8 size=96 alloc=100\n");
}

static void range_beyond_the_named_tensor(void **state) {
    (void)state;
    char *arena = device_memory(SIZE);
    assert_int_equal(gcore_name_range(arena, 1024, "wq"), GCORE_D2H_OK);
    assert_int_equal(gcore_name_range(arena + 1024, 1024, "wk"), GCORE_D2H_OK);
    expect_d2h(host, arena, meta("anything", 1000, 25, 0), GCORE_D2H_OUT_OF_TENSOR,
               "[D2H_BOUNDS] tensor=anything offset=1000 size=25 alloc=1024\n");
}

static void offset_into_the_next_tensor(void **state) {
    (void)state;
    char *arena = device_memory(SIZE);
    assert_int_equal(gcore_name_range(arena, 1024, "wq"), GCORE_D2H_OK);
    assert_int_equal(gcore_name_range(arena + 1024, 1024, "wk"), GCORE_D2H_OK);
    expect_d2h(host, arena, meta("wq", 1024, 16, 0), GCORE_D2H_OUT_OF_TENSOR,
               "[D2H_BOUNDS] tensor=wq offset=1024 size=16 alloc=1024\n");
}

static void arena_offset_of_a_tensor_known_by_name(void **state) {
    (void)state;
    char *arena = device_memory(SIZE);
    assert_int_equal(gcore_name_range(arena, 1024, "wq"), GCORE_D2H_OK);
    assert_int_equal(gcore_name_range(arena + 1024, 1024, "wk"), GCORE_D2H_OK);
    struct gcore_d2h_meta m = meta("wk", 1024, 1024, SIZE);
    assert_int_equal(gcore_d2h_copy(host, arena, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(fake_copies(), 1);
}

static void named_host_to_device_destination(void **state) {
    (void)state;
    char *arena = device_memory(SIZE);
    assert_int_equal(gcore_name_range(arena, 100, "pos"), GCORE_D2H_OK);
    struct gcore_d2h_meta m = meta("pos", 0, 101, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_h2d_copy(arena, host, &m, NULL, &r);
    expect_refusal(code, GCORE_D2H_OUT_OF_TENSOR, &r,
                   "[D2H_BOUNDS] tensor=pos offset=0 size=101 alloc=100\n");
}

static void pinned_destination_too_small(void **state) {
    (void)state;
    void *pinned = NULL;
    assert_int_equal(api.hipHostMalloc(&pinned, 100, 0), hipSuccess);
    expect_d2h((char *)pinned + 50, device_memory(SIZE), meta("t", 0, 51, 0),
               GCORE_D2H_HOST_TOO_SMALL, "[D2H_BOUNDS] tensor=t offset=0 size=51 alloc=50\n");
}

static void registered_destination_too_small(void **state) {
    (void)state;
    assert_int_equal(api.hipHostRegister(host, 64, 0), hipSuccess);
    expect_d2h(host, device_memory(SIZE), meta("t", 0, 65, 0), GCORE_D2H_HOST_TOO_SMALL,
               "[D2H_BOUNDS] tensor=t offset=0 size=65 alloc=64\n");
}

static void plain_memory_that_runs_into_a_pinned_block(void **state) {
    (void)state;
    void *pinned = NULL;
    fake.next_pointer = host + 100;
    assert_int_equal(api.hipHostMalloc(&pinned, 64, 0), hipSuccess);
    expect_d2h(host, device_memory(SIZE), meta("t", 0, 101, 0), GCORE_D2H_HOST_TOO_SMALL,
               "[D2H_BOUNDS] tensor=t offset=0 size=101 alloc=100\n");
}

static void device_to_device_destination_too_small(void **state) {
    (void)state;
    struct gcore_d2h_meta m = meta("t", 0, SIZE, 0);
    struct gcore_d2h_result r;
    void *from = device_memory(SIZE), *to = device_memory(100);
    enum gcore_d2h_code code = gcore_d2d_copy(to, from, &m, NULL, &r);
    expect_refusal(code, GCORE_D2H_OUT_OF_ALLOCATION, &r,
                   "[D2H_BOUNDS] tensor=t offset=0 size=4096 alloc=100\n");
}

static void device_to_device_with_a_host_destination(void **state) {
    (void)state;
    struct gcore_d2h_meta m = meta("t", 0, 16, 0);
    struct gcore_d2h_result r;
    enum gcore_d2h_code code = gcore_d2d_copy(host, device_memory(SIZE), &m, NULL, &r);
    expect_refusal(code, GCORE_D2H_UNKNOWN_POINTER, &r, "[D2H_ERROR] reason=UNKNOWN_POINTER ");
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

static void every_sum_that_wraps_is_refused(void **state) {
    (void)state;
    char *p = device_memory(SIZE);
    const size_t top = SIZE_MAX;
    const struct {
        void *to;
        const void *from;
        size_t offset, size;
    } cases[] = {
        { host, p, top, 1 },       /* offset + size wraps */
        { host, p, 1, top },       /* the same the other way */
        { host, p, top, top },     /* far past it */
        { host, p, top - 15, 16 }, /* wraps to exactly 0 */
        { host, p, top / 2 + 1, top / 2 + 1 },
        { host, p, top - 4096, 1 }, /* the address wraps */
        { host, p, 0, top },        /* its end wraps */
        { host, p, 0, top - (uintptr_t)p + 2 },
        { (char *)top - 7, p, 0, 16 }, /* the destination's end wraps */
        { host, (char *)top - 7, 0, 16 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gcore_d2h_meta m = meta("t", cases[i].offset, cases[i].size, 0);
        struct gcore_d2h_result r;
        enum gcore_d2h_code code = gcore_d2h_copy(cases[i].to, cases[i].from, &m, NULL, &r);
        if (code != GCORE_D2H_OVERFLOW)
            fail_msg("case %zu is %s", i, gcore_d2h_code_name(code));
        assert_int_equal(fake_copies(), 0);
    }
    assert_memory_equal(fake_log(),
                        "[D2H_BOUNDS] tensor=t offset=18446744073709551615 size=1 alloc=0\n", 64);
}

static void sums_that_just_fit_are_judged_by_the_ledger(void **state) {
    (void)state;
    char *p = device_memory(SIZE);
    const size_t top = SIZE_MAX;
    /* The last byte of the range is the last address there is: no wrap, but far outside. */
    struct gcore_d2h_meta m = meta("t", 0, top - (uintptr_t)p + 1, 0);
    assert_int_equal(gcore_h2d_copy(p, (void *)1, &m, NULL, NULL), GCORE_D2H_OUT_OF_ALLOCATION);
    m = meta("t", SIZE, 1, 0);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OUT_OF_ALLOCATION);
    m = meta("t", SIZE - 1, 1, 0);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
    m = meta("t", 0, SIZE, SIZE_MAX);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
}

__extension__ typedef unsigned __int128 wide;

/* Every combination of numbers near the edges, against arithmetic in 128 bits. */
static void random_ranges_agree_with_wide_arithmetic(void **state) {
    (void)state;
    char *p = device_memory(SIZE);
    const size_t edges[] = {
        0, 1, 2, SIZE - 1, SIZE, SIZE + 1, SIZE_MAX / 2, SIZE_MAX - SIZE, SIZE_MAX - 1, SIZE_MAX
    };
    const size_t n = sizeof edges / sizeof *edges;
    void *pinned = NULL;
    assert_int_equal(api.hipHostMalloc(&pinned, SIZE, 0), hipSuccess);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 1; k < n; k++)
            for (size_t a = 0; a < n; a++) {
                struct gcore_d2h_meta m = meta("t", edges[i], edges[k], edges[a]);
                wide end = (wide)m.offset + m.size;
                bool fits = end <= SIZE && m.size <= SIZE && (m.alloc == 0 || end <= m.alloc);
                enum gcore_d2h_code code = gcore_d2h_copy(pinned, p, &m, NULL, NULL);
                if ((code == GCORE_D2H_OK) != fits)
                    fail_msg("offset %zu size %zu alloc %zu: %s", m.offset, m.size, m.alloc,
                             gcore_d2h_code_name(code));
            }
}

/* ---- what is not refused --------------------------------------------------------------------- */

static void an_empty_copy_succeeds_and_touches_nothing(void **state) {
    (void)state;
    struct gcore_d2h_meta m = meta("t", SIZE_MAX, 0, 1);
    struct gcore_d2h_op op;
    assert_int_equal(gcore_d2h_copy(NULL, NULL, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_h2d_copy((void *)1, NULL, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2d_copy(NULL, NULL, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_copy_async(NULL, NULL, &m, NULL, &op, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK);
    assert_int_equal(fake_copies(), 0);
    assert_string_equal(fake_log(), "");
}

static void the_copy_moves_exactly_size_bytes_at_offset(void **state) {
    (void)state;
    unsigned char *p = device_memory(SIZE);
    for (int i = 0; i < SIZE; i++)
        p[i] = (unsigned char)(i * 7);
    struct gcore_d2h_meta m = meta("t", 100, 33, SIZE);
    struct gcore_d2h_result r;
    assert_int_equal(gcore_d2h_copy(host + 5, p, &m, NULL, &r), GCORE_D2H_OK);
    assert_string_equal(r.message, "");
    assert_memory_equal(host + 5, p + 100, 33);
    assert_int_equal(host[4], 0xa5);
    assert_int_equal(host[38], 0xa5);
    memset(host, 1, 64);
    assert_int_equal(gcore_h2d_copy(p, host, &m, NULL, NULL), GCORE_D2H_OK);
    assert_memory_equal(p + 100, host, 33);
    assert_int_equal(p[99], (unsigned char)(99 * 7));
    assert_int_equal(p[133], (unsigned char)(133 * 7));
    unsigned char *to = device_memory(SIZE);
    assert_int_equal(gcore_d2d_copy(to, p, &m, NULL, NULL), GCORE_D2H_OK);
    assert_memory_equal(to, p + 100, 33);
    assert_int_equal(to[33], 0);
}

static void kind_default_is_what_the_ledger_says(void **state) {
    (void)state;
    unsigned char *p = device_memory(SIZE), *to = device_memory(SIZE);
    p[8] = 42;
    struct gcore_d2h_meta m = meta("t", 8, 1, 0);
    assert_int_equal(gcore_copy(host, p, hipMemcpyDefault, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(host[0], 42);
    host[0] = 43;
    assert_int_equal(gcore_copy(to, host, hipMemcpyDefault, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(to[8], 43);
    assert_int_equal(gcore_copy(to, p, hipMemcpyDefault, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(to[0], 42);
}

static void managed_memory_is_on_both_sides(void **state) {
    (void)state;
    void *managed = NULL, *p = device_memory(SIZE);
    assert_int_equal(api.hipMallocManaged(&managed, 64, 1), hipSuccess);
    struct gcore_d2h_meta m = meta("t", 0, 64, 0);
    assert_int_equal(gcore_d2h_copy(host, managed, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_copy(managed, p, &m, NULL, NULL), GCORE_D2H_OK);
    m.size = 65;
    assert_int_equal(gcore_d2h_copy(managed, p, &m, NULL, NULL), GCORE_D2H_HOST_TOO_SMALL);
}

static void unregistered_memory_is_plain_again(void **state) {
    (void)state;
    void *p = device_memory(SIZE);
    struct gcore_d2h_meta m = meta("t", 0, 128, 0);
    assert_int_equal(api.hipHostRegister(host, 64, 0), hipSuccess);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_HOST_TOO_SMALL);
    assert_int_equal(api.hipHostUnregister(host), hipSuccess);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
}

static void memory_the_runtime_knows_is_imported(void **state) {
    (void)state;
    void *p = fake_memory + FAKE_MEMORY - SIZE;
    fake.attributes = (hipPointerAttribute_t){ .type = hipMemoryTypeDevice };
    fake.attributes_base = p;
    fake.attributes_size = 256;
    struct gcore_d2h_meta m = meta("t", 0, 256, 0);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
    unsigned long asked = fake_calls(hipPointerGetAttributes);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(fake_calls(hipPointerGetAttributes), asked); /* known by now */
    m.size = 257;
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OUT_OF_ALLOCATION);
}

static void a_question_leaves_no_error_behind(void **state) {
    (void)state;
    struct gcore_d2h_meta m = meta("t", 0, 1, 0);
    unsigned long before = fake_calls(hipGetLastError);
    assert_int_equal(gcore_d2h_copy(host, "stray", &m, NULL, NULL), GCORE_D2H_UNKNOWN_POINTER);
    assert_true(fake_calls(hipGetLastError) > before);
}

static void tracked_memory_is_known(void **state) {
    (void)state;
    char *p = (char *)fake_memory + FAKE_MEMORY - SIZE;
    struct gcore_d2h_meta m = meta("t", 0, 64, 0);
    assert_int_equal(gcore_track_alloc(p, 64, GCORE_SIDE_DEVICE, 0), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OK);
    m.size = 65;
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_OUT_OF_ALLOCATION);
    assert_int_equal(gcore_track_free(p), GCORE_D2H_OK);
    m.size = 1;
    assert_int_equal(gcore_d2h_copy(host, p, &m, NULL, NULL), GCORE_D2H_FREED);
    assert_int_equal(gcore_track_free(p), GCORE_D2H_FREED);
    assert_int_equal(gcore_track_free(host), GCORE_D2H_UNKNOWN_POINTER);
    assert_int_equal(gcore_track_free(device_memory(8)), GCORE_D2H_BAD_ARGUMENT);
    assert_int_equal(gcore_track_alloc(host, SIZE, GCORE_SIDE_HOST, 0), GCORE_D2H_OK);
    assert_int_equal(gcore_track_alloc(NULL, 1, GCORE_SIDE_HOST, 0), GCORE_D2H_NULL_POINTER);
    assert_int_equal(gcore_track_alloc(host, 0, GCORE_SIDE_HOST, 0), GCORE_D2H_BAD_ARGUMENT);
    assert_int_equal(gcore_track_alloc(host, SIZE_MAX, GCORE_SIDE_HOST, 0), GCORE_D2H_OVERFLOW);
    assert_int_equal(gcore_track_alloc(host, 1, (enum gcore_side)9, 0), GCORE_D2H_BAD_ARGUMENT);
}

static void names_are_refused_where_they_make_no_sense(void **state) {
    (void)state;
    char *p = device_memory(64), *q = device_memory(64);
    assert_int_equal(api.hipFree(q), hipSuccess);
    assert_int_equal(gcore_name_range(NULL, 1, "n"), GCORE_D2H_NULL_POINTER);
    assert_int_equal(gcore_name_range(p, 0, "n"), GCORE_D2H_BAD_ARGUMENT);
    assert_int_equal(gcore_name_range(p, 1, ""), GCORE_D2H_BAD_ARGUMENT);
    assert_int_equal(gcore_name_range(p, 1, NULL), GCORE_D2H_BAD_ARGUMENT);
    assert_int_equal(gcore_name_range(p, 65, "n"), GCORE_D2H_OUT_OF_ALLOCATION);
    assert_int_equal(gcore_name_range(p, SIZE_MAX, "n"), GCORE_D2H_OVERFLOW);
    assert_int_equal(gcore_name_range(q, 1, "n"), GCORE_D2H_FREED);
    assert_int_equal(gcore_name_range(host, 1, "n"), GCORE_D2H_UNKNOWN_POINTER);
    assert_int_equal(gcore_name_range(p, 32, "a"), GCORE_D2H_OK);
    assert_int_equal(gcore_name_range(p + 16, 32, "b"), GCORE_D2H_BAD_ARGUMENT);
    assert_int_equal(gcore_unname_range(p), GCORE_D2H_OK);
    assert_int_equal(gcore_unname_range(p), GCORE_D2H_UNKNOWN_POINTER);
    assert_int_equal(gcore_name_range(p + 16, 32, "b"), GCORE_D2H_OK);
}

static void malformed_calls_are_told_so(void **state) {
    (void)state;
    struct gcore_d2h_result r;
    assert_int_equal(gcore_d2h_copy(host, host, NULL, NULL, &r), GCORE_D2H_BAD_ARGUMENT);
    assert_non_null(strstr(r.message, "struct gcore_d2h_meta"));
    assert_non_null(strstr(fake_log(), "[D2H_ERROR] reason=BAD_ARGUMENT: expected a struct gcore"));
    assert_int_equal(gcore_d2h_wait(NULL, &r), GCORE_D2H_BAD_ARGUMENT);
    assert_int_equal(gcore_d2h_batch(NULL, 3, NULL, &r), GCORE_D2H_BAD_ARGUMENT);
    assert_int_equal(gcore_d2h_batch(NULL, 0, NULL, &r), GCORE_D2H_OK);
}

static void every_code_has_a_name_and_a_text(void **state) {
    (void)state;
    for (int i = 0; i < GCORE_D2H_CODE_COUNT; i++) {
        assert_true(strlen(gcore_d2h_code_name((enum gcore_d2h_code)i)) >= 2);
        assert_true(strlen(gcore_d2h_code_text((enum gcore_d2h_code)i)) > 10);
    }
    assert_string_equal(gcore_d2h_code_name(GCORE_D2H_FREED), "FREED");
    assert_string_equal(gcore_d2h_code_name((enum gcore_d2h_code)99), "?");
    assert_string_equal(gcore_d2h_code_text((enum gcore_d2h_code)99), "?");
}

static void errno_is_left_alone(void **state) {
    (void)state;
    struct gcore_d2h_meta m = meta("t", 0, 1, 0);
    errno = 77;
    (void)gcore_d2h_copy(host, "stray", &m, NULL, NULL);
    (void)gcore_d2h_copy(host, device_memory(8), &m, NULL, NULL);
    (void)gcore_name_range(host, 1, "n");
    assert_int_equal(errno, 77);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, fake_detach)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(null_source),
        T(null_destination),
        T(unknown_source),
        T(freed_source_names_who_freed_it),
        T(source_freed_in_stream_order),
        T(memory_of_a_reset_device),
        T(freed_pinned_destination),
        T(host_memory_as_device_source),
        T(device_memory_as_host_destination),
        T(array_handle_as_source),
        T(swapped_pointers_contradict_the_kind),
        T(host_to_host_is_no_device_copy),
        T(a_kind_that_does_not_exist),
        T(two_host_pointers_with_kind_default),
        T(memory_of_another_device),
        T(stream_of_another_device),
        T(a_copy_between_two_devices),
        T(destroyed_stream),
        T(capturing_stream),
        T(size_beyond_the_ledgers_allocation),
        T(offset_beyond_the_ledgers_allocation),
        T(interior_base_counts_from_itself),
        T(range_beyond_the_callers_claim),
        T(range_beyond_the_named_tensor),
        T(offset_into_the_next_tensor),
        T(arena_offset_of_a_tensor_known_by_name),
        T(named_host_to_device_destination),
        T(pinned_destination_too_small),
        T(registered_destination_too_small),
        T(plain_memory_that_runs_into_a_pinned_block),
        T(device_to_device_destination_too_small),
        T(device_to_device_with_a_host_destination),
        T(every_sum_that_wraps_is_refused),
        T(sums_that_just_fit_are_judged_by_the_ledger),
        T(random_ranges_agree_with_wide_arithmetic),
        T(an_empty_copy_succeeds_and_touches_nothing),
        T(the_copy_moves_exactly_size_bytes_at_offset),
        T(kind_default_is_what_the_ledger_says),
        T(managed_memory_is_on_both_sides),
        T(unregistered_memory_is_plain_again),
        T(memory_the_runtime_knows_is_imported),
        T(a_question_leaves_no_error_behind),
        T(tracked_memory_is_known),
        T(names_are_refused_where_they_make_no_sense),
        T(malformed_calls_are_told_so),
        T(every_code_has_a_name_and_a_text),
        T(errno_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
