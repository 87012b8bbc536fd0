# shellcheck shell=bash disable=SC2034  # variables are for the scripts that read this
# hip.sh - what scripts that compile HIP programs begin with; reads tap.sh.
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$BUILD_DIR/bin/greta_audit
sources=$SOURCE_DIR/tests/hip
cd "$TMPDIR" || exit 1

# has_plain_build WHAT || finish, has_hipcc WHAT || finish: the suite is skipped without it.
has_plain_build() {
    ! is_sanitized ||
        { skip "$1" "a sanitizer build cannot be loaded into programs of hipcc" && return 1; }
}
has_hipcc() {
    command -v hipcc >/dev/null || { skip "$1" "there is no hipcc" && return 1; }
}

# run COMMAND...: on the software device. passes COMMAND...: its last line is PASS.
run() { LD_LIBRARY_PATH=$BUILD_DIR/lib/soft "$@"; }
passes() { [ "$(run "$@" 2>&1 | tee /dev/stderr | tail -n 1)" = PASS ]; }
