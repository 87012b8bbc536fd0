#!/usr/bin/env bash
# An installation elsewhere is complete: headers, libraries, pkg-config, programs with their manual pages
# and completions, and the README's example.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
prefix=$TMPDIR/prefix

if nm -D "$BUILD_DIR/lib/libgcore.so" | grep -qE '__(asan|tsan)_init'; then
    skip "installation" "a sanitizer's library needs a sanitizer's program"
    finish
fi

present() {
    local file
    for file; do
        [ -e "$prefix/$file" ] || { echo "$file is missing"; return 1; }
    done
}

every_program() {
    local program
    for program in "$BUILD_DIR"/bin/*; do
        present "bin/$(basename "$program")" || return 1
    done
}

every_program_is_explained() {
    local program
    for program in "$BUILD_DIR"/bin/*; do
        program=$(basename "$program")
        present "share/man/man1/$program.1" "share/bash-completion/completions/$program" \
            "share/zsh/site-functions/_$program" "share/fish/vendor_completions.d/$program.fish" || return 1
    done
    present share/man/man7/greta.7
}

headers_stand_alone() {
    local header
    cd "$prefix/include" || return 1
    for header in */*.h; do
        echo "#include <$header>" |
            cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only -x c - || return 1
    done
}

# shellcheck disable=SC2016  # the file has these words literally
pkg_config_file() {
    grep -qx 'Libs: -L${libdir} -lgcore' "$prefix/lib/pkgconfig/gcore.pc" &&
        grep -qx 'Cflags: -I${includedir}' "$prefix/lib/pkgconfig/gcore.pc"
}

pkg_config_finds() { # the installation where it is, not where the build was configured for
    local flags word
    flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs gcore) || return 1
    [[ $flags == *-I*-L* ]] || { echo "$flags"; return 1; }
    for word in $flags; do
        case $word in
        -I*) [ -e "${word#-I}/gcore/d2h.h" ] || { echo "$flags"; return 1; } ;;
        -L*) [ -e "${word#-L}/libgcore.so" ] || { echo "$flags"; return 1; } ;;
        esac
    done
}

# example NAME LIBRARY… - compiles the README's example and compares what it prints.
example() {
    local name=$1
    shift
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$SOURCE_DIR/README.md" >"$TMPDIR/example.c"
    [ -s "$TMPDIR/example.c" ] || { echo "the README has no example"; return 1; }
    cc -Wall -Wextra -Werror "$TMPDIR/example.c" -I"$prefix/include" "$@" -o "$TMPDIR/$name" || return 1
    "$TMPDIR/$name" >"$TMPDIR/$name.out" || return 1
    diff - "$TMPDIR/$name.out" <<'END'
4096 bytes: OK
64 bytes further: OUT_OF_ALLOCATION
END
}

audit_log_of_the_example() {
    GCORE_D2H_AUDIT=1 GCORE_D2H_AUDIT_LOG=$TMPDIR/log "$TMPDIR/shared" >/dev/null || return 1
    cat "$TMPDIR/log"
    grep -q '^\[D2H_AUDIT_START\] op_id=' "$TMPDIR/log" && grep -q '^\[D2H_AUDIT_END\] op_id=' "$TMPDIR/log"
}

cmake --install "$BUILD_DIR" --prefix "$prefix" >"$TMPDIR/install.log" 2>&1
check "libraries are installed" present lib/libgcore.so lib/libgcore.a lib/soft/libamdhip64.so \
    lib/soft/libamdhip64.so.5 lib/soft/libamdhip64.so.6 lib/soft/libamdhip64.so.7
check "headers are installed" present include/gcore/d2h.h include/gcore/audit.h include/greta/soft.h
check "every program is installed" every_program
check "with a manual page and completions" every_program_is_explained
check "every header compiles by itself" headers_stand_alone
check "the pkg-config file names the library" pkg_config_file
if command -v pkg-config >/dev/null; then
    check "pkg-config finds the installation" pkg_config_finds
else
    skip "pkg-config finds the installation" "no pkg-config here"
fi
check "the README's example runs with the shared library" \
    example shared -L"$prefix/lib" -lgcore -Wl,-rpath,"$prefix/lib"
check "its audit log has START and END" audit_log_of_the_example
# A program with libgcore.a in it is told where the software device is.
export GRETA_SOFT_LIBRARY=$prefix/lib/soft
check "the README's example runs with the archive" \
    example static "$prefix/lib/libgcore.a" -lxxhash -lz -lzstd -lpthread -ldl -lm
finish
