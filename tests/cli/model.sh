#!/usr/bin/env bash
# greta_model from the outside: exit codes, help, what it prints, and what it leaves behind.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
model=$BUILD_DIR/bin/greta_model
cd "$TMPDIR" || exit 1

only_files() { # NAME… - nothing else lies in this folder, hidden files included
    local found wanted
    found=$(find . -mindepth 1 -printf '%f\n' | sort)
    wanted=$(printf '%s\n' "$@" | sort)
    [ "$found" = "$wanted" ] || { echo "found: $found"; return 1; }
}

check "no command is wrong usage" status 2 says "Usage: greta_model" "$model"
check "help lists the commands" status 0 says "quantize" "$model" --help
check "version" status 0 says "greta_model " "$model" --version
check "an unknown command is wrong usage" status 2 says "unknown command 'fly'" "$model" fly
check "an unknown option is wrong usage" status 2 says "unknown option '--fly'" "$model" --fly
for command in info verify quantize synth; do
    check "$command has help" status 0 says "Usage: greta_model $command" "$model" "$command" --help
    check "$command refuses unknown flags" status 2 says "unknown option: --fly" \
        "$model" "$command" --fly
    check "$command without arguments is wrong usage" status 2 "$model" "$command"
done

check "synth writes a model" status 0 says "21 tensors" "$model" synth --shape tiny --type F16 -o a.gguf
check "synth names a wrong shape" status 2 says "no shape is called 'big'" \
    "$model" synth --shape big -o x.gguf
check "synth names a wrong type" status 2 says "no type is called 'Q9'" "$model" synth --type Q9 -o x.gguf
check "synth needs a number for a seed" status 2 "$model" synth --seed many -o x.gguf
check "synth makes the folders above its output" status 0 says "21 tensors" "$model" synth -o deep/er/x.gguf
rm -r deep
touch file
check "synth says why there is no folder" status 1 says "cannot be made: Not a directory" "$model" synth -o file/x.gguf
rm file
check "info prints tensors" status 0 says "blk.1.ffn_down.weight" "$model" info a.gguf
check "info prints metadata" status 0 says "llama.rope.freq_base" "$model" info a.gguf
check "info fails on what is no model" status 1 says "expected \"GGUF\"" "$model" info "$model"
check "info fails on a missing file" status 1 says "cannot open" "$model" info none.gguf
check "verify passes a good model" status 0 says "a.gguf: fine" "$model" verify a.gguf
check "verify shows expected and found" status 1 says "number of KV heads" \
    "$model" verify --expect llama-2-7b a.gguf
printf '{"dim": 256, "layers": 2}' >shape.json
check "verify takes a demand from JSON" status 0 "$model" verify --expect shape.json a.gguf
check "verify wants a demand it can read" status 2 "$model" verify --expect nothing.json a.gguf
check "quantize makes a smaller model" status 0 says "16 tensors changed, 5 kept" \
    "$model" quantize --threads 2 a.gguf b.gguf Q4_K_M
check "the result is sound" status 0 "$model" verify b.gguf
check "quantize refuses its input as output" status 3 says "is the input itself" \
    "$model" quantize a.gguf a.gguf Q8_0
check "quantize names a wrong type" status 2 says "no type is called" "$model" quantize a.gguf c.gguf Q9
check "nothing else was left behind" only_files a.gguf b.gguf shape.json

json_is_valid() { "$model" info --json "$1" | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["version"] == 3 and d["config"]["dim"] == 256 and len(d["tensors"]) == 21
assert d["tensors"][0]["name"] == "token_embd.weight" and d["tensors"][0]["shape"] == [256, 512]
assert any(k["key"] == "general.architecture" and k["value"] == "llama" for k in d["metadata"])
'; }
if command -v python3 >/dev/null; then
    check "info --json is JSON" json_is_valid a.gguf
else
    skip "info --json is JSON" "there is no python3"
fi

round_trip() { # text -> ids of the built-in vocabulary -> the same text, byte for byte
    printf 'Hello, the w\xc3\xb6rld of models 123\n\xf0\x9f\x98\x80 tabs\t' >in.txt
    "$model" tokenize a.gguf <in.txt >ids.txt && "$model" tokenize --ids a.gguf <ids.txt >out.txt &&
        cmp in.txt out.txt
    local code=$?
    rm -f in.txt ids.txt out.txt
    return $code
}
check "the built-in vocabulary gives text back" round_trip

truncated() {
    head -c 100000 a.gguf >cut.gguf
    status 1 says "run past the end" "$model" verify cut.gguf
    local code=$?
    rm cut.gguf
    return $code
}
check "a truncated model is an error" truncated

interrupted() { # a run of several seconds, ended by Ctrl-C
    "$model" synth --shape tinyllama-1.1b --type IQ4_XS --threads 1 -o big.gguf >out.txt 2>&1 &
    local job=$!
    sleep 1
    kill -INT $job
    wait $job
    local code=$?
    cat out.txt
    grep -q "interrupted; nothing was written" out.txt || code=99
    rm out.txt
    [ $code -eq 130 ] && only_files a.gguf b.gguf shape.json
}
check "Ctrl-C leaves nothing behind" interrupted
finish
