#!/usr/bin/env bash
# greta_model tokenize: text to ids and back, with the vocabulary that `synth` builds in.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
model=$BUILD_DIR/bin/greta_model
file=$TMPDIR/tiny.gguf
"$model" synth --shape tiny -o "$file" >/dev/null || exit 1

ids() { printf '%s' "$1" | "$model" tokenize "${@:2}" "$file"; } # TEXT OPTION…

nasty=$'\t\n\r  a  \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80 1,234 </s>'

round_trip() {
    printf '%s' "$nasty" >"$TMPDIR/text"
    "$model" tokenize "$file" <"$TMPDIR/text" >"$TMPDIR/ids" &&
        "$model" tokenize --ids "$file" <"$TMPDIR/ids" >"$TMPDIR/back" &&
        cmp "$TMPDIR/text" "$TMPDIR/back"
}

begins_with_bos() { is 1 "$(ids 'a' | cut -d' ' -f1)"; }
without_bos() { is "$(ids 'a' | cut -d' ' -f2-)" "$(ids 'a' --no-bos)"; }
of_nothing() { is 1 "$(ids '')" && is '' "$(ids '' --no-bos)"; }

special_names() {
    is 2 "$(ids '</s>' --no-bos --special)" && [ "$(ids '</s>' --no-bos)" != 2 ]
}

control_tokens_are_silent() {
    is '' "$(echo '1 2' | "$model" tokenize --ids "$file")" &&
        is '<s></s>' "$(echo '1 2' | "$model" tokenize --ids --special "$file")"
}

says() { # STATUS WORDS INPUT ARGUMENT…
    local text
    text=$(printf '%s' "$3" | "$model" tokenize "${@:4}" 2>&1 >/dev/null)
    is "$1" $? && case $text in *"$2"*) ;; *) echo "no '$2' in: $text" && return 1 ;; esac
}

reference() {
    local name=$1 folder=$SOURCE_DIR/../shared/vocab
    printf 'Hello, y'"'"'all! How are you 😁 ?我想在apple工作1314151天～' |
        "$model" tokenize --no-bos "$folder/$name.gguf" >"$TMPDIR/ids" &&
        grep -qxF "$(cat "$TMPDIR/ids")" <(sed 's/^ *//; s/ *$//' "$folder/$name.out")
}

check "ids become the text again" round_trip
check "BOS comes first where the model wants it" begins_with_bos
check "--no-bos leaves it out" without_bos
check "no text is BOS or nothing" of_nothing
check "--special finds control tokens in the text" special_names
check "control tokens are printed only with --special" control_tokens_are_silent
check "ids that are no numbers are named" says 1 "found 'x7'" '5 x7' --ids "$file"
check "ids outside the vocabulary are named" says 1 'token 512 is outside' '512' --ids "$file"
check "unknown options are wrong usage" says 2 'unknown option' '' --bos "$file"
check "a file must be named" says 2 'name a file' ''
check "a file that is not there is an error" says 1 'no-such-file' '' "$TMPDIR/no-such-file"
for name in llama-spm llama-bpe gpt-2 qwen2; do
    if [ -d "$SOURCE_DIR/../shared/vocab" ]; then
        check "$name gives the reference tokens" reference "$name"
    else
        skip "$name gives the reference tokens" "no shared/vocab beside the project"
    fi
done
finish
