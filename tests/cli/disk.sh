#!/usr/bin/env bash
# Full disks and limits on the size of files: the program runs to its end, every file of a report is
# whole or not there, and events that found no room are counted and said first.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
audit=$(audit_program)
programs=$BUILD_DIR/programs
cd "$TMPDIR" || exit 1

if ! has_preload; then
    skip "greta_audit run" "not in a build with clang's sanitizers"
    finish
fi

# whole DIR - every file in it is complete: it ends as files of its kind do.
whole() {
    local file
    for file in "$1"/*; do
        [ -e "$file" ] || continue
        case $file in
        */record.gcr) "$audit" dump "$file" >dump || return 1 ;;
        */report.json) [ "$(tail -n 1 "$file")" = '}' ] || { echo "$file is cut"; return 1; } ;;
        */report.html) tail -n 1 "$file" | grep -q '</html>' || { echo "$file is cut"; return 1; } ;;
        */report.txt | */report.md) tail -c 1 "$file" | cmp -s - <(echo) || { echo "$file is cut"; return 1; } ;;
        *) echo "$file is left behind"; return 1 ;;
        esac
    done
}

# A limit on files: too small for any recording, or for the reports alone.
limited() { # KIB STATUS
    rm -rf out
    (ulimit -f "$1" && "$audit" run --device soft --out out -- "$programs/rounds" 20) >stdout 2>stderr
    is "$2" $? && whole out && { [ "$2" -eq 0 ] || says "no room for a recording" cat stderr; } || { cat stderr; return 1; }
}

# on_disk KIB ROUNDS - runs on a file system of that size, in a mount namespace of its own.
on_disk() {
    mkdir -p disk
    # shellcheck disable=SC2016 # the inner shell's
    unshare --user --map-root-user --mount bash -c 'mount -t tmpfs -o size="$1k" none disk && shift && exec "$@"' \
        - "$1" bash -c '"$1" run --device soft --out disk/out -- "$2" "$3"; s=$?; cp -r disk/out found && exit $s' \
        - "$audit" "$programs/rounds" "$2" >stdout 2>stderr
}

full_for_reports() { # KIB - the recording has room, the HTML page has not
    rm -rf found
    on_disk "$1" 20
    is 1 $? && whole found && [ -s found/report.json ] && [ ! -e found/report.html ] &&
        grep -Eq '(HTML report|report.html).*No space left' stderr || { cat stderr; ls found; return 1; }
}

full_for_events() {
    rm -rf found
    on_disk 700 3000
    is 1 $? && whole found && grep -q '^INCONCLUSIVE: .*events found no room' found/report.txt &&
        grep -Eq '^# .* [1-9][0-9]* lost' dump || { cat stderr; ls found; return 1; }
}

# A limit on files: arrays of logits appear whole, or not at all.
logits() { # KIB STATUS FILES
    rm -rf logits
    (ulimit -f "$1" && "$BUILD_DIR/bin/greta_infer" --device soft -p hello -n 8 --greedy --dump-logits logits) >stdout 2>stderr
    is "$2" $? && is "$3" "$(ls logits | tr '\n' ' ')" || { cat stderr; return 1; }
}

# A program whose output cannot be written says so.
says_full() { # PROGRAM ARGUMENTS…
    "$BUILD_DIR/bin/$1" "${@:2}" >/dev/full 2>stderr
    is 1 $? && grep -q 'cannot write the output: No space left on device' stderr || { cat stderr; return 1; }
}

check "arrays of logits that do not fit leave nothing behind" logits 8 1 ""
check "those that fit are whole" logits 2000 0 "logits.npy metadata.json tokens.npy "
if [ -c /dev/full ]; then
    check "greta_model verify notices a full device" says_full greta_model verify "$SOURCE_DIR/models/greta-demo.gguf"
    check "greta_model info does" says_full greta_model info "$SOURCE_DIR/models/greta-demo.gguf"
    check "greta_infer --self-test does" says_full greta_infer --self-test
    check "greta_d2h_demo does" says_full greta_d2h_demo --record demo.gcr
fi
check "no room for a recording is said before the program starts" limited 64 1
check "a limit that leaves room changes nothing" limited 2000 0
if on_disk 2000 20; then
    needed=$(stat -c %s found/* | awk '{ pages += int(($1 + 4095) / 4096) } END { print 4 * pages }')
    page=$(($(stat -c %s found/report.html) / 1024))
    check "a disk that is full for the HTML page leaves none" full_for_reports $((needed - 2 * page / 3))
    check "nor where its last bytes do not fit" full_for_reports $((needed - 4))
    check "events that find no room are counted" full_for_events
else
    skip "full disks" "no name space with a file system of its own here"
fi
finish
