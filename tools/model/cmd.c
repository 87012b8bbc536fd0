#include "model/cmd.h"

#include <stdio.h>

int cmd_begin(const struct option_table *t, void *values, int argc, char **argv,
              const char **path) {
    struct option_operands files;
    int code = option_begin(t, values, argc, argv, &files);
    if (code >= 0)
        return code;
    if (files.count != 1)
        return option_wrong(t, files.count ? "one file at a time, found also" : "name a file",
                            files.count ? files.words[1] : NULL);
    *path = files.words[0];
    return -1;
}

int cmd_failed(const struct option_table *t, const struct err *e) {
    option_say(t, "%s", e->msg);
    return program_exit_code(e->rc, false);
}

void cmd_format_bytes(uint64_t bytes, char out[24]) {
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double n = (double)bytes;
    size_t u = 0;
    while (n >= 1024 && u + 1 < sizeof units / sizeof *units) {
        n /= 1024;
        u++;
    }
    snprintf(out, 24, u ? "%.2f %s" : "%.0f %s", n, units[u]);
}
