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

finish
