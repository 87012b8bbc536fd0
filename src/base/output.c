#include "base/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"

static enum rc cannot_write(const char *path, struct err *e) {
    return err_set(e, RC_IO, "%s: cannot be written: %s", path, strerror(errno));
}

/* A device, a pipe or a link, such as /dev/stdout: a new file must not take its place. */
static bool is_special(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

enum rc output_open(struct output *o, const char *path, struct err *e) {
    o->file = NULL;
    int n = snprintf(o->fresh, sizeof o->fresh, "%s.new.%d", path, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof o->fresh)
        return err_set(e, RC_USAGE, "%s: too long a name", path);
    memcpy(o->path, path, strlen(path) + 1);
    if (is_special(path))
        o->fresh[0] = '\0';
    o->file = folder_make_parents(path) ? fopen(o->fresh[0] ? o->fresh : path, "we") : NULL;
    return o->file ? RC_OK : cannot_write(path, e);
}

enum rc output_close(struct output *o, enum rc rc, struct err *e) {
    if (!o->file)
        return rc;
    if (rc == RC_OK)
        rc = output_flush(o->file, o->path, e);
    bool renames = o->fresh[0];
    if (rc == RC_OK && renames && fsync(fileno(o->file)) != 0)
        rc = cannot_write(o->path, e);
    if (fclose(o->file) != 0 && rc == RC_OK)
        rc = cannot_write(o->path, e);
    if (rc == RC_OK && renames && rename(o->fresh, o->path) != 0)
        rc = cannot_write(o->path, e);
    if (rc != RC_OK && renames)
        unlink(o->fresh);
    o->file = NULL;
    return rc;
}

enum rc output_flush(FILE *file, const char *what, struct err *e) {
    errno = 0;
    if (fflush(file) == 0 && !ferror(file))
        return RC_OK;
    /* If it was an earlier write that failed, its errno is lost. */
    return err_set(e, RC_IO, "%s: cannot be written%s%s", what, errno ? ": " : "",
                   errno ? strerror(errno) : "");
}
