#include "kernels/cpu/scratch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct scratch {
    void *memory[SCRATCH_COUNT];
    size_t room[SCRATCH_COUNT];
};

static pthread_key_t key;
static _Thread_local struct scratch *mine;

static void release(void *scratch) {
    struct scratch *s = scratch;
    for (int i = 0; i < SCRATCH_COUNT; i++)
        free(s->memory[i]);
    free(s);
}

static void make_key(void) {
    if (pthread_key_create(&key, release) != 0)
        abort();
}

static struct scratch *own(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!mine) {
        pthread_once(&once, make_key);
        mine = calloc(1, sizeof *mine);
        if (mine)
            pthread_setspecific(key, mine);
    }
    return mine;
}

void *scratch_need(enum scratch_use use, size_t bytes) {
    struct scratch *s = own();
    if (s && s->room[use] < bytes) {
        size_t room = (bytes + 4095) / 4096 * 4096;
        free(s->memory[use]);
        s->memory[use] = aligned_alloc(64, room);
        s->room[use] = s->memory[use] ? room : 0;
    }
    if (!s || !s->memory[use]) {
        fprintf(stderr, "greta: no memory for a kernel (%zu bytes)\n", bytes);
        abort();
    }
    return s->memory[use];
}
