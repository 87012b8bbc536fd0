/* matrix_device.c - finds the program, the model and the device before anything is run or written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "tools/audit/cmd.h"
#include "tools/audit/matrix.h"

static enum rc hash_file(const char *path, uint64_t *out, struct err *e) {
    char buffer[1 << 16];
    hash *h = NULL;
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(e, RC_IO, "%s: %s", path, strerror(errno));
    enum rc rc = hash_open(&h, 0, e);
    size_t n;
    while (rc == RC_OK && (n = fread(buffer, 1, sizeof buffer, f)) > 0)
        hash_add(h, buffer, n);
    if (rc == RC_OK && ferror(f))
        rc = err_set(e, RC_IO, "%s: cannot be read", path);
    if (rc == RC_OK)
        *out = hash_value(h);
    hash_close(&h);
    fclose(f);
    return rc;
}

static int find_model(const struct matrix *m) {
    struct stat st;
    const char *path = m->o.model;
    if (!path)
        return -1;
    if (stat(path, &st) != 0 || access(path, R_OK) != 0)
        matrix_say("no model: %s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        matrix_say("no model: %s: expected a file", path);
    else
        return -1;
    return EXIT_REFUSED;
}

static bool needs_recording(const struct matrix *m) {
    for (size_t i = 0; i < m->profile.mode_count; i++)
        if (m->profile.modes[i].recorded && m->profile.modes[i].iterations)
            return true;
    return false;
}

int matrix_find_program(struct matrix *m) {
    char path[PATH_MAX];
    struct err e = { 0 };
    if (!find_self(m->self)) {
        matrix_say("/proc is not mounted");
        return EXIT_REFUSED;
    }
    const char *command = m->o.command ? m->o.command[0] : "greta_infer";
    bool found = m->o.command ? find_program(command, path)
                              : find_beside_self(command, path) && find_is_program(path);
    if (!found || !realpath(path, m->program)) {
        matrix_say("no such program: %s: %s", command,
                   m->o.command ? find_obstacle(command) : "expected it beside greta_audit");
        return EXIT_REFUSED;
    }
    if (hash_file(m->program, &m->program_hash, &e) != RC_OK) {
        matrix_say("%s", e.msg);
        return EXIT_REFUSED;
    }
    if (needs_recording(m) && !find_preload(path)) {
        matrix_say("expected libgcore_preload.so in ../lib beside this program; build or install "
                   "greta again (builds with clang's sanitizers do not have it)");
        return EXIT_REFUSED;
    }
    return find_model(m);
}

int matrix_find_device(struct matrix *m) {
    char why[512];
    if (!find_device(&m->device, m->o.device, why)) {
        matrix_say("no device: %s", why);
        return EXIT_REFUSED;
    }
    if (!m->device.count) {
        matrix_say("no device: %s: no device is visible (see HIP_VISIBLE_DEVICES)",
                   m->device.library);
        return EXIT_REFUSED;
    }
    if (!m->device.soft && m->o.schedules.count) {
        matrix_say("--schedules: only the software device has them (--device soft)");
        return EXIT_REFUSED;
    }
    return -1;
}
