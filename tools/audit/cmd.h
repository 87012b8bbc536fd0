/* cmd.h - the commands of greta_audit (command.def): cmd_NAME() runs one, cmd_NAME_options are its
 * options. Each prints its own errors to stderr. */
#ifndef AUDIT_CMD_H
#define AUDIT_CMD_H

#include "tools/common/command.h"
#include "tools/common/program.h"

#define COMMAND(name, arguments, does)                                                             \
    int cmd_##name(int argc, char **argv);                                                         \
    extern const struct option_table cmd_##name##_options;
#include "tools/audit/command.def"

#endif
