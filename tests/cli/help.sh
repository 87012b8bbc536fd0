#!/usr/bin/env bash
# What --help prints, the manual pages and the completions name the same options, so that none of them
# can fall behind; the completions do what they should, and so does the parser that all programs share.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
man=$SOURCE_DIR/docs/man
programs=(greta_infer greta_bench greta_model greta_audit greta_d2h_demo)

# flags PROGRAM [COMMAND] - the options that its help lists.
flags() {
    "$BUILD_DIR/bin/$1" "${@:2}" --help | grep -oE '^  (-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort
}

# commands PROGRAM - those of a program that has any.
commands() {
    "$BUILD_DIR/bin/$1" --help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

# entries PROGRAM [COMMAND] - the options that its page has an entry for: of the command's section, or
# of all that stands in front of the commands.
entries() {
    sed 's/\\-/-/g' "$man/$1.1" |
        awk -v command="${2-}" '
            /^\.SH/ { on = command == "" && $2 == "OPTIONS" }
            /^\.SS/ && command != "" { on = $2 == command }
            on && tag { print }
            { tag = /^\.TP/ }' | grep -oE -- '--[a-z-]+' | sort
}

same() { # EXPECTED FOUND WHERE WHERE
    diff <(echo "$1") <(echo "$2") || { echo "(<: $3, >: $4)"; return 1; }
}

manual() { # PROGRAM [COMMAND]
    local expected
    expected=$(flags "$@")
    [ -n "$expected" ] && same "$expected" "$(entries "$@")" "in the help" "in the manual page"
}

# bash_words WORD… - what the completions of bash offer for the last word.
bash_words() {
    bash -c '
        . <("$0" --completion bash) || exit 1
        COMP_WORDS=("$1" "${@:2}")
        COMP_CWORD=$(($# - 1))
        "_$1" && printf "%s\n" "${COMPREPLY[@]}"' "$BUILD_DIR/bin/$1" "$@" | sort
}

in_bash() { # PROGRAM [COMMAND]
    same "$(flags "$@")" "$(bash_words "$@" --)" "in the help" "in the completions"
}

# The lines of the other shells' scripts that are about a program or a command of it.
zsh_lines() {
    "$BUILD_DIR/bin/$1" --completion zsh | awk -v command="${2-}" '
        BEGIN { on = command == "" }
        /^[a-z]+\)$/ { on = $1 == command ")" }
        /^    ;;/ { on = 0 }
        on'
}

in_zsh() {
    same "$(flags "$@")" "$(zsh_lines "$@" | grep -oE "^    '\*?--[a-z-]+" | grep -oE -- '--[a-z-]+' | sort)" \
        "in the help" "in the completions"
}

in_fish() {
    local condition='-l'
    [ -z "$(commands "$1")" ] || condition='-n __fish_use_subcommand -l'
    [ $# -eq 1 ] || condition="-n '__fish_seen_subcommand_from $2' -l"
    same "$(flags "$@")" "$("$BUILD_DIR/bin/$1" --completion fish | grep -oE -- "^complete -c $1 $condition [a-z-]+" |
        sed 's/.* /--/' | sort)" "in the help" "in the completions"
}

offers() { # WORDS WORD… - exactly these are offered
    local words
    words=$(bash_words "${@:2}" | paste -sd' ')
    [ "$words" = "$1" ] || { echo "offered: $words"; return 1; }
}

well_formed() { # SHELL SCRIPT-SUFFIX
    local program
    for program in "${programs[@]}"; do
        "$BUILD_DIR/bin/$program" --completion "$1" >"$TMPDIR/script" && "$1" -n "$TMPDIR/script" || return 1
    done
}

refuses() { # SHELL
    local program
    for program in "${programs[@]}"; do
        status 2 "$BUILD_DIR/bin/$program" --completion "$@" || return 1
    done
}

# help_to_full - a help that cannot be written is a failure, not a success.
help_to_full() {
    local program
    for program in "${programs[@]}"; do
        "$BUILD_DIR/bin/$program" --help >/dev/full
        [ $? = 1 ] || { echo "$program"; return 1; }
    done
    "$BUILD_DIR/bin/greta_audit" run --help >/dev/full
    [ $? = 1 ]
}

# No source reads a variable of greta past env.def, which the pages are made of (test_env_doc).
variables_are_told() {
    ! grep -rnE 'getenv\("(GRETA|GCORE)_' "$SOURCE_DIR"/{src,tools} --include=*.c
}

page_is_clean() {
    local said
    said=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$1" 2>&1 >/dev/null)
    [ -z "$said" ] || { echo "$said"; return 1; }
}

has_page() {
    [ -s "$man/$1.1" ] && grep -q '^\.SH EXIT STATUS' "$man/$1.1" && grep -q '^\.SH EXAMPLES' "$man/$1.1"
}

every_program_is_here() {
    diff <(cd "$BUILD_DIR/bin" && printf '%s\n' *) <(printf '%s\n' "${programs[@]}" | sort)
}

check "every program is looked at" every_program_is_here
for program in "${programs[@]}"; do
    check "$program has a manual page" has_page "$program"
    check "$program: the manual page has every option" manual "$program"
    [ -n "$(commands "$program")" ] || check "$program: bash" in_bash "$program"
    check "$program: zsh" in_zsh "$program"
    check "$program: fish" in_fish "$program"
    for command in $(commands "$program"); do
        check "$program $command: the manual page has every option" manual "$program" "$command"
        check "$program $command: bash" in_bash "$program" "$command"
        check "$program $command: zsh" in_zsh "$program" "$command"
        check "$program $command: fish" in_fish "$program" "$command"
    done
done
check "a help that cannot be written" help_to_full
check "no source reads a variable past env.def" variables_are_told
for page in "$man"/*.[17]; do
    if command -v man >/dev/null && man --help 2>&1 | grep -q -- --warnings; then
        check "$(basename "$page") is well formed" page_is_clean "$page"
    else
        skip "$(basename "$page") is well formed" "no man-db here"
    fi
done

check "commands are offered" offers "matrix" greta_audit ma
check "values are offered" offers "auto hip soft" greta_infer --device ""
check "after an equals sign too" offers "soft" greta_audit run --device = so
check "of a command's option" offers "b3.62 b3.63 b3.64" greta_audit matrix --profile b
check "nothing is offered for a file" offers "" greta_infer --model ""
check "nothing is offered after --" offers "" greta_audit run -- --
check "the shells are offered" offers "bash fish zsh" greta_model --completion ""
for shell in bash zsh fish; do
    if command -v "$shell" >/dev/null; then
        check "$shell takes the completions" well_formed "$shell"
    else
        skip "$shell takes the completions" "no $shell here"
    fi
done
model=$BUILD_DIR/bin/greta_model
file=$TMPDIR/cut.gguf
check "options may be cut short, and a value may join its letter" status 0 "$model" synth --sha tiny --se=7 "-o$file"
check "not where two options begin alike: both are named" status 2 \
    says "option '--s' is ambiguous: it could be --shape, --seed" "$model" synth --s 7 -o "$file"
check "an exact name is no beginning" status 2 says "name a recording" "$BUILD_DIR/bin/greta_audit" dump --kind copy
infer=$BUILD_DIR/bin/greta_infer
check "programs without commands too" status 2 says "it could be --prompt, --prompt-file" "$infer" --prom Hi
check "a prefix of one option" status 2 says "--max-tokens: expected a whole number, found 'x'" "$infer" --max-t=x
check "letters: -m" status 1 says "none.gguf" "$infer" -m none.gguf -p Hi -n 2
check "letters: -n" status 2 says "--max-tokens: expected a whole number" "$infer" -nx
check "letters of greta_bench" status 2 says "--decode: expected" "$BUILD_DIR/bin/greta_bench" -n x -p 1 -m none.gguf
check "letters of greta_audit matrix" status 2 says "--max-tokens wants" "$BUILD_DIR/bin/greta_audit" matrix -n x
for program in "${programs[@]}"; do
    check "$program: --vers is --version" status 0 says "$program " "$BUILD_DIR/bin/$program" --vers
    check "$program: --hel is --help" status 0 says "--version" "$BUILD_DIR/bin/$program" --hel
done
check "a word that only begins with dashes" status 2 says "unknown option '--'" "$infer" --
check "a misspelt option" status 2 says "unknown option '--promt' (did you mean --prompt?)" "$infer" --promt Hi
check "of a command" status 2 says "unknown option: --devise (did you mean --device?)" "$BUILD_DIR/bin/greta_audit" run --devise soft
check "a model without its letter" status 2 says "unknown argument 'm.gguf': a model is given with -m FILE" "$infer" m.gguf
check "help takes no value" status 2 says "--help takes no value" "$infer" --help=1
check "completions after an equals sign" status 0 says "complete -o" "$infer" --completion=bash
check "operands may stand before options" status 0 says '"tensors"' "$model" info "$file" --json
check "-- ends the options" status 1 says "cannot open" "$model" info -- --json
check "a switch takes no value" status 2 says "unknown option: --json=1" "$model" info --json=1 "$file"

check "other shells are wrong usage" refuses ksh
check "a shell is needed" refuses
finish
