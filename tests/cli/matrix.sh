#!/usr/bin/env bash
# greta_audit matrix: what is run and where the results go, resuming after an interruption, locks, refusals.
# What summary.json says is tested by test_matrix_summary.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$BUILD_DIR/bin/greta_audit
programs=$BUILD_DIR/programs
cd "$TMPDIR" || exit 1
unset GRETA_SOFT_SCHEDULE

# matrix ARGUMENT… - with a lock of the test's own
matrix() { "$audit" matrix --quiet --device soft --lock lock --wait 0 "$@"; }

# ---- without recordings ----------------------------------------------------------------------------

leaves_nothing() { # CODE WORDS ARGUMENT…
    local code=$1 words=$2
    shift 2
    rm -rf empty && mkdir empty && cd empty || return 1
    status "$code" says "$words" matrix "$@" && is "" "$(find . -mindepth 1 ! -name lock)"
}

bare='--iterations audit=0,stress=0 --iterations baseline'
bare_runs() {
    # shellcheck disable=SC2086
    status 1 says "3 of 3 could not be judged" matrix --profile b3.63 $bare=3 --out bare -- true &&
        is 3 "$(ls bare/runs | wc -l)" && [ -s bare/summary.json ] && [ -s bare/FINAL_REPORT.md ]
}
bare_failures() {
    # shellcheck disable=SC2086
    status 1 says "INCONCLUSIVE: 2 of 2 runs ended with an error" \
        matrix --profile b3.63 $bare=2 --out failing -- sh -c 'echo over here >&2; exit 7' &&
        is "over here" "$(cat failing/runs/0001-baseline/stderr.log)" &&
        grep -q '"exit_status": 7' failing/runs/0002-baseline/run.json
}
demo_bare() {
    # shellcheck disable=SC2086
    matrix --profile b3.63 $bare=1 --out demo_bare --max-tokens 2
    grep -q STATUS=OK demo_bare/runs/0001-baseline/stdout.log
}

check "help" status 0 says "--iterations" "$audit" matrix --help
check "help names the profiles" status 0 says "baseline 50, audit 50, stress 100" "$audit" matrix --help
check "a profile is needed" status 2 says "--profile is missing" matrix
check "an unknown profile is wrong usage" status 2 says "no such profile" matrix --profile b9
check "unknown options are wrong usage" status 2 says "unknown option: --fly" matrix --fly
check "a mode that is not there" status 2 says "no such mode" matrix --profile b3.62 --iterations audit=2
check "nothing to run" status 2 says "nothing to run" matrix --profile b3.62 --iterations 0
check "an unknown schedule" status 2 says "fast, eager" matrix --profile b3.63 --schedules slow
check "seeds are numbers" status 2 says "ranges like" matrix --profile b3.63 --seeds 9-1
check "an exclusive profile runs one at a time" status 2 matrix --profile b3.64 --jobs 2
check "a prompt is greta_infer's" status 2 matrix --profile b3.63 --prompt x -- true
check "bare runs are no proof" bare_runs
check "failures are counted and their logs kept" bare_failures
check "without a command it is greta_infer's demo" demo_bare
# shellcheck disable=SC2086
{
    check "a missing program is refused and leaves nothing" leaves_nothing 3 "no such program" \
        --profile b3.63 $bare=1 -- ./no-such-program
    check "a missing model is refused and leaves nothing" leaves_nothing 3 "no model" \
        --profile b3.63 $bare=1 --model no-such.gguf
    check "a missing device is refused and leaves nothing" leaves_nothing 3 "no device" \
        --profile b3.63 $bare=1 --device hip
    check "what greta_infer refuses is refused" leaves_nothing 3 "greta_infer refused" \
        --profile b3.63 $bare=1 --inject nonsense
    check "another program's folder is left alone" status 3 says "neither empty nor a matrix" \
        matrix --profile b3.63 $bare=1 --out . -- true
    check "nothing to resume" leaves_nothing 3 "there is no matrix" \
        --profile b3.63 $bare=1 --resume -- true
}

# ---- resuming --------------------------------------------------------------------------------------

# A program that stops in its third run until it is told to continue.
cat >slow.sh <<'END'
#!/bin/sh
echo run >>"$1/count"
[ "$(wc -l <"$1/count")" -ne 3 ] || while [ ! -e "$1/go" ]; do sleep 0.05; done
END
chmod +x slow.sh

slow() { # FOLDER [ARGUMENT…]
    local folder=$1
    shift
    # shellcheck disable=SC2086
    matrix --wait 30 --profile b3.63 $bare=5 --out "$folder" "$@" -- "$TMPDIR/slow.sh" "$TMPDIR/$folder.d"
}

wait_for_third() { # FOLDER
    for _ in $(seq 600); do
        [ "$(cat "$1.d/count" 2>/dev/null | wc -l)" -eq 3 ] && return 0
        sleep 0.05
    done
    return 1
}

resumes() { # SIGNAL
    local folder=resumed$1 pid code
    mkdir "$folder.d"
    env --default-signal=INT "$audit" matrix --quiet --device soft --lock lock --profile b3.63 \
        --iterations audit=0,stress=0 --iterations baseline=5 --out "$folder" -- \
        "$TMPDIR/slow.sh" "$TMPDIR/$folder.d" >out 2>&1 &
    pid=$!
    wait_for_third "$folder" || return 1
    kill "-$1" $pid
    wait $pid
    code=$?
    is $((128 + $(kill -l "$1"))) $code || return 1
    [ "$1" = KILL ] || grep -q '"complete": false' "$folder/summary.json" || { cat out; return 1; }
    is 2 "$(ls "$folder"/runs/*/run.json | wc -l)" || return 1
    touch "$folder.d/go"
    slow "$folder" || true
    # The third began twice, the others once.
    is 6 "$(wc -l <"$folder.d/count")" && grep -q '"complete": true' "$folder/summary.json" &&
        is 5 "$(ls "$folder"/runs/*/run.json | wc -l)"
}

done_is_not_repeated() {
    slow resumedKILL
    is 6 "$(wc -l <resumedKILL.d/count)"
}
other_parameters() {
    status 3 says "holds another matrix: parameters: timeout was 600, is 7" slow resumedKILL --timeout 7
}
resume_by_name() {
    rm -rf named && mkdir named && cd named || return 1
    # shellcheck disable=SC2086
    matrix --profile b3.63 $bare=2 -- true
    # shellcheck disable=SC2086
    status 1 says "$TMPDIR/named/artifacts/$(date +%Y-%m-%d)/b3_63" \
        matrix --profile b3.63 $bare=2 --resume -- true && is b3_63 "$(ls artifacts/*)"
}

check "Ctrl-C: the summary says it is not complete, and it goes on" resumes INT
check "kill -9: it goes on" resumes KILL
check "what is done is not repeated" done_is_not_repeated
check "other parameters are refused by name" other_parameters
check "--resume finds the matrix" resume_by_name

# ---- locks -----------------------------------------------------------------------------------------

# hold PROFILE MODE - a matrix that has ended one run and is in another one
hold() {
    rm -rf held held.d go && mkdir held.d
    "$audit" matrix --quiet --device soft --lock lock --profile "$1" --iterations 0 --iterations "$2=2" \
        --out held -- sh -c "echo >>held.d/count; while [ ! -e go ]; do sleep 0.05; done" >out 2>&1 &
    holder=$!
    for _ in $(seq 600); do
        [ -e held.d/count ] && return 0
        sleep 0.05
    done
    return 1
}
release() {
    touch go
    wait "$holder" || true
}
shared_lock() {
    hold b3.63 baseline || return 1
    # shellcheck disable=SC2086
    status 1 matrix --profile b3.63 $bare=1 --out beside -- true
    local code=$?
    if ! is_sanitized; then
        status 3 says "process $holder, since" matrix --profile b3.64 --out alone -- true || code=1
    fi
    status 3 says "the folder" matrix --profile b3.63 --iterations 0 --iterations baseline=2 --out held -- \
        sh -c "echo >>held.d/count; while [ ! -e go ]; do sleep 0.05; done" || code=1
    release
    return $code
}
check "a shared lock lets others in but those that want the device alone" shared_lock

if is_sanitized; then
    has_preload || check "recording needs the library" leaves_nothing 3 "libgcore_preload.so" --profile b3.62 -- true
    skip "recorded runs" "too slow in a build with sanitizers"
    finish
fi

# ---- with recordings -------------------------------------------------------------------------------

exclusive_lock() {
    hold b3.64 serialised || return 1
    local code=0
    # shellcheck disable=SC2086
    status 3 says "device is taken by process $holder, since" \
        matrix --profile b3.63 $bare=1 --out beside2 -- true || code=1
    [ ! -e beside2 ] || code=1
    # shellcheck disable=SC2086
    matrix --wait 60 --profile b3.63 $bare=1 --out after -- true >waited 2>&1 &
    local waiter=$!
    release
    wait $waiter
    is 1 $? && grep -q "waiting for at most" waited && [ -s after/summary.json ] || code=1
    return $code
}

demo() { # PROFILE MODES RUNS
    rm -rf "demo$1"
    status 0 says "CLEAN: $3 run" matrix --profile "$1" --iterations "$2" --out "demo$1" || return 1
    for run in "demo$1"/runs/*-[!b]*; do
        [ -s "$run/record.gcr" ] && [ -s "$run/report.json" ] && [ -s "$run/stdout.log" ] &&
            [ -s "$run/run.json" ] || { ls "$run"; return 1; }
    done
    grep -q '^## Test matrix' "demo$1/FINAL_REPORT.md"
}
traced() { grep -q '"tensor"\|"point"' demob3.62/runs/0001-trace/trace.jsonl; }
serialised() {
    grep -q 'AMD_SERIALIZE_KERNEL.*3' demob3.64/FINAL_REPORT.md &&
        grep -q 'HSA_ENABLE_SDMA' demob3.64/FINAL_REPORT.md
}

planned() {
    says "0003-stress: GCORE_D2H_AUDIT=1 GRETA_SOFT_SCHEDULE=random:8 " matrix --profile b3.63 \
        --iterations 1 --seeds 7,8 --prompt 'a b' --schedules random --out plan --dry-run >planned ||
        { cat planned; return 1; }
    grep -qF -- "--prompt 'a b'" planned && [ ! -e plan ]
}

race() {
    status 1 says "STREAM_UNSYNCED" matrix --profile b3.63 --iterations baseline=0,audit=4,stress=0 \
        --out race --jobs 2 -- "$programs/racy" &&
        head -n 1 race/FINAL_REPORT.md | grep -q STREAM_UNSYNCED &&
        grep -q '^| lazy | 1 | 1 | STREAM_UNSYNCED ' race/FINAL_REPORT.md &&
        grep -q '^### To repeat' race/FINAL_REPORT.md
}
repeated() { # the command line of the report shows it again
    local line
    line=$(sed -n '/^### To repeat/,$p' race/FINAL_REPORT.md | sed -n 4p)
    rm -rf again && mkdir again && cd again || return 1
    bash -c "${line/ -- / --exit-code -- }" >out 2>&1
    is 1 $? && grep -q STREAM_UNSYNCED out || { echo "$line"; cat out; return 1; }
}
spanish() {
    matrix --profile b3.63 --iterations baseline=0,audit=1,stress=0 --lang es --out es -- "$programs/racy"
    grep -q '^## Matriz de pruebas' es/FINAL_REPORT.md && grep -q 'Planificaci' es/FINAL_REPORT.md
}
no_finding() {
    status 0 says "CLEAN: 12 runs" matrix --profile b3.63 --iterations baseline=0,audit=4,stress=8 \
        --out fixed -- "$programs/racy" fixed >fixed.txt && return
    cat fixed.txt
    return 1
}
keeps_failed() {
    matrix --profile b3.63 --iterations baseline=1,audit=3,stress=0 --keep failed --out kept \
        -- "$programs/racy" fixed
    is 1 "$(ls kept/runs/*/record.gcr | wc -l)" && is 3 "$(ls kept/runs/*/report.json | wc -l)" &&
        [ -s kept/FINAL_REPORT.md ]
}
stale() {
    status 3 says "STALE_BINARY" matrix --profile b3.62 --expect-commit 0123456789 --out stale &&
        [ ! -e stale/summary.json ]
}
injected() {
    status 1 says "ROOT_CAUSE" matrix --profile b3.62 --inject size_mismatch --out injected &&
        head -n 1 injected/FINAL_REPORT.md | grep -q 'SIZE_MISMATCH'
}
children_end() { # the time limit ends all of a run, and nothing else
    sleep 30 &
    local other=$!
    status 1 says "1 of 1 run ended with an error" matrix --profile b3.62 --timeout 1 --out late -- \
        sh -c 'sleep 31 & echo $! >child; wait'
    local code=$?
    kill -0 "$other" || code=1
    kill "$other"
    for _ in $(seq 100); do
        kill -0 "$(cat child)" 2>/dev/null || return $code
        sleep 0.05
    done
    return 1
}

check "an exclusive lock is held until the end; others wait or are told by whom" exclusive_lock
check "b3.62 with the demo" demo b3.62 1 1
check "b3.63 with the demo" demo b3.63 2 6
check "b3.64 with the demo" demo b3.64 2 2
check "b3.62 traces" traced
check "b3.64 serialises" serialised
check "a plan is printed, not run" planned
check "a race is found by exploring schedules" race
check "and shown again by the command line of the report" repeated
check "without the bug there is no finding" no_finding
check "a mode without runs has not passed" grep -q "^  baseline .* 0 errors  -$" fixed.txt
check "one with runs has" grep -q "^  audit .* 0 errors  PASS$" fixed.txt
check "the report in Spanish" spanish
check "--keep failed keeps results" keeps_failed
check "a binary that is not the expected one is refused" stale
check "an injected fault is named" injected
check "a run past its time limit is ended with its children" children_end
finish
