#!/usr/bin/env bash
# greta_audit isa on kernels compiled here: every instruction as llvm-objdump writes it, at the same
# address, with the same branch target, and all of them executed. Skipped where there is no compiler.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$BUILD_DIR/bin/greta_audit
kernels=$SOURCE_DIR/tests/isa/kernels.hip

# lines FILE - address, words and text of every instruction in a disassembly.
lines() {
    grep -P '^\t.*// [0-9A-F]{12}: ' "$1" | sed -E 's|^\t(.*[^ ]) *// ([0-9A-F]{12}: .*)$|\2 \1|' | sort
}

# Functions end before the padding that llvm-objdump shows too: what greta prints must be among it.
same() { # CODE OBJECT
    "$audit" isa "$1" >"$TMPDIR/ours" || return 1
    "$objdump" -d "$1" >"$TMPDIR/theirs" || return 1
    lines "$TMPDIR/ours" >"$TMPDIR/ours.lines"
    lines "$TMPDIR/theirs" >"$TMPDIR/theirs.lines"
    [ -s "$TMPDIR/ours.lines" ] || { echo "nothing printed"; return 1; }
    ! comm -23 "$TMPDIR/ours.lines" "$TMPDIR/theirs.lines" | grep .
}

all_executed() { # CODE OBJECT
    "$audit" isa "$1" | tail -1 | grep -E '^[0-9]+ instructions, 0 unknown, 0 not executed$'
}

summary() { # CODE OBJECT
    "$audit" isa --summary "$1" | grep -A3 '^kernel tile$' | grep -E 'LDS 1024 bytes'
}

objdump=$(command -v llvm-objdump-19 || command -v llvm-objdump)
compiled=0
for compiler in clang-19:gfx942 clang-15:gfx90a clang-19:gfx90a; do
    program=${compiler%%:*} gpu=${compiler##*:}
    if ! command -v "$program" >/dev/null || [ -z "$objdump" ]; then
        skip "$gpu by $program" "no $program or no llvm-objdump"
        continue
    fi
    for level in 0 2 3; do
        object=$TMPDIR/$gpu.$level.o
        if ! "$program" -x hip --offload-arch="$gpu" --cuda-device-only --no-gpu-bundle-output -nogpulib \
            -nogpuinc -O$level "$kernels" -o "$object" 2>"$TMPDIR/err"; then
            skip "$gpu by $program at -O$level" "it does not compile for GPUs here"
            continue
        fi
        compiled=$((compiled + 1))
        check "$gpu by $program at -O$level is printed as llvm-objdump does" same "$object"
        check "$gpu by $program at -O$level has only instructions that are executed" all_executed "$object"
        check "$gpu by $program at -O$level: the kernels' needs" summary "$object"
    done
done

check "a file without GPU code is told" says "greta_audit isa: " status 1 "$audit" isa "$kernels"
check "a file that is not there is told" says "cannot read" status 1 "$audit" isa "$TMPDIR/none"
check "one file at a time" status 2 "$audit" isa
finish
