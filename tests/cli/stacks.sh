#!/usr/bin/env bash
# Call stacks of reports: lines, changed and separate files, interpreters; and starts that signals and
# forks interrupt.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"

audit=$(audit_program)
program=$BUILD_DIR/programs/plain

if ! has_preload; then
    skip "call stacks" "a build with clang's sanitizers has no libgcore_preload.so"
    finish
fi

record() { # FOLDER PROGRAM...: records it with the software device
    local folder=$1
    shift
    "$audit" run --quiet --device soft --timeout 120 --out "$folder" -- "$@" >/dev/null 2>&1
}

lines() { "$audit" dump "$1/record.gcr" | grep -q 'call=hipMalloc .*site="round_trip (plain.c:[0-9]*)'; }

cp "$program" "$TMPDIR/program"
record "$TMPDIR/plain" "$TMPDIR/program"
check "a call shows its function, file and line" lines "$TMPDIR/plain"
stack() { "$audit" dump --stacks "$TMPDIR/plain/record.gcr" | grep -q '^    main at .*plain.c:[0-9]* '; }
check "the whole stack is one option away" stack

if command -v objcopy >/dev/null; then
    objcopy --only-keep-debug "$TMPDIR/program" "$TMPDIR/program.debug"
    (cd "$TMPDIR" && objcopy --strip-debug --add-gnu-debuglink=program.debug program)
    check "lines come from a separate file" lines "$TMPDIR/plain"
    mv "$TMPDIR/program.debug" "$TMPDIR/elsewhere"
    without() { "$audit" dump "$TMPDIR/plain/record.gcr" | grep -q 'site="round_trip+0x'; }
    check "without debug information the function is named" without
else
    skip "lines come from a separate file" "no objcopy"
fi
cp "$BUILD_DIR/programs/copies" "$TMPDIR/program"
changed() { ! "$audit" dump "$TMPDIR/plain/record.gcr" | grep -q 'plain.c:\|copies.c:'; }
check "a changed program is not used for lines" changed
said() { "$audit" dump "$TMPDIR/plain/record.gcr" | grep -q '^# .*/program has changed since the run'; }
check "and that is said" said

starts() { # ARGUMENTS...: several starts of the program, each of which ends
    local i
    for i in 1 2 3 4 5; do
        record "$TMPDIR/start.$i" "$BUILD_DIR/programs/alarms" "$@" || return 1
    done
}
if is_sanitized; then # a sanitizer's malloc waits for itself in a handler that interrupted it
    skip "signal handlers that call HIP during the start do not hang" "a sanitizer's own locks are in the way"
else
    check "signal handlers that call HIP during the start do not hang" starts
fi
check "forks among threads that start do not hang" starts forks

if command -v python3 >/dev/null && python3 -c 'import ctypes' 2>/dev/null; then
    cat >"$TMPDIR/call.py" <<'END'
import ctypes
hip = ctypes.CDLL("libamdhip64.so.6")
memory = ctypes.c_void_p()
hip.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(64))
hip.hipFree(memory)
END
    record "$TMPDIR/python" env LD_LIBRARY_PATH="$BUILD_DIR/lib/soft" python3 "$TMPDIR/call.py"
    frames() {
        "$audit" dump --stacks --kind alloc "$TMPDIR/python/record.gcr" >"$TMPDIR/python.txt"
        grep -q 'ffi' "$TMPDIR/python.txt" && grep -q '_start' "$TMPDIR/python.txt"
    }
    check "a call through an interpreter shows the frames above it" frames
    if command -v cc >/dev/null && ! is_sanitized; then
        cat >"$TMPDIR/plugin.c" <<'END'
extern int hipMalloc(void **, unsigned long);
int reserve(void) {
    void *memory;
    return hipMalloc(&memory, 64);
}
END
        cat >"$TMPDIR/plugin.py" <<'END'
import ctypes
hip = ctypes.CDLL("libamdhip64.so.6", ctypes.RTLD_GLOBAL)
ctypes.CDLL("./plugin.so").reserve()
END
        cc -g -shared -fPIC "$TMPDIR/plugin.c" -o "$TMPDIR/plugin.so"
        (cd "$TMPDIR" && record plugin env LD_LIBRARY_PATH="$BUILD_DIR/lib/soft" python3 plugin.py)
        relative() { (cd / && "$audit" dump "$TMPDIR/plugin/record.gcr") | grep -q 'call=hipMalloc .*site="reserve (plugin.c:4)'; }
        check "a library that was opened by a relative path has lines, wherever the report is made" relative
    else
        skip "a library that was opened by a relative path has lines" "no C compiler, or a sanitizer"
    fi
else
    skip "a call through an interpreter shows the frames above it" "no python3 with ctypes"
fi

# A macro whose lambda calls HIP and checks the result: the place is the function around it.
if command -v c++ >/dev/null && ! is_sanitized; then
    cat >"$TMPDIR/lambda.cpp" <<'END'
#include <cstdio>
#include <cstdlib>
extern "C" int hipMalloc(void **, unsigned long);
extern "C" int hipFree(void *);
#define CHECK(call) [&] { int e = (call); if (e) { fprintf(stderr, "%d\n", e); exit(1); } }()
static void round_trip() {
    void *memory;
    CHECK(hipMalloc(&memory, 64));
    CHECK(hipFree(memory));
}
int main() {
    round_trip();
    round_trip();
}
END
    c++ -g "$TMPDIR/lambda.cpp" -o "$TMPDIR/lambda" -L"$BUILD_DIR/lib/soft" -l:libamdhip64.so.6
    LD_LIBRARY_PATH="$BUILD_DIR/lib/soft" record "$TMPDIR/lambdas" "$TMPDIR/lambda"
    around() { "$audit" dump "$TMPDIR/lambdas/record.gcr" | grep -q 'call=hipMalloc .*site="round_trip (lambda.cpp:8)'; }
    check "a lambda in a macro is not where a call is made" around
else
    skip "a lambda in a macro is not where a call is made" "no C++ compiler, or a sanitizer"
fi

finish
