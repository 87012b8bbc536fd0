/* The log lines of checked copies, letter by letter, and silence when nothing is switched on. */
#include "unit/audit_fake.h"

#include <regex.h>
#include <signal.h>
#include <sys/wait.h>

static unsigned char host[4096];
static char *device;

static void attach(struct audit_config config) {
    fake_attach_with(config, false);
    assert_int_equal(api.hipMalloc((void **)&device, 4096), hipSuccess);
}

static struct gcore_d2h_meta meta(const char *tensor) {
    return (struct gcore_d2h_meta){
        .tensor = tensor, .step = 0, .layer = -1, .size = 4096, .alloc = 4096
    };
}

/* The log matches the extended regular expression as a whole. */
static void expect_log(const char *pattern) {
    char whole[4096];
    regex_t re;
    snprintf(whole, sizeof whole, "^%s$", pattern);
    assert_int_equal(regcomp(&re, whole, REG_EXTENDED | REG_NOSUB), 0);
    int no = regexec(&re, fake_log(), 0, NULL, 0);
    regfree(&re);
    if (no)
        fail_msg("the log is\n%s\nand does not match\n%s", fake_log(), pattern);
}

#define TS  "[0-9]{10}\\.[0-9]{6}"
#define PTR "0x[0-9a-f]+"

static void everything_off_is_silence(void **state) {
    (void)state;
    attach((struct audit_config){ 0 });
    struct gcore_d2h_meta m = meta("logits");
    struct gcore_d2h_op op;
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_copy_async(host, device, &m, NULL, &op, NULL), GCORE_D2H_OK);
    assert_int_equal(gcore_d2h_wait(&op, NULL), GCORE_D2H_OK);
    assert_int_equal(fake_calls(hipStreamAddCallback), 0);
    assert_string_equal(fake_log(), "");
}

static void audit_writes_start_and_end(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_meta m = meta("logits");
    struct gcore_d2h_result r;
    char pattern[600];
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, &r), GCORE_D2H_OK);
    assert_int_equal(r.op_id, 0);
    snprintf(pattern, sizeof pattern,
             "\\[D2H_AUDIT_START\\] op_id=0 ts=" TS " stream=0x0 dev_ptr=%p host_ptr=%p bytes=4096 "
             "tensor=logits step=0 layer=-1\n"
             "\\[D2H_AUDIT_END\\] op_id=0 ts=" TS " stream=0x0 result=hipSuccess tensor=logits\n",
             (void *)device, (void *)host);
    expect_log(pattern);
}

static void dev_ptr_is_the_first_byte_that_is_copied(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_meta m = meta("t");
    char expected[64];
    m.offset = 16;
    m.size = 8;
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, NULL), GCORE_D2H_OK);
    snprintf(expected, sizeof expected, " dev_ptr=%p ", (void *)(device + 16));
    assert_non_null(strstr(fake_log(), expected));
    assert_int_equal(gcore_h2d_copy(device, host, &m, NULL, NULL), GCORE_D2H_OK);
    assert_non_null(strstr(strstr(fake_log(), "op_id=1"), expected));
}

static void a_failed_copy_ends_with_its_error(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_meta m = meta("logits");
    struct gcore_d2h_result r;
    fake.result = hipErrorIllegalAddress;
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, &r), GCORE_D2H_DEVICE_ERROR);
    assert_int_equal(r.hip_error, hipErrorIllegalAddress);
    assert_int_equal(fake_copies(), 1); /* never tried again */
    expect_log("\\[D2H_AUDIT_START\\] op_id=0 [^\n]*\n"
               "\\[D2H_AUDIT_END\\] op_id=0 ts=" TS
               " stream=0x0 result=hipErrorIllegalAddress tensor=logits\n"
               "\\[D2H_ERROR\\] reason=DEVICE_ERROR tensor=logits [^\n]*"
               "an illegal memory access was encountered[^\n]*\n");
}

static void debug_writes_what_the_seeds_have(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_debug = true });
    struct gcore_d2h_meta m = meta("logits_async");
    char pattern[600];
    m.layer = 32;
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, NULL), GCORE_D2H_OK);
    snprintf(pattern, sizeof pattern,
             "\\[D2H SAFE\\] engaged for tensor=logits_async\n"
             "\\[D2H_CHECK\\] tensor=logits_async step=0 layer=32 src_ptr=%p dst_ptr=%p offset=0 "
             "size=4096 alloc=4096\n"
             "\\[D2H SAFE\\] async copy succeeded: hipSuccess\n",
             (void *)device, (void *)host);
    expect_log(pattern);
}

static void a_refusal_follows_its_check_line(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_debug = true, .d2h_audit = true });
    struct gcore_d2h_meta m = meta("t");
    m.offset = 1;
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, NULL), GCORE_D2H_OUT_OF_ALLOCATION);
    expect_log("\\[D2H SAFE\\] engaged for tensor=t\n"
               "\\[D2H_CHECK\\] tensor=t step=0 layer=-1 [^\n]* offset=1 size=4096 alloc=4096\n"
               "\\[D2H_BOUNDS\\] tensor=t offset=1 size=4096 alloc=4096\n");
}

#if GRETA_TRACE_MEMCPY
static void trace_writes_both_blocks(void **state) {
    (void)state;
    attach((struct audit_config){ .trace_memcpy = true });
    struct gcore_d2h_meta m = meta("logits");
    char pattern[600];
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, NULL), GCORE_D2H_OK);
    snprintf(pattern, sizeof pattern,
             "\\[D2H TRACE\\] logits:before\n  src_ptr=%p\n  bytes=4096\n  stream=0x0\n"
             "\\[D2H TRACE\\] logits:after\n  dst_ptr=%p\n  bytes=4096\n",
             (void *)device, (void *)host);
    expect_log(pattern);
}

static void trace_ends_the_program_when_a_copy_fails(void **state) {
    (void)state;
    attach((struct audit_config){ .trace_memcpy = true });
    struct gcore_d2h_meta m = meta("logits");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        fake.result = hipErrorIllegalAddress;
        (void)gcore_d2h_copy(host, device, &m, NULL, NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    char pattern[600];
    snprintf(pattern, sizeof pattern,
             "\\[D2H TRACE\\] logits:before\n  src_ptr=%p\n  bytes=4096\n  stream=0x0\n"
             "\\[D2H FATAL\\] logits:FAILED\n  src_ptr=%p\n  dst_ptr=%p\n  bytes=4096\n"
             "  hipError=an illegal memory access was encountered\n",
             (void *)device, (void *)device, (void *)host);
    expect_log(pattern);
}

static void a_refusal_does_not_end_a_traced_program(void **state) {
    (void)state;
    attach((struct audit_config){ .trace_memcpy = true });
    struct gcore_d2h_meta m = meta("logits");
    assert_int_equal(gcore_d2h_copy(NULL, device, &m, NULL, NULL), GCORE_D2H_NULL_POINTER);
    expect_log("\\[D2H_ERROR\\] reason=NULL_POINTER [^\n]*\n");
}
#endif

static void names_cannot_break_the_line(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    const char *const names[] = { "a b\nc\t\x1b[31m\x7f\xc3\xa9", "", NULL };
    const char *const safe[] = { "tensor=a_b_c__[31m___", "tensor=unnamed", "tensor=unnamed" };
    for (int i = 0; i < 3; i++) {
        struct gcore_d2h_meta m = meta(names[i]);
        assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, NULL), GCORE_D2H_OK);
        char expected[64];
        snprintf(expected, sizeof expected, "%s step=0 layer=-1\n", safe[i]);
        assert_non_null(strstr(fake_log(), expected));
    }
    static char endless[100000];
    memset(endless, 'x', sizeof endless - 1);
    struct gcore_d2h_meta m = meta(endless);
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, NULL), GCORE_D2H_OK);
    const char *last = strstr(fake_log(), "tensor=xxx");
    assert_non_null(last);
    assert_int_equal(strspn(last + 7, "x"), 95);
    assert_memory_equal(last + 7 + 95, " step=0", 7);
}

static void empty_copies_are_logged_as_copies(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    struct gcore_d2h_meta m = meta("t");
    m.size = 0;
    assert_int_equal(gcore_d2h_copy(host, device, &m, NULL, NULL), GCORE_D2H_OK);
    expect_log("\\[D2H_AUDIT_START\\] op_id=0 [^\n]* bytes=0 [^\n]*\n"
               "\\[D2H_AUDIT_END\\] op_id=0 [^\n]*result=hipSuccess[^\n]*\n");
    assert_int_equal(fake_copies(), 0);
}

/* Copies that the program makes through the table, without the wrappers. */
static void direct_copies_are_in_the_audit_log(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    assert_int_equal(gcore_name_range(device, 64, "q_head"), GCORE_D2H_OK);
    assert_int_equal(api.hipMemcpy(host, device, 64, hipMemcpyDeviceToHost), hipSuccess);
    assert_int_equal(api.hipMemcpy(device, host, 64, hipMemcpyHostToDevice), hipSuccess);
    expect_log("\\[D2H_AUDIT_START\\] op_id=0 [^\n]* bytes=64 tensor=q_head step=-1 layer=-1\n"
               "\\[D2H_AUDIT_END\\] op_id=0 [^\n]* result=hipSuccess tensor=q_head\n");
}

static void wrong_direct_copies_are_reported_and_not_stopped(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    assert_int_equal(api.hipMemcpy(host, device + 4090, 7, hipMemcpyDeviceToHost), hipSuccess);
    assert_int_equal(fake_copies(), 1);
    expect_log("\\[D2H_BOUNDS\\] tensor=unnamed offset=0 size=7 alloc=6\n"
               "\\[D2H_AUDIT_START\\] op_id=0 [^\n]*\n\\[D2H_AUDIT_END\\] op_id=0 [^\n]*\n");
}

static void direct_async_copies_end_when_they_have(void **state) {
    (void)state;
    attach((struct audit_config){ .d2h_audit = true });
    assert_int_equal(api.hipMemcpyAsync(host, device, 64, hipMemcpyDeviceToHost, NULL), hipSuccess);
    expect_log("\\[D2H_AUDIT_START\\] op_id=0 [^\n]*\n");
    assert_int_equal(api.hipStreamSynchronize(NULL), hipSuccess);
    expect_log("\\[D2H_AUDIT_START\\] op_id=0 [^\n]*\n\\[D2H_AUDIT_END\\] op_id=0 [^\n]*\n");
}

static void the_environment_is_read_as_documented(void **state) {
    (void)state;
    struct audit_config c;
    struct err e = { 0 };
    setenv("GCORE_D2H_AUDIT", "1", 1);
    setenv("GRETA_D2H_DEBUG", "on", 1);
    setenv("GRETA_TRACE_MEMCPY", "0", 1);
    setenv("GCORE_D2H_AUDIT_LOG", "/tmp/some.log", 1);
    assert_int_equal(audit_config_read(&c, NULL, &e), RC_OK);
    assert_true(c.d2h_audit && c.d2h_debug && !c.trace_memcpy);
    assert_string_equal(c.d2h_log, "/tmp/some.log");
    assert_null(c.record.path);
    setenv("GCORE_D2H_AUDIT", "perhaps", 1);
    assert_int_equal(audit_config_read(&c, NULL, &e), RC_USAGE);
    assert_non_null(strstr(e.msg, "GCORE_D2H_AUDIT"));
    unsetenv("GCORE_D2H_AUDIT");
    unsetenv("GRETA_D2H_DEBUG");
    unsetenv("GRETA_TRACE_MEMCPY");
    unsetenv("GCORE_D2H_AUDIT_LOG");
    assert_int_equal(audit_config_read(&c, NULL, &e), RC_OK);
    assert_true(!c.d2h_audit && !c.d2h_debug && !c.trace_memcpy);
    assert_string_equal(c.d2h_log, "stderr");
}

static void a_log_that_cannot_be_opened_is_an_error(void **state) {
    (void)state;
    struct audit_config config = { .d2h_log = "/nonexistent/folder/log" };
    struct audit_options options = { .config = &config };
    struct hip_api table = fake_table(), before = table;
    struct err e = { 0 };
    assert_int_equal(audit_attach(&table, &options, &e), RC_IO);
    assert_non_null(strstr(e.msg, "GCORE_D2H_AUDIT_LOG"));
    assert_memory_equal(&table, &before, sizeof table);
    assert_false(audit_is_attached());
}

/* What standard error receives while copies go on whose lines a full disk does not take. */
static void a_log_that_is_full_is_told_of_once(void **state) {
    (void)state;
    char said[1024] = "";
    int pipes[2], saved = dup(STDERR_FILENO);
    struct gcore_d2h_meta m = meta("logits");
    attach((struct audit_config){ .d2h_audit = true });
    log_close(&audit.log);
    assert_int_equal(log_open(&audit.log, "/dev/full", NULL), RC_OK);
    assert_int_equal(pipe(pipes), 0);
    dup2(pipes[1], STDERR_FILENO);
    enum gcore_d2h_code first = gcore_d2h_copy(host, device, &m, NULL, NULL);
    enum gcore_d2h_code second = gcore_d2h_copy(host, device, &m, NULL, NULL);
    dup2(saved, STDERR_FILENO);
    close(pipes[1]);
    ssize_t n = read(pipes[0], said, sizeof said - 1);
    assert_true(n > 0);
    assert_int_equal(first, GCORE_D2H_OK);
    assert_int_equal(second, GCORE_D2H_OK);
    assert_non_null(strstr(said, "lines are lost: No space left on device\n"));
    assert_ptr_equal(strchr(said, '\n'), said + n - 1);
    close(pipes[0]);
    close(saved);
}

#define T(name) cmocka_unit_test_teardown(name, fake_detach)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(everything_off_is_silence),
        T(audit_writes_start_and_end),
        T(dev_ptr_is_the_first_byte_that_is_copied),
        T(a_failed_copy_ends_with_its_error),
        T(debug_writes_what_the_seeds_have),
        T(a_refusal_follows_its_check_line),
#if GRETA_TRACE_MEMCPY
        T(trace_writes_both_blocks),
        T(trace_ends_the_program_when_a_copy_fails),
        T(a_refusal_does_not_end_a_traced_program),
#endif
        T(names_cannot_break_the_line),
        T(empty_copies_are_logged_as_copies),
        T(direct_copies_are_in_the_audit_log),
        T(wrong_direct_copies_are_reported_and_not_stopped),
        T(direct_async_copies_end_when_they_have),
        cmocka_unit_test(the_environment_is_read_as_documented),
        cmocka_unit_test(a_log_that_cannot_be_opened_is_an_error),
        T(a_log_that_is_full_is_told_of_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
