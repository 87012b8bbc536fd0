#include "support/recorded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/test.h"

static char path[] = "/tmp/greta-recorded-XXXXXX";
static struct recorded *shared;
static size_t shared_bytes;

void *recorded_open(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = mkstemp(path);
    if (memory == MAP_FAILED || fd < 0)
        return NULL;
    close(fd);
    shared = memory;
    shared_bytes = bytes;
    return memory;
}

void recorded_close(void) {
    unlink(path);
    munmap(shared, shared_bytes);
}

const char *recorded_path(void) {
    return path;
}

void recorded_run(const char *name, void (*work)(const void *argument), const void *argument) {
    memset(shared, 0, shared_bytes);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        unlink(path);
        setenv("GCORE_RECORD", path, 1);
        work(argument);
        exit(0); /* not _exit: leaks are looked for */
    }
    int status;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("%s: ended with status %d", name, status);
}

verdict *recorded_judge(void) {
    struct err e = { 0 };
    reader *r = NULL;
    verdict *v = NULL;
    if (reader_open(&r, path, &e) || verdict_open(&v, r, NULL, &e))
        fail_msg("%s", e.msg);
    reader_close(&r);
    return v;
}

enum rc recorded_add_logits(uint32_t position, int32_t token, const float *logits, void *user,
                            struct err *e) {
    const engine *g = user;
    (void)position, (void)token, (void)e;
    for (uint32_t i = 0; i < engine_config(g)->vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        shared->logits = (shared->logits ^ bits) * 0x100000001b3u;
    }
    return RC_OK;
}

void recorded_keep_tokens(uint32_t sequence, const struct engine_finished *f, void *user) {
    size_t most = sizeof shared->tokens / sizeof *shared->tokens;
    (void)sequence, (void)user;
    for (size_t i = 0; i < f->tokens->count && shared->count < most; i++)
        shared->tokens[shared->count++] = f->tokens->ids[i];
}
