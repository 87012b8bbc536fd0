#include "tools/infer/line.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "tools/common/program.h"

#if GRETA_LIBEDIT
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <wchar.h>
#endif

struct line_reader {
    const char *prompt;
    bool shown; /* we print the prompt, not libedit */
    char *text;
    size_t room;
#if GRETA_LIBEDIT
    EditLine *edit; /* NULL: plain input */
    History *history;
    locale_t locale; /* in which the terminal's bytes are UTF-8; (locale_t)0: as it was */
#endif
};

/* Waits until something was typed; false if a signal came first, however shortly before. */
static bool wait_for_input(void) {
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    sigset_t ours, before;
    int ready = -1;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigprocmask(SIG_BLOCK, &ours, &before);
    while (ready <= 0 && !program_interrupted()) {
        ready = ppoll(&input, 1, NULL, &before);
        if (ready < 0 && errno != EINTR)
            break;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return !program_interrupted();
}

/* ---- plain ----------------------------------------------------------------------------------- */

/* Why there is no line: Ctrl-C, or the end of the input, also by SIGTERM. */
static enum line_end no_line(void) {
    clearerr(stdin);
    return program_take_ctrl_c() ? LINE_INTERRUPTED : LINE_CLOSED;
}

static enum line_end read_plainly(line_reader *r, const char **text, size_t *len) {
    if (r->shown) {
        fputs(r->prompt, stdout);
        fflush(stdout);
    }
    ssize_t n = wait_for_input() ? getline(&r->text, &r->room, stdin) : -1;
    if (n < 0) {
        if (r->shown)
            fputc('\n', stdout);
        return no_line();
    }
    while (n > 0 && (r->text[n - 1] == '\n' || r->text[n - 1] == '\r'))
        r->text[--n] = '\0';
    *text = r->text;
    *len = (size_t)n;
    return LINE_READ;
}

/* ---- with libedit ---------------------------------------------------------------------------- */

#if GRETA_LIBEDIT

enum { HISTORY_LINES = 1000, CTRL_D = 4 };

static char *show_prompt(EditLine *edit) {
    const line_reader *r = NULL;
    el_get(edit, EL_CLIENTDATA, &r);
    return (char *)(uintptr_t)r->prompt;
}

/* The next character that is typed. libedit's own reader would swallow a signal. What was typed
 * while the terminal was not in editing mode has a NUL for Ctrl-D. */
static int next_character(EditLine *edit, wchar_t *out) {
    mbstate_t state = { 0 };
    (void)edit;
    for (;;) {
        char byte;
        if (!wait_for_input() || read(STDIN_FILENO, &byte, 1) != 1)
            return 0;
        if (!byte) {
            *out = CTRL_D;
            return 1;
        }
        size_t taken = mbrtowc(out, &byte, 1, &state);
        if (taken == (size_t)-1) { /* not a character here: the byte as it is */
            *out = (unsigned char)byte;
            return 1;
        }
        if (taken != (size_t)-2)
            return 1;
    }
}

/* Editing needs to know how bytes make characters. */
static void use_utf8(line_reader *r) {
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") != 0) {
        freelocale(locale);
        locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    }
    r->locale = locale;
}

static bool is_editable(void) {
    const char *terminal = env_text(ENV_TERM);
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

/* In r's locale. */
static bool open_editor(line_reader *r) {
    HistEvent event;
    r->edit = el_init("greta_infer", stdin, stdout, stderr);
    r->history = history_init();
    if (!r->edit || !r->history)
        return false;
    history(r->history, &event, H_SETSIZE, HISTORY_LINES);
    history(r->history, &event, H_SETUNIQUE, 1);
    el_set(r->edit, EL_CLIENTDATA, r);
    el_set(r->edit, EL_PROMPT, show_prompt);
    el_set(r->edit, EL_EDITOR, "emacs");
    el_set(r->edit, EL_HIST, history, r->history);
    el_set(r->edit, EL_GETCFN, next_character);
    el_set(r->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(r->edit, NULL); /* the user's ~/.editrc */
    return true;
}

static enum line_end read_edited(line_reader *r, const char **text, size_t *len) {
    HistEvent event;
    int n = 0;
    locale_t before = r->locale ? uselocale(r->locale) : (locale_t)0;
    el_resize(r->edit);
    const char *line = el_gets(r->edit, &n);
    bool read = line && n > 0;
    if (read && line[n - 1] == '\n')
        n--;
    char *copy = read ? strndup(line, (size_t)n) : NULL;
    if (copy && *copy)
        history(r->history, &event, H_ENTER, copy);
    if (r->locale)
        uselocale(before);
    if (!copy) {
        fputc('\n', stdout);
        fflush(stdout);
        return no_line();
    }
    free(r->text);
    r->text = copy;
    *text = copy;
    *len = strlen(copy);
    return LINE_READ;
}

static void close_editor(line_reader *r) {
    if (r->edit)
        el_end(r->edit);
    if (r->history)
        history_end(r->history);
    if (r->locale)
        freelocale(r->locale);
    r->edit = NULL;
    r->history = NULL;
    r->locale = (locale_t)0;
}

#endif

/* ---- either ---------------------------------------------------------------------------------- */

enum rc line_open(line_reader **out, const char *prompt, struct err *e) {
    line_reader *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(e, RC_MEMORY, "out of memory");
    r->prompt = prompt;
    r->shown = isatty(STDOUT_FILENO) == 1;
#if GRETA_LIBEDIT
    if (is_editable()) {
        use_utf8(r);
        locale_t before = r->locale ? uselocale(r->locale) : (locale_t)0;
        bool opened = open_editor(r);
        if (r->locale)
            uselocale(before);
        if (!opened)
            close_editor(r);
    }
#endif
    *out = r;
    return RC_OK;
}

enum line_end line_read(line_reader *r, const char **text, size_t *len) {
#if GRETA_LIBEDIT
    if (r->edit)
        return read_edited(r, text, len);
#endif
    return read_plainly(r, text, len);
}

void line_close(line_reader **r) {
    if (!*r)
        return;
#if GRETA_LIBEDIT
    close_editor(*r);
#endif
    free((*r)->text);
    free(*r);
    *r = NULL;
}
