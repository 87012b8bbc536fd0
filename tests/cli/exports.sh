#!/usr/bin/env bash
# What the libraries export: the public API and nothing else, each HIP function in its version node.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
lib=$BUILD_DIR/lib

# Symbols that a sanitizer or the linker adds to every object.
not_ours='^(__asan|__tsan|__ubsan|__odr_asan|__start_|__stop_|_init$|_fini$|__bss_start$|_edata$|_end$)'

only_declared() { # reads symbol names
    local name bad=0
    while read -r name; do
        if ! grep -qw -- "$name" "$SOURCE_DIR"/include/gcore/*.h; then
            echo "$name is not in include/gcore"
            bad=1
        fi
    done
    return $bad
}

gcore_shared() {
    nm -D --defined-only "$lib/libgcore.so" | awk '{ print $3 }' | grep -vE "$not_ours" | only_declared
}

every_declared() {
    local missing
    missing=$(comm -23 <(grep -ohE '\bgcore_[a-z0-9_]+\(' "$SOURCE_DIR"/include/gcore/*.h | tr -d '(' | sort -u) \
        <(nm -D --defined-only "$lib/libgcore.so" | awk '{ print $3 }' | sort))
    [ -z "$missing" ] || { echo "$missing"; return 1; }
}

gcore_static() {
    nm -g --defined-only "$lib/libgcore.a" | awk 'NF == 3 { print $3 }' | grep -vE "$not_ours" |
        only_declared
}

soname() {
    readelf -d "$lib/soft/libamdhip64.so.$1" | grep -q "SONAME.*\[libamdhip64.so.$1\]"
}

# "name node" of every function in hip_api.def, as the compiler reads it.
declared() {
    cc -E -P -x c -I"$SOURCE_DIR/src" "$SOURCE_DIR/cmake/hip_exports.h" | tr ';' '\n' |
        awk '$1 == "HIP_EXPORT" { sub("_", ".", $3); print $2, "hip_" $3 }' | sort
}

exported() { # MAJOR
    nm -D --defined-only "$lib/soft/libamdhip64.so.$1" | awk '$2 != "A" { print $3 }' |
        grep -vE "$not_ours" | sed 's/@@*/ /' | sort
}

every_function_in_its_node() {
    local missing
    missing=$(comm -23 <(declared) <(exported "$1"))
    [ -z "$missing" ] || { echo "$missing"; return 1; }
}

nothing_else() {
    local extra
    extra=$(comm -13 <(declared) <(exported "$1") | grep -vE '^greta_soft_[a-z_]+ greta_1$')
    [ -z "$extra" ] || { echo "$extra"; return 1; }
}

check "libgcore.so exports only what include/gcore declares" gcore_shared
check "libgcore.so exports all that include/gcore declares" every_declared
check "libgcore.a shows only what include/gcore declares" gcore_static
for major in 5 6 7; do
    check "libamdhip64.so.$major carries its SONAME" soname $major
    check "libamdhip64.so.$major exports every function in its node" every_function_in_its_node $major
    check "libamdhip64.so.$major exports nothing else" nothing_else $major
done
# What -lamdhip64 links: the version of the HIP headers that are installed, 6 without any.
header=$(cat /usr/include/hip/hip_version.h /opt/rocm/include/hip/hip_version.h 2>/dev/null || true)
version=$(sed -n 's/^#define HIP_VERSION_MAJOR *\([567]\)$/\1/p' <<<"$header" | head -n 1)
check "libamdhip64.so is the version of the installed headers" \
    test "$(readlink "$lib/soft/libamdhip64.so")" = "libamdhip64.so.${version:-6}"
finish
