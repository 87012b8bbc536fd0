#!/usr/bin/env bash
# greta_d2h_demo shows an audited copy, a refused one and a fault, under every schedule of the software
# device.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
demo=$BUILD_DIR/bin/greta_d2h_demo
cd "$TMPDIR" || exit 1
unset GCORE_RECORD

shows() { # WORDS… in the output of the last run
    local word
    for word; do
        grep -qF -- "$word" out || { echo "no '$word' in:"; cat out; return 1; }
    done
}

under() { # SCHEDULE
    GRETA_SOFT_SCHEDULE=$1 status 0 "$demo" --device soft --record "$TMPDIR/$1.gcr" >out &&
        shows '[D2H_AUDIT_START] op_id=0 ' '[D2H_AUDIT_END] op_id=0 ' \
            '[D2H_BOUNDS] tensor=logits offset=0 size=8192 alloc=4096' 'OUT_OF_ALLOCATION: ' \
            'launch of scale        hipSuccess' 'copy of logits         hipErrorIllegalAddress' \
            'hipDeviceReset         hipSuccess' 'scale wrote 0x' ', byte 4096 of a block of 4096' &&
        ! grep -q ' NOT ' out
}

default_place() {
    status 0 "$demo" --device soft >out && [ -s "artifacts/$(date +%F)/d2h_demo/record.gcr" ]
}

environment_place() {
    GCORE_RECORD=$TMPDIR/mine.gcr status 0 "$demo" --device soft >out && [ -s mine.gcr ]
}

says() { # STATUS WORDS ARGUMENT…
    status "$1" "$demo" "${@:3}" >out 2>&1 && shows "$2"
}

for schedule in fast eager lazy random:7; do
    check "all three cases under $schedule" under "$schedule"
done
check "records into artifacts by default" default_place
check "records where GCORE_RECORD says" environment_place
check "--help" says 0 "Usage: greta_d2h_demo" --help
check "--version" says 0 "greta_d2h_demo " --version
check "an unknown option is an error" says 2 "unknown option '--nonsense'" --nonsense 1
check "an option without its value is an error" says 2 "--record" --record
check "an unknown device is refused" says 2 "found 'nonsense'" --device nonsense
check "a recording that cannot be written is refused" says 3 "GCORE_RECORD" --device soft \
    --record "$0/none.gcr"
finish
