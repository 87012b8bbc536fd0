/* actors.c - calls, blocks and findings as the verdict shows them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "verdict/replay.h"

const char *actors_text(struct replay *r, struct arena *a, const char *fmt, ...) {
    char text[1200];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    const char *copy = arena_copy_text(a, text, len);
    if (copy)
        return copy;
    r->no_memory = true;
    return "";
}

static const char *site_text(struct replay *r, struct arena *a, uint32_t site) {
    char text[512];
    reader_site_text(r->r, site, text, sizeof text);
    return actors_text(r, a, "%s", text);
}

static const char *kept(struct arena *a, const char *text) {
    return text ? arena_copy_text(a, text, strlen(text)) : NULL;
}

/* The whole stack of a site, inlined functions as frames of their own. */
static struct verdict_stack make_stack(struct replay *r, struct arena *a, uint32_t site) {
    unsigned frames, count = 0;
    struct verdict_stack out = { 0 };
    struct reader_place where = { 0 };
    struct reader_line line[READER_LINES_MAX];
    const struct site_frame *f = reader_site(r->r, site, &frames, NULL);
    for (unsigned i = 0; i < frames; i++)
        count += reader_frame_lines(r->r, &f[i], line, READER_LINES_MAX);
    struct verdict_frame *to = count ? arena_alloc_array(a, count, sizeof *to) : NULL;
    if (!to || !reader_site_where(r->r, site, &where))
        return out;
    for (unsigned i = 0; i < frames; i++) {
        unsigned n = reader_frame_lines(r->r, &f[i], line, READER_LINES_MAX);
        const char *module = kept(a, reader_string(r->r, f[i].module));
        for (unsigned k = 0; k < n && out.count < count; k++, out.count++) {
            to[out.count] = (struct verdict_frame){
                .function = kept(a, line[k].function),
                .file = kept(a, line[k].file),
                .line = line[k].line,
                .inlined = line[k].inlined,
                .module = module ? module : "",
                .offset = f[i].module ? f[i].offset : f[i].address,
            };
            if (i == where.frame && k == where.depth)
                out.where = out.count;
        }
    }
    out.frame = to;
    return out;
}

static bool is_of_the_host(unsigned kind) {
    return kind == EVENT_EARLY_HOST_ACCESS || kind == EVENT_HOST_FAULT || kind == EVENT_HOST_FREE;
}

/* What takes the place of the HIP function for an event that has none. */
static const char *host_api(const struct event *e) {
    switch (e->kind) {
    case EVENT_REFUSED:
    case EVENT_SAFE_COPY:
        return "gcore_d2h_copy";
    case EVENT_HOST_FREE: {
        const char *how = event_detail_text(e); /* NULL: a value that this build does not know */
        return how ? how : "free";
    }
    case EVENT_EARLY_HOST_ACCESS:
    case EVENT_HOST_FAULT:
        return "host access";
    default:
        return "";
    }
}

static const struct verdict_actor unknown = {
    .event = EVENT_NO_SEQ,
    .api = "",
    .argument_index = -1,
    .site = "-",
    .status = "",
#define ACTOR_UNKNOWN_NAME                     NULL
#define ACTOR_UNKNOWN_NUMBER                   (-1)
#define ACTOR(name, type, en, es, description) .name = ACTOR_UNKNOWN_##type,
#include "verdict/actor.def"
};

/* Step and layer, as the nearest safe copy or mark of the same thread before it says. */
static void find_step(struct replay *r, const struct event *e, uint64_t seq,
                      struct verdict_actor *out) {
    enum { LOOK = 4096 };
    struct reader_event *x = r->other;
    bool layer_known = false;
    for (uint64_t n = 1; n <= LOOK && n <= seq; n++) {
        if (!reader_event(r->r, seq - n, x) || x->event.thread != e->thread)
            continue;
        const struct event_extra *safe = reader_extra(x, EXTRA_SAFE);
        if (x->event.kind == EVENT_SAFE_COPY && safe && n < 32 && e->kind == EVENT_COPY &&
            x->event.dst == e->dst && x->event.src == e->src) {
            out->step = event_safe_of(safe).step;
            out->layer = event_safe_of(safe).layer;
            return;
        }
        if (x->event.kind != EVENT_MARK)
            continue;
        unsigned mark = event_detail(&x->event);
        if (mark == DETAIL_MARK_LAYER && !layer_known) {
            out->layer = (int64_t)x->event.dst; /* -1: after all layers */
            layer_known = true;
        }
        if (mark == DETAIL_MARK_STEP) {
            out->step = (int64_t)x->event.dst;
            return;
        }
    }
}

static enum verdict_access access_of(unsigned kind) {
    switch (kind) {
    case EVENT_ALLOC:
        return VERDICT_ACCESS_ALLOCATES;
    case EVENT_FREE:
    case EVENT_HOST_FREE:
        return VERDICT_ACCESS_FREES;
    default:
        return VERDICT_ACCESS_READS;
    }
}

static void set_kernel(struct replay *r, struct arena *a, struct verdict_actor *out,
                       uint32_t symbol) {
    out->kernel = symbol ? actors_text(r, a, "%s", reader_kernel(r->r, symbol)) : "?";
    out->symbol = symbol ? actors_text(r, a, "%s", reader_string(r->r, symbol)) : "?";
}

/* Is the name of such an event that of memory? Others name a kernel, a file or a variable. */
static bool names_memory(unsigned kind) {
    const char *what = event_info(kind)->name;
    return !strcmp(what, "tensor") || !strcmp(what, "range");
}

struct verdict_actor actors_make(struct replay *r, struct arena *a, uint64_t seq) {
    struct verdict_actor out = unknown;
    out.event = seq;
    struct reader_event *x = r->other;
    if (seq == EVENT_NO_SEQ || !reader_event(r->r, seq, x))
        return out;
    struct event e = x->event;
    const struct event_extra *safe = reader_extra(x, EXTRA_SAFE);
    unsigned fn = event_fn(&e);
    uint64_t start = reader_info(r->r)->start_ns;
    out.kind = e.kind;
    out.access = access_of(e.kind);
    out.api = fn == EVENT_NO_FN ? host_api(&e) : actors_text(r, a, "%s", reader_function(r->r, fn));
    const char *name = e.name ? actors_text(r, a, "%s", reader_string(r->r, e.name)) : NULL;
    if (e.kind == EVENT_LAUNCH && e.name)
        set_kernel(r, a, &out, e.name);
    else if (names_memory(e.kind))
        out.tensor = name;
    if (safe) {
        out.step = event_safe_of(safe).step;
        out.layer = event_safe_of(safe).layer;
    }
    out.site = site_text(r, a, e.site);
    out.site_id = e.site;
    out.stack = make_stack(r, a, e.site);
    out.stream = e.stream;
    out.thread = e.thread;
    out.status_code = e.status;
    if (!is_of_the_host(e.kind)) /* which returns no result */
        out.status = e.status == RECORD_PENDING ? "pending" : hip_error_name((hipError_t)e.status);
    if (e.kind == EVENT_ERROR_READ) {
        out.status_code = (unsigned)e.dst;
        out.status = hip_error_name((hipError_t)e.dst);
    }
    out.t_ns = e.t_ns > start ? e.t_ns - start : 0;
    if (!safe)
        find_step(r, &e, seq, &out);
    return out;
}

struct verdict_block actors_block(struct replay *r, struct arena *a, const struct block *b,
                                  uint32_t process, const struct space_name *name) {
    struct verdict_block out = {
        .base = b->base,
        .bytes = b->bytes,
        .family = b->family,
        .alloc = b->alloc,
        .free = b->free,
        .alloc_site = site_text(r, a, b->alloc_site),
        .alloc_stack = make_stack(r, a, b->alloc_site),
        .free_site = b->free == EVENT_NO_SEQ ? "-" : site_text(r, a, b->free_site),
        .free_stack = make_stack(r, a, b->free == EVENT_NO_SEQ ? 0 : b->free_site),
        .process = process,
    };
    if (name && name->bytes) {
        out.tensor = actors_text(r, a, "%s", reader_string(r->r, name->text));
        out.tensor_at = name->at;
        out.tensor_bytes = name->bytes;
    }
    return out;
}

/* ---- findings -------------------------------------------------------------------------------- */

static const struct verdict_actor *keep_actor(struct replay *r, struct arena *a, uint64_t seq) {
    if (seq == EVENT_NO_SEQ)
        return NULL;
    struct verdict_actor *out = arena_alloc(a, sizeof *out);
    if (!out) {
        r->no_memory = true;
        return NULL;
    }
    *out = actors_make(r, a, seq);
    return out;
}

/* A captured operation belongs to the layer that it was captured in and to the step that launched
 * the graph. */
static void set_replay(struct replay *r, struct verdict_actor *out, uint64_t replay) {
    struct verdict_actor launch = unknown;
    out->replay = replay;
    if (!replay || !reader_event(r->r, replay, r->other))
        return;
    struct event e = r->other->event;
    out->stream = e.stream;
    find_step(r, &e, replay, &launch);
    if (launch.step >= 0)
        out->step = launch.step;
}

/* The one the culprit collides with: the bytes in question are those of both. */
static const struct verdict_actor *keep_other(struct replay *r, struct arena *a,
                                              const struct found *f) {
    struct verdict_actor *out = f->other == EVENT_NO_SEQ ? NULL : arena_alloc(a, sizeof *out);
    if (!out) {
        r->no_memory |= f->other != EVENT_NO_SEQ;
        return NULL;
    }
    *out = actors_make(r, a, f->other);
    set_replay(r, out, f->other_replay);
    out->address = f->address;
    out->len = f->len;
    out->writes = f->other_writes;
    if (out->writes && out->access == VERDICT_ACCESS_READS)
        out->access = VERDICT_ACCESS_WRITES;
    return out;
}

const char *actors_argument(struct replay *r, struct arena *a, uint32_t kernel, int argument) {
    char key[1024]; /* mangled names are long */
    snprintf(key, sizeof key, "kernel.%s.arguments", reader_string(r->r, kernel));
    const char *names = reader_provenance_find(r->r, key);
    for (int i = 0; names && i < argument; i++) {
        const char *end = strchr(names, ',');
        names = end ? end + 1 : NULL;
    }
    if (names && *names && *names != ',' && *names != '#')
        return actors_text(r, a, "%.*s", (int)strcspn(names, ","), names);
    const char *name =
        kernel && argument >= 0 ? reader_kernel_parameter(r->r, kernel, (unsigned)argument) : NULL;
    return name ? actors_text(r, a, "%s", name) : NULL;
}

/* The argument's name, as the device, the program or its debug information has told it; else
 * "#2". */
static const char *argument_name(struct replay *r, struct arena *a, const struct found *f,
                                 uint32_t kernel) {
    const char *name = f->argument_name ? reader_string(r->r, f->argument_name)
                                        : actors_argument(r, a, kernel, f->argument);
    return name ? actors_text(r, a, "%s", name) : actors_text(r, a, "#%d", f->argument);
}

/* The kernel of a launch; 0: it is none. */
static uint32_t kernel_of(struct replay *r, uint64_t seq) {
    struct reader_event *e = r->other;
    return seq != EVENT_NO_SEQ && reader_event(r->r, seq, e) && e->event.kind == EVENT_LAUNCH
               ? e->event.name
               : 0;
}

static void fill_culprit(struct replay *r, struct arena *a, const struct found *f,
                         struct verdict_actor *out) {
    *out = actors_make(r, a, f->culprit);
    if (f->culprit == EVENT_NO_SEQ && f->kernel)
        set_kernel(r, a, out, f->kernel);
    if (f->argument >= 0) {
        out->argument_index = f->argument;
        out->argument = argument_name(
            r, a, f, f->culprit == EVENT_NO_SEQ ? f->kernel : kernel_of(r, f->culprit));
    }
    if (f->tensor)
        out->tensor = actors_text(r, a, "%s", reader_string(r->r, f->tensor));
    if (f->hypothesis != HYPOTHESIS_RESOURCE_LEAK) /* whose address is a handle */
        out->address = f->address;
    out->len = f->len;
    out->writes = f->culprit_writes;
    set_replay(r, out, f->replay);
    if (out->writes && out->access == VERDICT_ACCESS_READS)
        out->access = VERDICT_ACCESS_WRITES;
}

/* What to do, where the run says more than the hypothesis's row can know; NULL: it does not. */
static const struct sentence *advise(const struct replay *r, const struct found *f) {
    if (f->advised)
        return f->advised;
    if (f->hypothesis == HYPOTHESIS_SHAPE_MISMATCH && reader_provenance_find(r->r, "model.path"))
        return sentence_plain(SENTENCE_ADVICE_MODEL);
    if (f->hypothesis == HYPOTHESIS_UPSTREAM_KERNEL_FAULT && f->culprit == EVENT_NO_SEQ &&
        !f->kernel)
        return sentence_plain(SENTENCE_ADVICE_SERIALISE);
    return NULL;
}

struct verdict_finding actors_finding(struct replay *r, struct arena *a, const struct found *f) {
    struct verdict_finding out = {
        .hypothesis = f->hypothesis,
        .also = f->also & ~(1u << f->hypothesis),
        .other = keep_other(r, a, f),
        .messenger = keep_actor(r, a, f->messenger),
        .said = sentence_keep(a, f->said),
        .advised = advise(r, f),
        .count = f->count,
        .evidence_count = f->evidence_count,
    };
    r->no_memory |= !out.said;
    out.text = sentence_text(LANG_EN, out.said);
    out.advice = out.advised ? sentence_text(LANG_EN, out.advised)
                             : hypothesis_words(LANG_EN, f->hypothesis)->advice;
    fill_culprit(r, a, f, &out.culprit);
    uint64_t *evidence = arena_alloc_array(a, f->evidence_count + 1, sizeof *evidence);
    struct verdict_block *block = f->has_block ? arena_alloc(a, sizeof *block) : NULL;
    if (!evidence || (f->has_block && !block)) {
        r->no_memory = true;
        return out;
    }
    memcpy(evidence, f->evidence, f->evidence_count * sizeof *evidence);
    out.evidence = evidence;
    if (block) {
        *block = actors_block(r, a, &f->block, f->process, &f->name);
        out.block = block;
    }
    return out;
}
