/* coverage.c - what of the run the recording shows: counts, gaps, provenance, memory, remarks. */
#include "verdict/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "symbol/lines.h"

enum { ALIVE_MAX = 20000 };

static void collect_pending(struct judge *j) {
    struct replay *r = j->r;
    struct verdict_coverage *c = &j->v->coverage;
    size_t count = 0;
    enum { PENDING_MAX = 1000 };
    for (size_t i = 0; i < r->thread_count; i++)
        count += r->threads[i].seen && r->threads[i].last_pending;
    count = count < PENDING_MAX ? count : PENDING_MAX;
    struct verdict_actor *pending = arena_alloc_array(j->a, count + 1, sizeof *pending);
    if (!pending) {
        r->no_memory = true;
        return;
    }
    c->pending_count = 0;
    for (size_t i = 0; i < r->thread_count && c->pending_count < count; i++)
        if (r->threads[i].seen && r->threads[i].last_pending)
            pending[c->pending_count++] = actors_make(r, j->a, r->threads[i].last);
    c->pending = pending;
}

/* "first; second"; first may be NULL. */
static void add_gap(struct judge *j, const struct sentence **gaps, const struct sentence *gap) {
    *gaps = *gaps ? SAY(&j->r->words, JOINED, A_SENTENCE(*gaps), A_SENTENCE(gap)) : gap;
    j->r->no_memory |= !*gaps;
}

void coverage_fill(struct judge *j) {
    struct replay *r = j->r;
    struct verdict_coverage *c = &j->v->coverage;
    struct arena *words = &r->words;
    const struct sentence *gaps = NULL;
    *c = r->seen;
    ends_fill(r, j->a, c);
    if (c->overwritten)
        add_gap(j, &gaps, SAY(words, GAP_OVERWRITTEN, A_NUMBER(c->overwritten)));
    if (c->lost)
        add_gap(j, &gaps, SAY(words, GAP_LOST, A_NUMBER(c->lost)));
    if (c->torn > c->unread)
        add_gap(j, &gaps, SAY(words, GAP_TORN, A_NUMBER(c->torn - c->unread)));
    if (c->unread)
        add_gap(j, &gaps, SAY(words, GAP_UNREAD, A_NUMBER(c->unread)));
    if (c->cut || reader_info(r->r)->truncated)
        add_gap(j, &gaps, sentence_plain(SENTENCE_GAP_CUT));
    if (r->partial)
        add_gap(j, &gaps, sentence_plain(SENTENCE_GAP_PARTIAL));
    if (r->foreign)
        add_gap(j, &gaps, sentence_plain(SENTENCE_GAP_FOREIGN));
    if (r->unfollowed)
        add_gap(j, &gaps, SAY(words, GAP_UNFOLLOWED, A_NAME(r->unfollowed)));
    if (reader_info(r->r)->lost_definitions)
        add_gap(j, &gaps, sentence_plain(SENTENCE_GAP_NAMES));
    c->complete = !gaps;
    if (!c->ended && c->end_event != EVENT_NO_SEQ)
        add_gap(j, &gaps, SAY(words, GAP_EARLY, A_NUMBER(c->end_event)));
    else if (!c->ended)
        add_gap(j, &gaps, sentence_plain(SENTENCE_GAP_EMPTY));
    c->gaps_said = gaps ? judge_keep(j, gaps) : NULL;
    c->gaps = sentence_text(LANG_EN, c->gaps_said);
    collect_pending(j);
}

void coverage_fill_provenance(struct judge *j) {
    struct replay *r = j->r;
    struct verdict_provenance *p = &j->v->provenance;
    uint32_t count = reader_count(r->r, DEFINITION_PROVENANCE);
    struct verdict_fact *facts = arena_alloc_array(j->a, (size_t)count + 1, sizeof *facts);
    if (!facts) {
        r->no_memory = true;
        return;
    }
    /* A text may be the value of many: together they stay below what the file holds. */
    uint64_t room = reader_info(r->r)->data_bytes;
    for (uint32_t id = 1; id <= count; id++) {
        const struct provenance_value *v = reader_provenance(r->r, id);
        const char *value = v ? reader_string(r->r, v->value) : NULL;
        if (!value || strlen(value) > room)
            continue;
        room -= strlen(value);
        char *copy = arena_copy_text(j->a, value, strlen(value)); /* may be long */
        r->no_memory |= !copy;
        facts[p->fact_count++] =
            (struct verdict_fact){ actors_text(r, j->a, "%s", reader_string(r->r, v->key)),
                                   copy ? copy : "" };
    }
    p->facts = facts;
    struct stale_facts s;
    stale_describe(r, &s);
    p->commit = actors_text(r, j->a, "%s", s.commit);
    p->build_id = actors_text(r, j->a, "%s", s.build_id);
    p->model_hash = actors_text(r, j->a, "%s", s.model_hash);
    const char *command = judge_fact(r, "run.command");
    char *copy = arena_copy_text(j->a, command, strlen(command));
    p->command = copy ? copy : "";
    r->no_memory |= !copy;
    p->dirty = s.dirty;
    if (r->options->expect_commit)
        p->expected_commit = actors_text(r, j->a, "%s", r->options->expect_commit);
    if (r->options->expect_build_id)
        p->expected_build_id = actors_text(r, j->a, "%s", r->options->expect_build_id);
    if (r->options->expect_model_hash)
        p->expected_model_hash = actors_text(r, j->a, "%s", r->options->expect_model_hash);
    const struct reader_info *i = reader_info(r->r);
    p->run_id = i->run_id;
    p->start_wall_us = i->start_wall_us;
    p->duration_ns = r->now_ns > i->start_ns ? r->now_ns - i->start_ns : 0;
}

/* ---- blocks and remarks ---------------------------------------------------------------------- */

void coverage_fill_blocks(struct judge *j) {
    struct replay *r = j->r;
    struct verdict *v = j->v;
    size_t room = v->finding_count;
    for (size_t i = 0; i < r->space_count; i++)
        room += r->spaces[i]->live.count;
    room = room < ALIVE_MAX ? room : ALIVE_MAX;
    struct verdict_block *out = arena_alloc_array(j->a, room + 1, sizeof *out);
    if (!out) {
        r->no_memory = true;
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < v->finding_count && n < room; i++)
        if (v->findings[i].block)
            out[n++] = *v->findings[i].block;
    for (size_t i = 0; i < r->space_count; i++) {
        const struct space *s = r->spaces[i];
        for (struct range *at = rangemap_first(&s->live); at && n < room;
             at = rangemap_next(&s->live, at))
            out[n++] = actors_block(r, j->a, at->value, s->process, space_name_at(s, at->addr));
    }
    v->blocks = out;
    v->block_count = n;
}

const struct sentence *verdict_unused_file(struct arena *a, const reader *r, size_t i) {
    static const enum sentence_id said[] = { [LINES_CHANGED] = SENTENCE_FILE_CHANGED,
                                             [LINES_NEWER] = SENTENCE_FILE_NEWER,
                                             [LINES_UNREAD] = SENTENCE_FILE_UNREAD };
    const char *path;
    enum lines_reason why;
    if (!lines_unused(r, i, &path, &why))
        return NULL;
    return sentence_keep(
        a, sentence_make(a, said[why], (const struct sentence_value[]){ A_NAME(path) }, 1));
}

/* Frames have been looked up by now, so that all such files are known. */
static void remark_files(struct replay *r) {
    const struct sentence *said;
    for (size_t i = 0; (said = verdict_unused_file(&r->words, r->r, i)); i++)
        findings_note(r, said);
}

void coverage_fill_remarks(struct judge *j) {
    remark_files(j->r);
    struct replay *r = j->r;
    const char **out = arena_alloc_array(j->a, r->found.remark_count + 1, sizeof *out);
    const struct sentence **said = arena_alloc_array(j->a, r->found.remark_count + 1, sizeof *said);
    if (!out || !said) {
        r->no_memory = true;
        return;
    }
    for (size_t i = 0; i < r->found.remark_count; i++) {
        said[i] = sentence_keep(j->a, r->found.remarks[i]);
        r->no_memory |= !said[i];
        out[i] = sentence_text(LANG_EN, said[i]);
    }
    j->v->remarks_said = said;
    j->v->remarks = out;
    j->v->remark_count = r->found.remark_count;
}
