#!/usr/bin/env bash
# Programs of hipcc for gfx90a run on the software device as they are: their machine code, instruction by
# instruction, every access checked. isa_942.sh: the same for gfx942.
# shellcheck disable=SC2317  # functions are called by check
set -u
# shellcheck source=tests/support/hip.sh
. "$SOURCE_DIR/tests/support/hip.sh"

has_plain_build "machine code" || finish

if command -v hipcc >/dev/null; then
    for program in tiles math calls layers matrices heap; do
        for level in 0 2 3; do
            check "hipcc -O$level compiles $program for gfx90a" \
                hipcc "-O$level" --offload-arch=gfx90a "$sources/$program.hip" -o "$program-$level"
            check "and it runs to its own PASS" passes "./$program-$level"
        done
    done
    check "hipcc compiles code objects of version 3" \
        hipcc -w -O2 -mcode-object-version=3 --offload-arch=gfx90a "$sources/calls.hip" -o calls-v3
    check "and it runs to its own PASS" passes ./calls-v3
    check "a kernel without its bounds check is compiled" \
        hipcc -g -O2 --offload-arch=gfx90a "$sources/beyond.hip" -o beyond
    check "and its twin" hipcc -g -O2 -DFIXED --offload-arch=gfx90a "$sources/beyond.hip" -o inside
    check "the audit names kernel and argument" says "ROOT_CAUSE SIZE_MISMATCH: kernel scale" \
        status 1 "$audit" run --device soft --out beyond.out -- ./beyond
    check "and is silent about the twin" status 0 "$audit" run --device soft --out inside.out -- ./inside
else
    skip "programs for gfx90a" "there is no hipcc"
fi
finish
