/* greta_infer at a terminal: a pseudo-terminal plays the user, who types once the program has
 * printed what the test waits for. Nothing here depends on how long anything takes. */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/test.h"

enum { PATIENCE_MS = 120000, SCREEN = 1 << 20 };

static struct terminal {
    pid_t child;
    int fd;
    char *screen;      /* all that was printed */
    size_t used, seen; /* seen: up to what expect() found last */
} terminal;

static const char *kind = "xterm"; /* of terminal; "dumb": lines cannot be edited */
static char program[4096];
static char folder[] = "/tmp/greta-terminal.XXXXXX";

static void start(const char *const *arguments) {
    const char *argv[32] = { program };
    size_t count = 1;
    for (; *arguments; arguments++)
        argv[count++] = *arguments;
    struct winsize size = { .ws_row = 40, .ws_col = 200 };
    terminal.used = terminal.seen = 0;
    terminal.child = forkpty(&terminal.fd, NULL, NULL, &size);
    assert_true(terminal.child >= 0);
    if (terminal.child)
        return;
    setenv("TERM", kind, 1);
    setenv("HOME", folder, 1); /* no ~/.editrc */
    if (chdir(folder) == 0)
        execv(program, (char **)(uintptr_t)argv);
    _exit(127);
}

/* False once the program has closed the terminal. */
static bool read_more(void) {
    struct pollfd p = { .fd = terminal.fd, .events = POLLIN };
    if (terminal.used == SCREEN - 1 || poll(&p, 1, PATIENCE_MS) <= 0)
        fail_msg("waited for too long; the screen: %s", terminal.screen);
    ssize_t n = read(terminal.fd, terminal.screen + terminal.used, SCREEN - 1 - terminal.used);
    if (n <= 0)
        return false; /* EIO: nobody has the other side open */
    terminal.used += (size_t)n;
    terminal.screen[terminal.used] = '\0';
    return true;
}

/* Waits for words after those that were expected before. */
static void expect(const char *words) {
    const char *found;
    terminal.screen[terminal.used] = '\0';
    while (!(found = strstr(terminal.screen + terminal.seen, words)))
        if (!read_more())
            fail_msg("no '%s' on the screen: %s", words, terminal.screen);
    terminal.seen = (size_t)(found - terminal.screen) + strlen(words);
}

static void type(const char *keys) {
    size_t len = strlen(keys);
    assert_int_equal(write(terminal.fd, keys, len), (ssize_t)len);
}

static int finish(void) {
    int status;
    while (read_more())
        ;
    close(terminal.fd);
    assert_int_equal(waitpid(terminal.child, &status, 0), terminal.child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Fails unless a file of the folder has these words. */
static void file_has(const char *name, const char *words) {
    char path[512], text[4096] = "";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    if (!strstr(text, words))
        fail_msg("no '%s' in %s: %s", words, name, text);
}

#define CHAT "--chat", "--chat-template", "chatml", "--greedy", "--ignore-eos", "--quiet"
static const char *const brief[] = { CHAT, "-n", "8", NULL };
static const char *const endless[] = { CHAT, "-n", "900000", "--ctx", "1000000", NULL };

static bool has_libedit(void) {
    char *text = malloc(64 << 20);
    FILE *in = fopen(program, "r");
    assert_true(text && in);
    size_t n = fread(text, 1, 64 << 20, in);
    bool found = memmem(text, n, "libedit.so", strlen("libedit.so")) != NULL;
    fclose(in);
    free(text);
    return found;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void lines_can_be_edited_and_come_back(void **state) {
    (void)state;
    if (!has_libedit())
        skip();
    start(brief);
    expect("> ");
    type("ood morning\001g\n"); /* Ctrl-A: to the beginning */
    expect("\n");
    expect("> ");
    type("Gr\303\274\303\237e X\177Y\n");
    expect("\n");
    expect("> ");
    type("\033[A\033[A\n"); /* up, up: the first line again */
    expect("\n");
    expect("> ");
    type("/save talk.json\n");
    expect("6 messages saved to talk.json");
    type("\004");
    assert_int_equal(finish(), 0);
    file_has("talk.json", "\"content\": \"good morning\"");
    file_has("talk.json", "\"content\": \"Gr\303\274\303\237e Y\"");
}

static void ctrl_c_ends_an_answer_and_not_the_program(void **state) {
    (void)state;
    start(endless);
    expect("> ");
    type("hello\n");
    expect("the town"); /* the demo model's answer, which would go on for very long */
    type("\003");
    expect("> ");
    type("/save cut.json\n");
    expect("2 messages saved to cut.json"); /* what there was of the answer is part of the
                                               conversation */
    expect("> ");
    type("/quit\n");
    assert_int_equal(finish(), 0);
    file_has("cut.json", "the town");
}

/* What the program has written so far, in bytes. */
static unsigned long written(void) {
    char path[64];
    unsigned long bytes = 0;
    snprintf(path, sizeof path, "/proc/%d/io", (int)terminal.child);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_int_equal(fscanf(in, "rchar: %*u wchar: %lu", &bytes), 1);
    fclose(in);
    return bytes;
}

/* Until the program has written what the terminal takes, and waits. */
static void let_it_fill(void) {
    for (unsigned long before = 0, now = written(); now != before; now = written()) {
        before = now;
        nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
    }
}

static void ctrl_c_while_the_terminal_takes_no_more(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* an answer of that length takes minutes */
#endif
    start(endless);
    expect("> ");
    type("hello\n");
    expect("the town");
    let_it_fill();
    type("\003");
    expect("> ");
    type("/quit\n");
    assert_int_equal(finish(), 0);
}

static void ctrl_c_at_the_prompt_forgets_the_line(void **state) {
    (void)state;
    start(brief);
    expect("> ");
    type("half a sentence\003");
    expect("> ");
    type("\003");
    expect("> ");
    type("/save empty.json\n");
    expect("0 messages saved to empty.json");
    type("/quit\n");
    assert_int_equal(finish(), 0);
}

static void the_same_without_editing(void **state) {
    kind = "dumb";
    ctrl_c_ends_an_answer_and_not_the_program(state);
    ctrl_c_at_the_prompt_forgets_the_line(state);
    kind = "xterm";
}

static void sigterm_ends_a_conversation(void **state) {
    (void)state;
    start(brief);
    expect("> ");
    kill(terminal.child, SIGTERM);
    assert_int_equal(finish(), 128 + SIGTERM);
}

static void commands_do_what_help_says(void **state) {
    (void)state;
    start(brief);
    expect("> ");
    type("/help\n");
    for (const char *const *name = (const char *const[]){ "/help ", "/save ", "/load ", "/system ",
                                                          "/regenerate ", "/quit ", NULL };
         *name; name++)
        expect(*name);
    type("/fly\n");
    expect("/fly is not a command");
    type("/s x\n");
    expect("/s is ambiguous");
    type("/save\n");
    expect("the argument is missing");
    type("/load none.json\n");
    expect("none.json: No such file");
    type("/load .\n");
    expect(".: cannot be read: Is a directory");
    type("/regenerate\n");
    expect("There is no message to answer");
    type("/system\n");
    expect("There is no system message");
    type("/system Be brief\n");
    expect("> ");
    type("/sys\n");
    expect("\nBe brief");
    type("//not a command\n");
    expect("\n");
    expect("> ");
    type("/regenerate\n");
    expect("\n");
    expect("> ");
    type("/save deep/er/talk.json\n");
    expect("3 messages saved to deep/er/talk.json");
    type("/system -\n");
    type("/load deep/er/talk.json\n");
    expect("3 messages loaded from deep/er/talk.json");
    type("/system\n");
    expect("\nBe brief");
    type("/quit\n");
    assert_int_equal(finish(), 0);
    file_has("deep/er/talk.json", "\"content\": \"/not a command\"");
}

static void a_file_that_is_no_conversation_is_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *said;
    } files[] = {
        { "", "expected a value, found the end of the text" },
        { "{}", "expected {\"messages\": [" },
        { "[{\"role\": \"user\"}]", "message 1: expected an object with strings" },
        { "[{\"role\": \"cat\", \"content\": \"a\"}]", "found 'cat'" },
        { "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"system\", \"content\": \"b\"}]",
          "message 2: a system message must come first" },
    };
    start(brief);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/bad.json", folder);
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(files[i].text, out);
        fclose(out);
        expect("> ");
        type("/load bad.json\n");
        expect(files[i].said);
    }
    type("/quit\n");
    assert_int_equal(finish(), 0);
}

static void the_oldest_turns_are_dropped_and_that_is_said(void **state) {
    (void)state;
    static const char *const small[] = { CHAT, "-n", "8", "--ctx", "128", "--system", "Be", NULL };
    start(small);
    for (int i = 0; i < 4; i++) {
        expect("> ");
        type("The cat sat on the mat and the dog sat on the cat\n");
        expect("\n");
    }
    expect("the context of 128 positions is full");
    expect("> ");
    type("/system\n");
    expect("\nBe"); /* the system message stays */
    type("/quit\n");
    assert_int_equal(finish(), 0);
}

/* Dropping turns would not make room for it, so that none is dropped. */
static void a_message_that_does_not_fit_changes_nothing(void **state) {
    (void)state;
    static const char *const tiny[] = { CHAT, "-n", "4", "--ctx", "64", NULL };
    char line[512] = "";
    for (int i = 0; i < 40; i++)
        strcat(line, "zebra qx ");
    strcat(line, "\n");
    start(tiny);
    expect("> ");
    type("hello\n");
    expect("\n");
    expect("> ");
    type(line);
    expect("the message has ");
    expect("the context has room for 64: shorten it or give a larger --ctx");
    expect("> ");
    type("/save kept.json\n");
    expect("2 messages saved to kept.json");
    type("/system Be brief\n");
    type(line);
    expect("the system message and this message have ");
    expect("> ");
    type("/quit\n");
    assert_int_equal(finish(), 0);
}

static void reading_a_long_prompt_shows_progress(void **state) {
    (void)state;
    char prompt[4096] = "";
    for (int i = 0; i < 200; i++)
        strcat(prompt, "the cat sat ");
    const char *const arguments[] = { "-p",   prompt,    "-n", "3",        "--ctx",
                                      "4096", "--chunk", "64", "--greedy", NULL };
    start(arguments);
    expect("Reading the prompt: 0 of ");
    expect("Reading the prompt: 64 of ");
    expect("the cat sat"); /* the prompt follows when it has been read */
    expect("STATUS=OK");
    assert_int_equal(finish(), 0);
}

static int open_all(void **state) {
    (void)state;
    const char *build = getenv("BUILD_DIR");
    snprintf(program, sizeof program, "%s/bin/greta_infer", build ? build : "build");
    terminal.screen = calloc(1, SCREEN);
    return terminal.screen && mkdtemp(folder) ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    free(terminal.screen);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_can_be_edited_and_come_back),
        cmocka_unit_test(ctrl_c_ends_an_answer_and_not_the_program),
        cmocka_unit_test(ctrl_c_while_the_terminal_takes_no_more),
        cmocka_unit_test(ctrl_c_at_the_prompt_forgets_the_line),
        cmocka_unit_test(the_same_without_editing),
        cmocka_unit_test(sigterm_ends_a_conversation),
        cmocka_unit_test(commands_do_what_help_says),
        cmocka_unit_test(a_file_that_is_no_conversation_is_named),
        cmocka_unit_test(the_oldest_turns_are_dropped_and_that_is_said),
        cmocka_unit_test(a_message_that_does_not_fit_changes_nothing),
        cmocka_unit_test(reading_a_long_prompt_shows_progress),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
