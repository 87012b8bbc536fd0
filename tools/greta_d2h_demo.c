/* greta_d2h_demo - three copies that show what the audited D2H path does: one that is made, one
 * that is refused, and one that reports what a kernel did before it. Everything is recorded. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gcore/audit.h>
#include <gcore/d2h.h>
#include <greta/soft.h>

#include "audit/attach.h"
#include "audit/audit.h"
#include "base/env.h"
#include "base/folder.h"
#include "hip/hip_api.h"
#include "record/reader.h"
#include "tools/common/option.h"
#include "tools/common/program.h"

enum { FLOATS = 1024, BYTES = FLOATS * 4 };

static const struct hip_api *hip;
static bool as_expected = true;

/* ---- printing -------------------------------------------------------------------------------- */

/* Prints a condition that should hold, and remembers if one did not. */
static void expect(bool holds, const char *what) {
    printf("   %s %s\n", holds ? "ok " : "NOT", what);
    as_expected = as_expected && holds;
}

static void show_call(const char *what, hipError_t r, const char *remark) {
    printf("   %-22s %s%s%s\n", what, hip_error_name(r), *remark ? "  <- " : "", remark);
}

/* Prints what has been added to the log since the last call. */
static void show_log(FILE *log) {
    char line[LOG_LINE_MAX];
    while (fgets(line, sizeof line, log))
        printf("   %s", line);
    clearerr(log);
}

/* ---- the three cases ------------------------------------------------------------------------- */

static void audited_copy(FILE *log, float *logits) {
    puts("1. A copy, audited");
    float host[FLOATS] = { 0 };
    for (int i = 0; i < FLOATS; i++)
        host[i] = (float)i;
    struct gcore_d2h_meta meta = {
        .tensor = "logits", .step = 0, .layer = -1, .size = BYTES, .alloc = BYTES
    };
    (void)gcore_name_range(logits, BYTES, "logits");
    enum gcore_d2h_code sent = gcore_h2d_copy(logits, host, &meta, NULL, NULL);
    memset(host, 0, sizeof host);
    struct gcore_d2h_result result;
    enum gcore_d2h_code code = gcore_d2h_copy(host, logits, &meta, NULL, &result);
    show_log(log);
    expect(sent == GCORE_D2H_OK && code == GCORE_D2H_OK && host[FLOATS - 1] == (float)(FLOATS - 1),
           "4096 bytes went to the device and came back");
}

static void refused_copy(FILE *log, float *logits) {
    puts("\n2. A copy that would leave its tensor, refused");
    static float host[2 * FLOATS];
    struct gcore_d2h_meta meta = {
        .tensor = "logits", .step = 1, .layer = -1, .size = 2 * BYTES, .alloc = 2 * BYTES
    };
    struct gcore_d2h_result result;
    host[0] = -1;
    enum gcore_d2h_code code = gcore_d2h_copy(host, logits, &meta, NULL, &result);
    show_log(log);
    printf("   %s: %s\n", gcore_d2h_code_name(code), result.message);
    expect(code == GCORE_D2H_OUT_OF_ALLOCATION && host[0] == -1, "nothing was copied");
}

/* Writes count floats without checking that there is room. */
static void scale_run(const struct greta_soft_work *work, void *const *args) {
    float *out = *(float **)args[0];
    uint32_t count = *(uint32_t *)args[1];
    for (uint64_t block = work->first; block < work->last; block++)
        for (uint32_t i = 0; i < count; i++)
            out[i] = 0.5f;
}

static const struct greta_soft_param scale_params[] = {
    { "out", sizeof(float *), GRETA_SOFT_POINTER },
    { "count", sizeof(uint32_t), GRETA_SOFT_VALUE },
};
static const struct greta_soft_kernel scale = { "scale", scale_run, scale_params, 2 };

/* The function handle of the demo's kernel; NULL where kernels in host code cannot run. */
static hipFunction_t find_kernel(void) {
    int (*enter)(const struct greta_soft_kernel *);
    void *symbol = gcore_runtime_symbol("greta_soft_kernel_register");
    memcpy(&enter, &symbol, sizeof enter);
    hipModule_t module = NULL;
    hipFunction_t function = NULL;
    if (!symbol || enter(&scale) != 0 ||
        hip->hipModuleLoadData(&module, "GRETASFT") != hipSuccess ||
        hip->hipModuleGetFunction(&function, module, "scale") != hipSuccess)
        return NULL;
    return function;
}

static void faulty_kernel(FILE *log, float *logits) {
    puts("\n3. A kernel that writes past its buffer");
    hipFunction_t function = find_kernel();
    if (!function) {
        puts("   skipped: it needs the software device's kernels in host code");
        return;
    }
    uint32_t count = 2 * FLOATS;
    void *args[] = { &logits, &count };
    float host[FLOATS];
    struct gcore_d2h_meta meta = { .tensor = "logits", .step = 2, .layer = -1, .size = BYTES };
    struct gcore_d2h_result result;
    int device;
    hipError_t launch = hip->hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
    (void)gcore_d2h_copy(host, logits, &meta, NULL, &result);
    hipError_t later = hip->hipGetDevice(&device), malloc_too = hip->hipMalloc((void **)&logits, 4);
    hipError_t reset = hip->hipDeviceReset();
    hipError_t again = hip->hipMalloc((void **)&logits, BYTES);
    enum gcore_d2h_code after = gcore_d2h_copy(host, logits, &meta, NULL, NULL);

    show_log(log);
    show_call("launch of scale", launch, "the culprit: accepted, as on a GPU");
    show_call("copy of logits", (hipError_t)result.hip_error, "the messenger");
    show_call("hipGetDevice", later, "and every later call");
    show_call("hipMalloc", malloc_too, "");
    show_call("hipDeviceReset", reset, "");
    show_call("copy after the reset", after == GCORE_D2H_OK ? hipSuccess : hipErrorUnknown, "");
    expect(launch == hipSuccess && result.hip_error == hipErrorIllegalAddress &&
               later == hipErrorIllegalAddress && malloc_too == hipErrorIllegalAddress &&
               reset == hipSuccess && again == hipSuccess && after == GCORE_D2H_OK,
           "the error was late, sticky, and gone after the reset");
}

/* ---- the recording --------------------------------------------------------------------------- */

static void show_fault(const reader *r, const struct reader_event *e) {
    const struct event_extra *x = reader_extra(e, EXTRA_FAULT);
    const char *kernel = reader_string(r, e->event.name);
    const char *verb = event_detail(&e->event) == DETAIL_ACCESS_READ ? "read" : "wrote";
    printf("   event %llu: %s %s 0x%llx", (unsigned long long)e->seq, kernel, verb,
           (unsigned long long)e->event.dst);
    if (x) {
        struct event_fault f = event_fault_of(x);
        printf(", byte %llu of a block of %llu", (unsigned long long)(e->event.dst - f.alloc_base),
               (unsigned long long)f.alloc_bytes);
    }
    if (e->event.src != EVENT_NO_SEQ)
        printf(" (launched by event %llu)", (unsigned long long)e->event.src);
    putchar('\n');
}

static void show_recording(const char *path, bool faulted) {
    reader *r = NULL;
    struct err e = { 0 };
    printf("\nThe recording, %s\n", path);
    if (reader_open(&r, path, &e) != RC_OK) {
        expect(false, e.msg);
        return;
    }
    struct reader_cursor at = reader_events(r, 0, UINT64_MAX);
    struct reader_event *event = malloc(sizeof *event);
    bool fault = false;
    while (event && reader_next(&at, event))
        if (event->event.kind == EVENT_FAULT) {
            show_fault(r, event);
            fault = true;
        }
    free(event);
    printf("   %llu events, %llu lost; `greta_audit report %s` judges them\n",
           (unsigned long long)at.counts.whole, (unsigned long long)at.counts.lost, path);
    expect(at.counts.whole > 0 && at.counts.lost == 0 && fault == faulted,
           faulted ? "it names the kernel that did it" : "it is whole");
    reader_close(&r);
}

/* artifacts/YYYY-MM-DD/d2h_demo/record.gcr, with its folders. */
static bool default_record(char *out, size_t size) {
    char day[16], folder[64];
    time_t now = time(NULL);
    struct tm date;
    localtime_r(&now, &date);
    strftime(day, sizeof day, "%Y-%m-%d", &date);
    snprintf(folder, sizeof folder, "artifacts/%s/d2h_demo", day);
    snprintf(out, size, "%s/record.gcr", folder);
    return folder_make(folder);
}

/* ---- starting -------------------------------------------------------------------------------- */

struct options {
#define OPTION OPTION_FIELD
#include "tools/d2h_demo/options.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/d2h_demo/options.def"
};

static const struct option_table options_table = {
    .name = "greta_d2h_demo",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .before = "Usage: greta_d2h_demo [--device auto|hip|soft] [--record FILE]\n\n"
              "Makes a checked device-to-host copy, has one refused, and lets a kernel fault, all\n"
              "under a recording.\n\n",
    .after =
        "\nExit status: 0 all was as expected, 1 it was not, 2 wrong usage, 3 no such device or\n"
        "no place for the recording.\n",
};

static int run(const struct options *o, const char *record, FILE *log) {
    char name[256] = "?", message[512];
    float *logits = NULL;
    if (gcore_open(o->device, message, sizeof message) != 0) {
        fprintf(stderr, "greta_d2h_demo: %s\n", message);
        return EXIT_REFUSED;
    }
    hip = gcore_hip(NULL);
    bool soft = strcmp(gcore_device_kind(), "soft") == 0;
    if (hip->hipDeviceGetName(name, sizeof name, 0) != hipSuccess ||
        hip->hipMalloc((void **)&logits, BYTES) != hipSuccess) {
        fprintf(stderr, "greta_d2h_demo: the device does not work: %s\n",
                hip->hipGetErrorString(hip->hipGetLastError()));
        return EXIT_FOUND;
    }
    printf("Device: %s\n\n", name);
    audited_copy(log, logits);
    refused_copy(log, logits);
    faulty_kernel(log, logits);
    gcore_close();
    show_recording(record, soft);
    return as_expected ? EXIT_CLEAN : EXIT_FOUND;
}

int main(int argc, char **argv) {
    struct options o = { .record = env_text(ENV_GCORE_RECORD) };
    char record[512], log_path[] = "/tmp/greta_d2h_demo.XXXXXX";
    int status = option_begin(&options_table, &o, argc, argv, NULL);
    if (status >= 0)
        return status;
    if (o.record) {
        snprintf(record, sizeof record, "%s", o.record);
    } else if (!default_record(record, sizeof record)) {
        fprintf(stderr, "greta_d2h_demo: cannot create the folder of %s: %s; use --record FILE\n",
                record, strerror(errno));
        return EXIT_REFUSED;
    }
    int fd = mkstemp(log_path);
    FILE *log = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!log) {
        fprintf(stderr, "greta_d2h_demo: cannot create %s: %s\n", log_path, strerror(errno));
        return EXIT_REFUSED;
    }
    /* The demo shows its own log; the library reads these when it opens. */
    setenv("GCORE_D2H_AUDIT", "1", 1);
    setenv("GCORE_D2H_AUDIT_LOG", log_path, 1);
    setenv("GCORE_RECORD", record, 1);
    status = run(&o, record, log);
    fclose(log);
    unlink(log_path);
    return status == EXIT_CLEAN ? program_finish_output("greta_d2h_demo") : status;
}
