/* cmd.h - the subcommands of greta_audit. Each gets its own name as argv[0] and returns an exit
 * code; it prints its own errors to stderr. */
#ifndef AUDIT_CMD_H
#define AUDIT_CMD_H

enum {
    EXIT_CLEAN = 0,   /* done, nothing wrong */
    EXIT_FOUND = 1,   /* the run failed, or bugs were found */
    EXIT_WRONG = 2,   /* wrong usage */
    EXIT_REFUSED = 3, /* will not, and says why */
};

int cmd_diff(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_lint(int argc, char **argv);
int cmd_matrix(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);

#endif
