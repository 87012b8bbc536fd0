#include "soft/runtime/times.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <greta/soft_times.h>

enum { KERNELS_MAX = 128 }; /* further ones are not counted */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool on;
static struct greta_soft_kernel_time kernels[KERNELS_MAX];
static unsigned count;

bool soft_times_on(void) {
    return atomic_load_explicit(&on, memory_order_relaxed);
}

static struct greta_soft_kernel_time *find(const char *name) {
    for (unsigned i = 0; i < count; i++)
        if (!strcmp(kernels[i].name, name))
            return &kernels[i];
    if (count == KERNELS_MAX)
        return NULL;
    kernels[count] = (struct greta_soft_kernel_time){ .name = name };
    return &kernels[count++];
}

void soft_times_add(const char *kernel, uint64_t wall_ns, unsigned threads,
                    const uint64_t *computing_ns) {
    pthread_mutex_lock(&lock);
    struct greta_soft_kernel_time *k = soft_times_on() ? find(kernel) : NULL;
    if (k) {
        k->launches++;
        k->wall_ns += wall_ns;
        k->threads = threads > k->threads ? threads : k->threads;
        for (unsigned i = 0; i < threads; i++)
            k->computing_ns[i] += computing_ns[i];
    }
    pthread_mutex_unlock(&lock);
}

void greta_soft_time_kernels(int wanted) {
    pthread_mutex_lock(&lock);
    if (wanted)
        count = 0;
    atomic_store(&on, wanted != 0);
    pthread_mutex_unlock(&lock);
}

unsigned greta_soft_kernel_times(struct greta_soft_kernel_time *out, unsigned room) {
    pthread_mutex_lock(&lock);
    unsigned all = count;
    memcpy(out, kernels, (all < room ? all : room) * sizeof *out);
    pthread_mutex_unlock(&lock);
    return all;
}
