/* judge.h - the reports there are, and judging a recording with all of them.
 *
 * Shared by `run` and `report`: one table says what formats exist, how an option names them, which
 * file they go to in a folder, and the functions that write them. */
#ifndef AUDIT_JUDGE_H
#define AUDIT_JUDGE_H

#include <stdio.h>

#include "record/reader.h"
#include "report/lang.h"
#include "verdict/verdict.h"

enum judge_format {
    JUDGE_TEXT,
    JUDGE_JSON,
    JUDGE_MD,
    JUDGE_HTML,
    JUDGE_PERFETTO,
    JUDGE_FORMATS,
};

struct judge_options {
    struct verdict_options verdict;
    enum lang lang; /* of the reports for people */
    bool perfetto;  /* judge_recording() writes a trace for ui.perfetto.dev, too: it is large */
    bool verbose;   /* in text: every finding and all evidence */
    bool stacks;    /* in text: whole call stacks */
};

/* True if something was expected of the binary or the model. */
bool judge_expects(const struct judge_options *o);

/* Writes one report. Colours only for a terminal. */
NODISCARD enum rc judge_write(FILE *out, enum judge_format format, const verdict *v,
                              const reader *r, const struct judge_options *o, struct err *e);

/* The same into a file, which appears only when it is complete. */
NODISCARD enum rc judge_write_file(const char *path, enum judge_format format, const verdict *v,
                                   const reader *r, const struct judge_options *o, struct err *e);

/* Writes every report (the trace only on request) into the folder, and the answer, with where to
 * read on, to `say` (NULL: nowhere). Returns the exit code; names on stderr what cannot be written.
 * *whole: every report was written, and the recording lost no event to a full disk. */
int judge_recording(const reader *r, const char *folder, const struct judge_options *o, FILE *say,
                    bool *whole);

#endif
