/* judge.h - judges a recording and writes its reports into a folder. */
#ifndef AUDIT_JUDGE_H
#define AUDIT_JUDGE_H

#include <stdio.h>

#include "record/reader.h"

struct judge_options {
    const char *expect_commit, *expect_model_hash; /* NULL: no expectation */
    const char *language;                          /* en or es; NULL: en */
};

/* Writes every report there is beside the recording and the answer, with where to read on, to say
 * (NULL: nowhere). Returns the exit code; what cannot be written is named on stderr. */
int judge_recording(const reader *r, const char *recording, const char *folder,
                    const struct judge_options *o, FILE *say);

#endif
