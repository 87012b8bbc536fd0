#!/usr/bin/env bash
# greta_bench on the demo model: what it prints and writes, baselines, wrong usage. Its speed is not tested.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
bench=$BUILD_DIR/bin/greta_bench
short=(--prompt 8 --decode 4 --repeat 1 --buffer 1M --threads 1)
cd "$TMPDIR" || exit 1

wrong() { # WORDS OPTION… - wrong usage that says these words
    check "wrong: ${*:2}" status 2 says "$1" "$bench" "${@:2}"
}

check "help lists the options" status 0 says "--tolerance P" "$bench" --help
check "--explain says how weights are gone through" status 0 says "Ways to go through the weights" "$bench" --explain "${short[@]}"
check "--explain says what each thread did" status 0 says "computing  waiting" "$bench" --explain "${short[@]}"

# Reading 512 MiB twice after the sample takes longer than the two tokens in it. One of three attempts
# suffices: a busy machine may stop a sample for as long.
sample_ends_with_its_tokens() {
    local try
    for try in 1 2 3; do
        status 0 "$bench" --explain --prompt 0 --decode 1 --repeat 1 --buffer 512M --threads 1 >explained || return 1
        awk '$3 ~ /reads/ { gbps = $4 }
             /^Time per kernel/ { sub(/.*\(/, ""); ms = $1 + 0 }
             END { print ms, gbps; exit !(gbps > 0 && ms > 0 && ms < 1074 / gbps) }' explained && return 0
    done
    echo "attempt $try: the time of the sample is that of reading memory, too"
    return 1
}
check "--explain does not count what is measured after a sample" sample_ends_with_its_tokens
check "version" status 0 says "greta_bench " "$bench" --version
wrong "unknown option '--fly'" --fly
wrong "unknown argument 'fly'" fly
wrong "a value is missing" --prompt
wrong "expected whole numbers" --prompt x
wrong "expected whole numbers" --decode 1,
wrong "expected whole numbers" --depth ,1
wrong "expected whole numbers" --threads -1
wrong "--threads: expected 1 to" --threads 0
wrong "--batch-size: expected 1 to" --batch-size 2,0
wrong "--repeat: expected 1 to" --repeat 0
wrong "at most 16 numbers" --prompt 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
wrong "nothing to measure" --prompt 0 --decode 0
wrong "expected bytes such as" --buffer much
wrong "--buffer: expected at least 1M" --buffer 4K
wrong "goes with --baseline" --tolerance 3
wrong "expected a percentage" --baseline x --tolerance 100
wrong "expected a percentage" --baseline x --tolerance nan
wrong "takes no value" --no-repack=1
wrong "expected F16 or Q8_0" --kv-type Q4_0
wrong "expected auto, hip or soft" --device gpu "${short[@]}"
context=$("$BUILD_DIR/bin/greta_model" info "$SOURCE_DIR/models/greta-demo.gguf" | awk '$1 == "context" { print $2 + 0 }')
wrong "--prompt $((context + 1)) takes $((context + 1)) positions, and the model's context has $context" \
    --prompt "8,$((context + 1))"
wrong "--decode $context takes $((context + 1)) positions" --decode "$context"
wrong "--depth $((context - 3)) --decode 4 takes $((context + 1)) positions" --depth "$((context - 3))" --decode 4
check "a context that is used up" status 0 says "decode 4 after $((context - 4))" \
    "$bench" "${short[@]}" --prompt "$context" --depth "$((context - 4))"
check "a model that is not there" status 1 says "nowhere.gguf" "$bench" --model nowhere.gguf
check "a baseline that is not there" status 1 says "nowhere.json" "$bench" --baseline nowhere.json
echo '{"verdict": "CLEAN"}' >other.json
check "a baseline that is something else" status 1 says "there are no runs" "$bench" --baseline other.json

# ---- text and JSON -------------------------------------------------------------------------------

text_has_all() {
    status 0 "$bench" "${short[@]}" --depth 0,9 --batch-size 1,2 --json all.json >text || return 1
    local line
    cat text
    for line in '^prompt 8  .* of the 8-bit peak$' '^decode 4  .* of the bandwidth then, [0-9.]+ GB/s$' \
        '^decode 4 after 9  *1  *1 ' '^decode 4 after 9  *1  *2 ' '^1 thread: reads .* GB/s'; do
        grep -qE "$line" text || { echo "no line '$line'"; return 1; }
    done
    [ "$(grep -cE '^(prompt|decode) ' text)" = 5 ]
}
check "a table of every length, depth and batch size" text_has_all

json() { # FILE EXPRESSION - what python says of the document d
    python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(0 if ($2) else 1)" "$1" ||
        { echo "not so: $2"; cat "$1"; return 1; }
}
names() {
    local name
    for name in "d['prompt']['tokens_per_second']" "d['prompt']['peak_fraction']" \
        "d['decode']['tokens_per_second']" "d['decode']['read_fraction']" \
        "d['machine']['read_gbps']" "d['machine']['int8_gops']"; do
        json all.json "$name > 0" || return 1
    done
    json all.json "len(d['runs']) == 5 and d['interrupted'] is False"
}
check "JSON has the promised names" names
check "a run says what it was" json all.json \
    "d['runs'][-1]['batch'] == 2 and d['runs'][-1]['depth'] == 9 and len(d['runs'][-1]['samples']) == 1"
check "fractions are speed times cost by what the machine can do" json all.json \
    "abs(d['decode']['read_fraction'] * d['decode']['bandwidth_gbps'] - d['decode']['read_gbps']) < 1e-6"
check "a deeper context reads more" json all.json \
    "(lambda r: r[2]['read_gbps'] / r[2]['tokens_per_second'] > r[1]['read_gbps'] / r[1]['tokens_per_second'])(d['runs'])"

# 2 of its 4 layers see 64 positions: from 200 to 203 they read 64 and the others 202.5 on average, from 1 to 4 all read 3.5; a
# position of a layer has 512 bytes.
window() {
    "$BUILD_DIR/bin/greta_model" synth --shape tiny-gemma2 --type Q4_0 -o window.gguf >/dev/null || return 1
    "$bench" --model window.gguf "${short[@]}" --prompt 0 --depth 1,200 --json window.json >/dev/null || return 1
    json window.json "(lambda b: abs(b[1] - b[0] - 512 * (2 * 64 + 2 * 202.5 - 4 * 3.5)) < 1)([r['read_gbps'] * 1e9 / r['tokens_per_second'] for r in d['runs']])"
}
check "layers with a window read that window, the others everything" window

json_alone() { "$bench" "${short[@]}" --decode 0 --json >alone.json && json alone.json "d['decode'] is None and d['prompt']['tokens'] == 8"; }
check "JSON on standard output is alone there" json_alone
check "JSON that cannot be written" status 1 says "cannot be written" "$bench" "${short[@]}" --json alone.json/x.json
in_folder() { "$bench" "${short[@]}" --decode 0 --json deep/er/x.json >/dev/null && [ -s deep/er/x.json ]; }
check "folders for JSON are made" in_folder
scalar() { GRETA_CPU=scalar "$bench" "${short[@]}" --json s.json && json s.json "[p['set'] for p in d['machine']['peaks']] == ['scalar']"; }
check "GRETA_CPU limits what the machine is measured with" scalar

# ---- baselines -----------------------------------------------------------------------------------

scaled() { # FACTOR FILE - all.json as if everything had been so many times as fast
    python3 -c 'import json,sys
d = json.load(open("all.json"))
for r in d["runs"]: r["tokens_per_second"] *= float(sys.argv[1])
json.dump(d, open(sys.argv[2], "w"))' "$1" "$2"
}
scaled 0.000001 slow.json
scaled 1000000 fast.json
check "faster than the baseline" status 0 says "decode 4" "$bench" "${short[@]}" --baseline slow.json
check "slower than the baseline" status 1 says "slower than fast.json by more than 10%: 2 of 2" \
    "$bench" "${short[@]}" --baseline fast.json --tolerance 10
check "nothing in common with the baseline" status 1 says "nothing to compare" \
    "$bench" "${short[@]}" --prompt 3 --decode 0 --baseline slow.json
settings() { # every one of settings.def is there, and nothing is said of the same ones
    "$bench" "${short[@]}" --baseline slow.json >text || { cat text; return 1; }
    ! grep '^Note: ' text &&
        json slow.json "len(d['settings']) == $(grep -c '^SETTING(' "$SOURCE_DIR/tools/bench/settings.def")"
}
check "a baseline of the same settings says nothing of them" settings
differs() { # WORDS COMMAND… - compared, after one note, which says these words
    says "Note: $1" "${@:2}" --baseline slow.json >text || { cat text; return 1; }
    cat text
    is 1 "$(grep -c '^Note: ' text)"
}
check "another KV cache than the baseline's" differs "KV cache: F16 in the baseline, Q8_0 now" \
    "$bench" "${short[@]}" --kv-type Q8_0
check "other chunks than the baseline's" differs "chunk: 512 in the baseline, 4 now" "$bench" "${short[@]}" --chunk 4
check "matrices in another order than the baseline's" \
    differs "matrices: repacked in the baseline, as in the file now" "$bench" "${short[@]}" --no-repack
check "a recording that the baseline has not" differs "recording: off in the baseline, on now" \
    "$bench" "${short[@]}" --record b.gcr
edit() { python3 -c 'import json,sys; d = json.load(open("slow.json")); exec(sys.argv[1]); json.dump(d, open(sys.argv[2], "w"))' "$@"; }
edit 'del d["settings"]' old.json
edit 'd["settings"]["cpu"] = "other"' slow.json
check "another instruction set than the baseline's" differs "instruction set: other in the baseline, scalar now" \
    with GRETA_CPU=scalar "$bench" "${short[@]}"
old() { "$bench" "${short[@]}" --kv-type Q8_0 --baseline old.json >text && cat text && ! grep '^Note: ' text; }
check "a baseline from before there were settings in it" old
check "a part in common with the baseline" status 0 says "new" \
    "$bench" "${short[@]}" --prompt 3,8 --baseline slow.json

# ---- recording, interrupt ------------------------------------------------------------------------

check "without repacking" status 0 says "prompt 8" "$bench" "${short[@]}" --no-repack
recording() { "$bench" "${short[@]}" --record r.gcr >/dev/null && [ -s r.gcr ]; }
check "a recording of the run" recording
check "GRETA_CPU that there is none of" status 2 says "GRETA_CPU" with GRETA_CPU=fly "$bench" "${short[@]}"

interrupt() { # ends with what was measured; before that, with a failure that says so
    "$bench" --prompt 4 --decode 200 --repeat 100 --buffer 1M --threads 1 --json i.json >text 2>&1 &
    local pid=$!
    sleep 2
    kill -INT $pid 2>/dev/null
    wait $pid
    local code=$?
    cat text
    [ $code = 0 ] && { json i.json "d['interrupted'] is False"; return; } # it was faster
    [ $code = 130 ] || return 1
    [ -e i.json ] && { json i.json "d['interrupted'] is True or len(d['runs']) == 2"; return; }
    grep -q "interrupted before anything was measured" text
}
check "Ctrl-C ends with what was measured" interrupt
finish
