#include "model/pieces.h"

#include <pthread.h>

#include "base/cpu.h"

struct piece pieces_take(struct pieces *p, uint64_t elements, uint64_t most) {
    uint64_t left = elements - p->first;
    struct piece piece = { p->tensor, p->first, left < most ? left : most };
    p->first += piece.count;
    if (piece.count == left)
        *p = (struct pieces){ p->tensor + 1, 0 };
    return piece;
}

void pieces_work(int threads, void *(*work)(void *arg), void *arg) {
    enum { THREADS_MAX = 256 };
    pthread_t helpers[THREADS_MAX];
    int started = 0;
    threads = threads > 0 ? threads : cpu_count();
    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    while (started < threads - 1 && pthread_create(&helpers[started], NULL, work, arg) == 0)
        started++;
    work(arg);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
}
