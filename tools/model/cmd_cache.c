/* greta_model cache - what greta_infer --packed-cache has left on the disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cache_folder.h"
#include "tools/model/cmd.h"

struct options {
#define OPTION OPTION_FIELD
#include "tools/model/cache.def"
};

static const struct option_row rows[] = {
#define OPTION OPTION_ROW
#include "tools/model/cache.def"
};

const struct option_table cmd_cache_options = {
    .name = "greta_model cache",
    .rows = rows,
    .count = OPTION_COUNT_OF(rows),
    .command = true,
    .before =
        "Usage: greta_model cache [options] [DIR]\n"
        "\n"
        "Lists the files of repacked weights that greta_infer --packed-cache keeps in DIR, or "
        "in\n"
        "greta's cache folder, and what was left of one whose writer was killed.\n"
        "\n",
};

/* One file; what it has is added to *total. */
static enum rc visit(int folder, const char *name, const struct options *o, uint64_t *total,
                     struct err *e) {
    struct stat st;
    struct tm when;
    char bytes[BYTES_TEXT], date[32] = "?";
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
        return RC_OK;
    if (o->clear && unlinkat(folder, name, 0))
        return err_set(e, RC_IO, "%s: %s", name, strerror(errno));
    *total += (uint64_t)st.st_size;
    bytes_format((uint64_t)st.st_size, bytes);
    if (localtime_r(&st.st_mtime, &when))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &when);
    printf("%s  %10s  %s%s\n", date, bytes, name, o->clear ? "  removed" : "");
    return RC_OK;
}

static enum rc visit_all(const char *path, const struct options *o, struct err *e) {
    char bytes[BYTES_TEXT];
    uint64_t total = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    enum rc rc = RC_OK;
    for (struct dirent *d; !rc && (d = readdir(folder));)
        if (!fnmatch("packed-*.gpk", d->d_name, 0) || !fnmatch("packed-*.gpk.??????", d->d_name, 0))
            rc = visit(dirfd(folder), d->d_name, o, &total, e);
    closedir(folder);
    bytes_format(total, bytes);
    if (!rc)
        printf("%s: %s%s\n", path, bytes, o->clear ? " removed" : "");
    return rc;
}

int cmd_cache(int argc, char **argv) {
    struct options o = { 0 };
    struct option_operands words;
    struct err e = { 0 };
    char own[CACHE_FOLDER_BYTES];
    int code = option_begin(&cmd_cache_options, &o, argc, argv, &words);
    if (code >= 0)
        return code;
    if (words.count > 1)
        return option_wrong(&cmd_cache_options, "expected one folder, found also", words.words[1]);
    if (!words.count && !cache_folder_find(own))
        return option_wrong(&cmd_cache_options, "there is no cache folder: name one", NULL);
    enum rc rc = visit_all(words.count ? words.words[0] : own, &o, &e);
    return rc ? cmd_failed(&cmd_cache_options, &e) : 0;
}
