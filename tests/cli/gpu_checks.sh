#!/usr/bin/env bash
# GPU code of the engine with all checks of the software device: no kernel uses what nothing has written,
# and no two threads use the same bytes without an order between them. Each run is recorded by the
# program itself, so that sanitizer builds can do it too.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
infer=$BUILD_DIR/bin/greta_infer audit=$BUILD_DIR/bin/greta_audit
cd "$TMPDIR" || exit 1

# judged RECORDING: what the report says, hypotheses and status one space apart.
# shellcheck disable=SC2317  # called by says
judged() { "$audit" report "$1.gcr" | tr -s ' '; }

if [ ! -e "$BUILD_DIR/gpu/kernels.bundle" ]; then
    skip "checks of GPU code" "the build found no clang with the AMDGPU target"
    finish
fi

if is_tsan; then
    skip "checks of GPU code" "cli_isa_checks has the same threads, and this takes ten minutes"
    finish
fi

export GRETA_SOFT_CHECK=all
for arch in gfx90a gfx942; do
    export GRETA_SOFT_ARCH=$arch
    for kind in kernels matmul attention; do
        GCORE_RECORD=$kind.gcr check "$arch: GPU code agrees, $kind" "$BUILD_DIR/tests/test_hip_$kind"
    done
    GCORE_RECORD=demo.gcr check "$arch: the demo model writes" \
        "$infer" --device soft --exec isa -p "Once upon a time there was" -n 2 --greedy
    for run in kernels matmul attention demo; do
        for hypothesis in UNINITIALISED_READ KERNEL_RACE BARRIER_DIVERGENCE SIZE_MISMATCH; do
            check "$arch, $run: no $hypothesis" says "$hypothesis RULED_OUT" judged $run
        done
    done
    rm -f ./*.gcr
    # The interpreter is too slow for whole models in sanitizer builds.
    ! is_sanitized || continue
    GCORE_RECORD=models.gcr check "$arch: models of all types agree" "$BUILD_DIR/tests/test_infer_isa"
    check "$arch, models: nothing is found" says "CLEAN: nothing failed" judged models
    rm -f models.gcr
done
finish
