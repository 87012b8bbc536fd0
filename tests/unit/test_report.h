/* test_report.h - what the tests of reports share: a recording of a run that failed as in the
 * audit's best known case (a GEMM reads past the weights, a copy of the logits reports it), with
 * hostile names in it, and the verdict on it, put together by hand. */
#ifndef TESTS_UNIT_TEST_REPORT_H
#define TESTS_UNIT_TEST_REPORT_H

#include "hip/hip_api.h"
#include "unit/test_record.h"
#include "verdict/verdict.h"

#define HOSTILE "</script><img src=x onerror=alert(1)>|`\"'&"

struct sample {
    uint64_t alloc_w, alloc_logits, record, wait, launch, fault, copy, freed;
};

static inline const char *sample_fn_name(unsigned fn) {
    return hip_fn_name((enum hip_fn)fn);
}

static inline writer *sample_writer_at(const char *path) {
    struct err e = { 0 };
    struct record_options o = { .path = path, .fn_count = HIP_FN_COUNT, .fn_name = sample_fn_name };
    writer *w = NULL;
    if (record_open(&w, &o, &e) != RC_OK)
        fail_msg("%s", e.msg);
    return w;
}

static inline writer *sample_writer(void) {
    return sample_writer_at(record_file);
}

static inline uint64_t sample_event(writer *w, struct event e, unsigned status) {
    e.status = RECORD_PENDING;
    uint64_t seq = record_event(w, &e);
    record_finish(w, seq, status, 2000);
    return seq;
}

static inline uint64_t sample_alloc(writer *w, uint64_t at, uint64_t bytes, const char *name) {
    struct event e = { .kind = EVENT_ALLOC,
                       .dst = at,
                       .len = bytes,
                       .name = record_string(w, name),
                       .aux = event_aux(HIP_FN_hipMalloc, DETAIL_FAMILY_DEVICE) };
    return record_event(w, &e);
}

static inline void sample_safe_copy(writer *w, uint32_t stream, int64_t layer) {
    union event_slot s[2] = { { .event = { .kind = EVENT_SAFE_COPY,
                                           .dst = 0x1000,
                                           .src = 0x200000,
                                           .len = 512,
                                           .stream = stream,
                                           .name = record_string(w, "logits"),
                                           .aux = event_aux(EVENT_NO_FN, 0) } } };
    event_extra_safe(&s[1], &(struct event_safe){ 7, 3, layer, 0, 512 });
    record_events(w, s, 2);
}

/* Writes the recording to record_file. */
static inline struct sample sample_record(void) {
    struct sample n = { 0 };
    writer *w = sample_writer();
    record_provenance(w, "greta.commit", "0123456789abcdef");
    record_provenance(w, "device.0", "AMD Instinct | MI300X");
    record_provenance(w, "env.AMD_SERIALIZE_KERNEL", "3");
    record_provenance(w, "env.HIP_OTHER", HOSTILE);
    uint32_t s1 = record_stream(w, &(struct record_stream){ .handle = 0x51, .device = 0 });
    uint32_t s2 = record_stream(w, &(struct record_stream){ .handle = 0x52, .device = 0 });
    n.alloc_w = sample_alloc(w, 0x100000, 8 << 20, "wk");
    n.alloc_logits = sample_alloc(w, 0xa00000, 4096, HOSTILE);
    n.record = sample_event(w,
                            (struct event){ .kind = EVENT_EVENT_RECORD,
                                            .dst = 0xe1,
                                            .stream = s1,
                                            .aux = event_aux(HIP_FN_hipEventRecord, 0) },
                            0);
    n.wait = sample_event(w,
                          (struct event){ .kind = EVENT_EVENT_WAIT,
                                          .dst = 0xe1,
                                          .src = n.record,
                                          .stream = s2,
                                          .aux = event_aux(HIP_FN_hipStreamWaitEvent, 0) },
                          0);
    sample_safe_copy(w, s1, 5);
    n.launch = sample_event(w,
                            (struct event){ .kind = EVENT_LAUNCH,
                                            .dst = 0xf1,
                                            .stream = s2,
                                            .name = record_string(w, "gemm_k"),
                                            .aux = event_aux(HIP_FN_hipModuleLaunchKernel, 0) },
                            0);
    n.fault = record_event(w, &(struct event){ .kind = EVENT_FAULT,
                                               .dst = 0x900000,
                                               .src = n.launch,
                                               .len = 4,
                                               .stream = s2,
                                               .name = record_string(w, "gemm_k"),
                                               .aux = event_aux(EVENT_NO_FN, DETAIL_ACCESS_READ) });
    n.copy =
        sample_event(w,
                     (struct event){ .kind = EVENT_COPY,
                                     .dst = 0x7000,
                                     .src = 0xa00000,
                                     .len = 4096,
                                     .stream = s1,
                                     .name = record_string(w, HOSTILE),
                                     .aux = event_aux(HIP_FN_hipMemcpy, DETAIL_COPY_KIND_D2H) },
                     hipErrorIllegalAddress);
    n.freed = sample_event(w,
                           (struct event){ .kind = EVENT_FREE,
                                           .dst = 0xa00000,
                                           .src = n.alloc_logits,
                                           .len = 4096,
                                           .aux = event_aux(HIP_FN_hipFree, DETAIL_FAMILY_DEVICE) },
                           hipErrorIllegalAddress);
    record_close(&w);
    return n;
}

/* Everything the verdict points to. */
struct sample_verdict {
    verdict v;
    struct verdict_actor messenger, culprit, pending;
    struct verdict_finding finding;
    struct verdict_block block;
    struct verdict_fact facts[4];
    uint64_t evidence[2];
    const char *remark;
};

static inline void sample_actors(struct sample_verdict *s, const struct sample *n) {
    s->culprit = (struct verdict_actor){ .event = n->launch,
                                         .kind = EVENT_LAUNCH,
                                         .api = "hipModuleLaunchKernel",
                                         .kernel = "gemm_k",
                                         .argument = "w",
                                         .argument_index = 1,
                                         .tensor = "wk",
                                         .site = "forward+0x12 (greta_infer)",
                                         .stream = 2,
                                         .thread = 1,
                                         .status = "hipSuccess",
                                         .t_ns = 1000,
                                         .address = 0x100000,
                                         .len = 32 << 20,
                                         .step = 0,
                                         .layer = 5 };
    s->messenger = (struct verdict_actor){ .event = n->copy,
                                           .kind = EVENT_COPY,
                                           .api = "hipMemcpy",
                                           .argument_index = -1,
                                           .tensor = HOSTILE,
                                           .site = "-",
                                           .stream = 1,
                                           .thread = 1,
                                           .status = "hipErrorIllegalAddress",
                                           .status_code = 700,
                                           .t_ns = 2000,
                                           .step = -1,
                                           .layer = -1 };
}

/* The verdict on sample_record(); *s must stay where it is. */
static inline const verdict *sample_judge(struct sample_verdict *s, const struct sample *n) {
    static const struct sentence
        answer = { .text = { "ROOT_CAUSE SHAPE_MISMATCH: gemm_k reads 32 MiB of 8 MiB <b>",
                             "ROOT_CAUSE SHAPE_MISMATCH: gemm_k lee 32 MiB de 8 MiB <b>" } },
        found = { .text = { "gemm_k read 32 MiB of an 8 MiB buffer",
                            "gemm_k leyó 32 MiB de un búfer de 8 MiB" } };
    *s = (struct sample_verdict){ .remark = "odd | thing" };
    sample_actors(s, n);
    s->block = (struct verdict_block){ .base = 0x100000,
                                       .bytes = 8 << 20,
                                       .family = DETAIL_FAMILY_DEVICE,
                                       .alloc = n->alloc_w,
                                       .free = EVENT_NO_SEQ,
                                       .alloc_site = "load+0x4 (greta_infer)",
                                       .free_site = "-",
                                       .tensor = "wk",
                                       .tensor_at = 0x100000,
                                       .tensor_bytes = 8 << 20 };
    s->evidence[0] = n->launch;
    s->evidence[1] = n->fault;
    s->finding = (struct verdict_finding){ .hypothesis = HYPOTHESIS_SHAPE_MISMATCH,
                                           .also = 1u << HYPOTHESIS_UPSTREAM_KERNEL_FAULT,
                                           .culprit = s->culprit,
                                           .messenger = &s->messenger,
                                           .block = &s->block,
                                           .said = &found,
                                           .text = found.text[LANG_EN],
                                           .advice = "Compare *both* shapes",
                                           .count = 1,
                                           .evidence = s->evidence,
                                           .evidence_count = 2 };
    s->facts[0] = (struct verdict_fact){ "greta.commit", "0123456789abcdef" };
    s->facts[1] = (struct verdict_fact){ "device.0", "AMD Instinct | MI300X" };
    s->facts[2] = (struct verdict_fact){ "env.AMD_SERIALIZE_KERNEL", "3" };
    s->facts[3] = (struct verdict_fact){ "env.HIP_OTHER", HOSTILE };
    s->v = (verdict){ .overall = VERDICT_ROOT_CAUSE,
                      .answer_said = &answer,
                      .answer = answer.text[LANG_EN],
                      .recording = "record.gcr",
                      .root = &s->finding,
                      .messenger = &s->messenger,
                      .culprit = &s->culprit,
                      .findings = &s->finding,
                      .finding_count = 1,
                      .remarks = &s->remark,
                      .remark_count = 1,
                      .blocks = &s->block,
                      .block_count = 1 };
    s->v.coverage = (struct verdict_coverage){ .events = 9,
                                               .gaps = "",
                                               .complete = true,
                                               .copies = 1,
                                               .copies_d2h = 1,
                                               .launches = 1,
                                               .allocations = 2,
                                               .processes = 1,
                                               .processes_ended = 1,
                                               .ended = true,
                                               .last_event = n->freed };
    s->v.provenance = (struct verdict_provenance){ .facts = s->facts,
                                                   .fact_count = 4,
                                                   .commit = "0123456789abcdef",
                                                   .build_id = "",
                                                   .model_hash = "",
                                                   .command = "greta_infer --prompt 'a|b'",
                                                   .start_wall_us = 1770422400000000u };
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        s->v.hypothesis[i] =
            (struct verdict_hypothesis){ .id = (enum verdict_hypothesis_id)i,
                                         .status = VERDICT_STATUS_RULED_OUT,
                                         .checked = 1000 + (unsigned)i,
                                         .text = "none of the pairs | was unordered" };
    s->v.hypothesis[HYPOTHESIS_SHAPE_MISMATCH].status = VERDICT_STATUS_CONFIRMED;
    s->v.hypothesis[HYPOTHESIS_SHAPE_MISMATCH].findings = 1;
    s->v.hypothesis[HYPOTHESIS_SHAPE_MISMATCH].evidence = s->evidence;
    s->v.hypothesis[HYPOTHESIS_SHAPE_MISMATCH].evidence_count = 2;
    s->v.hypothesis[HYPOTHESIS_LEAK].status = VERDICT_STATUS_INCONCLUSIVE;
    s->v.hypothesis[HYPOTHESIS_DOUBLE_FREE].status = VERDICT_STATUS_NOT_APPLICABLE;
    return &s->v;
}

#endif
