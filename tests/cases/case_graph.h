/* case_graph.h - one captured operation, made executable and replayed. */
#ifndef CASES_CASE_GRAPH_H
#define CASES_CASE_GRAPH_H

#include "case.h"

static hipGraphExec_t make_exec(hipStream_t stream, void (*work)(hipStream_t stream)) {
    hipGraph_t graph;
    hipGraphExec_t exec;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    work(stream);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    CHECK(hipGraphDestroy(graph));
    return exec;
}

#endif
