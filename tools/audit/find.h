/* find.h - finds what a run needs: the program, greta's own files, the device. Shared by
 * `run` and `matrix`. */
#ifndef AUDIT_FIND_H
#define AUDIT_FIND_H

#include <limits.h>
#include <stdbool.h>

/* The file that exec would take for the command; false if there is none. */
bool find_program(const char *command, char out[static PATH_MAX]);
/* Why find_program found none, in words. */
const char *find_obstacle(const char *command);
/* An executable file. */
bool find_is_program(const char *path);

/* The file of this process; false without /proc. */
bool find_self(char out[static PATH_MAX]);
/* A file by its path relative to the folder of this program. */
bool find_beside_self(const char *what, char out[static PATH_MAX]);
/* libgcore_preload.so, which lies beside this program in the build as in an installation. */
bool find_preload(char out[static PATH_MAX]);

struct find_device {
    bool soft;
    int count;              /* of devices that are visible */
    char library[PATH_MAX]; /* of the HIP runtime */
    char folder[PATH_MAX];  /* where it lies */
    char name[256];         /* of the first device; "" if unknown */
};

/* What hip_load() finds for the choice; false, and why, if nothing. Asks in a child process: a HIP
 * runtime cannot be unloaded again. */
bool find_device(struct find_device *out, const char *choice, char why[static 512]);

#endif
