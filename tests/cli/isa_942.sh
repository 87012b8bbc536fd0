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
    # build PROGRAM FLAG...: the last flag is the end of its name, a dash for "="
    build() {
        local name=$1${*: -1}
        clang-19 -x hip -w -DGFX942 --offload-arch=gfx942 "--rocm-device-lib-path=$PWD/bitcode" --rocm-path=/usr \
            "$sources/$1.hip" -o "${name//=/-}" "${@:2}" -lamdhip64 -lstdc++ -lm
    }
    runs() { passes env GRETA_SOFT_ARCH=gfx942 "$@"; }
    for program in tiles math calls layers matrices heap; do
        for level in -O0 -O2 -O3; do
            check "clang-19 compiles $program for gfx942 with $level" build "$program" "$level"
            check "and it runs to its own PASS" runs "./$program$level"
        done
    done
    for flag in -mcode-object-version=4 -mcode-object-version=5 --offload-compress; do
        check "clang-19 takes $flag" build calls -O2 "$flag"
        check "and it runs to its own PASS" runs "./calls${flag//=/-}"
    done
    check "kernels whose first arguments are in registers from the start are compiled" \
        build layers -O2 -mllvm -amdgpu-kernarg-preload-count=8
    check "and run to their PASS" runs ./layers-amdgpu-kernarg-preload-count-8
else
    skip "programs for gfx942" "there is no clang-19 with device libraries"
fi
finish
