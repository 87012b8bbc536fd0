#!/usr/bin/env bash
# What programs of hipcc and clang-19 need of the runtime besides machine code that runs: calls from kernels
# to the host, textures and surfaces, a compiler at run time, launches whose groups wait for each other.
set -u
# shellcheck source=tests/support/hip.sh
. "$SOURCE_DIR/tests/support/hip.sh"

has_plain_build "machine code" || finish

# Waves print in any order: the lines of "$@" without order are those of the file "expected".
prints_expected() { run "$@" 2>/dev/null | sort | diff - expected; }

sort >expected <<'END'
plain text, no argument
-42 7 ff z 105.00|42    |000042|a string|one that is longer than a packet has room for|%|0x1234
96 characters, 1099511627776     42 0.2 1.000000e+10
thread 126 of 128
thread 127 of 128
PASS
END

if command -v hipcc >/dev/null; then
    check "hipcc compiles calls of the host for gfx90a" \
        hipcc -O2 --offload-arch=gfx90a "$sources/hostcall.hip" -o hostcall
    check "and device printf prints, malloc allocates, functions are called" prints_expected ./hostcall
    check "an assertion that fails on the device says where" \
        says "Device-side assertion \`n == 4' failed" run ./hostcall 1
    check "and is a launch failure" says "asserted: hipErrorLaunchFailure" run ./hostcall 1
    check "hipcc compiles textures and surfaces" \
        hipcc -w -O1 --offload-arch=gfx90a "$sources/images.hip" -o images
    check "and kernels read and write them as the host expects" passes ./images
    check "hipcc compiles a kernel that waits for its whole grid" \
        hipcc -w -O1 --offload-arch=gfx90a "$sources/together.hip" -o together
    check "and all groups of a cooperative launch run at once, those of another while some wait" \
        passes ./together
    check "hipcc compiles kernels that are nodes of graphs" \
        hipcc -w -O1 --offload-arch=gfx90a "$sources/nodes.hip" -o nodes
    check "and the nodes tell their arguments and take others" passes ./nodes
    check "hipcc compiles a program that compiles kernels" \
        hipcc -w -O1 --offload-arch=gfx90a "$sources/rtc.hip" -o rtc
    check "and hiprtc does so with the installed clang" passes ./rtc
    # part FLAG... -o FILE: the other half of link.hip's kernel, as bitcode
    echo 'extern "C" __attribute__((device)) int added(int i) { return 10 * i + 1; }' >part.hip
    part() { hipcc -O2 --offload-arch=gfx90a -fgpu-rdc --cuda-device-only -emit-llvm "$@" -c part.hip; }
    check "hipcc compiles bitcode, also in a bundle" eval "part -o part.bc && part --gpu-bundle-output -o bundle.bc"
    check "and a program that links kernels" hipcc -w -O1 --offload-arch=gfx90a "$sources/link.hip" -o link
    check "a static library holds the bundle" ar rcs archive.a bundle.bc
    check "and all of them are linked" passes ./link part.bc bundle.bc archive.a
    mkdir -p nothing
    check "and says what is missing where there is none" \
        says "there is none (clang++-15" status 1 run env PATH="$PWD/nothing" ./rtc
else
    skip "programs for gfx90a" "there is no hipcc"
fi

# Debian's device libraries know gfx940; gfx942 has the same instructions.
libraries=/usr/lib/$(uname -m)-linux-gnu/amdgcn/bitcode
if command -v clang-19 >/dev/null && command -v ld.lld-19 >/dev/null &&
    [ -e "$libraries/oclc_isa_version_940.bc" ]; then
    cp -r "$libraries" bitcode
    cp bitcode/oclc_isa_version_940.bc bitcode/oclc_isa_version_942.bc
    check "clang-19 compiles calls of the host for gfx942" clang-19 -x hip -O2 --offload-arch=gfx942 \
        "--rocm-device-lib-path=$PWD/bitcode" --rocm-path=/usr "$sources/hostcall.hip" -o hostcall-942 \
        -lamdhip64 -lstdc++ -lm
    check "and they are answered" prints_expected env GRETA_SOFT_ARCH=gfx942 ./hostcall-942
else
    skip "programs for gfx942" "there is no clang-19 with device libraries"
fi
finish
