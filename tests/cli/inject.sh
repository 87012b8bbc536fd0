#!/usr/bin/env bash
# greta_infer --inject: every fault, run under greta_audit run, is named in the first line of the report,
# with its culprit and its messenger. (tests/unit/test_infer_inject.c does it under every schedule.)
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
infer=$BUILD_DIR/bin/greta_infer
audit=$BUILD_DIR/bin/greta_audit
cd "$TMPDIR" || exit 1
short=(--greedy --max-tokens 4)

# ---- usage -------------------------------------------------------------------------------------

every_kind() {
    local list kind
    list=$("$infer" --inject "$1") || return 1
    while IFS= read -r kind; do
        grep -q "^  $kind  *[A-Z_]" <<<"$list" || { echo "no $kind in"; echo "$list"; return 1; }
    done < <(sed -n 's/^INJECT(\([a-z_]*\),.*/\1/p' "$SOURCE_DIR/src/infer/inject.def")
}
check "help lists every kind" every_kind help
check "so does list" every_kind list
check "--help says where" status 0 says "help lists the kinds" "$infer" --help
check "no such kind" status 2 says "there are pos_size, kv_heads" "$infer" --inject fly
check "no such tensor" status 2 says "it can be done to ids" "$infer" --inject leak:wings
check "no such layer" status 2 says "layers 0 to 3" "$infer" --inject leak@4
check "a step that cannot come" status 2 says "steps 0 to 3" "$infer" "${short[@]}" --inject leak@0.4
check "a step that did not come" status 2 says "--inject leak@0.30 never struck: the run ended after step" \
    "$infer" --greedy --max-tokens 40 --stop " a " --inject leak@0.30
check "a claim needs a recording" status 2 says "needs --record" "$infer" --inject stale_binary
check "a model without anything to get wrong" status 2 says "takes one with fewer" \
    bash -c "'$BUILD_DIR/bin/greta_model' synth --shape dim=64,layers=1,heads=2,kv_heads=2,hidden=64 \
        --type F32 -o full.gguf && '$infer' --model full.gguf --prompt a --inject kv_heads"

# ---- recorded by greta_infer itself ---------------------------------------------------------------

by_itself() {
    "$infer" "${short[@]}" --inject pos_size --record a.gcr >out 2>err
    local code=$?
    cat out err
    [ $code -eq 1 ] && grep -q '^STATUS=ERROR$' out && grep -q '^Generation error: ' err &&
        grep -q '^Recording a.gcr: ' err && grep -q 'note: injected pos_size, tensor pos' err || return 1
    says "ROOT_CAUSE SIZE_MISMATCH: kernel rope" "$audit" report a.gcr
}
check "a fault ends the run, and the recording says why" by_itself
several() {
    "$infer" "${short[@]}" --inject leak --inject kind_mismatch:pos@1.1 --record b.gcr >out 2>err || return 99
    local text
    text=$("$audit" report b.gcr)
    echo "$text"
    grep -q '^  LEAK  *CONFIRMED' <<<"$text" && grep -q '^  KIND_MISMATCH  *CONFIRMED' <<<"$text"
}
check "several at once" several
clean() { "$infer" "${short[@]}" --record c.gcr >/dev/null 2>&1 && "$audit" report c.gcr; }
check "none: clean" status 0 says "CLEAN: " clean

# ---- under greta_audit run -------------------------------------------------------------------------

if is_sanitized; then
    skip "greta_audit run" "too slow in a build with sanitizers"
    finish
fi

# named EXIT FIRST_LINE CULPRIT MESSENGER OPTION… - patterns (grep -E)
named() {
    rm -rf out
    "$audit" run --device soft --out out -- "$infer" "${short[@]}" "${@:5}" >text 2>err
    local code=$?
    cat out/report.txt
    [ $code -eq "$1" ] || { echo "exit status $code instead of $1"; return 1; }
    head -1 out/report.txt | grep -qE -- "$2" || { echo "first line: no $2"; return 1; }
    grep -qE -- "^greta_audit: $2" err || { cat err; return 1; }
    grep -E '^  culprit ' out/report.txt | head -1 | grep -qE -- "$3" || { echo "culprit: no $3"; return 1; }
    grep -E '^  messenger ' out/report.txt | head -1 | grep -qE -- "$4" || { echo "messenger: no $4"; return 1; }
}
any='(kernel|hip)' # whoever asked first
logits='hipMemcpyAsync, tensor logits'
none='messenger  -$'
copy='hipMemcpyAsync'
for schedule in fast lazy; do
    export GRETA_SOFT_SCHEDULE=$schedule
    [ $schedule = lazy ] && any=$logits
    inject() { check "$schedule: $5" named "$1" "$2" "$3" "$4" --inject "$5"; }
    inject 1 "ROOT_CAUSE SIZE_MISMATCH: kernel rope .*\(.*step 0, layer 0\)" "rope, argument pos, tensor pos" "$any" pos_size
    inject 1 "ROOT_CAUSE SHAPE_MISMATCH: kernel matmul" \
        "matmul[a-z_]*, argument [a-z_]*weight, tensor blk.0.attn_k.weight, step 0, layer 0" "$logits" kv_heads
    inject 1 "ROOT_CAUSE SIZE_MISMATCH: hipMemcpyAsync" "$copy, tensor q, step 1, layer 2" "$copy" size_mismatch:q@2.1
    inject 1 "ROOT_CAUSE SIZE_MISMATCH: a checked copy of x" "gcore_d2h_copy, tensor x" "gcore_d2h_copy" size_refused
    inject 1 "ROOT_CAUSE BAD_OFFSET: hipMemcpyAsync" "$copy, tensor k_cache" "$copy" bad_offset
    inject 1 "ROOT_CAUSE BAD_OFFSET: kernel kv_store" "kv_store, argument keys, tensor k_cache" "$any" wild_block
    inject 1 "ROOT_CAUSE INVALID_POINTER: kernel rmsnorm" "rmsnorm, argument out" "$any" invalid_pointer
    inject 1 "ROOT_CAUSE USE_AFTER_FREE: kernel rmsnorm" "rmsnorm, argument out, tensor norm" "$any" use_after_free
    inject 1 "ROOT_CAUSE DOUBLE_FREE: hipFree" "hipFree, tensor x" "hipFree" double_free
    inject 0 "FINDINGS STREAM_UNSYNCED: hipMemcpyAsync" "$copy, tensor x" "$none" stream_unsynced
    inject 0 "FINDINGS OVERLAPPING_COPIES: hipMemcpyAsync" "$copy, tensor x" "$none" overlapping_copies
    inject 0 "FINDINGS STAGING_REUSE: hipMemcpyAsync" "$copy, tensor x" "$none" staging_reuse
    inject 0 "FINDINGS HOST_BUFFER_LIFETIME: the host" "$copy, tensor x" "$none" host_buffer_lifetime
    inject 1 "ROOT_CAUSE UPSTREAM_KERNEL_FAULT: kernel inject_trap" "inject_trap" "$logits" kernel_trap
    inject 0 "FINDINGS KIND_MISMATCH: hipMemcpyAsync" "$copy, tensor x" "$none" kind_mismatch
    inject 0 "FINDINGS UNINITIALISED_READ: kernel rmsnorm" "rmsnorm, argument x, tensor x" "$none" uninitialised_read
    inject 0 "FINDINGS LEAK: memory of hipMalloc" "hipMalloc, tensor x" "$none" leak
    inject 1 "ROOT_CAUSE UNCHECKED_ERROR: hipMalloc" "hipMalloc" "$copy" unchecked_error
done
unset GRETA_SOFT_SCHEDULE
check "two sequences and a trace" named 1 "ROOT_CAUSE SHAPE_MISMATCH: kernel matmul" "tensor blk.1.attn_k.weight" \
    "hip" --inject kv_heads@1 --batch-size 2 --trace q,logits --trace-file /dev/null

# ---- a binary that is not the expected one -----------------------------------------------------------------

expected=$("$infer" --version | sed 's/.*(\([0-9a-f]*\).*/\1/')
of_commit() { # OPTION… - the audit's exit status, and the first line
    rm -rf out
    "$audit" run --device soft --out out --exit-code --expect-commit "$expected" -- \
        "$infer" "${short[@]}" "$@"
}
if [ ${#expected} -eq 40 ]; then
    check "a stale binary is not judged" status 3 says "greta_audit: STALE_BINARY: " \
        of_commit --inject stale_binary
    check "whatever else it does" status 3 says "greta_audit: STALE_BINARY: " \
        of_commit --inject stale_binary:0123456789 --inject kv_heads
    check "the expected one is" status 1 says "greta_audit: ROOT_CAUSE SIZE_MISMATCH: kernel rope" \
        of_commit --inject pos_size
else
    skip "a stale binary" "this build does not know its commit"
fi
finish
