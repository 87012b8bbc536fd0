#!/usr/bin/env bash
# greta_infer from the outside: every option, wrong values, what it prints, what it leaves behind, and
# how it ends.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
infer=$BUILD_DIR/bin/greta_infer
model=$BUILD_DIR/bin/greta_model
cd "$TMPDIR" || exit 1

story=', there was a mighty prince who lived in a castle'
short=(--greedy --max-tokens 14 --quiet)

# text OPTION… - what is generated, without the figures after it.
text() { "$infer" --quiet "$@" 2>/dev/null; }

same() { # WANTED FOUND
    [ -n "$1" ] && [ "$1" = "$2" ] || { echo "expected '$1', found '$2'"; return 1; }
}

# ---- usage -------------------------------------------------------------------------------------

check "help lists the options" status 0 says "--dump-logits-prompt" "$infer" --help
check "version" status 0 says "greta_infer " "$infer" --version
wrong() { # WORDS OPTION… - wrong usage that says these words, before anything is loaded
    check "wrong: ${*:2}" status 2 says "$1" "$infer" "${@:2}"
}
wrong "unknown option '--fly'" --fly
wrong "unknown argument 'fly'" fly
wrong "a value is missing" --prompt
wrong "takes no value" --greedy=1
wrong "expected a whole number, found 'x'" --max-tokens x
wrong "expected a whole number that is not negative, found '-1'" --max-tokens -1
wrong "--max-tokens: expected a smaller number" --max-tokens 99999999999999999999
wrong "expected a number" --temperature hot
wrong "greta_infer: --temperature: expected 0 to 100" --temperature nan
wrong "top-p: expected more than 0" --top-p 2
wrong "min-p: expected" --min-p 1
wrong "repeat-penalty: expected" --repeat-penalty 0
wrong "--top-k: expected" --top-k 4294967297
wrong "--ctx: expected 1 to" --ctx 0
wrong "--threads: expected 1 to" --threads 0
wrong "--batch-size: expected 1 to 256" --batch-size 300
wrong "--kv-type: expected F16 or Q8_0" --kv-type Q4_0
wrong "--device: expected auto, hip or soft, found 'gpu'" --device gpu
wrong "none empty" --stop ""
wrong "give one of them" --prompt a --prompt-file b
wrong "goes with --chat" --system "Be kind"
wrong "goes with --chat" --chat-template llama3
wrong "there is no chat template" --chat --chat-template fly
wrong "one sequence" --chat --batch-size 2
wrong "goes with --dump-logits" --dump-logits-prompt
wrong "goes with --trace" --trace-file t.jsonl
wrong "expected POINTS" --trace fly
wrong "expected POINTS" --trace q:3-1
wrong "no shape is called 'fly'; there are llama-2-7b" --expect fly
same_without_repacking() {
    "$infer" --prompt "Once upon a" --max-tokens 16 --greedy --quiet >a.txt 2>/dev/null &&
        "$infer" --prompt "Once upon a" --max-tokens 16 --greedy --quiet --no-repack >b.txt 2>/dev/null &&
        diff <(grep -v -E '^(Total|Time|Tokens/second)' a.txt) <(grep -v -E '^(Total|Time|Tokens/second)' b.txt)
}
check "--no-repack: the same text" same_without_repacking

# --packed-cache is followed by another option, then by a folder; the file is made, then mapped.
same_from_the_cache() {
    local text='^(Total|Time|Tokens/second)' i
    mkdir -p home && rm -rf home/greta kept
    for i in 1 2; do
        XDG_CACHE_HOME=$PWD/home "$infer" --packed-cache -p "Once upon a" -n 16 --greedy --quiet >b.txt 2>/dev/null &&
            diff <(grep -v -E "$text" a.txt) <(grep -v -E "$text" b.txt) &&
            "$infer" --packed-cache kept --prompt "Once upon a" -n 16 --greedy --quiet >b.txt 2>/dev/null &&
            diff <(grep -v -E "$text" a.txt) <(grep -v -E "$text" b.txt) || return 1
    done
    [ "$(find home/greta kept -name 'packed-*.gpk' | wc -l)" = 2 ] && [ -z "$(find home kept -name '*.gpk.*')" ]
}
check "--packed-cache: the same text" same_from_the_cache
listed_and_removed() {
    "$model" cache kept | grep -q 'packed-.*gpk$' && "$model" cache --clear kept | grep -q 'removed$' &&
        [ -z "$(ls kept)" ] && XDG_CACHE_HOME=$PWD/home "$model" cache | grep -q 'packed-.*gpk$'
}
check "greta_model cache lists and removes" listed_and_removed
check "greta_model cache: no such folder" status 1 says "No such file" "$model" cache nowhere
wrong "does not go with --no-repack" --packed-cache --no-repack

check "wrong: GRETA_CPU=fly" status 2 says "expected scalar, avx2, avxvnni, avx512, avx512vnni or amx" with GRETA_CPU=fly "$infer"
check "wrong: GRETA_DISABLE_GUARD_RAIL=fly" status 2 says "expected 0 or 1" \
    with GRETA_DISABLE_GUARD_RAIL=fly "$infer"

# ---- text --------------------------------------------------------------------------------------

ends_as_promised() {
    local out
    out=$("$infer" --greedy --max-tokens 14 2>err.txt) || return 1
    printf '%s\n' "$out"
    grep -q "^greta demo (llama, .* on greta software device" err.txt || return 1
    tr '\n' '|' <<<"$out" | grep -qE "^Once upon a time$story.*\|Generated tokens: 14\|\
Total time: [0-9.]+ ms\|Time to first token: [0-9.]+ ms\|Tokens/second: [0-9.]+\|STATUS=OK\|$"
}
check "the demo model tells a story and ends with the figures" ends_as_promised
check "no model, no file" status 1 says "cannot open" "$infer" --model none.gguf --prompt a
check "a missing model is reported before a missing prompt" status 1 says "none.gguf: cannot open" "$infer" -m none.gguf
check "and so is a folder" status 1 says "expected a regular file" "$infer" -m .
touch empty
check "and an empty file" status 1 says "empty: the file is empty" "$infer" -m empty
check "and a file that is no model" status 1 says "this is not a GGUF file" "$infer" -m "$SOURCE_DIR/README.md"
check "and before a missing prompt file" status 1 says "none.gguf: cannot open" "$infer" -m none.gguf --prompt-file none.txt
demo=$SOURCE_DIR/models/greta-demo.gguf
check "a model without a prompt" status 2 says "no prompt: give --prompt TEXT, --prompt-file FILE, or a text on standard input" \
    "$infer" -m "$demo"
check "no prompt file" status 1 says "none.txt: cannot be read" "$infer" --prompt-file none.txt
printf 'Once upon a time' >prompt.txt
check "a prompt from a file" same "$(text "${short[@]}")" "$(text "${short[@]}" --prompt-file prompt.txt)"
check "a prompt from a pipe" same "$(text "${short[@]}")" \
    "$(text "${short[@]}" --prompt-file - <prompt.txt)"
check "a prompt on standard input, without an option" same "$(text "${short[@]}")" \
    "$(text "${short[@]}" -m "$demo" <prompt.txt)"
check "for the demo model, too" same "$(text "${short[@]}" -p "The dragon")" "$(echo "The dragon" | text "${short[@]}")"
idle() { # a pipe into which nobody writes
    mkfifo pipe && exec 9<>pipe && same "$(text "${short[@]}")" "$(text "${short[@]}" <&9)"
}
check "the demo model does not wait for a pipe that stays empty" idle
printf 'The dragon\r\n' >dos.txt
check "one newline of a prompt file, also of another kind, is not part of it" \
    same "$(text "${short[@]}" -p "The dragon")" "$(text "${short[@]}" --prompt-file dos.txt)"
check "an empty prompt is a beginning" status 0 "$infer" "${short[@]}" --prompt ""
printf 'The cat\xff\xc3 sat \x01' >bad.txt
check "a prompt that is not UTF-8" status 0 "$infer" "${short[@]}" --prompt-file bad.txt
is_utf8() { "$infer" --quiet --max-tokens 60 --temperature 50 --top-k 0 --top-p 1 --seed 1 | iconv -f utf-8 -t utf-8 >/dev/null; }
check "what comes out is UTF-8" is_utf8
for _ in {1..600}; do printf 'the cat sat '; done >long.txt
check "a prompt that does not fit" status 1 says "the context room for 512" "$infer" --prompt-file long.txt
check "a context that is full" status 1 says "greta does not drop the beginning" \
    "$infer" --greedy --ctx 20 --max-tokens 40
check "without --max-tokens a context that is full is the end" status 0 says "STATUS=OK" \
    "$infer" --greedy --ctx 20
check "more context than trained with is a note" status 0 says "note: a context of 600 positions" \
    "$infer" --greedy --ctx 600 --max-tokens 3
check "a stop text ends the run before it" same "$story" \
    "$(text --greedy --max-tokens 60 --stop zzz --stop '. But')"
check "no tokens" status 0 says "Generated tokens: 0" "$infer" --max-tokens 0
check "--special makes tokens of markup" status 1 says "the prompt has 9 tokens" \
    "$infer" --special --prompt '<s><s><s><s><s><s><s><s>' --ctx 4

# ---- draws -------------------------------------------------------------------------------------

check "a seed repeats a text" same "$(text --seed 4 --max-tokens 20)" "$(text --seed 4 --max-tokens 20)"
other_seed() { [ "$(text --seed 4 --max-tokens 20)" != "$(text --seed 5 --max-tokens 20)" ]; }
check "another seed gives another text" other_seed
check "without a seed the run says which it took" status 0 says "Seed: " "$infer" --max-tokens 2
batch_is_its_seeds() {
    local out
    out=$(text --batch-size 3 --seed 4 --max-tokens 20) || return 1
    printf '%s\n' "$out"
    same "$(for i in 0 1 2; do echo "--- $i"; text --seed $((4 + i)) --max-tokens 20; done)" "$out"
}
check "a batch is what its seeds give one by one" batch_is_its_seeds
check "a batch that fills the context shows its texts" status 1 says "$story" \
    "$infer" --greedy --batch-size 2 --ctx 20 --max-tokens 40
check "top-k 1 is greedy" same "$(text "${short[@]}")" "$(text --max-tokens 14 --top-k 1 --seed 1)"
check "min-p near 1 is greedy" same "$(text "${short[@]}")" "$(text --max-tokens 14 --min-p 0.999 --seed 1)"
penalised() { [ "$(text --greedy --max-tokens 60)" != "$(text --greedy --max-tokens 60 --repeat-penalty 2)" ]; }
check "a repetition penalty changes the text" penalised

# ---- what must not change the text -------------------------------------------------------------

for threads in 1 2 5; do
    check "$threads threads" same "$(text "${short[@]}")" "$(text "${short[@]}" --threads $threads)"
done
check "chunks of 3 tokens" same "$(text "${short[@]}")" "$(text "${short[@]}" --chunk 3)"
check "a Q8_0 cache" same "$(text "${short[@]}")" "$(text "${short[@]}" --kv-type Q8_0)"
for setting in GRETA_SOFT_SCHEDULE=lazy GRETA_SOFT_SCHEDULE=eager GRETA_SOFT_SCHEDULE=random:7 \
    GRETA_CPU=scalar GCORE_ENFORCE=0 GRETA_DISABLE_GUARD_RAIL=1 GCORE_D2H_AUDIT=1; do
    check "$setting" same "$(text "${short[@]}")" "$(export "${setting?}"; text "${short[@]}")"
done

# ---- conversation ------------------------------------------------------------------------------

chat=(--chat --chat-template chatml --greedy --max-tokens 8 --ignore-eos)
talk() { echo "who are you" | "$infer" "${chat[@]}" "$@"; }
check "a message from a pipe is answered" status 0 says "Generated tokens: 8" talk
check "a system message changes the answer" test "$(talk --quiet | head -1)" != \
    "$(talk --quiet --system "There was a king" | head -1)"
check "a model without a template says what to do" status 1 says "--chat-template NAME" \
    "$infer" -m "$demo" --chat --prompt hi
check "the demo model says that it does not converse" status 1 says "was not trained to converse" \
    "$infer" --chat --prompt hi
for template in llama2 llama3 chatml mistral zephyr; do
    check "template $template" status 0 "$infer" --chat --chat-template $template --system s --prompt hi \
        --max-tokens 2
done
at_terminal() { # several turns, ended by Ctrl-D
    printf 'hello\n\nwho are you?\n' | script -qec "$infer ${chat[*]}" /dev/null | tr -d '\r'
}
# Ctrl-C in an answer without an end; the commands after it run, and the part that was printed is kept.
cut_answer() {
    mkfifo keys && : >screen.txt
    script -qefc "$infer ${chat[*]} --max-tokens 100000 --ctx 200000" /dev/null <keys >screen.txt &
    local job=$! code
    exec 3>keys
    echo hello >&3
    for _ in {1..600}; do
        ! grep -qF "You need" screen.txt || break # it has begun
        sleep 0.05
    done
    printf '\003/save talk.json\n/quit\n' >&3
    exec 3>&-
    wait "$job"
    code=$?
    tr -d '\r' <screen.txt | cut -c1-300
    return $code
}
if command -v script >/dev/null; then
    check "turns at a terminal" status 0 says "Generated tokens: 16" at_terminal
    check "a progress bar at a terminal" says "Loading [" at_terminal
    check "Ctrl-C ends an answer and not the conversation" status 0 says "2 messages saved to talk.json" cut_answer
else
    skip "turns at a terminal" "there is no script(1)"
fi

# ---- who draws the tokens -----------------------------------------------------------------------

copies() { # TENSOR OPTION… - how many copies there are of it, to the host or to the device
    GCORE_D2H_AUDIT=1 "$infer" --max-tokens 6 --ignore-eos --quiet "${@:2}" 2>&1 >/dev/null |
        grep -c "^\[D2H_AUDIT_START\].* tensor=$1 "
}
drawn_on() { # TOKENS LOGITS OPTION…
    same "$1 $2" "$(copies tokens "${@:3}") $(copies logits "${@:3}")"
}
on_host() { GRETA_DEVICE_SAMPLING=0 drawn_on "$@"; }
check "a token is one copy of its id: greedy" drawn_on 6 0 --greedy
check "a token is one copy of its id: drawn" drawn_on 6 0 --seed 3 --temperature 1.3 --top-k 20 --min-p 0.01
check "a repetition penalty is the host's" drawn_on 0 6 --seed 3 --repeat-penalty 1.1
check "a draw from all is the host's" drawn_on 0 6 --seed 3 --top-k 0
check "logits are copied when they are asked for" drawn_on 0 6 --greedy --dump-logits d
check "GRETA_DEVICE_SAMPLING=0 draws on the host" on_host 0 6 --greedy
# Tokens of the prompt and of the first step after it: from then on the device has them before the host does.
uploads() { # IDS POSITIONS SETTINGS OPTION…
    same "$1 $2 $3" "$(copies ids "${@:4}") $(copies pos "${@:4}") $(copies sampling "${@:4}")"
}
check "a greedy step uploads nothing" uploads 2 2 1 --greedy
check "one that is drawn a random number" uploads 2 2 6 --seed 3
check "a step whose token the host draws, the token and its position" env GRETA_DEVICE_SAMPLING=0 bash -c "$(declare -f same copies uploads); infer=$infer; uploads 6 6 0 --greedy"
check "devices that share a model, too" env GRETA_SOFT_DEVICES=2 bash -c "$(declare -f same copies uploads); infer=$infer; uploads 12 12 1 --greedy --devices 0,1"
same_tokens() { # OPTION…
    local seed
    for seed in 1 2 3 4 5; do
        same "$(GRETA_DEVICE_SAMPLING=0 text --seed $seed -n 40 "$@")" "$(text --seed $seed -n 40 "$@")" || return 1
    done
}
check "both draw the same tokens" same_tokens
check "both draw the same tokens, kernel by kernel" env GRETA_HIP_GRAPH=0 GRETA_FUSE=0 bash -c "$(declare -f same text same_tokens); infer=$infer; same_tokens --temperature 2 --top-p 0.8"
check "both draw the same tokens of several sequences" same_tokens --batch-size 3

# ---- several devices -----------------------------------------------------------------------------

shared_by() { GRETA_SOFT_DEVICES=3 text --devices "$1" --seed 4 -n 30 2>&1; }
same_shared() { same "$(text --seed 4 -n 30)" "$(shared_by "$1")"; }
check "two devices write what one writes" same_shared 0,1
check "three devices write what one writes" same_shared 2,1,0
check "another device writes what the first writes" same_shared 1
bad_list() { GRETA_SOFT_DEVICES=2 "$infer" --device soft --devices "$1" "${short[@]}"; }
check "a list that is none" status 2 says "as in 0,1; found '0,'" bad_list 0,
check "a device that is given twice" status 2 says "device 1 is given twice" bad_list 1,1
check "a device that is not there" status 3 says "there is no device 2: the HIP runtime shows 2" bad_list 0,2
more_than_layers() { GRETA_SOFT_DEVICES=8 "$infer" --device soft --devices 0,1,2,3,4 "${short[@]}"; }
check "more devices than layers" status 2 says "5 devices for a model of 4 layers" more_than_layers
broken() { GRETA_SOFT_DEVICES=2 "$infer" --device soft --devices 0,1 --inject pos_size "${short[@]}"; }
check "faults are injected into one device" status 2 says "--inject works with one device" broken

# ---- dumps and traces --------------------------------------------------------------------------

shape_of() { head -c 128 "$1" | tr '\0' ' ' | grep -ao "'shape': ([0-9, ]*)"; }
dumps() {
    "$infer" --greedy --max-tokens 4 --quiet --dump-logits d --dump-logits-prompt >/dev/null || return 1
    same "'shape': (10, 1024)" "$(shape_of d/logits.npy)" &&
        same "'shape': (10,)" "$(shape_of d/tokens.npy)" &&
        same 41088 "$(stat -c %s d/logits.npy)" && grep -q '"positions": 10' d/metadata.json
}
check "--dump-logits-prompt writes every position" dumps
only_new() {
    "$infer" --greedy --max-tokens 4 --quiet --dump-logits d >/dev/null &&
        same "'shape': (4, 1024)" "$(shape_of d/logits.npy)" && grep -q '"first_position": 6' d/metadata.json
}
check "--dump-logits writes what was predicted" only_new
touch file
check "a folder that cannot be made" status 1 says "cannot be made: Not a directory" "$infer" --dump-logits file/d
deep() {
    "$infer" "${short[@]}" --quiet --dump-logits deep/1/d --trace q --trace-file deep/2/3/t.jsonl \
        --trace-dump deep/4/arrays --record deep/5/6/run.gcr >/dev/null 2>&1 &&
        test -s deep/1/d/logits.npy -a -s deep/2/3/t.jsonl -a -d deep/4/arrays -a -s deep/5/6/run.gcr
}
check "folders for output are made with their parents" deep
lines() { # POINTS COUNT
    "$infer" --greedy --max-tokens 3 --quiet --trace "$1" --trace-file t.jsonl >/dev/null || return 1
    same "$2" "$(wc -l <t.jsonl)"
}
check "trace q: layers times steps" lines q 12
check "trace q,k,v:0-1:0" lines q,k,v:0-1:0 6
check "trace post_wo:1" lines post_wo:1 3
check "trace rmsnorm: three of nine norms" lines "rmsnorm:*:0" 27
check "trace kv_cache::2" lines kv_cache::2 8
check "trace logits" lines logits 3
check "trace all" lines all 180
from_environment() { { GRETA_TRACE=logits "$infer" "${short[@]}" --trace-file - >/dev/null; } 2>&1; }
check "GRETA_TRACE, to standard error" says '"tensor": "logits"' from_environment
trace_dump() {
    "$infer" --greedy --max-tokens 2 --quiet --trace all --trace-file t.jsonl --trace-dump arrays \
        >/dev/null && same "$(wc -l <t.jsonl)" "$(find arrays -name '*.npy' | wc -l)" &&
        same "'shape': (7, 256)" "$(shape_of arrays/rmsnorm_in.ffn_norm_s0_l3.npy)"
}
check "--trace-dump writes a file for every line" trace_dump

# ---- guard rail and device ---------------------------------------------------------------------

check "another shape than demanded" status 3 says "number of KV heads   32        2" \
    "$infer" --expect llama-2-7b
check "the refusal says how to go on" status 3 says "GRETA_DISABLE_GUARD_RAIL=1" "$infer" --expect llama-3-8b
check "without the guard rail it goes on" status 0 says "the guard rail is off" \
    with GRETA_DISABLE_GUARD_RAIL=1 "$infer" --expect llama-2-7b --max-tokens 2
echo '{"dim": 256, "kv_heads": 2}' >shape.json
check "a demand from JSON that is met" status 0 "$infer" --expect shape.json --max-tokens 2
echo '{"kv_heads": 4}' >shape.json
check "a demand from JSON that is not" status 3 says "number of KV heads  4" "$infer" --expect shape.json
check "too little device memory" status 3 says "free device memory" with GRETA_SOFT_MEMORY=4M "$infer"
check "too little device memory, guard rail off" status 1 says "the device has no" \
    with GRETA_SOFT_MEMORY=4M GRETA_DISABLE_GUARD_RAIL=1 "$infer"
check "no device in sight" status 3 says "see HIP_VISIBLE_DEVICES" with HIP_VISIBLE_DEVICES=7 "$infer"
check "no such device" status 3 says "no HIP device" with HIP_VISIBLE_DEVICES= "$infer" --device hip

# A file whose configuration claims more KV heads than its tensors have: the fault that greta was written for.
"$model" synth --shape dim=256,layers=2,heads=4,kv_heads=1,hidden=256,ctx=64 --type F32 -o kv.gguf >/dev/null
# The value of llama.attention.head_count_kv follows the key's name and type.
at=$(grep -abo 'llama.attention.head_count_kv' kv.gguf | head -1 | cut -d: -f1)
printf '\4' | dd of=kv.gguf bs=1 seek=$((at + 29 + 4)) conv=notrunc 2>/dev/null
lies=(--model kv.gguf --prompt Hi --max-tokens 5 --greedy --quiet)
check "shapes against the configuration" status 3 says "blk.0.attn_k.weight" "$infer" "${lies[@]}"
check "guard rail off: the launch is refused by name" status 1 \
    says "kernel matmul_qkv, argument k_weight: tensor blk.0.attn_k.weight has 65536 bytes, the launch needs 262144" \
    with GRETA_DISABLE_GUARD_RAIL=1 "$infer" "${lies[@]}"
check "nothing enforced: the device fails, and says so at the copy" status 1 \
    says "Generation error: hipMemcpy" \
    with GRETA_DISABLE_GUARD_RAIL=1 GCORE_ENFORCE=0 "$infer" "${lies[@]}" --record fault.gcr
fault_is_recorded() { "$BUILD_DIR/bin/greta_audit" dump fault.gcr | grep -q ' fault .*kernel=matmul'; }
check "the recording names the kernel" fault_is_recorded

# ---- recording ---------------------------------------------------------------------------------

check "a recording says what it holds" status 0 says "all through the safe path" \
    "$infer" --greedy --max-tokens 3 --record run.gcr
recorded() { "$BUILD_DIR/bin/greta_audit" dump run.gcr | tail -1; }
check "and is closed" says "closed cleanly" recorded
in_a_graph() {
    "$infer" --greedy --max-tokens 6 --ignore-eos --quiet --record graph.gcr >/dev/null 2>&1 &&
        "$BUILD_DIR/bin/greta_audit" dump --kind graph_launch graph.gcr | grep '^    launch attention_step layer=1 step='
}
check "dump shows the kernels of a graph launch, their layers and steps" says 'step=3 captured=#' in_a_graph
knows_model() { "$BUILD_DIR/bin/greta_audit" dump run.gcr | grep '^# provenance model'; }
check "it knows the model" says "model.tensors_xxh64=" knows_model
check "a recording that cannot be made" status 1 says "cannot be created" "$infer" --record file/run.gcr

dies() {
    with GRETA_SOFT_FAULT=abort GCORE_ENFORCE=0 "$infer" "${short[@]}" --inject pos_size --record died.gcr
}
check "a crash says which command explains it" status 134 says "\`greta_audit report died.gcr\` says what went wrong" dies
failed() { with GCORE_ENFORCE=0 "$infer" --greedy -n 3 --inject pos_size --record failed.gcr; }
check "and so does a failure" status 1 says "\`greta_audit report failed.gcr\` says what went wrong" failed

# ---- endings -----------------------------------------------------------------------------------

to_full() { "$infer" "${short[@]}" "$@" >/dev/full; }
to_nowhere() { "$infer" "${short[@]}" "$@" >&-; }
check "a full standard output" status 1 says "cannot be written: No space" to_full
check "a closed standard output" status 1 says "cannot be written: Bad file" to_nowhere
no_text_in_dump() {
    to_nowhere --dump-logits d 2>/dev/null
    same "'shape': (1, 1024)" "$(shape_of d/logits.npy)" && same 4224 "$(stat -c %s d/logits.npy)"
}
check "which ends up in no other file" no_text_in_dump
check "a trace that cannot be written" status 1 says "No space" \
    "$infer" "${short[@]}" --trace all --trace-file /dev/full

# interrupted WORDS OPTION… - Ctrl-C once these words have been printed.
interrupted() {
    : >out.txt # of the test before: its words would be taken for those of this one
    "$infer" "${@:2}" >out.txt 2>&1 &
    local job=$! code
    for _ in {1..600}; do
        grep -qF -- "$1" out.txt && break
        sleep 0.05
    done
    kill -INT $job
    wait "$job"
    code=$?
    cut -c1-300 out.txt
    grep -q "^Tokens/second: " out.txt || code=98
    return $code
}
check "Ctrl-C while generating keeps what there is" status 130 says "STATUS=OK" \
    interrupted ", there was" --greedy --max-tokens 100000 --ctx 100001 --ignore-eos --record cut.gcr
cut_short() { "$BUILD_DIR/bin/greta_audit" dump cut.gcr | tail -1; }
check "and the recording" says "closed cleanly" cut_short
for _ in {1..9}; do cat long.txt; done >longer.txt
while_reading() { # slowly
    export GRETA_CPU=scalar
    interrupted "greta demo (llama" --prompt-file longer.txt --ctx 100000
}
check "Ctrl-C while reading the prompt" status 130 says "interrupted before the first token" while_reading

# ---- many prompts ------------------------------------------------------------------------------

printf '{"prompt": "Once upon a time"}\n{"prompt": "The dragon", "max_tokens": 3}\n' >many.jsonl
many() { # the same texts as one by one, in the order of the file
    "$infer" --prompts many.jsonl --greedy --max-tokens 12 2>stats.txt >many.txt || return 1
    is 2 "$(wc -l <many.txt)" && grep -q "STATUS=OK" stats.txt || return 1
    one=$(text --prompt "Once upon a time" --greedy --max-tokens 12)
    head -1 many.txt | grep -qF "{\"index\": 0, \"text\": \"$one\", \"tokens\": 12, \"stop\": \"length\"}" &&
        tail -1 many.txt | grep -qF '"tokens": 3, "stop": "length"}'
}
check "prompts of a file run together" many
printf '\xef\xbb\xbf{"prompt": "Once upon a time"}\r\n\n{"prompt": "The dragon", "max_tokens": 3}\n\n' >spaced.jsonl
spaced() { "$infer" --prompts spaced.jsonl --greedy --max-tokens 12 2>/dev/null | diff - many.txt; }
check "empty lines and a byte-order mark are skipped" spaced
{ echo && echo '{"prompt": "a"}' && echo && printf '{"prompt": "%s"}\n' "$(cat long.txt)"; } >toolong.jsonl
check "a prompt that does not fit is named by its line" status 1 says "toolong.jsonl: line 4: the prompt has" \
    "$infer" --prompts toolong.jsonl
printf '{"prompt": "a"}\n{"text": "b"}\n' >bad.jsonl
check "a line without a prompt is named" status 1 says 'bad.jsonl: line 2: expected an object with a string "prompt"' \
    "$infer" --prompts bad.jsonl
printf '{"prompt": "a"}\n{"prompt": "b"\n' >broken.jsonl
check "a line that is not JSON is named once" status 1 says "greta_infer: broken.jsonl: line 2, column 15: expected ',' or '}'" \
    "$infer" --prompts broken.jsonl
wrong "--prompts goes neither" --prompts many.jsonl --prompt a
only_text() { is " was str" "$("$infer" --quiet --prompt "The dragon" --greedy --max-tokens 2 2>/dev/null)"; }
echo "The dragon" >line.txt
newline() { is " was str" "$(text --prompt-file line.txt --greedy --max-tokens 2)"; }
check "the last newline of a prompt file is not part of the prompt" newline
check "--quiet leaves only the text on standard output" only_text
nothing_said() { is "" "$("$infer" --quiet -m none.gguf -p a 2>/dev/null)"; }
check "and nothing if there is none" nothing_said

# ---- files that are no models ------------------------------------------------------------------

head -c 100000 "$SOURCE_DIR/models/greta-demo.gguf" >cut.gguf
check "half a model" status 1 says "cut.gguf" "$infer" --model cut.gguf --prompt a
finish
