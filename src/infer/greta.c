/* greta.c - <greta/greta.h> over engine.h. */
#include <greta/greta.h>

#include <stdlib.h>
#include <string.h>

#include "greta_build.h"
#include "infer/engine.h"

/* enum greta_code is enum rc under public names. */
_Static_assert(GRETA_OK == (int)RC_OK && GRETA_USAGE == (int)RC_USAGE && GRETA_IO == (int)RC_IO &&
                   GRETA_FORMAT == (int)RC_FORMAT && GRETA_MEMORY == (int)RC_MEMORY &&
                   GRETA_RANGE == (int)RC_RANGE && GRETA_UNSUPPORTED == (int)RC_UNSUPPORTED &&
                   GRETA_REFUSED == (int)RC_REFUSED && GRETA_DEVICE == (int)RC_DEVICE &&
                   GRETA_INTERRUPTED == (int)RC_BUSY,
               "codes");
_Static_assert(GRETA_END_LENGTH == (int)ENGINE_LENGTH && GRETA_END_EOS == (int)ENGINE_EOS &&
                   GRETA_END_STOP == (int)ENGINE_STOP &&
                   GRETA_END_INTERRUPTED == (int)ENGINE_INTERRUPTED &&
                   GRETA_END_FULL == (int)ENGINE_FULL,
               "ends");
_Static_assert(GRETA_ADD_SPECIAL == (int)TOKENIZER_ADD_SPECIAL &&
                   GRETA_PARSE_SPECIAL == (int)TOKENIZER_PARSE_SPECIAL,
               "flags");

struct greta_engine {
    engine *engine;
};

static enum greta_code tell(enum rc rc, const struct err *from, struct greta_error *e) {
    if (e) {
        e->code = (enum greta_code)rc;
        _Static_assert(sizeof e->message == sizeof from->msg, "messages");
        memcpy(e->message, rc ? from->msg : "", rc ? sizeof from->msg : 1);
    }
    return (enum greta_code)rc;
}

/* ---- opening -------------------------------------------------------------------------------- */

void greta_options_init(struct greta_options *o) {
    *o = (struct greta_options){ 0 };
}

static bool on_progress(uint64_t done, uint64_t total, void *user) {
    const struct greta_options *o = user;
    return !o->progress || o->progress(done, total, o->user) == 0;
}

static void on_report(const char *text, void *user) {
    const struct greta_options *o = user;
    if (o->report)
        o->report(text, o->user);
}

enum greta_code greta_open(greta_engine **out, const struct greta_options *o,
                           struct greta_error *e) {
    struct err why = { 0 };
    struct greta_options given = *o;
    struct engine_options eo = {
        .model = o->model,
        .device = o->device,
        .record = o->record,
        .context = o->context,
        .sequences = o->sequences,
        .cache = o->cache,
        .chunk = o->chunk,
        .threads = o->threads,
        .kv_type = o->kv_type,
        .expect = o->expect,
        .guard_rail = !o->ignore_guard_rail,
        .all_logits = o->all_logits != 0,
        .progress = on_progress,
        .report = on_report,
        .note = on_report,
        .user = &given,
    };
    greta_engine *g = calloc(1, sizeof *g);
    enum rc rc = g ? engine_open(&g->engine, &eo, &why) : err_set(&why, RC_MEMORY, "out of memory");
    if (rc)
        free(g);
    else
        *out = g;
    return tell(rc, &why, e);
}

enum greta_code greta_close(greta_engine **g, struct greta_error *e) {
    struct err why = { 0 };
    enum rc rc = *g ? engine_close(&(*g)->engine, &why) : RC_OK;
    free(*g);
    *g = NULL;
    return tell(rc, &why, e);
}

const char *greta_description(const greta_engine *g) {
    return engine_description(g->engine);
}
uint32_t greta_vocab(const greta_engine *g) {
    return engine_config(g->engine)->vocab;
}
uint32_t greta_context(const greta_engine *g) {
    return engine_context(g->engine);
}
const char *greta_version(void) {
    return GRETA_VERSION;
}

/* ---- tokens --------------------------------------------------------------------------------- */

enum greta_code greta_tokenize(const greta_engine *g, const char *text, size_t bytes,
                               unsigned flags, int32_t *ids, size_t room, size_t *count,
                               struct greta_error *e) {
    struct token_list list = { 0 };
    struct err why = { 0 };
    enum rc rc =
        flags & ~(unsigned)(GRETA_ADD_SPECIAL | GRETA_PARSE_SPECIAL)
            ? err_set(&why, RC_USAGE, "greta_tokenize: unknown flags 0x%x", flags)
            : tokenizer_encode(engine_tokenizer(g->engine), text, bytes, flags, &list, &why);
    size_t fit = list.count < room ? list.count : room;
    if (!rc && fit)
        memcpy(ids, list.ids, fit * sizeof *ids);
    if (!rc)
        *count = list.count;
    token_list_close(&list);
    return tell(rc, &why, e);
}

const char *greta_token_text(const greta_engine *g, int32_t id, size_t *bytes) {
    const tokenizer *t = engine_tokenizer(g->engine);
    if (id < 0 || (uint32_t)id >= tokenizer_count(t))
        return NULL;
    struct gguf_string s = tokenizer_piece(t, id);
    *bytes = s.len;
    return s.data ? s.data : "";
}

/* ---- generating ----------------------------------------------------------------------------- */

void greta_request_init(struct greta_request *r) {
    const struct sampler_options *s = &sampler_defaults;
    *r = (struct greta_request){
        .max_tokens = 128,
        .temperature = s->temperature,
        .top_k = s->top_k,
        .top_p = s->top_p,
        .min_p = s->min_p,
        .repeat_penalty = s->repeat_penalty,
        .repeat_last = s->repeat_last,
    };
}

/* What the callbacks of a request need. */
struct call {
    struct greta_request r;
    uint32_t vocab;
    bool owned; /* by the sequence: freed with it */
};

static void on_text(uint32_t sequence, const char *text, size_t len, void *user) {
    const struct call *c = user;
    if (c->r.text)
        c->r.text(sequence, text, len, c->r.user);
}

static enum rc on_logits(uint32_t position, int32_t token, const float *logits, void *user,
                         struct err *e) {
    const struct call *c = user;
    if (!c->r.logits || !c->r.logits(position, token, logits, c->vocab, c->r.user))
        return RC_OK;
    return err_set(e, RC_BUSY, "the callback for logits ended the run at position %u", position);
}

static bool is_interrupted(void *user) {
    const struct call *c = user;
    return c->r.interrupted && c->r.interrupted(c->r.user);
}

/* The prompt's tokens, given as such or as text. */
static enum rc collect_tokens(const engine *g, const struct greta_request *r,
                              struct token_list *out, struct err *e) {
    enum rc rc = RC_OK;
    if (r->prompt && r->token_count)
        return err_set(e, RC_USAGE, "a request has a prompt or tokens, not both");
    if (r->prompt) {
        size_t len = r->prompt_bytes ? r->prompt_bytes : strlen(r->prompt);
        rc = r->append ? tokenizer_encode(engine_tokenizer(g), r->prompt, len, TOKENIZER_CONTINUES,
                                          out, e)
                       : engine_encode(g, r->prompt, len, false, out, e);
    }
    for (size_t i = 0; !rc && i < r->token_count; i++)
        rc = token_list_add(out, r->tokens[i], e);
    return rc;
}

static void on_finished(uint32_t sequence, const struct engine_finished *f, void *user) {
    struct call *c = user;
    struct greta_finished out = { (enum greta_end)f->end, (uint32_t)f->tokens->count - f->generated,
                                  f->generated };
    if (c->r.finished)
        c->r.finished(sequence, &out, c->r.user);
    if (c->owned)
        free(c);
}

static struct engine_request translate(const struct greta_request *r,
                                       const struct token_list *tokens, struct call *call) {
    return (struct engine_request){
        .prompt = tokens->ids,
        .prompt_count = tokens->count,
        .append = r->append != 0,
        .max_tokens = r->max_tokens,
        .sampling = { r->temperature, r->top_k, r->top_p, r->min_p, r->repeat_penalty,
                      r->repeat_last, r->seed },
        .stops = r->stops,
        .stop_count = r->stop_count,
        .ignore_end = r->ignore_end != 0,
        .text = on_text,
        .logits = r->logits ? on_logits : NULL,
        .interrupted = r->interrupted ? is_interrupted : NULL,
        .finished = on_finished,
        .user = call,
    };
}

enum greta_code greta_generate(greta_engine *g, const struct greta_request *r,
                               struct greta_result *out, struct greta_error *e) {
    struct err why = { 0 };
    struct token_list tokens = { 0 };
    struct engine_result result = { 0 };
    struct call call = { .r = *r, .vocab = greta_vocab(g) };
    enum rc rc = collect_tokens(g->engine, r, &tokens, &why);
    struct engine_request er = translate(r, &tokens, &call);
    rc = rc ? rc : engine_generate(g->engine, &er, &result, &why);
    if (out)
        *out = (struct greta_result){ result.generated, result.total_ms, result.first_token_ms,
                                      result.tokens_per_second, (enum greta_end)result.end };
    token_list_close(&result.tokens);
    token_list_close(&tokens);
    return tell(rc, &why, e);
}

enum greta_code greta_submit(greta_engine *g, const struct greta_request *r, uint32_t *id,
                             struct greta_error *e) {
    struct err why = { 0 };
    struct token_list tokens = { 0 };
    struct call *call = malloc(sizeof *call);
    enum rc rc = call ? RC_OK : err_set(&why, RC_MEMORY, "out of memory");
    rc = rc ? rc : collect_tokens(g->engine, r, &tokens, &why);
    if (!rc) {
        *call = (struct call){ .r = *r, .vocab = greta_vocab(g), .owned = true };
        struct engine_request er = translate(r, &tokens, call);
        rc = engine_submit(g->engine, &er, id, &why);
    }
    if (rc)
        free(call);
    token_list_close(&tokens);
    return tell(rc, &why, e);
}

enum greta_code greta_step(greta_engine *g, int *more, struct greta_error *e) {
    struct err why = { 0 };
    bool left = false;
    enum rc rc = engine_step(g->engine, &left, &why);
    *more = left;
    return tell(rc, &why, e);
}

enum greta_code greta_cancel(greta_engine *g, uint32_t id, struct greta_error *e) {
    const struct err none = { 0 };
    engine_cancel(g->engine, id);
    return tell(RC_OK, &none, e);
}
