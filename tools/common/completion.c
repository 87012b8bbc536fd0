#include "tools/common/completion.h"

#include <string.h>

#include "tools/common/program.h"

/* ---- what rows say --------------------------------------------------------------------------- */

/* The options of a program with commands: only those that every program has. */
static const struct option_table no_options = { .rows = NULL };

static const struct option_table *own_options(const struct completion_words *w) {
    return w->options ? w->options : &no_options;
}

static bool names_file(const struct option_row *row) {
    return strstr(row->value, "FILE") != NULL;
}

static bool names_folder(const struct option_row *row) {
    return strstr(row->value, "DIR") != NULL;
}

/* Text for a place where `special` characters need a backslash, its lines as one; an apostrophe
 * leaves and enters the quotes again, unless a backslash does for it. */
static void put_text(const char *text, const char *special) {
    for (; *text; text++) {
        if (*text == '\n')
            putchar(' ');
        else if (*text == '\'' && !strchr(special, '\''))
            fputs("'\\''", stdout);
        else
            printf(strchr(special, *text) ? "\\%c" : "%c", *text);
    }
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* What follows in $words after "COMMAND BEFORE"; file names are the default of `complete`. */
static void bash_table(const char *command, const struct option_table *t) {
    const struct option_row *row;
    for (size_t i = 0; (row = option_row(t, i)) != NULL; i++)
        if (row->kind->choices)
            printf("    '%s %s') words='%s' ;;\n", command, option_long_flag(row),
                   row->kind->choices);
        else if (!row->kind->bare && !row->kind->optional)
            printf("    '%s %s') ;;\n", command, option_long_flag(row));
    printf("    '%s '*) %swords='", command, t->command ? "[[ $word == -* ]] && " : "");
    for (size_t i = 0; (row = option_row(t, i)) != NULL; i++)
        printf("%s%s", i ? " " : "", option_long_flag(row));
    puts("' ;;");
}

static void print_bash(const struct completion_words *w) {
    printf("_%s() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local command='' words=''\n"
           "    [[ $before == '=' ]] && before=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    [[ $word == '=' ]] && word=''\n"
           "    [[ \" ${COMP_WORDS[*]:1:COMP_CWORD-1} \" == *' -- '* ]] && return\n",
           w->program);
    if (w->command_count)
        puts("    ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]}");
    puts("    case \"$command $before\" in");
    for (size_t i = 0; i < w->command_count; i++)
        bash_table(w->commands[i].name, w->commands[i].options);
    if (w->command_count) {
        printf("    '--completion '*) words='%s' ;;\n    ' '*) words='", OPTION_SHELLS);
        for (size_t i = 0; i < w->command_count; i++)
            printf("%s ", w->commands[i].name);
        puts("--help --version --completion' ;;");
    } else {
        bash_table("", own_options(w));
    }
    printf("    esac\n"
           "    [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
           "}\n"
           "complete -o bashdefault -o default -F _%s %s\n",
           w->program, w->program);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* '--flag=[what it does]:VALUE:how to complete it' */
static void zsh_row(const struct option_row *row, const char *flag, const char *after) {
    static const char special[] = "[]:\\";
    printf(" \\\n    '%s%s%s[", row->kind->several ? "*" : "", flag, row->kind->bare ? "" : after);
    put_text(row->does, special);
    putchar(']');
    if (!row->kind->bare) {
        fputs(row->kind->optional ? "::" : ":", stdout);
        put_text(row->value, special);
        if (row->kind->choices)
            printf(":(%s)", row->kind->choices);
        else
            printf(":%s", names_file(row) ? "_files" : names_folder(row) ? "_files -/" : " ");
    }
    putchar('\'');
}

static void zsh_rows(const struct option_table *t) {
    const struct option_row *row;
    for (size_t i = 0; (row = option_row(t, i)) != NULL; i++) {
        char brief[] = { '-', option_short_flag(row), '\0' };
        zsh_row(row, option_long_flag(row), "=");
        if (brief[1])
            zsh_row(row, brief, "+");
    }
}

static void zsh_command(const struct command *c) {
    printf("%s)\n    _arguments", c->name);
    zsh_rows(c->options);
    puts(c->options->first_ends ? " \\\n    '(-)1:program:_command_names -e' '*::argument:_normal'"
                                : " \\\n    '*:file:_files'");
    puts("    ;;");
}

static void print_zsh(const struct completion_words *w) {
    printf("#compdef %s\n", w->program);
    if (w->command_count)
        puts("local curcontext=$curcontext state line\ntypeset -A opt_args");
    printf("_arguments%s", w->command_count ? " -C" : "");
    zsh_rows(own_options(w));
    if (w->command_count) {
        fputs(" \\\n    '1:command:((", stdout);
        for (size_t i = 0; i < w->command_count; i++) {
            printf("%s%s\\:\"", i ? " " : "", w->commands[i].name);
            put_text(w->commands[i].does, "\"\\:");
            putchar('"');
        }
        puts("))' \\\n    '*::argument:->argument'\n[[ $state == argument ]] || return\n"
             "case $line[1] in");
        for (size_t i = 0; i < w->command_count; i++)
            zsh_command(&w->commands[i]);
        fputs("esac", stdout);
    }
    putchar('\n');
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_rows(const char *program, const char *condition, const struct option_table *t) {
    const struct option_row *row;
    for (size_t i = 0; (row = option_row(t, i)) != NULL; i++) {
        printf("complete -c %s%s -l %s", program, condition, option_long_flag(row) + 2);
        if (option_short_flag(row))
            printf(" -s %c", option_short_flag(row));
        if (row->kind->choices)
            printf(" -x -a '%s'", row->kind->choices);
        else if (!row->kind->bare && !row->kind->optional)
            fputs(names_file(row) || names_folder(row) ? " -r" : " -x", stdout);
        fputs(" -d '", stdout);
        put_text(row->does, "'\\");
        puts("'");
    }
}

static void print_fish(const struct completion_words *w) {
    char condition[128];
    fish_rows(w->program, w->command_count ? " -n __fish_use_subcommand" : "", own_options(w));
    for (size_t i = 0; i < w->command_count; i++) {
        const struct command *c = &w->commands[i];
        printf("complete -c %s -n __fish_use_subcommand -f -a %s -d '", w->program, c->name);
        put_text(c->does, "'\\");
        puts("'");
        snprintf(condition, sizeof condition, " -n '__fish_seen_subcommand_from %s'", c->name);
        fish_rows(w->program, condition, c->options);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

int completion_main(const struct completion_words *w, const char *shell) {
    static const struct {
        const char *name;
        void (*print)(const struct completion_words *w);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
    for (size_t i = 0; shell && i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(shell, shells[i].name)) {
            shells[i].print(w);
            return program_finish_output(w->program);
        }
    fprintf(stderr, "%s: --completion: expected bash, zsh or fish%s%s%s\n", w->program,
            shell ? ", found '" : "", shell ? shell : "", shell ? "'" : "");
    return EXIT_WRONG;
}
