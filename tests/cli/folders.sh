#!/usr/bin/env bash
# The graph of folders: one list, repeated in the documentation, and a lint that enforces it; and the
# folder of a build.
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

# A build folder that was copied with its clone still names the other clone's sources.
mkdir "$TMPDIR/copied" && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$TMPDIR" >"$TMPDIR/copied/CMakeCache.txt"
check "scripts/build refuses a build folder of another clone" says "was configured for the sources in $TMPDIR" \
    status 1 "$SOURCE_DIR/scripts/build" "$TMPDIR/copied"

# Circles among files, found in two objects that use each other.
circle_is_found() {
    local objects=$TMPDIR/fake_objects.dir/src/base
    mkdir -p "$objects" &&
        echo 'int log_x(void); int err_x(void) { return log_x(); }' | cc -x c -c - -o "$objects/err.c.o" &&
        echo 'int err_x(void); int log_x(void) { return err_x(); }' | cc -x c -c - -o "$objects/log.c.o" &&
        [ "$("$SOURCE_DIR/scripts/circles" "$TMPDIR")" = "base/err base/log" ]
}
check "scripts/circles finds a circle that is there" circle_is_found
no_circle() {
    local found
    found=$("$SOURCE_DIR/scripts/circles" "$BUILD_DIR") && echo "$found" && [ -z "$found" ]
}
check "no files of src depend on one another in a circle" no_circle

finish
