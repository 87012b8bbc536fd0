#!/usr/bin/env bash
# greta_audit run: programs that know nothing of it keep their output and status, and are recorded.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$(audit_program)
programs=$BUILD_DIR/programs
out=$TMPDIR/out
cd "$TMPDIR" || exit 1

if ! has_preload; then
    skip "greta_audit run" "not in a build with clang's sanitizers"
    finish
fi

# record OPTION… -- COMMAND… - runs it; output in $TMPDIR/stdout and stderr, lines in $TMPDIR/dump.
record() {
    rm -rf "$out"
    "$audit" run --device soft --out "$out" "$@" >stdout 2>stderr
    local code=$?
    "$audit" dump --stacks "$out/record.gcr" >dump || { cat stderr; return 99; }
    return $code
}

has() { # PATTERN… - each is in the dump
    local pattern
    for pattern; do
        grep -qE -- "$pattern" dump || { echo "no '$pattern' in:"; cat dump stderr; return 1; }
    done
}

lacks() { # PATTERN…
    local pattern
    for pattern; do
        ! grep -E -- "$pattern" dump || { echo "'$pattern' is in it"; return 1; }
    done
}

count() { # NUMBER PATTERN
    is "$1" "$(grep -cE -- "$2" dump)" || { cat dump; return 1; }
}

# ---- the library -----------------------------------------------------------------------------------

hip_names() { # and no names of the C++ library
    nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | grep -E '^(hip|__hip|_Z)' | grep -v '^_ZNSt' | sort
}

exports_like_the_runtime() { # but for what only compilers call: nothing of it is recorded
    sed -nE 's/^HIP_COMPILER\((.*)\)/\1/p' "$SOURCE_DIR/src/hip/hip_compiler.def" >compiler
    diff <(hip_names "$BUILD_DIR/lib/soft/libamdhip64.so.6" | grep -vFf compiler) <(hip_names "$BUILD_DIR/lib/libgcore_preload.so")
}

answer() { # PATTERN - the first line of the report
    head -n 1 "$out/report.txt" | grep -qE -- "$1" || { echo "no '$1' in:"; cat "$out/report.txt" stderr; return 1; }
}

exports_no_more() { # C library's functions in all versions; nothing of greta's insides
    nm -D --defined-only "$BUILD_DIR/lib/libgcore_preload.so" | awk '$2 == "T" { print $3 }' |
        grep -vE '^(hip|__hip|_Z)' >names
    sed -nE 's/^IO\([A-Za-z_ *]+, ([a-z0-9_]+),.*/\1/p' "$SOURCE_DIR/src/preload/io.def" | sort >listed
    ! grep -vE '^(dlv?sym|free|realloc|munmap|mremap|sigaction|signal|_exit|_Exit|(open(at)?|fcntl)(64)?|prctl|semctl|ioctl|syscall|io_(uring_queue_init(_params)?|setup)|aio_(read|write)(64)?|lio_listio(64)?|pthread_.*|thrd_.*|mtx_.*|cnd_.*|sem_.*|socketpair|ompt_start_tool|GOMP_.*|omp_(un)?set_lock|greta_preload_yield|_init|_fini)$' names |
        grep -vxFf listed && [ -s listed ] && [ -z "$(grep -vxFf names listed)" ]
}

# ---- output and status -----------------------------------------------------------------------------

output_stays() {
    status 3 record --quiet -- "$programs/plain" 3 && is "sum=4950" "$(cat stdout)" &&
        is "this is for standard error" "$(cat stderr)"
}

input_reaches() {
    echo hello | "$audit" run --device soft --out in -- cat >stdout 2>stderr && is hello "$(cat stdout)"
}

signal_status() { # NAME NUMBER
    status $((128 + $2)) record -- "$programs/dies" "$1" &&
        grep -q "was ended by signal $2 " stderr && has '^# not closed' ' set 8bit .*status=hipSuccess'
}

own_handler() { status 42 record -- "$programs/dies" handler && has 'hipGetDeviceCount.*hipSuccess'; }

early_exit() { status 5 record -- "$programs/dies" exit && has '^# closed cleanly' && answer '^FINDINGS LEAK'; }

quick_end() { status 4 record -- "$programs/processes" quick && has '^# closed cleanly' && answer '^INCONCLUSIVE: no bug .* exit status 4$'; }

lingers() { status 0 record -- "$programs/lingers" && is "alone=0 first=1 again=0" "$(cat stdout)"; }

output_comes_first() { # what greta has to say follows what the program says
    status 0 record -- "$programs/plain" && is "sum=4950" "$(cat stdout)" &&
        is "this is for standard error" "$(head -n 1 stderr)" &&
        is 2 "$(tail -n +2 stderr | grep -c '^greta_audit: ')" && is 3 "$(wc -l <stderr)"
}

interrupted() { # SIGNAL CODE
    rm -rf "$out"
    # A shell's background jobs ignore SIGINT otherwise.
    env --default-signal=INT "$audit" run --device soft --timeout 60 --out "$out" -- \
        "$programs/dies" wait >stdout 2>stderr &
    local pid=$!
    for _ in $(seq 200); do
        "$audit" dump "$out/record.gcr" 2>/dev/null | grep -q ' set 8bit .*status=hipSuccess' && break
        sleep 0.05
    done
    kill "-$1" $pid
    wait $pid
    is "$2" $? && "$audit" dump "$out/record.gcr" | grep -q ' set 8bit '
}

time_limit() {
    status 143 record --timeout 0.5 -- "$programs/dies" wait && grep -q 'took longer than 0.5 s' stderr
}

# ---- the verdict -----------------------------------------------------------------------------------

reports_are_there() {
    record -- "$programs/plain" && is 5 "$(find "$out" -type f | wc -l)" || return 1
    record --perfetto -- "$programs/plain"
    local file
    for file in record.gcr report.json report.txt report.md report.html trace.perfetto.json; do
        [ -s "$out/$file" ] || { echo "no $file"; ls -l "$out"; return 1; }
    done
    is 6 "$(find "$out" -type f | wc -l)" && grep -q '"verdict": "CLEAN"' "$out/report.json" &&
        grep -q '<!doctype html>' -i "$out/report.html" && grep -q traceEvents "$out/trace.perfetto.json"
}

in_spanish() {
    record --lang es -- "$programs/plain" && grep -q '^## Resumen' "$out/report.md"
}

same_again() { # report on the recording says what run said
    record -- "$programs/faulty"
    "$audit" report --verbose "$out/record.gcr" >again && diff "$out/report.txt" again &&
        "$audit" report --json --out again "$out/record.gcr" && diff "$out/report.json" again
}

exit_codes() { # CODE PATTERN COMMAND…
    local code=$1 pattern=$2
    shift 2
    status "$code" record --exit-code -- "$@" && answer "$pattern" &&
        status "$code" "$audit" report --exit-code "$out/record.gcr" &&
        status 0 "$audit" report "$out/record.gcr"
}

folder_stands_for_recording() {
    record -- "$programs/plain" && mkdir -p empty &&
        is "$("$audit" report "$out/record.gcr")" "$("$audit" report "$out")" &&
        is "$("$audit" dump "$out/record.gcr")" "$("$audit" dump "$out")" &&
        status 3 says 'empty: a folder without a record.gcr' "$audit" report empty
}

commit_of_greta() { sed -n 's/^# provenance greta.commit=//p' dump | head -n 1; }
build_id() { sed -n 's/^# provenance program.build_id=//p' dump | head -n 1; }

# refused PATTERN OPTION… -- COMMAND… - exit status 3, the first line says why, and nothing is judged.
refused() {
    local pattern=$1
    shift
    status 3 record "$@" && answer "^STALE_BINARY: $pattern" && grep -q "^greta_audit: STALE_BINARY: " stderr &&
        is '  "verdict": "INCONCLUSIVE",' "$(grep '^  "verdict"' "$out/report.json")" &&
        is '  "culprit": null,' "$(grep '^  "culprit"' "$out/report.json")" &&
        is 1 "$(grep -c '"status": "CONFIRMED"' "$out/report.json")" &&
        ! grep -E 'ROOT_CAUSE|RULED_OUT|CLEAN' "$out/report.txt"
}

expected_commit() {
    record -- "$BUILD_DIR/bin/greta_d2h_demo"
    local commit
    commit=$(commit_of_greta)
    [ -n "$commit" ] && status 0 record --expect-commit "${commit:0:10}" -- "$BUILD_DIR/bin/greta_d2h_demo" &&
        status 0 "$audit" report --expect-commit "$commit" "$out/record.gcr" && answer '^ROOT_CAUSE' &&
        refused 'the commit of greta_d2h_demo is .*, expected 1234567; not judged' \
            --expect-commit 1234567 -- "$BUILD_DIR/bin/greta_d2h_demo" &&
        status 3 says 'STALE_BINARY: the commit of' "$audit" report --expect-commit 1234567 "$out/record.gcr"
}

own_commit() { # of a program that knows nothing of greta, but says what it is
    status 0 record --expect-commit 0011223 -- "$programs/plain" && answer '^CLEAN' &&
        refused 'the commit of plain is 0011.*, expected 0011224' --expect-commit 0011224 -- "$programs/plain"
}

# The preloaded library's commit is not the program's.
no_commit() {
    record -- "$programs/faulty"
    local commit
    commit=$(commit_of_greta)
    refused 'the commit of faulty is not in the recording, expected' --expect-commit "$commit" -- "$programs/faulty"
}

no_instrumentation() {
    refused 'the program made no HIP call that could be recorded' --expect-commit 1234567 -- "$(command -v true)"
}

expected_build() {
    record -- "$programs/faulty" 4096
    local id
    id=$(build_id)
    [ -n "$id" ] && status 0 record --expect-build-id "$id" -- "$programs/faulty" 4096 &&
        refused 'the build id of plain is' --expect-build-id "$id" -- "$programs/plain" &&
        refused 'the build id of plain is' --expect-build-id "$id" -- \
            sh -c "'$programs/faulty' 4096; '$programs/plain'"
}

expected_model() {
    record -- "$BUILD_DIR/bin/greta_infer" --prompt Hi --max-tokens 1
    local hash
    hash=$(sed -n 's/^# provenance model.*\(hash\|xxh64\)=//p' dump | head -n 1)
    [ -n "$hash" ] &&
        status 0 record --expect-model-hash "$hash" -- "$BUILD_DIR/bin/greta_infer" --prompt Hi --max-tokens 1 &&
        refused 'the model hash of greta_infer is' --expect-model-hash 00ff \
            -- "$BUILD_DIR/bin/greta_infer" --prompt Hi --max-tokens 1 &&
        refused 'the model hash of plain is not in the recording' --expect-model-hash 00ff -- "$programs/plain"
}

# ---- what is recorded ------------------------------------------------------------------------------

plain_is_whole() {
    status 0 record -- "$programs/plain" && has ' alloc device .*bytes=400' ' copy H2D ' ' copy D2H ' \
        ' free device ' '^# closed cleanly' && lacks ' lost '
}

sites_are_the_programs() {
    record -- "$programs/plain"
    has ' copy H2D .*site=.*round_trip' && lacks 'site=libgcore_preload' && count 4 'site=.*round_trip'
}

sites_without_exports() { # functions that only the file's own symbol table knows
    status 0 record --perfetto -- "$programs/hidden" && readelf -d "$programs/hidden" | grep -q NOW &&
        has ' alloc device .*site="fill_in_secret \(hidden\.c:[0-9]+\)"' &&
        answer 'FINDINGS LEAK' &&
        grep -q '"function": "fill_in_secret"' "$out/report.json" &&
        grep -q 'fill_in_secret' "$out/report.html" && grep -q 'fill_in_secret' "$out/trace.perfetto.json" &&
        status 0 record -- "$programs/hidden" thread && has ' set 8bit .*site="fill_in_secret'
}

sites_of_another_build() { # the file is not what it was: better no name than a wrong one
    rm -rf moved && mkdir moved && cp "$programs/hidden" moved/program && record -- moved/program &&
        has ' alloc device .*site="fill_in_secret' && cp "$programs/plain" moved/program &&
        "$audit" dump --stacks "$out/record.gcr" >dump && has ' alloc device .*site=program\+0x' &&
        lacks fill_in_secret && rm moved/program && "$audit" dump "$out/record.gcr" >dump &&
        has ' alloc device .*site=program\+0x'
}

opened_runtime() {
    status 0 record -- "$programs/opened" && is $'set\nnothing=0\nown=1' "$(cat stdout)" &&
        answer '^CLEAN' && has 'hipMalloc.*site=.*opened|hipMalloc.*site=.*main' 'call=hipGetProcAddress' ' set 8bit ' \
            ' free device .*bytes=64'
}

asked_linker() {
    status 0 record -- "$programs/asked" && is "devices=1 same=1" "$(cat stdout)" && count 3 'call=hipMalloc' &&
        count 3 'call=hipMemset' && count 3 'call=hipFree' && lacks ' lost ' && answer '^CLEAN'
}

fault_is_known() {
    status 1 record -- "$programs/faulty" && grep -q hipErrorIllegalAddress stdout &&
        has ' fault write .*kernel=fill' ' launch .*kernel=fill' ' copy D2H .*hipErrorIllegalAddress'
}

no_fault() { status 0 record -- "$programs/faulty" 4096 && is first=7 "$(cat stdout)" && lacks ' fault '; }

before_main() {
    status 0 record -- "$programs/early" && is first=1 "$(cat stdout)" &&
        has 'hipGetDeviceCount.*call_early' ' thread_start ' ' host_acquire ' && lacks ' lost '
}

forked() {
    status 0 record -- "$programs/processes" fork && is $'child\nparent' "$(cat stdout)" &&
        has '^# closed cleanly: all 3' && count 2 ' join .*/processes' && count 2 'call=hipGetDeviceCount' &&
        lacks ' host_release .*site=libc'
}

executed() {
    status 0 record -- "$programs/processes" exec && is $'alone\nparent' "$(cat stdout)" &&
        has '^# closed cleanly: all 3' && count 2 'call=hipMemset'
}

script_of_two() {
    status 0 record -- sh -c "'$programs/plain'; '$programs/processes' alone" &&
        count 1 ' join .*/plain' && count 1 ' join .*/processes' && [ ! -e "$out/record.gcr.old" ]
}

forked_and_gone() {
    status 0 record -- "$programs/processes" fork _exit && is $'child\nparent' "$(cat stdout)" &&
        has '^# closed cleanly: all 3' && answer '^CLEAN'
}

all_are_clean() {
    status 0 record --exit-code -- sh -c "'$programs/plain'; '$programs/processes' alone" && answer '^CLEAN' &&
        status 0 record --exit-code -- "$programs/processes" exec && answer '^CLEAN'
}

one_leaks() { # the process that leaks is found between two that do not
    status 1 record --exit-code -- \
        sh -c "'$programs/processes' alone; '$programs/processes' leak; '$programs/processes' alone" &&
        is $'alone\nleak\nalone' "$(cat stdout)" && answer '^FINDINGS LEAK: memory of hipMalloc' &&
        is 1 "$(grep -c '^      "hypothesis": "LEAK"' "$out/report.json")"
}

chained() {
    status 0 record --exit-code -- "$programs/processes" chain 4 && answer '^CLEAN' &&
        is $'link\nlink\nlink\nlink\nback\nback\nback\nback' "$(cat stdout)" &&
        count 8 'call=hipMemset' && count 4 ' join .*/processes'
}

replaced() { # an image that makes way for another has come to its end
    status 0 record --exit-code -- "$programs/processes" replace && answer '^CLEAN' &&
        is $'first\nalone' "$(cat stdout)" && count 2 ' join .*/processes'
}

made() { # programs that make starts, at once
    printf 'all: a b c\na b c:\n\t@%s alone\n' "'$programs/processes'" >Makefile
    status 0 record --exit-code -- make -s -j3 && answer '^CLEAN' && count 3 ' join .*/processes' &&
        count 3 'call=hipMemset' && rm Makefile
}

one_dies() {
    status 0 record -- sh -c "'$programs/dies' kill; '$programs/processes' alone" &&
        answer '^INCONCLUSIVE: process [0-9]+ \(dies\) was stopped after hipMemset'
}

missing_function() {
    status 0 record -- "$programs/missing" && is hipErrorNotSupported "$(cat stdout)" &&
        has 'call=hipGraphicsUnregisterResource status=hipErrorNotSupported'
}

waiting() {
    status 0 record -- "$programs/waits" && count 1 ' thread_start ' && has 'host_acquire .*site=.*main' &&
        [ "$(grep -c 'host_' dump)" -lt 20 ]
}

all_at_once() {
    for _ in 1 2 3 4 5; do
        status 0 record --timeout 60 -- "$programs/crowd" && is "done" "$(cat stdout)" &&
            count 16 'call=hipMalloc' && count 16 'call=hipFree' && has '^# closed cleanly' &&
            status 0 record --timeout 60 -- "$programs/crowd" forks && is "done" "$(cat stdout)" &&
            count 15 'call=hipMalloc' || return 1
    done
}

killed_anywhere() {
    local pid child
    for _ in $(seq 15); do
        rm -rf "$out"
        "$audit" run --quiet --device soft --out "$out" --timeout 60 -- "$programs/copies" 100000000 \
            >stdout 2>stderr &
        pid=$!
        sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
        child=
        until [ -n "$child" ]; do child=$(pgrep -P $pid -x copies); done
        kill -9 "$child"
        wait $pid
        "$audit" dump "$out/record.gcr" >dump || { cat stderr; return 1; }
    done
}

# ---- host memory -----------------------------------------------------------------------------------

host_free() { # HOW
    status 0 record -- "$programs/memory" "$1" && has ' host_free .*copy=#[0-9]+ .*site=.*main'
}
host_free_waited() { status 0 record -- "$programs/memory" "$1" waited && lacks ' host_free '; }

watched() { # HOW SCHEDULE
    GRETA_SOFT_SCHEDULE=$2 status 0 record --watch-host -- "$programs/memory" "$1" &&
        count 1 " early_host_access $1 " && grep -q "^last=" stdout
}
watched_stack() {
    record --watch-host -- "$programs/memory" read
    grep -A3 'early_host_access' dump | grep -q touch_early || { cat dump; return 1; }
}
watched_waited() {
    GRETA_SOFT_SCHEDULE=$2 status 0 record --watch-host -- "$programs/memory" "$1" waited &&
        lacks ' early_host_access '
}
# touched FAMILY WORK ACCESS COUNT - the program's output is the same whether it is watched or not, and
# COUNT accesses came too early; after waiting none.
touched() {
    GRETA_SOFT_SCHEDULE=lazy status 0 record -- "$programs/touches" "$1" "$2" "$3" waited && cp stdout plain &&
        GRETA_SOFT_SCHEDULE=lazy status 0 record --watch-host -- "$programs/touches" "$1" "$2" "$3" waited &&
        diff plain stdout && lacks ' early_host_access ' && answer '^CLEAN' &&
        GRETA_SOFT_SCHEDULE=lazy status 0 record --watch-host -- "$programs/touches" "$1" "$2" "$3" || return 1
    if [ "$4" -gt 0 ]; then
        has ' early_host_access .*site="?touch' && answer '^FINDINGS'
    else
        lacks ' early_host_access ' && answer '^CLEAN'
    fi
}

# Each of many accesses is seen, at whatever moment of the copy it comes.
each_round() {
    status 0 record --watch-host -- "$programs/rounds" 200 && count 200 ' early_host_access write ' &&
        lacks ' unwatched '
}

# crashed WHERE DETAIL ANSWER - a bad access of host code is classified, with the program's own exit
# status; a program that handles the signal is asked nothing, and its handler runs as it asked.
crashed() {
    status 139 record -- "$programs/segv" "$1" &&
        count 1 " host_fault $2.write .*signal=11 .*site=.*touch" && answer "$3" &&
        status 0 record -- "$programs/segv" "$1" caught && grep -qx 'caught 1' stdout &&
        ! grep -q '^  \(INVALID_POINTER\|USE_AFTER_FREE\|BAD_OFFSET\) .*CONFIRMED' "$out/report.txt"
}
crash_sent() {
    status 139 record -- "$programs/segv" sent && lacks ' host_fault ' && answer 'signal 11' &&
        status 0 record -- "$programs/segv" sent caught && grep -qx 'caught 1' stdout
}

families() { # WORK ACCESS COUNT
    local family
    for family in pinned registered shared managed; do
        touched $family "$@" || { echo "$family"; return 1; }
    done
}

# System calls with memory on a watched page have their usual results, and the report says that the page
# was open meanwhile.
beside() { # PROGRAM
    GRETA_SOFT_SCHEDULE=lazy status 0 record -- "$programs/$1" && cp stdout plain && lacks ' unwatched ' &&
        GRETA_SOFT_SCHEDULE=lazy status 0 record --watch-host -- "$programs/$1" && diff plain stdout || return 1
    [ "$(grep -c ' ok 9$' plain)" -eq "$(wc -l <plain)" ] || { cat plain; return 1; }
    has ' unwatched system_call ' && lacks ' early_host_access ' &&
        grep -A 1 '^  STREAM_UNSYNCED' "$out/report.txt" | grep -q 'INCONCLUSIVE.*could not be watched'
}
beside_async() { # the system writes the memory when it likes
    GRETA_SOFT_SCHEDULE=lazy status 0 record --watch-host -- "$programs/beside" io_uring && cat stdout &&
        grep -q '^io_uring 512 ok 9$' stdout
}

# If there is more memory than can be watched at once, the report says so and rules nothing out that depends on it.
crowded() {
    status 0 record --watch-host -- "$programs/many" 60 20 && lacks ' unwatched ' && answer '^CLEAN' &&
        status 0 record --watch-host -- "$programs/many" 300 2 && has ' unwatched no_room ' &&
        answer '^INCONCLUSIVE: .*could not be watched' &&
        grep -A 1 '^  STREAM_UNSYNCED' "$out/report.txt" | grep -q 'INCONCLUSIVE.*could not be watched'
}

not_watched() { status 0 record -- "$programs/memory" read && lacks ' early_host_access '; }

# ---- refusals --------------------------------------------------------------------------------------

leaves_nothing() {
    rm -rf empty && mkdir empty && cd empty || return 1
    status 3 "$audit" run --device soft -- no-such-program-anywhere && is "" "$(ls -A)"
}

folder_is_made_up() {
    rm -rf made && mkdir made && cd made || return 1
    "$audit" run --device soft -- "$programs/plain" && "$audit" run --device soft -- "$programs/plain"
    local day
    day=$(date +%Y-%m-%d)
    ls -R
    [ -s "artifacts/$day/plain/record.gcr" ] && [ -s "artifacts/$day/plain-2/record.gcr" ]
}

check "the library has every HIP function in its version node" exports_like_the_runtime
check "and nothing else but what it replaces" exports_no_more
check "output and status stay the program's" output_stays
check "standard input reaches the program" input_reaches
check "abort: 134, and the recording opens" signal_status abort 6
check "SIGSEGV: 139, and the recording opens" signal_status segv 11
check "kill -9: 137, and the recording opens" signal_status kill 9
check "a handler of the program's own works and may call HIP" own_handler
check "what greta says comes after" output_comes_first
check "the first four waits of a place take longer beside other threads" lingers
check "_exit is an end in good order" early_exit
check "and so is quick_exit" quick_end
check "SIGTERM goes to the program" interrupted TERM 143
check "SIGINT goes to the program" interrupted INT 130
check "a time limit ends the program" time_limit
check "all reports are written" reports_are_there
check "the Markdown one in Spanish, too" in_spanish
check "report says the same again" same_again
check "--exit-code: a clean run is 0" exit_codes 0 '^CLEAN' "$programs/plain"
check "a run that says itself that it failed is not clean" exit_codes 1 'exit status 9$' "$programs/plain" 9
check "--exit-code: a bug is 1" exit_codes 1 '^ROOT_CAUSE' "$programs/faulty"
check "--exit-code: a leak is 1" exit_codes 1 '^FINDINGS LEAK' "$programs/processes" leak
check "--exit-code: no HIP call is 3" exit_codes 3 '^INCONCLUSIVE: nothing to judge: .* made no HIP call' true
check "the folder of a run stands for its recording" folder_stands_for_recording
check "the expected commit is judged, another is refused" expected_commit
check "a program may say its commit itself" own_commit
check "greta's commit is not the program's" no_commit
check "a program without instrumentation is refused" no_instrumentation
check "another build is refused" expected_build
check "another model is refused" expected_model
check "a plain program is recorded whole" plain_is_whole
check "call sites are the program's" sites_are_the_programs
check "and have names where nothing is exported" sites_without_exports
check "but not from a file that is another now" sites_of_another_build
check "a runtime opened by the program is recorded" opened_runtime
check "functions that the dynamic linker was asked for" asked_linker
check "a kernel's fault is recorded" fault_is_known
check "and no fault without one" no_fault
check "constructors and their threads may call HIP" before_main
check "a forked child is recorded" forked
check "a started child is recorded" executed
check "all programs of a script are one recording" script_of_two
check "a forked child may end by _exit" forked_and_gone
check "programs one after the other are judged as such" all_are_clean
check "a leak of one of three programs is found" one_leaks
check "programs that start each other" chained
check "a program that makes way for another" replaced
check "programs that make starts" made
check "one of two programs that is killed" one_dies
check "a function that the runtime lacks is recorded" missing_function
check "threads that wait for each other say so, and no more than that" waiting
check "first calls of many threads at once" all_at_once
check "a program that is killed anywhere leaves a recording that opens" killed_anywhere
for how in free unmap; do
    if is_tsan && [ $how = free ]; then
        skip "$how under an unfinished copy is recorded" "ThreadSanitizer stops that bug itself"
    else
        check "$how under an unfinished copy is recorded" host_free $how
    fi
    check "$how after waiting is not" host_free_waited $how
done
for schedule in fast lazy random:7; do
    check "an early read is caught ($schedule)" watched read $schedule
    check "an early write is caught ($schedule)" watched write $schedule
    check "a read after waiting is none ($schedule)" watched_waited read $schedule
    check "a write after waiting is none ($schedule)" watched_waited write $schedule
done
check "host code that touches device memory is told so" crashed device device '^ROOT_CAUSE INVALID_POINTER: host code writes offset 10 of'
check "host code that touches freed device memory" crashed freed freed '^ROOT_CAUSE USE_AFTER_FREE: host code writes .* that hipFree'
check "host code past the end of device memory" crashed after after '^ROOT_CAUSE INVALID_POINTER: host code writes .* past the end of .*, which only the device can reach'
check "host code before device memory" crashed before before '^ROOT_CAUSE INVALID_POINTER: host code writes .* before .*, which only the device can reach'
check "a null pointer of host code has nothing to do with HIP" crashed null null '^INCONCLUSIVE: .*signal 11'
check "a SIGSEGV that somebody sends is no access" crash_sent
check "no access to registered memory is missed while a copy runs" each_round
check "reads of what a copy writes, in all kinds of memory" families d2h read 1
check "writes to what a copy writes" families d2h write 1
check "writes to what a copy reads" families h2d write 1
check "reads of what a copy reads are none" families h2d read 0
check "reads of what a set writes" families set read 1
check "reads of what a kernel writes" families kernel read 1
for call in sysread syswrite pread fread fwrite writev send; do
    check "$call with memory that a copy writes is seen and works" touched pinned d2h $call 1
done
check "a system call that reads what a copy reads is none" touched pinned h2d syswrite 0
check "a system call that writes what a copy reads" touched pinned h2d sysread 1
check "system calls with memory beside watched bytes work" beside beside
check "so do calls with names, settings and objects of threads there" beside beside_more
check "so does io_uring" beside_async
check "an early access has its call stack" watched_stack
check "memory that finds no room among what is watched is said" crowded
check "without --watch-host there is none" not_watched
check "help" status 0 says "--watch-host" "$audit" run --help
check "unknown options are wrong usage" status 2 says "unknown option: --fly" "$audit" run --fly -- true
check "a program must be named" status 2 says "expected a program after --" "$audit" run --
check "an unknown device is wrong usage" status 2 says "auto, hip or soft" "$audit" run --device x -- true
check "a limit of no time is wrong usage" status 2 "$audit" run --timeout 0 -- true
check "a short commit is wrong usage" status 2 says "7 digits or more" "$audit" run --expect-commit 1234 -- true
check "and one that is none" status 2 says "7 digits or more" "$audit" run --expect-commit HEAD~100 -- true
check "for report, too" status 2 says "7 digits or more" "$audit" report --expect-commit 1234 x
check "a hash that is none is wrong usage" status 2 says "hexadecimal" "$audit" run --expect-model-hash xyz -- true
check "a missing program is refused" status 3 says "./none: No such file or directory" "$audit" run -- ./none
check "so is a folder" status 3 says "$SOURCE_DIR: it is a folder" "$audit" run -- "$SOURCE_DIR"
check "so is a file that is not executable" status 3 says "chmod +x" "$audit" run -- "$SOURCE_DIR/README.md"
check "and a name that PATH does not find" status 3 says "no executable file of this name in PATH" "$audit" run -- no-such-program
check "and leaves nothing behind" leaves_nothing
check "a program without HIP calls is said to be one" status 0 says "made no HIP call" \
    "$audit" run --device soft --out none -- true
check "and is nothing to judge" status 3 "$audit" run --exit-code --device soft --out none -- true
check "folders are made up and kept apart" folder_is_made_up
finish
