/* matrix.h - a matrix: many runs of one program in several modes, judged together.
 *
 *   matrix_options.c  the words of the command line
 *   matrix_device.c   what is needed, and whether it is there (find.h)
 *   matrix_plan.c     which runs there are, and how each is started
 *   matrix_lock.c     locks of the device and the folder
 *   matrix_store.c    the folder: what was asked for, what was done
 *   matrix_run.c      starting, watching and ending runs
 *   matrix_progress.c how far the runs are
 *   matrix_total.c    all runs together
 *   matrix_summary.c  summary.json
 *   matrix_report.c   FINAL_REPORT.md
 *
 * Texts and arrays belong to the struct matrix; cmd_matrix() frees them at the end. Used by one
 * thread. */
#ifndef AUDIT_MATRIX_H
#define AUDIT_MATRIX_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "report/lang.h"
#include "tools/audit/cmd.h"
#include "tools/audit/find.h"
#include "tools/audit/kind.h"
#include "verdict/verdict.h"

enum { MATRIX_MODES_MAX = 4, MATRIX_RUNS_MAX = 100000, MATRIX_LOCKS_MAX = 32 };

/* MATRIX_PASSED, ... */
enum matrix_end {
#define MATRIX_END(id, word, error, en, es) MATRIX_##id,
#include "tools/audit/matrix.def"
    MATRIX_END_COUNT
};

struct matrix_mode {
    const char *name;
    unsigned iterations;
    bool recorded;
    const char *schedules, *environment, *arguments; /* columns of matrix.def */
};

struct matrix_profile {
    const char *name; /* the ticket that it is named after, in summary.json */
    const char *plain, *does;
    bool exclusive;
    struct matrix_mode modes[MATRIX_MODES_MAX];
    size_t mode_count;
};

/* NULL past the last one. */
const struct matrix_profile *matrix_profile(size_t index);
const char *matrix_end_word(enum matrix_end end);
bool matrix_end_is_error(enum matrix_end end);
const char *matrix_end_text(enum matrix_end end, enum lang lang);

/* A list of texts. */
struct matrix_list {
    const char **items;
    size_t count, room;
};
NODISCARD bool matrix_list_add(struct matrix_list *l, const char *text);

struct matrix_seeds {
    const uint64_t *items;
    size_t count;
};

/* The kinds of matrix_options.def. */
typedef const char *option_profile_type;
typedef const char *option_plain_name_type;
typedef struct matrix_list option_prompt_type;
typedef struct matrix_list option_parts_type;
typedef struct matrix_list option_schedules_type;
typedef struct matrix_seeds option_seeds_type;
typedef unsigned option_tokens_type;
typedef bool option_keep_type;

struct matrix_options {
#define OPTION OPTION_FIELD
#include "tools/audit/matrix_options.def"
    char **command; /* NULL: greta_infer */
};

struct matrix_run {
    unsigned number; /* from 1 */
    const struct matrix_mode *mode;
    const char *id;       /* "0051-audit": its folder */
    const char *schedule; /* NULL: the program's own */
    const char *prompt;   /* NULL: none */
    uint64_t seed;
    bool done; /* now or in an earlier session */
    enum matrix_end end;
    int exit_status, signal; /* 0: none */
    double seconds;
    const char *last_line; /* of standard error, or of standard output; "" if none */
};

struct matrix {
    struct matrix_options o;
    struct arena arena;
    struct matrix_profile profile; /* with the iterations that were asked for */
    char self[PATH_MAX];           /* greta_audit */
    char program[PATH_MAX];        /* the file that is run */
    uint64_t program_hash;
    struct find_device device;
    char folder[PATH_MAX - 128]; /* absolute */
    bool made_folder;
    struct matrix_run *runs;
    size_t run_count;
    uint64_t start_wall_us; /* of the first session */
    uint64_t begin_ns;      /* of this one */
    double earlier_seconds; /* of sessions before */
    int locks[MATRIX_LOCKS_MAX + 1];
    size_t lock_count;
    char lock_path[PATH_MAX]; /* the first one */
};

/* ---- matrix_options.c ---- */

/* -1: go on; otherwise the exit code. */
int matrix_options_parse(struct matrix *m, int argc, char **argv);
#define matrix_say(...) option_say(&cmd_matrix_options, __VA_ARGS__)

/* ---- matrix_device.c: -1, or EXIT_REFUSED with the reason said ---- */

int matrix_find_program(struct matrix *m);
int matrix_find_device(struct matrix *m);

/* ---- matrix_plan.c ---- */

NODISCARD enum rc matrix_plan(struct matrix *m, struct err *e);
/* "DIR/runs/0051-audit" or a file in there. */
void matrix_run_path(const struct matrix *m, const struct matrix_run *r, const char *file,
                     char out[static PATH_MAX]);
/* What is executed; NULL-terminated; NULL if memory ran out. */
char **matrix_command(struct matrix *m, const struct matrix_run *r);
/* Calls set for every variable of the run's environment; a NULL value means that it is unset. */
void matrix_environment(struct matrix *m, const struct matrix_run *r,
                        void (*set)(void *user, const char *name, const char *value), void *user);
/* One line for a shell that repeats the run, without a newline. */
void matrix_print_command(struct matrix *m, const struct matrix_run *r, FILE *out);
void matrix_print_plan(struct matrix *m, FILE *out);

/* ---- matrix_lock.c ---- */

/* Takes the locks of the device; -1, or EXIT_REFUSED after having waited as long as o.wait says. */
int matrix_lock_device(struct matrix *m);
/* Takes the folder for this process alone. */
int matrix_lock_folder(struct matrix *m);
void matrix_unlock(struct matrix *m);

/* ---- matrix_store.c ---- */

/* Chooses the folder, without making it, and finds out which runs are done. -1 or an exit code. */
int matrix_store_open(struct matrix *m);
/* Makes the folder and writes matrix.json, if they are not there. -1 or an exit code. */
int matrix_store_begin(struct matrix *m);
/* Removes what matrix_store_begin made, if no run is done. */
void matrix_store_undo(struct matrix *m);
/* Writes run.json: from now on the run is done. */
NODISCARD enum rc matrix_store_run(struct matrix *m, struct matrix_run *r, struct err *e);
/* An empty folder for the run: what an unfinished one left is removed. */
NODISCARD enum rc matrix_store_prepare(struct matrix *m, const struct matrix_run *r, struct err *e);
/* --keep failed: leaves of a run that passed only run.json and report.json. */
void matrix_store_thin(struct matrix *m, const struct matrix_run *r);
/* Removes a folder with all that is in it. */
void matrix_remove_folder(const char *path);

/* Members of a JSON object: a list, and greta's, HIP's and ROCm's variables of the environment. */
void matrix_put_list(struct json *j, const char *key, const struct matrix_list *l);
void matrix_put_environment(struct json *j);

/* ---- matrix_run.c ---- */

/* Runs everything that is not done yet. Returns -1 if all runs are done now, otherwise an exit
 * code. *interrupted is the signal that ended it early, or 0; runs that had ended by then count as
 * done. */
int matrix_run_all(struct matrix *m, int *interrupted);

/* ---- matrix_progress.c ---- */

struct matrix_progress {
    bool terminal, over;
    uint64_t begin, shown; /* clock_now_ns() */
    size_t before;         /* done by earlier sessions */
    size_t done, errors;
    unsigned percent;
};
void matrix_progress_begin(struct matrix_progress *p, const struct matrix *m);
/* Shows that a run has started (r) or ended (NULL); cheap enough to be called often. */
void matrix_progress_show(struct matrix_progress *p, const struct matrix *m,
                          const struct matrix_run *r);
void matrix_progress_end(struct matrix_progress *p);

/* ---- matrix_total.c ---- */

/* A bug, in all runs that show it. Bugs are the same if hypothesis, operation, tensor and call site
 * are. */
struct matrix_finding {
    enum verdict_hypothesis_id hypothesis;
    const char *culprit; /* "kernel rope_q, argument pos (tensor d_pos)" */
    const char *site, *text, *advice;
    const char *answer; /* of a run whose first finding it is; NULL: of none */
    const char *key;
    size_t runs, roots; /* runs that show it; of those: as the cause of a failure */
    const struct matrix_run *first, *first_root;
    unsigned last;                /* number of the last run that does */
    struct matrix_list schedules; /* the first few under which it showed */
};

struct matrix_by_mode {
    size_t done, errors, ends[MATRIX_END_COUNT];
};

struct matrix_by_schedule {
    const char *name; /* "fast"; all seeds of random are one */
    size_t runs, errors;
    uint32_t confirmed;          /* bits 1 << hypothesis */
    struct matrix_list shown_by; /* the first few schedules that did */
};

struct matrix_by_hypothesis {
    size_t runs[4]; /* by enum verdict_status */
    uint64_t checked, findings;
    const struct matrix_run *first; /* that confirms it */
};

struct matrix_total {
    enum verdict_overall overall;
    const char *answer;
    bool complete;
    size_t done, errors, judged;
    size_t by_overall[5];
    struct matrix_by_mode modes[MATRIX_MODES_MAX];
    struct matrix_by_schedule *schedules;
    size_t schedule_count;
    struct matrix_by_hypothesis hypotheses[HYPOTHESIS_COUNT];
    struct matrix_finding *findings; /* causes of the most failures first, then most runs */
    size_t finding_count, finding_room;
    const struct matrix_run *example; /* whose recording the report shows; NULL: none */
    /* of the example's report.json, or of greta_audit itself: */
    const char *commit, *build_id, *model_hash;
    bool dirty;
};

/* Reads all runs that are done, in order. What matrix_total_close() does not free belongs to the
 * matrix. */
NODISCARD enum rc matrix_total(struct matrix_total *t, struct matrix *m, struct err *e);
void matrix_total_close(struct matrix_total *t);
/* The first line of reports. what: the finding as the run that is shown words it; NULL: in English,
 * from its report. NULL without memory. */
const struct sentence *matrix_answer(const struct matrix_total *t, struct matrix *m,
                                     const struct sentence *what);
/* Over all judged runs: one is enough to confirm, ruling out takes all of them. */
enum verdict_status matrix_status(const struct matrix_total *t, enum verdict_hypothesis_id id);

/* ---- matrix_summary.c, matrix_report.c ---- */

NODISCARD enum rc matrix_write_summary(struct matrix *m, const struct matrix_total *t,
                                       struct err *e);
NODISCARD enum rc matrix_write_report(struct matrix *m, const struct matrix_total *t,
                                      struct err *e);
/* "PASS", "FAIL" or "-". */
const char *matrix_mode_result(const struct matrix_by_mode *b, const struct matrix_mode *mode);

#endif
