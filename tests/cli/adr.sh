#!/usr/bin/env bash
# Decisions have one form and one index.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
adr=$SOURCE_DIR/docs/adr

has_the_form() {
    local name
    name=$(basename "$1")
    diff <(grep -E '^## ' "$1") <(printf '## %s\n' Context Decision Consequences) &&
        head -n 1 "$1" | grep -qE "^# ${name%%-*}: [A-Z\`]"
}
for page in "$adr"/[0-9]*.md; do
    check "$(basename "$page") has a numbered title, context, decision and consequences" has_the_form "$page"
done

indexed() {
    diff <(for page in "$adr"/[0-9]*.md; do
        sed -nE "1s/^# ([0-9]{4}): (.*)/| [\1]($(basename "$page")) | \2 |/p" "$page"
    done) <(grep -E '^\| \[[0-9]' "$adr/README.md")
}
check "docs/adr/README.md lists every decision with its title" indexed

finish
