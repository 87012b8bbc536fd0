#include "base/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Succeeds if the folder exists already, even where making it would fail for another reason, as on
 * a read-only file system. */
static bool make_one(const char *path) {
    struct stat s;
    if (mkdir(path, 0777) == 0)
        return true;
    int why = errno;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
        return true;
    errno = why == EEXIST ? ENOTDIR : why;
    return false;
}

/* The folders that end before a slash of path, and path itself if `whole`. */
static bool make(const char *path, bool whole) {
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof part) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(part, path, len + 1);
    for (char *p = part; *p; p++) {
        if (p == part || *p != '/')
            continue;
        *p = '\0';
        if (!make_one(part))
            return false;
        *p = '/';
    }
    return !whole || make_one(part);
}

bool folder_make(const char *path) {
    return make(path, true);
}

bool folder_make_parents(const char *file) {
    return make(file, false);
}
