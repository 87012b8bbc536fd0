#!/usr/bin/env bash
# Programs of clang-19 for gfx942 run on the software device as they are; isa.sh: the same for gfx90a.
# shellcheck disable=SC2317  # functions are called by check
set -u
# shellcheck source=tests/support/hip.sh
. "$SOURCE_DIR/tests/support/hip.sh"

has_plain_build "machine code" || finish

# Debian's device libraries know gfx940; gfx942 has the same instructions.
libraries=/usr/lib/$(uname -m)-linux-gnu/amdgcn/bitcode
if command -v clang-19 >/dev/null && command -v ld.lld-19 >/dev/null &&
    [ -e "$libraries/oclc_isa_version_940.bc" ]; then
    cp -r "$libraries" bitcode
    cp bitcode/oclc_isa_version_940.bc bitcode/oclc_isa_version_942.bc
    # compile PROGRAM LEVEL: their names with a dash between
    compile() {
        clang-19 -x hip -w "-O$2" -DGFX942 --offload-arch=gfx942 "--rocm-device-lib-path=$PWD/bitcode" \
            --rocm-path=/usr "$sources/$1.hip" -o "$1-$2" -lamdhip64 -lstdc++ -lm
    }
    for which in tiles-0 math-0 heap-0 heap-3 tiles-2 math-2 calls-2 layers-2 matrices-2; do
        check "clang-19 compiles $which for gfx942" compile "${which%-*}" "${which#*-}"
        check "and it runs to its own PASS" passes env GRETA_SOFT_ARCH=gfx942 "./$which"
    done
else
    skip "programs for gfx942" "there is no clang-19 with device libraries"
fi
finish
