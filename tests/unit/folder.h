/* folder.h - a folder of its own for a test program, in TMPDIR: group setup and teardown. */
#ifndef TESTS_UNIT_FOLDER_H
#define TESTS_UNIT_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[100]; /* short: tests put names after it */

/* 0, or -1 as cmocka wants it. */
static inline int folder_make(void **state) {
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(folder, sizeof folder, "%s/greta-test-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove_one(const char *path, const struct stat *status, int type,
                                    struct FTW *at) {
    (void)status, (void)type, (void)at;
    return remove(path);
}

/* With everything in it. A test that must leave nothing behind calls rmdir(folder) instead. */
static inline int folder_remove(void **state) {
    (void)state;
    return nftw(folder, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
