#!/usr/bin/env bash
# Forks among threads that begin to use HIP, or use it all the time: no child hangs, and the program's
# result is the one it has without greta. FORKS=1000 forks more often.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$(audit_program)
programs=$BUILD_DIR/programs
forks=${FORKS:-30}
cd "$TMPDIR" || exit 1

if ! has_preload; then
    skip "greta_audit run" "not in a build with clang's sanitizers"
    finish
fi

if is_sanitized; then
    skip "forks" "a sanitizer's own allocator need not survive a fork among threads"
    finish
fi

forked() { # WHEN OPTIONS…
    local when=$1
    shift
    # shellcheck disable=SC2086 # late, or nothing
    "$audit" run --quiet --device soft --out out "$@" -- "$programs/forks" "$forks" $when >stdout 2>stderr
    is 0 $? && is "$forks forks, 0 hung, 0 failed" "$(cat stdout)" && "$audit" dump out/record.gcr >dump ||
        { grep -v 'this process was forked' stderr | head -n 20; return 1; }
}

check "while threads begin to use HIP" forked ""
check "while threads use HIP" forked late
check "while threads begin, with host memory watched" forked "" --watch-host
check "while threads use HIP, with host memory watched" forked late --watch-host
finish
