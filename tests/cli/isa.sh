#!/usr/bin/env bash
# Programs of hipcc (gfx90a) and clang-19 (gfx942) run on the software device as they are: their machine
# code, instruction by instruction, every access checked.
# shellcheck disable=SC2317  # functions are called by check
set -u
# shellcheck source=tests/support/hip.sh
. "$SOURCE_DIR/tests/support/hip.sh"

has_plain_build "machine code" || finish

if command -v hipcc >/dev/null; then
    for program in tiles math calls layers matrices; do
        for level in 0 2 3; do
            check "hipcc -O$level compiles $program for gfx90a" \
                hipcc "-O$level" --offload-arch=gfx90a "$sources/$program.hip" -o "$program-$level"
            check "and it runs to its own PASS" passes "./$program-$level"
        done
    done
    check "a kernel without its bounds check is compiled" \
        hipcc -g -O2 --offload-arch=gfx90a "$sources/beyond.hip" -o beyond
    check "and its twin" hipcc -g -O2 -DFIXED --offload-arch=gfx90a "$sources/beyond.hip" -o inside
    check "the audit names kernel and argument" says "ROOT_CAUSE SIZE_MISMATCH: kernel scale" \
        status 1 "$audit" run --device soft --out beyond.out -- ./beyond
    check "and is silent about the twin" status 0 "$audit" run --device soft --out inside.out -- ./inside
else
    skip "programs for gfx90a" "there is no hipcc"
fi

# Debian's device libraries know gfx940; gfx942 has the same instructions.
libraries=/usr/lib/$(uname -m)-linux-gnu/amdgcn/bitcode
if command -v clang-19 >/dev/null && command -v ld.lld-19 >/dev/null &&
    [ -e "$libraries/oclc_isa_version_940.bc" ]; then
    cp -r "$libraries" bitcode
    cp bitcode/oclc_isa_version_940.bc bitcode/oclc_isa_version_942.bc
    for program in tiles math calls layers matrices; do
        check "clang-19 compiles $program for gfx942" clang-19 -x hip -O2 -DGFX942 --offload-arch=gfx942 \
            "--rocm-device-lib-path=$PWD/bitcode" --rocm-path=/usr "$sources/$program.hip" \
            -o "$program-942" -lamdhip64 -lstdc++ -lm
        check "and it runs to its own PASS on gfx942" passes env GRETA_SOFT_ARCH=gfx942 "./$program-942"
    done
else
    skip "programs for gfx942" "there is no clang-19 with device libraries"
fi
finish
