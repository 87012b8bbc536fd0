#include "tools/bench/options.h"

#include "tools/bench/measure.h"

static enum rc check_list(const char *flag, const struct option_counts *list, uint64_t min,
                          uint64_t max, struct err *e) {
    enum rc rc = RC_OK;
    for (size_t i = 0; !rc && i < list->count; i++)
        rc = option_check_range(flag, (struct option_count){ list->items[i], true }, min, max, e);
    return rc;
}

static bool any(const struct option_counts *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i])
            return true;
    return false;
}

static enum rc check(const void *values, struct err *e) {
    enum { POSITIONS_MAX = 1 << 24 };
    const struct options *o = values;
    enum rc rc = check_list("--prompt", &o->prompt, 0, POSITIONS_MAX, e);
    rc = rc ? rc : check_list("--decode", &o->decode, 0, POSITIONS_MAX, e);
    rc = rc ? rc : check_list("--depth", &o->depth, 0, POSITIONS_MAX, e);
    rc = rc ? rc : check_list("--batch-size", &o->batch_size, 1, 256, e);
    rc = rc ? rc : check_list("--threads", &o->threads, 1, 256, e);
    rc = rc ? rc : option_check_range("--repeat", o->repeat, 1, MEASURE_SAMPLES_MAX, e);
    rc = rc ? rc : option_check_range("--chunk", o->chunk, 0, 1 << 16, e);
    if (rc)
        return rc;
    if (!any(&o->prompt) && !any(&o->decode))
        return err_set(e, RC_USAGE, "nothing to measure: --prompt and --decode are both 0");
    if (o->buffer && o->buffer < 1 << 20)
        return err_set(e, RC_USAGE, "--buffer: expected at least 1M, found %llu bytes",
                       (unsigned long long)o->buffer);
    if (o->tolerance.given && !o->baseline)
        return err_set(e, RC_USAGE, "--tolerance goes with --baseline FILE");
    if (!(o->tolerance.value >= 0 && o->tolerance.value < 100))
        return err_set(e, RC_USAGE, "--tolerance: expected a percentage from 0 to below 100");
    return RC_OK;
}

const struct options options_default = { .prompt = { { 128 }, 1 },
                                         .decode = { { 64 }, 1 },
                                         .depth = { { 0 }, 1 },
                                         .batch_size = { { 1 }, 1 },
                                         .repeat = { 3, false },
                                         .tolerance = { 5, false } };

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/bench/options.def"
};

const struct option_table options_table = {
    .name = "greta_bench",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .check = check,
    .before = "Usage: greta_bench [OPTION…]\n\n"
              "Measures how fast a model reads prompts and generates, how fast this machine reads\n"
              "memory and multiplies, and what part of that the model gets.\n\nOptions:\n",
    .after =
        "\nEvery combination of decode, depth, batch size and threads is measured. Ctrl-C ends\n"
        "with what has been measured so far.\n"
        "\nExit status: 0 done, 1 the run failed or is slower than the baseline, 2 wrong "
        "usage,\n"
        "3 refused (guard rail, no such device).\n",
};
