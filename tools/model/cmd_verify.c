/* greta_model verify - is this a model greta can run, and are its numbers numbers? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "model/guard_rail.h"
#include "model/quant/quant_scan.h"
#include "tools/model/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/model/verify.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/model/verify.def"
};

const struct option_table cmd_verify_options = {
    .name = "greta_model verify",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before = "Usage: greta_model verify [options] FILE\n"
              "\n"
              "Checks the file's structure, the names, shapes and types of its tensors against its "
              "metadata,\n"
              "its vocabulary, and every number: no NaN, no infinity.\n"
              "\n",
};

/* Each returns the number of problems it printed. */

static uint64_t check_shapes(const gguf *g, const struct guard_rail_expectation *demand) {
    struct err e = { 0 };
    struct config c;
    if (config_read(g, &c, &e)) {
        printf("%s\n", e.msg);
        return 1;
    }
    struct guard_rail_report r = { 0 };
    guard_rail_check_model(g, &c, &guard_rail_default_limits, &r);
    if (demand)
        guard_rail_check_expectation(&c, demand, &r);
    uint64_t problems = r.count + r.incomplete;
    if (r.count)
        guard_rail_print(&r, stdout);
    else
        printf("names, shapes and types: %" PRIu64 " tensors as the %s configuration says\n",
               gguf_tensor_count(g), config_arch_name(c.arch));
    guard_rail_clear(&r);
    return problems;
}

static uint64_t print_scan(const gguf *g, const struct quant_scan_result *results) {
    uint64_t problems = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        if (results[i].bad == 0)
            continue;
        bool plain = tensor_type_find(t->type)->block_elements == 1;
        problems++;
        printf("%s: %" PRIu64 " %s %s not finite, the first at element %" PRIu64 " (%s)\n", t->name,
               results[i].bad, plain ? "number" : "block", results[i].bad == 1 ? "is" : "are",
               results[i].first, tensor_type_name(t->type));
    }
    if (problems == 0)
        printf("numbers: all finite\n");
    return problems;
}

static enum rc scan(const gguf *g, int threads, uint64_t *problems, struct err *e) {
    struct quant_scan_result *results = calloc(gguf_tensor_count(g) + 1, sizeof *results);
    if (!results)
        return err_set(e, RC_MEMORY, "%s: out of memory", gguf_path(g));
    struct progress bar = progress_begin("reading");
    struct quant_scan how = { .threads = threads,
                              .progress = progress_show,
                              .progress_user = &bar,
                              .cancel = program_catch_interrupts() };
    enum rc rc = quant_scan_model(g, &how, results, e);
    progress_end(&bar);
    if (!rc)
        *problems += print_scan(g, results);
    free(results);
    return rc;
}

int cmd_verify(int argc, char **argv) {
    struct options o = { 0 };
    const char *path;
    int code = cmd_begin(&cmd_verify_options, &o, argc, argv, &path);
    if (code >= 0)
        return code;
    struct err e = { 0 };
    struct guard_rail_expectation demand;
    gguf *g = NULL;
    enum rc rc = o.expect ? guard_rail_read_expectation(o.expect, &demand, &e) : RC_OK;
    if (!rc)
        rc = gguf_open(&g, path, &e);
    if (rc)
        return cmd_failed(&cmd_verify_options, &e);
    char size[BYTES_TEXT];
    bytes_format(gguf_file_bytes(g), size);
    printf("structure: GGUF %u, %" PRIu64 " keys, %" PRIu64 " tensors, %s\n", gguf_version(g),
           gguf_key_count(g), gguf_tensor_count(g), size);
    uint64_t problems = check_shapes(g, o.expect ? &demand : NULL);
    if (!o.no_scan)
        rc = scan(g, (int)o.threads, &problems, &e);
    gguf_close(&g);
    if (rc)
        return cmd_failed(&cmd_verify_options, &e);
    if (problems)
        printf("%s: %" PRIu64 " problem%s\n", path, problems, problems == 1 ? "" : "s");
    else
        printf("%s: fine\n", path);
    return problems ? EXIT_FOUND : EXIT_CLEAN;
}
