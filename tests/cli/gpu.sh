#!/usr/bin/env bash
# shellcheck disable=SC2317  # functions are called by check, says and status
# GPU code of the engine on the interpreter: the self-test, a text, and the two faults that the project
# began with, seen by the audit as they would be on a GPU.
set -u
# shellcheck source=tests/support/tap.sh
. "$SOURCE_DIR/tests/support/tap.sh"
infer=$BUILD_DIR/bin/greta_infer audit=$BUILD_DIR/bin/greta_audit model=$BUILD_DIR/bin/greta_model
cd "$TMPDIR" || exit 1

check "native kernels agree with the CPU" says "STATUS=OK" status 0 "$infer" --self-test --device soft
check "another word is wrong usage" says "expected native or isa, found 'gpu'" \
    status 2 "$infer" --device soft --exec gpu -p a -n 1

# The build itself says what it had to leave out, not only its log.
mkdir fake made
printf '#!/bin/sh\necho "-- GPU kernels: none. Nothing was found"\n' >fake/cmake
printf '#!/bin/sh\n' >fake/ninja
chmod +x fake/cmake fake/ninja
check "a build says that it has no GPU kernels" says "GPU kernels: none. Nothing was found" \
    env PATH="$TMPDIR/fake:$PATH" "$SOURCE_DIR/scripts/build" made
check "and says it again the next time" says "GPU kernels: none. Nothing was found" \
    env PATH="$TMPDIR/fake:$PATH" "$SOURCE_DIR/scripts/build" made
printf '#!/bin/sh\nexit 1\n' >fake/clang-old
chmod +x fake/clang-old
# shellcheck disable=SC2016  # variables of CMake
printf '%s\n' 'include($ENV{SOURCE_DIR}/cmake/gpu.cmake)' 'greta_gpu_find()' 'greta_gpu_lacking(why)' 'message("${why}")' >lacking.cmake
lacking() { # COMPILER
    (cd made && cmake -DPROJECT_BINARY_DIR="$TMPDIR/made" -DGRETA_GPU_CLANG="$1" -P ../lacking.cmake 2>&1)
}
check "a compiler that is too old is named" says "can be compiled with $TMPDIR/fake/clang-old: that takes clang 17" lacking "$TMPDIR/fake/clang-old"
check "and so is what is missing" says "No clang with the AMDGPU target (gfx90a, gfx942, gfx1100) was found; --exec isa will not work" lacking OFF

if [ ! -e "$BUILD_DIR/gpu/kernels.bundle" ]; then
    check "without GPU code --exec isa says what is missing" says "no clang with the AMDGPU target" \
        status 3 "$infer" --device soft --exec isa -p a -n 1
    skip "GPU code" "the build found no clang with the AMDGPU target"
    finish
fi

# A tensor type that the GPU code does not know must not compile. Only the compiler's front end runs, which is quick.
compiler=$(sed -n 's/^GRETA_GPU_COMPILER:INTERNAL=//p' "$BUILD_DIR/CMakeCache.txt")
parses() { # a row for tensor_type.def
    rm -rf new && mkdir -p new/src && cp -r "$SOURCE_DIR/src/kernels" "$SOURCE_DIR/src/model" new/src
    sed -i "s/^TENSOR_TYPE_COMPUTED(F32,/$1\n&/" new/src/model/quant/tensor_type.def
    "$compiler" -x hip --cuda-device-only -nogpulib -nogpuinc --offload-arch=gfx942 -Inew/src -fsyntax-only \
        new/src/kernels/hip/kernels.hip 2>&1
}
if [ -n "$compiler" ]; then
    check "a type that is only stored needs no GPU code" status 0 parses "TENSOR_TYPE(NEW, 99, 32, 20, STORED)"
    for elements in 1 32 256; do
        check "a type of $elements per block without GPU code does not compile" says "_NEW' not handled in switch" \
            status 1 parses "TENSOR_TYPE_COMPUTED(NEW, 99, $elements, 20, q4_0, 1, 0, 99)"
    done
else
    skip "a type without GPU code does not compile" "the kernels were compiled by another build"
fi

# A machine with a GPU: the software device under a name by which greta does not know it.
mkdir rocm nothing
sed 's/greta_soft_/greta_hard_/g' "$BUILD_DIR/lib/soft/libamdhip64.so.6" >rocm/libamdhip64.so.6
sed 's/gfx90a/gfx90c/g' rocm/libamdhip64.so.6 >nothing/libamdhip64.so.6 # for which there is no code, nor a compiler
on_gpu() { # FOLDER OPTION…
    env GRETA_DEVICE=auto PATH=/none XDG_CACHE_HOME="$TMPDIR/cache" LD_LIBRARY_PATH="$TMPDIR/$1" "$infer" "${@:2}" -p "Once upon" -n 2
}
check "where there is a GPU, it runs the model" says "STATUS=OK" status 0 on_gpu rocm
check "a GPU that greta has no kernels for is not used, and that is said" \
    says "the software device is used, and not the GPU: hiprtc cannot compile" status 0 on_gpu nothing
check "unless it is demanded" says "hiprtc cannot compile the GPU kernels for gfx90c" status 3 on_gpu nothing --device hip
check "nor is it tested" says "hiprtc cannot compile the GPU kernels for gfx90c" status 3 on_gpu nothing --device hip --self-test

text() { "$infer" --device soft "$@" -p "Once upon" -n 6 --greedy 2>/dev/null | head -n 1; }
same_text() { [ "$(GRETA_SOFT_ARCH=$1 text --exec isa)" = "$(text)" ]; }
agrees() { GRETA_SOFT_ARCH=$1 "$infer" --self-test --device soft --exec isa; }
one_line_each() { [ "$(agrees gfx942 | grep -c '^ok  ')" = "$(grep -c '^KERN_BEGIN(' "$SOURCE_DIR/src/kernels/kernel.def")" ]; }
check "the self-test has a line for each kernel" one_line_each
for arch in gfx90a gfx942; do
    check "every kernel for $arch agrees with the CPU" says "STATUS=OK" status 0 agrees "$arch"
    check "$arch writes what native code writes" same_text "$arch"
done

# The kernels are in the program, in a compressed bundle.
check "GPU code is found in a program" says "matmul_qkv" status 0 "$audit" isa --summary "$infer"
check "also of one target" says "matmul_qkv" status 0 "$audit" isa --summary --target gfx942 "$infer"
check "a program without any says so" says "not an AMDGPU code object, and it contains no code for gfx90a or gfx942" status 1 "$audit" isa /bin/true
check "a missing file says so" status 1 says "none: No such file or directory" "$audit" isa none
: >"$TMPDIR/empty"
check "an empty file says so" status 1 says "empty: the file is empty" "$audit" isa "$TMPDIR/empty"

drawn() { "$infer" --device soft "$@" -p "Once upon" -n 6 --ignore-eos --seed 5 --temperature 1.5 2>/dev/null | head -n 1; }
same_drawn() { [ "$(GRETA_SOFT_DEVICES=2 drawn --exec isa "$@")" = "$(GRETA_DEVICE_SAMPLING=0 drawn --exec isa)" ]; }
check "GPU code draws the tokens that the host draws" same_drawn
check "on two devices, too" same_drawn --devices 0,1

if is_sanitized; then
    skip "the audit of GPU code" "a sanitizer build has none"
    finish
fi
audited() {
    GCORE_ENFORCE=0 "$audit" run --device soft --out "$1.out" -- \
        "$infer" --device soft --exec isa --inject "$1" -p Once -n 1
}
shared() {
    GRETA_SOFT_DEVICES=2 "$audit" run --device soft --out shared.out -- \
        "$infer" --device soft --exec isa --devices 0,1 -p Once -n 3
}
check "two devices: the audit finds nothing" says "CLEAN: nothing failed" status 0 shared
watched() {
    "$audit" run --watch-host --device soft --out watched.out -- "$infer" --device soft --exec isa -p Once -n 1
}
check "weights through pinned memory: the audit finds nothing" says "CLEAN: nothing failed" status 0 watched
pinned() { "$audit" dump watched.out/record.gcr | grep -c 'hipHostMalloc'; }
check "two buffers are pinned" [ "$(pinned)" -ge 2 ]
steps() { # EXEC SEQUENCES [OPTION...]: the launches in the layers of the last step
    local code=$1 sequences=$2
    shift 2
    GRETA_HIP_GRAPH=0 "$audit" run --device soft --out steps.out -- "$infer" --device soft --exec "$code" \
        --batch-size "$sequences" --ignore-eos -p Once -n 2 "$@" >/dev/null 2>&1
    "$audit" dump --json --kind launch steps.out | grep -o '"kernel": "[a-z_]*"' |
        awk '/rope_turns/ { n = 0; next } /take_rows/ { last = n } { n++ } END { print last }'
}
check "a step takes 7 launches for each of the 4 layers" [ "$(steps isa 4)" = 28 ]
check "as many if it has more than 4 sequences" [ "$(steps isa 5)" = 28 ]
"$model" synth --shape tiny,arch=gemma2,layers=3 -o gemma.gguf >/dev/null 2>&1

check "norms after blocks also do the next: one launch more in all" [ "$(steps isa 5 -m gemma.gguf)" = 22 ]
"$model" synth --shape tiny,layers=3 --type F16 -o floats.gguf >/dev/null 2>&1
check "many sequences of a model of floats take as many" [ "$(steps isa 33 -m floats.gguf)" = 21 ]
check "in native code, too" [ "$(steps native 33 -m floats.gguf)" = 21 ]
check "positions of two bytes: RoPE's argument pos" \
    says "ROOT_CAUSE SIZE_MISMATCH: kernel rope" status 1 audited pos_size
check "the logits' copy only reported it" says "messenger  hipMemcpyAsync, tensor logits" cat pos_size.out/report.txt
line=$(grep -n 'cos_sin((double)pos\[t\]' "$SOURCE_DIR/src/kernels/hip/small.hip" | cut -d: -f1)
check "with the line of the kernel, and the lane" says "in rope at src/kernels/hip/small.hip:$line (thread 0,0,0 of block 2,0,0)" \
    cat pos_size.out/report.txt
check "too many KV heads: the K projection" \
    says "tensor blk.0.attn_k.weight" status 1 audited kv_heads
check "it is named by its argument" says "ROOT_CAUSE SHAPE_MISMATCH: kernel matmul_qkv" cat kv_heads.out/report.txt
check "with the line of the kernel, and the lane" grep -qE \
    "34 KiB past its end, in [a-z0-9_]+ at src/kernels/hip/[a-z]+.hip:[0-9]+ \(thread [0-9]+,0,0 of block [0-9]+,0,0\)" kv_heads.out/report.txt
check "the logits' copy only reported that, too" says "messenger  hipMemcpyAsync, tensor logits" cat kv_heads.out/report.txt
finish
