/* greta_model - looks at model files and makes them. The commands are in tools/model/command.def;
 * each is in tools/model/cmd_NAME.c, its options in NAME.def. */
#include "tools/common/program.h"
#include "tools/model/cmd.h"

static const struct command commands[] = {
#define COMMAND(name, arguments, does)                                                             \
    { #name, arguments, does, cmd_##name, &cmd_##name##_options },
#include "tools/model/command.def"
};

int main(int argc, char **argv) {
    static const struct command_set set = {
        .program = "greta_model",
        .commands = commands,
        .count = OPTION_COUNT_OF(commands),
        .exit_status = "0 done and clean, 1 the run failed or problems were found, 2 wrong usage,\n"
                       "3 refused.",
    };
    program_survive_file_limit();
    return command_main(&set, argc, argv);
}
