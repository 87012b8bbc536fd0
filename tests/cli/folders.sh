#!/usr/bin/env bash
# The graph of folders: one list, repeated in the documentation, and a lint that enforces it.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"

documented() {
    diff <(grep -E '^[a-z]+:' "$SOURCE_DIR/cmake/folders.txt") \
        <(awk '/^```/ { on = !on; next } on && /^[a-z]+:/' "$SOURCE_DIR/docs/architecture.md")
}
check "docs/architecture.md shows the graph of cmake/folders.txt" documented

# Every folder exists in the list, and stands after what it may include.
ordered() {
    awk -F: '/^[a-z]+:/ { n = split($2, to, " ")
                          for (i = 1; i <= n; i++) if (!(to[i] in seen)) bad = 1
                          seen[$1] = 1 } END { exit bad }' "$SOURCE_DIR/cmake/folders.txt"
}
check "a folder stands after everything it may include" ordered

# Circles among files: what there is, is listed.
circle_of() { "$SOURCE_DIR/scripts/circles" "$BUILD_DIR" | grep -qE "(^| )$1( |\$)"; }
no_circle_of() { ! circle_of "$1"; }
check "scripts/circles finds a circle that is there" circle_of soft/runtime/stream
check "the audit's files form no circle" no_circle_of 'audit/[a-z0-9_]+'

finish
