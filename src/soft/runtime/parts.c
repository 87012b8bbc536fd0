/* parts.c - what the runtime is made of, for its start and for forks. Above all parts; start.c,
 * which all of them use, is told of them when the library is loaded. */
#include <pthread.h>
#include <stdio.h>

#include "soft/runtime/defined.h"
#include "soft/runtime/error.h"
#include "soft/runtime/event.h"
#include "soft/runtime/fault_signal.h"
#include "soft/runtime/function.h"
#include "soft/runtime/graph/capture.h"
#include "soft/runtime/graph/graph.h"
#include "soft/runtime/handle.h"
#include "soft/runtime/memory.h"
#include "soft/runtime/mempool.h"
#include "soft/runtime/module/module.h"
#include "soft/runtime/op_run.h"
#include "soft/runtime/schedule.h"
#include "soft/runtime/settings.h"
#include "soft/runtime/slack.h"
#include "soft/runtime/start.h"
#include "soft/runtime/stream.h"

/* Creates what is otherwise created on first use, so that no signal handler meets it half made. */
static void make_pools(void) {
    soft_streams();
    soft_events();
    soft_functions();
    soft_module_prepare();
    soft_graph_prepare();
    soft_mempool_reset(0);
}

static hipError_t start(void) {
    static const struct soft_memory_beside beside = { soft_slack_fill, soft_slack_look,
                                                      soft_slack_tell, soft_defined_forget };
    static const struct soft_capture_calls capture = {
        soft_capture_add,         soft_capture_record,  soft_capture_wait,  soft_capture_refuse,
        soft_capture_refuse_sync, soft_capture_abandon, soft_capture_forget
    };
    struct err e = { 0 };
    soft_stream_set_capture_calls(&capture);
    if (soft_settings_read(&e) || soft_memory_init(&beside, &e) || soft_fault_init(&e) ||
        soft_schedule_init(soft_op_run, soft_stream_recycle, &e)) {
        fprintf(stderr, "greta: the software device cannot start: %s\n", e.msg);
        return hipErrorNotInitialized;
    }
    make_pools();
    return soft_settings()->devices ? hipSuccess : hipErrorNoDevice;
}

/* In the order in which they are taken elsewhere. */
static void each_lock(void (*hold)(pthread_mutex_t *lock)) {
    hold(soft_symbol_lock());
    hold(soft_module_lock());
    hold(soft_kernel_lock());
    for (unsigned i = 0; i < SOFT_HANDLES_MAX; i++) {
        struct soft_handles *pool = soft_handles_number(i);
        if (pool)
            hold(soft_handles_lock(pool));
    }
}

__attribute__((constructor)) static void at_load(void) {
    static const struct soft_parts all = { start, each_lock, soft_error_forget };
    soft_start_set_parts(&all);
}
