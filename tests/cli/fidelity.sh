#!/usr/bin/env bash
# The fidelity section of reports: how exactly the instructions of a hipcc program were executed.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$BUILD_DIR/bin/greta_audit
cd "$TMPDIR" || exit 1

if is_sanitized; then
    skip "fidelity" "a sanitizer build cannot be loaded into programs of hipcc"
    finish
fi
if ! command -v hipcc >/dev/null; then
    skip "fidelity" "there is no hipcc"
    finish
fi

compile() { hipcc -O2 "-D$1" --offload-arch=gfx90a "$SOURCE_DIR/tests/hip/fidelity.hip" -o "$1"; }
judge() { "$audit" run --device soft --out "$1.out" -- "./$1"; }
judge_init() { GRETA_SOFT_CHECK=init judge "$1"; }
says() { grep -qF -- "$2" "$1" || { cat "$1"; echo "no '$2' in it"; return 1; }; }

for variant in EXACT PLAIN BRANCH ADDRESS; do
    check "it compiles as $variant" compile $variant
done
check "a run without approximate instructions" judge EXACT
check "names what is within the documented error" says EXACT.out/report.txt \
    "1 within the documented error, not bit for bit: v_exp_f32"
check "and says that nothing is approximate" says EXACT.out/report.txt "none is approximate"
check "Markdown has the section" says EXACT.out/report.md "### Fidelity of interpreted machine code"
check "HTML has it" says EXACT.out/report.html "Fidelity of interpreted machine code</h2>"
check "Spanish has it" "$audit" report --md --lang es --out es.md EXACT.out/record.gcr
check "in Spanish" says es.md "1 dentro del error documentado, no bit a bit: v_exp_f32"
check "a clock is approximate" judge PLAIN
check "and not followed by default" says PLAIN.out/report.txt "was not followed"
check "with the check of undefined values" judge_init PLAIN
check "it is followed, and reaches nothing" says PLAIN.out/report.txt \
    "no approximate value reached an address or a branch"
check "a branch on the clock" judge_init BRANCH
check "is told" says BRANCH.out/report.json '"reached_branch": 1'
check "an address made of the clock" judge_init ADDRESS
check "is told, too" says ADDRESS.out/report.json '"reached_address": 1'
finish
