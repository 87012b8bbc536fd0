#include "base/cache_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"

bool cache_folder_find(char out[CACHE_FOLDER_BYTES]) {
    const char *cache = env_text(ENV_XDG_CACHE_HOME), *home = env_text(ENV_HOME);
    int n;
    if (cache && cache[0] == '/')
        n = snprintf(out, CACHE_FOLDER_BYTES, "%s", cache);
    else if (home && home[0] == '/')
        n = snprintf(out, CACHE_FOLDER_BYTES, "%s/.cache", home);
    else
        return false;
    if (n < 0 || n >= CACHE_FOLDER_BYTES - CACHE_FOLDER_NAME)
        return false;
    (void)mkdir(out, 0700);
    strcat(out, "/greta");
    return mkdir(out, 0700) == 0 || errno == EEXIST;
}

void cache_folder_write(const char *path, const void *head, size_t head_bytes, const void *body,
                        size_t body_bytes) {
    char temporary[CACHE_FOLDER_BYTES + 8];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkstemp(temporary);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!to) {
        if (fd >= 0)
            close(fd);
        return;
    }
    bool good = fwrite(head, 1, head_bytes, to) == head_bytes &&
                fwrite(body, 1, body_bytes, to) == body_bytes;
    good &= fclose(to) == 0;
    if (!good || rename(temporary, path))
        (void)unlink(temporary);
}
