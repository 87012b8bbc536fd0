/* Two threads of an OpenMP region meet at a barrier, which is made of atomics and which only the
 * OpenMP runtime tells of. This program stands in for the runtime: it offers itself to tools.
 *
 * Expect: verdict FINDINGS; hypothesis STREAM_UNSYNCED;
 *         culprit kernel=sum site=reduce; messenger none */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>

#include "case_relay.h"

enum { PARALLEL_BEGIN = 3, IMPLICIT_TASK = 7, SYNC_REGION = 23, CALLBACKS = 33 };
enum { BEGIN = 1, END = 2, EXPLICIT_BARRIER = 3 };

typedef void (*function)(void);
struct tool {
    int (*initialize)(function (*lookup)(const char *), int device, uint64_t *data);
    void (*finalize)(uint64_t *data);
    uint64_t data;
};
static function callback[CALLBACKS];
static uint64_t region;
static atomic_int arrived;

static int set_callback(int event, function called) {
    if (event < CALLBACKS)
        callback[event] = called;
    return 5;
}

static function lookup(const char *name) {
    return strcmp(name, "ompt_set_callback") ? NULL : (function)set_callback;
}

static void start_tool(void) {
    struct tool *(*start)(unsigned, const char *);
    void *symbol = dlsym(RTLD_DEFAULT, "ompt_start_tool");
    memcpy(&start, &symbol, sizeof start);
    struct tool *tool = symbol ? start(201811, "a runtime") : NULL;
    if (tool)
        tool->initialize(lookup, 0, &tool->data);
}

static void open_region(void) {
    void (*begins)(void *, void *, uint64_t *, unsigned, int, void *);
    memcpy(&begins, &callback[PARALLEL_BEGIN], sizeof begins);
    if (begins)
        begins(NULL, NULL, &region, 2, 0, NULL);
}

static void enter_region(unsigned index) {
    void (*begins)(int, uint64_t *, void *, unsigned, unsigned, int);
    memcpy(&begins, &callback[IMPLICIT_TASK], sizeof begins);
    if (begins)
        begins(BEGIN, &region, NULL, 2, index, 2);
}

static void barrier(void) {
    void (*meets)(int, int, uint64_t *, void *, void *);
    memcpy(&meets, &callback[SYNC_REGION], sizeof meets);
    if (meets)
        meets(EXPLICIT_BARRIER, BEGIN, &region, NULL, NULL);
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < 2)
        sched_yield();
    if (meets)
        meets(EXPLICIT_BARRIER, END, &region, NULL, NULL);
}

static void hand_over(void) {
    enter_region(0);
    barrier();
}

static void take_over(void) {
    enter_region(1);
    barrier();
}

int main(void) {
    start_tool();
    open_region();
    return relay();
}
