#include "tools/model/cmd.h"

int cmd_begin(const struct option_table *t, void *values, int argc, char **argv,
              const char **path) {
    struct option_operands files;
    int code = option_begin(t, values, argc, argv, &files);
    if (code >= 0)
        return code;
    if (files.count != 1)
        return option_wrong(t, files.count ? "expected one file, found also" : "name a file",
                            files.count ? files.words[1] : NULL);
    *path = files.words[0];
    return -1;
}

int cmd_failed(const struct option_table *t, const struct err *e) {
    option_say(t, "%s", e->msg);
    return program_exit_code(e->rc, false);
}
