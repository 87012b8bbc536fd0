/* A thread sleeps until an atomic variable changes, as std::atomic's wait() does, which is code in
 * a header. Only a thread that really sleeps can be seen, so nobody wakes it before.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "case_relay.h"

static atomic_int changed, sleeper;

/* Field 3 of its stat, behind the name in parentheses, is S. */
static int sleeps(int thread) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    char *read = file ? fgets(text, sizeof text, file) : NULL;
    char *name = read ? strrchr(text, ')') : NULL;
    if (file)
        fclose(file);
    return name && name[1] == ' ' && name[2] == 'S';
}

static void hand_over(void) {
    while (!atomic_load(&sleeper) || !sleeps(atomic_load(&sleeper)))
        sched_yield();
    atomic_store(&changed, 1);
    syscall(SYS_futex, &changed, FUTEX_WAKE_PRIVATE, 1);
}

static void take_over(void) {
    atomic_store(&sleeper, (int)syscall(SYS_gettid));
    while (!atomic_load(&changed))
        syscall(SYS_futex, &changed, FUTEX_WAIT_PRIVATE, 0, NULL);
}

int main(void) {
    return relay();
}
