#!/usr/bin/env bash
# libgreta from the outside: what it exports, and a program that uses it after an installation.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
lib=$BUILD_DIR/lib
prefix=$TMPDIR/prefix

# Symbols that a sanitizer or the linker adds to every object.
not_ours='^(__asan|__tsan|__ubsan|__odr_asan|__start_|__stop_|_init$|_fini$|__bss_start$|_edata$|_end$)'

symbols() { nm "$@" | awk 'NF == 3 { print $3 }' | grep -vE "$not_ours" | sort -u; }

only_declared() { # reads symbol names
    local name bad=0
    while read -r name; do
        if ! grep -qw -- "$name" "$SOURCE_DIR"/include/gcore/*.h "$SOURCE_DIR/include/greta/greta.h"; then
            echo "$name is in no public header"
            bad=1
        fi
    done
    return $bad
}

shared() { symbols -D --defined-only "$lib/libgreta.so" | only_declared; }
archive() { symbols -g --defined-only "$lib/libgreta.a" | only_declared; }
all_declared() {
    local missing
    missing=$(comm -23 <(grep -ohE '\bgreta_[a-z_]+\(' "$SOURCE_DIR/include/greta/greta.h" |
        tr -d '(' | sort -u) <(symbols -D --defined-only "$lib/libgreta.so"))
    [ -z "$missing" ] || { echo "$missing"; return 1; }
}

check "libgreta.so exports only what the headers declare" shared
check "libgreta.a shows only what the headers declare" archive
check "libgreta.so exports all that greta.h declares" all_declared
if nm -D "$lib/libgreta.so" | grep -qE '__(asan|tsan)_init'; then
    skip "installation" "a sanitizer's library needs a sanitizer's program"
    finish
fi

cmake --install "$BUILD_DIR" --prefix "$prefix" >"$TMPDIR/install.log" 2>&1
cat >"$TMPDIR/story.c" <<'END'
#include <greta/greta.h>
#include <stdio.h>

static void print(uint32_t sequence, const char *text, size_t bytes, void *user) {
    (void)sequence, (void)user;
    fwrite(text, 1, bytes, stdout);
}

int main(void) {
    greta_engine *engine = NULL;
    struct greta_options options;
    struct greta_request request;
    struct greta_error why;
    greta_options_init(&options);
    greta_request_init(&request);
    request.prompt = "Once upon a time";
    request.max_tokens = 14;
    request.temperature = 0;
    request.text = print;
    if (greta_open(&engine, &options, &why) || greta_generate(engine, &request, NULL, &why)) {
        fprintf(stderr, "%s\n", why.message);
        return 1;
    }
    return greta_close(&engine, NULL);
}
END

# story NAME LIBRARY… - compiles the program and compares what it prints.
story() {
    local name=$1
    shift
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$TMPDIR/story.c" -I"$prefix/include" "$@" \
        -o "$TMPDIR/$name" || return 1
    [ "$("$TMPDIR/$name")" = ", there was a mighty prince who lived in a castle" ]
}
# docs/engine.md's example, compiled and run: each prompt is answered as it is alone.
example() {
    local out prompt
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$SOURCE_DIR/docs/engine.md" >"$TMPDIR/many.c"
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$TMPDIR/many.c" -I"$prefix/include" \
        -L"$prefix/lib" -lgreta -Wl,-rpath,"$prefix/lib" -o "$TMPDIR/many" || return 1
    out=$("$TMPDIR/many") || return 1
    printf '%s\n' "$out"
    is 3 "$(wc -l <<<"$out")" || return 1
    for prompt in "Once upon a time" "The dragon" "In the morning"; do
        grep -qF ":$("$BUILD_DIR/bin/greta_infer" --quiet --greedy -p "$prompt" -n 8 2>/dev/null)" <<<"$out" || return 1
    done
}
as_cpp() { echo '#include <greta/greta.h>' | c++ -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only -x c++ -; }
pkg_config_file() {
    # shellcheck disable=SC2016  # the file has these words literally
    grep -qx 'Libs: -L${libdir} -lgreta' "$prefix/lib/pkgconfig/greta.pc"
}
recorded() {
    GCORE_RECORD=$TMPDIR/run.gcr "$TMPDIR/shared" >/dev/null &&
        "$BUILD_DIR/bin/greta_audit" dump "$TMPDIR/run.gcr" | tail -1 | grep -q "closed cleanly"
}

check "a program with the shared library tells the story" \
    story shared -L"$prefix/lib" -lgreta -Wl,-rpath,"$prefix/lib"
check "its runs can be recorded" recorded
check "the example of docs/engine.md runs prompts side by side" example
check "the pkg-config file names the library" pkg_config_file
if command -v c++ >/dev/null; then
    check "the header is C++ too" as_cpp
else
    skip "the header is C++ too" "there is no C++ compiler"
fi
# A program with the archive in it is told where the software device is.
export GRETA_SOFT_LIBRARY=$prefix/lib/soft
check "a program with the archive tells the story" \
    story static "$prefix/lib/libgreta.a" -lpcre2-8 -lxxhash -lz -lzstd -lpthread -ldl -lm
finish
