#!/usr/bin/env bash
# GPU code of the engine on the interpreter: the self-test, a text, and the two faults that the project
# began with, seen by the audit as they would be on a GPU.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
infer=$BUILD_DIR/bin/greta_infer audit=$BUILD_DIR/bin/greta_audit
cd "$TMPDIR" || exit 1

check "native kernels agree with the CPU" says "STATUS=OK" status 0 "$infer" --self-test --device soft
check "another word is wrong usage" says "expected native or isa, found 'gpu'" \
    status 2 "$infer" --device soft --exec gpu -p a -n 1
if [ ! -e "$BUILD_DIR/gpu/kernels.bundle" ]; then
    check "without GPU code --exec isa says what is missing" says "no clang with the AMDGPU target" \
        status 3 "$infer" --device soft --exec isa -p a -n 1
    skip "GPU code" "the build found no clang with the AMDGPU target"
    finish
fi

text() { "$infer" --device soft "$@" -p "Once upon" -n 6 --greedy 2>/dev/null | head -n 1; }
same_text() { [ "$(GRETA_SOFT_ARCH=$1 text --exec isa)" = "$(text)" ]; }
agrees() { GRETA_SOFT_ARCH=$1 "$infer" --self-test --device soft --exec isa; }
for arch in gfx90a gfx942; do
    check "every kernel for $arch agrees with the CPU" says "STATUS=OK" status 0 agrees "$arch"
    check "$arch writes what native code writes" same_text "$arch"
done

if [ ! -e "$BUILD_DIR/lib/libgcore_preload.so" ]; then
    skip "the audit of GPU code" "a sanitizer build has none"
    finish
fi
audited() {
    GCORE_ENFORCE=0 "$audit" run --device soft --out "$1.out" -- \
        "$infer" --device soft --exec isa --inject "$1" -p Once -n 1
}
check "positions of two bytes: RoPE's argument pos" \
    says "ROOT_CAUSE SIZE_MISMATCH: kernel rope" status 1 audited pos_size
check "too many KV heads: the K projection" \
    says "tensor blk.0.attn_k.weight" status 1 audited kv_heads
finish
