#!/usr/bin/env bash
# Programs that die at any moment, by kill -9, abort and SIGSEGV: every recording opens, and its
# verdict says how the program ended and where the history does. CRASH_SEED repeats a run.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$(audit_program)
programs=$BUILD_DIR/programs
out=$TMPDIR/out
cd "$TMPDIR" || exit 1
ulimit -c 0

if ! has_preload; then
    skip "greta_audit run" "not in a build with clang's sanitizers"
    finish
fi

seed=${CRASH_SEED:-$((EPOCHSECONDS % 32768))}
RANDOM=$seed
echo "# seed $seed (CRASH_SEED=$seed repeats this run)"

fails() { # WHAT
    echo "$1; $how after $after calls, seed $seed:"
    cat stderr
    head -n 40 "$out/report.txt"
    return 1
}

number() { # KEY - of report.json's coverage
    sed -n "s/^    \"$1\": \\([0-9]*\\),*\$/\\1/p" "$out/report.json"
}

# The last event that one of the program's threads wrote, as the dump has it; t1 is greta_audit's.
last_event() {
    "$audit" dump "$out/record.gcr" >dump || return 1
    awk '$1 ~ /^[0-9]+$/ && $3 ~ /^t[0-9]+$/ && $3 != "t1" { last = $1 } END { print last }' dump
}

# dies HOW SIGNAL NAME - once, at a random moment.
dies() {
    local how=$1 signal=$2 name=$3 after=$((RANDOM % 8 ? RANDOM % 300 : 0)) last answer
    rm -rf "$out"
    "$audit" run --device soft --timeout 60 --out "$out" -- "$programs/crash" "$how" $after >stdout 2>stderr
    local code=$?
    [ $code -eq $((128 + signal)) ] || { fails "exit status $code"; return 1; }
    answer=$(head -n 1 "$out/report.txt")
    last=$(last_event) || { fails "the recording does not open"; return 1; }
    [[ $answer == "INCONCLUSIVE: "*"ended by signal $signal (SIG$name)"* ]] || { fails "no such answer"; return 1; }
    [ "$(number exit_signal)" = "$signal" ] || { fails "no exit_signal in JSON"; return 1; }
    if [ "$(number calls)" = 0 ]; then
        early=$((early + 1))
        [[ $answer == *"before it called HIP" ]] || [ -n "$last" ] || { fails "where?"; return 1; }
        return
    fi
    [[ $answer =~ (in|after)\ .*\(event\ [0-9]+.*"; the history ends with event $last," ]] ||
        { fails "the history ends with event $last"; return 1; }
    [ "$(number end_event)" = "$last" ] || { fails "no end_event $last in JSON"; return 1; }
    grep -qE '^  thread [0-9]+ +[a-z]' "$out/report.txt" || { fails "no threads"; return 1; }
    grep -q '^    "ends": \[$' "$out/report.json" || { fails "no threads in JSON"; return 1; }
    if grep -q ' status=pending' dump; then # calls that never returned are named, in both
        grep -q '"status": "pending"' "$out/report.json" && grep -qE '^  thread .*, pending' "$out/report.txt" ||
            { fails "no pending calls"; return 1; }
        inside=$((inside + 1))
    fi
}

# moments HOW SIGNAL NAME - thirty-four of them; some before the first call, most in the middle.
moments() {
    local early=0 inside=0
    for _ in $(seq 34); do
        dies "$@" || return 1
    done
    [ $early -lt 30 ] || { echo "only $((34 - early)) of 34 came as far as HIP"; return 1; }
    [ $inside -gt 0 ] || { echo "none died in a call"; return 1; }
}

again() { # a recording that was judged once is judged the same by report
    local early=0 inside=0
    dies kill 9 KILL && "$audit" report --verbose "$out/record.gcr" >again && diff "$out/report.txt" again &&
        { ! grep -q hipEventRecord dump || # by then there is a stream
            grep -q "the program failed or was stopped; what was alive then need not be a leak" again; }
}

# Without greta_audit run, nobody sees how a process that joined a recording ends.
unseen() {
    rm -f alone.gcr
    GCORE_RECORD=$TMPDIR/alone.gcr LD_PRELOAD=$BUILD_DIR/lib/libgcore_preload.so \
        LD_LIBRARY_PATH=$BUILD_DIR/lib/soft "$programs/crash" kill 100 >stdout 2>stderr
    "$audit" report alone.gcr >text && head -n 1 text |
        grep -E '^INCONCLUSIVE: process [0-9]+ \(crash\) was stopped (in|after) .*; the history ends with event [0-9]+'
}

check "kill -9 at 34 moments" moments kill 9 KILL
check "abort at 34 moments" moments abort 6 ABRT
check "SIGSEGV at 34 moments" moments segv 11 SEGV
check "report says the same again" again
if is_sanitized; then
    skip "a program that nobody waited for" "it has to be started with the sanitizer's library"
else
    check "a program that nobody waited for" unseen
fi
finish
