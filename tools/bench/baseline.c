#include "tools/bench/baseline.h"

#include <string.h>

enum rc baseline_open(json_tree **out, const char *path, struct err *e) {
    json_tree *tree = NULL;
    enum rc rc = json_tree_open_file(&tree, path, e);
    if (rc)
        return rc;
    const struct json_node *runs = json_tree_get(json_tree_root(tree), "runs");
    if (!runs || runs->type != JSON_ARRAY) {
        json_tree_close(&tree);
        return err_set(e, RC_FORMAT,
                       "%s: expected what greta_bench --json wrote: there are no runs", path);
    }
    *out = tree;
    return RC_OK;
}

static const struct json_node *find_run(const json_tree *baseline, const struct measure_run *run) {
    const struct json_node *n = json_tree_get(json_tree_root(baseline), "runs")->first;
    const char *kind = run->kind == MEASURE_PROMPT ? "prompt" : "decode";
    for (; n; n = n->next)
        if (!strcmp(json_tree_text(n, "kind"), kind) && json_tree_u64(n, "tokens") == run->tokens &&
            json_tree_u64(n, "depth") == run->depth && json_tree_u64(n, "batch") == run->batch &&
            json_tree_u64(n, "threads") == run->threads)
            return n;
    return NULL;
}

/* Says nothing about a setting that an older baseline does not have. */
static void print_setting(const char *what, const char *then, const char *now, FILE *out) {
    if (*then && strcmp(then, now) != 0)
        fprintf(out, "Note: %s: %s in the baseline, %s now\n", what, then, now);
}

/* Comparing two models, settings or machines may be intended, but the reader has to know. */
static void print_differences(const json_tree *baseline, const struct report *r, FILE *out) {
    const struct json_node *root = json_tree_root(baseline);
    const struct json_node *model = json_tree_get(root, "model");
    const struct json_node *settings = json_tree_get(root, "settings");
    const struct json_node *machine = json_tree_get(root, "machine");
    if (json_tree_u64(model, "bytes") != r->work.file_bytes ||
        strcmp(json_tree_text(model, "type"), r->work.type) != 0)
        fprintf(out, "Note: the baseline is of another model: %s, %s, %llu bytes\n",
                json_tree_text(model, "name"), json_tree_text(model, "type"),
                (unsigned long long)json_tree_u64(model, "bytes"));
#define SETTING(name, what)                                                                        \
    print_setting(what, json_tree_text(settings, #name), r->settings.name, out);
#include "tools/bench/settings.def"
    double before = json_tree_number(machine, "read_gbps");
    if (before > 0 && r->machine_count &&
        json_tree_u64(machine, "threads") == r->machines[0].threads)
        fprintf(out, "The machine reads %.1f GB/s, and read %.1f GB/s then (%+.1f%%)\n",
                r->machines[0].read_gbps, before, (r->machines[0].read_gbps / before - 1) * 100);
}

void baseline_compare(const json_tree *baseline, const struct report *r, double percent, FILE *out,
                      unsigned *compared, unsigned *slower) {
    *compared = *slower = 0;
    fputc('\n', out);
    print_differences(baseline, r, out);
    fprintf(out, "%-24s %7s %6s %10s %10s %9s\n", "", "threads", "batch", "baseline", "now",
            "change");
    for (size_t i = 0; i < r->run_count; i++) {
        const struct measure_run *run = &r->runs[i];
        char name[64];
        if (!run->count)
            continue;
        const struct json_node *n = find_run(baseline, run);
        double before = n ? json_tree_number(n, "tokens_per_second") : 0;
        report_name_run(run, name, sizeof name);
        fprintf(out, "%-24s %7u %6u ", name, run->threads, run->batch);
        if (!(before > 0)) {
            fprintf(out, "%10s %10.2f %9s\n", "-", run->tokens_per_second, "new");
            continue;
        }
        double change = (run->tokens_per_second / before - 1) * 100;
        bool is_slower = change < -percent;
        fprintf(out, "%10.2f %10.2f %+8.1f%%%s\n", before, run->tokens_per_second, change,
                is_slower ? "  slower" : "");
        ++*compared;
        *slower += is_slower;
    }
}
