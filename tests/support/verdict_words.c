#include "support/verdict_words.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

enum { NUMBERS_MAX = 64 };

/* The numbers in a text, sorted; returns how many. Digits inside words ("0x7f", "hipFree2") count
 * as they stand there. */
static size_t numbers_in(const char *text, unsigned long long out[NUMBERS_MAX]) {
    size_t n = 0;
    for (const char *c = text; *c && n < NUMBERS_MAX;) {
        if (!isdigit((unsigned char)*c)) {
            c++;
            continue;
        }
        char *end;
        out[n++] = strtoull(c, &end, 10);
        c = end;
    }
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && out[k] < out[k - 1]; k--) {
            unsigned long long x = out[k];
            out[k] = out[k - 1];
            out[k - 1] = x;
        }
    return n;
}

static void check_sentence(const struct sentence *s) {
    unsigned long long first[NUMBERS_MAX], other[NUMBERS_MAX];
    size_t n = numbers_in(sentence_text(LANG_EN, s), first);
    for (int lang = 0; lang < LANG_COUNT; lang++) {
        const char *text = sentence_text((enum lang)lang, s);
        if (!*text && s->id != SENTENCE_NOTHING)
            fail_msg("sentence %s says nothing in language %d", sentence_name(s->id), lang);
        if (numbers_in(text, other) != n || memcmp(first, other, n * sizeof *first) != 0)
            fail_msg("languages differ in numbers:\n  %s\n  %s", sentence_text(LANG_EN, s), text);
    }
}

static void check_finding(const struct verdict_finding *f) {
    char bytes[32];
    assert_non_null(f->said);
    check_sentence(f->said);
    assert_string_equal(f->text, sentence_text(LANG_EN, f->said));
    sentence_bytes(f->culprit.len, bytes, sizeof bytes);
    if (f->culprit.len && !strstr(f->text, bytes))
        fail_msg("the card shows %s, the headline does not: %s", bytes, f->text);
    if (f->hypothesis == HYPOTHESIS_LEAK) {
        assert_int_equal(f->culprit.access, VERDICT_ACCESS_ALLOCATES);
        assert_non_null(strstr(f->text, " never freed"));
    }
}

void verdict_check_words(const verdict *v) {
    for (size_t i = 0; i < v->finding_count; i++)
        check_finding(&v->findings[i]);
    for (size_t i = 0; i < v->remark_count; i++)
        check_sentence(v->remarks_said[i]);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        assert_non_null(v->hypothesis[i].said);
        check_sentence(v->hypothesis[i].said);
        assert_string_equal(v->hypothesis[i].text, sentence_text(LANG_EN, v->hypothesis[i].said));
    }
    check_sentence(v->answer_said);
    if (v->coverage.gaps_said)
        check_sentence(v->coverage.gaps_said);
    if (v->coverage.end_said)
        check_sentence(v->coverage.end_said);
    if (v->messenger && !v->messenger->status_code && strstr(v->answer, "reported it"))
        fail_msg("%s returned %s, and yet: %s", v->messenger->api, v->messenger->status, v->answer);
}
