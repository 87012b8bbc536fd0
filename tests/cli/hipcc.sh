#!/usr/bin/env bash
# Programs compiled by hipcc here and now: the recording knows their kernels' arguments.
set -u
# shellcheck source=tests/support/hip.sh
. "$SOURCE_DIR/tests/support/hip.sh"

has_plain_build "programs of hipcc" || finish
has_hipcc "programs of hipcc" || finish

compile() { hipcc --offload-arch=gfx90a -O2 "$sources/arguments.hip" -o arguments; }
module() { hipcc --offload-arch=gfx90a -O2 --genco "$sources/arguments.hip" -o arguments.co; }

# A compressed bundle, as ROCm 6 and later write them; by a clang that can.
compressed() {
    clang-19 -x hip --offload-arch=gfx90a,gfx942 --cuda-device-only --gpu-bundle-output --offload-compress \
        -nogpulib -nogpuinc -D__global__='__attribute__((global))' "$sources/plain.hip" -o plain.co &&
        [ "$(head -c 4 plain.co)" = CCOB ]
}

record() {
    rm -rf out
    "$audit" run --device soft --out out -- "$@" >stdout 2>stderr
    # shellcheck disable=SC2094  # another file
    "$audit" dump out/record.gcr >dump || { cat stderr; return 99; }
}

launch() { # KERNEL PATTERN - a launch of the kernel with these arguments
    grep -E "launch .* kernel=$1 " dump | grep -qE -- "$2" || { echo "no '$2' with $1 in:"; cat dump stderr; return 1; }
}

check "hipcc compiles a program" compile
check "and a module" module
check "the program runs to its end under the audit" record ./arguments arguments.co
check "it printed what it prints" grep -qx "done 1" stdout
check "pointers to const are read, others read and written" \
    launch saxpy 'arg0=256 arg1=1073741824 arg2=0x[0-9a-f]+:r arg3=0x[0-9a-f]+:rw'
no_reach() { ! grep -E "kernel=saxpy" dump | grep -q " reaches"; }
check "numbers are all that its buffers hold" no_reach
check "a struct by value may hold pointers" launch by_value ' reaches arg0=0x[0-9a-f]+:\?'
check "a table of pointers leads on" launch table ' reaches arg0=0x[0-9a-f]+:rw arg1=7'
check "without types a pointer is read and written" launch plain 'arg0=0x[0-9a-f]+:rw arg1=0x[0-9a-f]+:rw arg2=5'
check "arguments of a module's kernel, in one block, from an image that is gone" \
    launch plain 'arg0=0x[0-9a-f]+:rw arg1=0x[0-9a-f]+:rw arg2=9'

# ---- machine code that runs ------------------------------------------------------------------------

compile_machine() { hipcc --offload-arch=gfx90a -O2 -g "$sources/machine.hip" -o machine; }
prints() { # LINE… - in this order, and nothing else
    diff <(printf '%s\n' "$@") stdout || { cat stderr; return 1; }
}
line=$(grep -n "// here" "$sources/machine.hip" | cut -d : -f 1)

check "hipcc compiles kernels of few instructions" compile_machine
check "they run" record ./machine
check "to their end" prints "launched 0" "ran 0" "refused 1"
checked() { grep -E "kernel=barriers" dump | grep -qE "how=(0x3|every_access)"; }
check "the recording says that every access is checked" checked
check "a trap ends the launch" record ./machine trap
check "as a launch failure" prints "launched 0" "ran 0" "refused 1" "trapped 719"
at_line() { grep -F "machine.hip:$line" stderr || { cat stderr; return 1; }; }
check "at its source line" at_line

record ./machine out of
line=$(grep -n "// past the end" "$sources/machine.hip" | cut -d : -f 1)
check "an access past a buffer is an illegal address" prints "of 700"
first() { head -n 1 out/report.txt | grep -F -- "$1" || { cat out/report.txt stderr; return 1; }; }
check "of which the report knows by how much" first "just past the end"
check "and the source line" first "machine.hip:$line"

# ---- compressed bundles ----------------------------------------------------------------------------

if command -v clang-19 >/dev/null && command -v ld.lld-19 >/dev/null && command -v clang-offload-bundler-19 >/dev/null; then
    check "clang-19 writes a compressed bundle" compressed
    check "the program loads it" record ./arguments plain.co
    check "its kernels have arguments too" launch plain 'arg0=0x[0-9a-f]+:rw arg1=0x[0-9a-f]+:rw arg2=9'
else
    skip "compressed bundles of clang" "there is no clang-19 with its tools"
fi
finish
