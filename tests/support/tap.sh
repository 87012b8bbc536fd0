# tap.sh - what a script in tests/cli needs to report its tests; read with
#   . "$SOURCE_DIR/tests/support/tap.sh"
# and ended with `finish`. Scripts run in bash with BUILD_DIR, SOURCE_DIR and an empty TMPDIR.
# shellcheck shell=bash
tap_count=0

# greta_audit of the build, for runs of programs. In a sanitizer build it is a script that loads the
# sanitizer's library into them, after greta's own (tests/CMakeLists.txt).
audit_program() {
    local script=$BUILD_DIR/tests/greta_audit
    [ -x "$script" ] && echo "$script" || echo "$BUILD_DIR/bin/greta_audit"
}

has_preload() { [ -e "$BUILD_DIR/lib/libgcore_preload.so" ]; } # clang's sanitizer builds have none
is_tsan() { grep -qs libtsan "$BUILD_DIR/tests/greta_audit"; }
is_sanitized() { ! has_preload || [ -e "$BUILD_DIR/tests/greta_audit" ]; }

# check NAME COMMAND… - one test: passes if the command succeeds; else what it printed is shown.
check() {
    local name=$1 text
    shift
    tap_count=$((tap_count + 1))
    if text=$("$@" 2>&1); then
        echo "ok $tap_count - $name"
    else
        echo "not ok $tap_count - $name"
        printf '%s\n' "$text" | sed 's/^/# /'
    fi
}

# status CODE COMMAND… - succeeds if the command ends with that exit status; passes its output on.
status() {
    local wanted=$1 found
    shift
    "$@"
    found=$?
    [ "$found" -eq "$wanted" ] || { echo "exit status $found instead of $wanted"; return 1; }
}

# says WORDS COMMAND… - succeeds if the command does and its output has these words; passes status and
# output on.
says() {
    local words=$1 text code
    shift
    text=$("$@" 2>&1)
    code=$?
    printf '%s\n' "$text"
    grep -qF -- "$words" <<<"$text" || { echo "no '$words' in it"; return 99; }
    return $code
}

is() { # WANTED FOUND
    [ "$1" = "$2" ] || { echo "expected '$1', found '$2'"; return 1; }
}

with() { env "$@"; } # NAME=VALUE… COMMAND…

# skip NAME WHY - a test that cannot run here.
skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

# The plan comes last: a script that dies on the way prints none, and its exit status says that it died.
finish() {
    echo "1..$tap_count"
    exit 0
}
