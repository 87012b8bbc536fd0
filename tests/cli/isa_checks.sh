#!/usr/bin/env bash
# What the checks of the software device find in programs of hipcc, and that their fixed twins are clean.
# shellcheck disable=SC2317  # functions are called by check
set -u
# shellcheck source=tests/support/hip.sh
. "$SOURCE_DIR/tests/support/hip.sh"

has_plain_build "checks" || finish
has_hipcc "checks" || finish

# compile PROGRAM FLAGS...: its name is that of the program and the first flag.
compile() { hipcc -g -O2 "-D$2" --offload-arch=gfx90a "$sources/$1.hip" -o "$1-$2"; }
# finds PATTERN COMMAND...: as says, with a pattern.
finds() {
    local pattern=$1 text code
    shift
    text=$("$@" 2>&1)
    code=$?
    printf '%s\n' "$text"
    grep -qE -- "$pattern" <<<"$text" || { echo "no '$pattern' in it"; return 99; }
    return "$code"
}
clean() { finds "^greta_audit: CLEAN" "$@"; }
judge() { "$audit" run --device soft --out "$1.out" -- "./$1"; }

# ---- what kernels touched ----
for variant in RACY FIXED APART PARTIAL; do
    check "order compiles as $variant" compile order $variant
done
check "a kernel that reads what another stream writes is named" \
    finds "STREAM_UNSYNCED: kernel [^ ]*twice.* reads 4000 bytes that kernel" judge order-RACY
check "an event orders the two" clean judge order-FIXED
check "so do different halves of one buffer" clean judge order-APART
check "no race is ruled out by what kernels touched" \
    finds "STREAM_UNSYNCED +RULED_OUT" cat order-APART.out/report.txt
check "a kernel that reads past what was written is named" \
    finds "UNINITIALISED_READ: .* of which nothing has written 2000 bytes \(from offset 2000\)" \
    judge order-PARTIAL

# ---- what kernels of graphs touched ----
for variant in RACY FIXED NODE_RACY NODE CHILD; do
    check "graph_order compiles as $variant" compile graph_order $variant
done
meet="STREAM_UNSYNCED: kernel [^ ]*fill.* writes 2048 bytes that kernel"
check "a captured kernel and another that meet are named, with the bytes" finds "$meet" judge graph_order-RACY
check "two that keep to their halves of a buffer are in nobody's way" clean judge graph_order-FIXED
check "for which nothing is undecided either" finds " 0 undecided" cat graph_order-FIXED.out/report.txt
check "a node and a kernel that meet are named, with the bytes" finds "$meet" judge graph_order-NODE_RACY
check "halves of a buffer are fine for a node, too" clean judge graph_order-NODE
check "and for a child that a graph holds twice" clean judge graph_order-CHILD

# ---- threads that wait for a std::future ----
for variant in RACY FIXED; do
    check "futures compiles as $variant" compile futures $variant
done
check "a promise that is kept too early orders nothing on the device" \
    finds "STREAM_UNSYNCED: kernel [^ ]*twice" judge futures-RACY
check "one that is kept when the work is done orders two threads" clean judge futures-FIXED

# ---- strides: bytes at equal distances are known one by one ----
for variant in BUG_COLUMN BUG_TILE BUG_POINT FIXED; do
    check "strides compiles as $variant" compile strides $variant
done
check "reads and writes at a stride are no doubt" clean judge strides-FIXED
check "for which nothing is undecided" finds " 0 undecided" cat strides-FIXED.out/report.txt
check "no shape was stated that could be ruled out" finds "SHAPE_MISMATCH +NOT_APPLICABLE" cat strides-FIXED.out/report.txt
check "and so are reads of what nothing wrote" finds "UNINITIALISED_READ +RULED_OUT" cat strides-FIXED.out/report.txt
check "a column that nothing has written is named" finds \
    "UNINITIALISED_READ: kernel next_column .* reads 1200 bytes that nothing has written" judge strides-BUG_COLUMN
check "so are the last columns and rows of a tile" finds \
    "UNINITIALISED_READ: kernel transpose .* reads 43264 bytes, of which nothing has written 3264 bytes" judge strides-BUG_TILE
check "and one of the members of many structures" finds \
    "UNINITIALISED_READ: kernel take .* reads 80000 bytes that nothing has written" judge strides-BUG_POINT

# ---- races within a launch, barriers: looked for by default ----
for program in races barriers; do
    for variant in BUG FIXED; do
        check "$program compiles as $variant" compile $program $variant
    done
done
check "races are found" finds "FINDINGS KERNEL_RACE" judge races-BUG
found=races-BUG.out/report.txt
check "between waves in LDS, with both lines" finds \
    "neighbour.* has a data race in LDS at offset .*races.hip:2[35].*races.hip:2[35]" cat $found
check "between blocks in device memory" finds "total.* has a data race .*races.hip:31.*races.hip:31" cat $found
check "and in a variable, which is called one" finds \
    "tally.* has a data race in a device variable of 4 bytes at offset 0: .*races.hip:[0-9]+" cat $found
check "between lanes of one store" finds "winner.* has a data race .*races.hip:39.*races.hip:39" cat $found
check "where a fence is missing" finds "last_block.* has a data race .*races.hip:47.*races.hip:55" cat $found
check "and nowhere else" status 1 grep -E "(reduce|histogram|locked|raised|bytes)[^ ]* \(event [0-9]+\) has a data race" $found
check "not in the twin: barriers, atomics, fences and locks order" clean judge races-FIXED
check "for which races are ruled out" finds "KERNEL_RACE +RULED_OUT" cat races-FIXED.out/report.txt
for variant in BUG FIXED; do
    check "order_free compiles as $variant" compile order_free $variant
    check "and without optimisation" hipcc -g -O0 -D$variant --offload-arch=gfx90a "$sources/order_free.hip" \
        -o order_free-$variant-slow
done
check "a search by levels and flags that any thread may raise are in order" clean judge order_free-FIXED
check "also where values go by way of the stack" clean judge order_free-FIXED-slow
check "and the report says on what grounds" finds \
    "KERNEL_RACE +RULED_OUT .* except in [0-9]+ launches .the first of kernel levels. whose threads only compared" \
    cat order_free-FIXED.out/report.txt
check "races that do matter look like them" finds "FINDINGS KERNEL_RACE" judge order_free-BUG
check "and are found without optimisation" finds "FINDINGS KERNEL_RACE" judge order_free-BUG-slow
for name in flag claims counts neighbour stencil; do
    for way in "" -slow; do
        check "$name is among them$way" finds "kernel $name .* has a data race" cat order_free-BUG$way.out/report.txt
    done
done
unchecked() { GRETA_SOFT_CHECK=$1 "$audit" run --device soft --out unchecked.out -- ./races-FIXED; }
check "told not to look for races, it says that this is open" finds \
    "^greta_audit: INCONCLUSIVE: .*GRETA_SOFT_CHECK kept the device from checking all" unchecked bounds
check "and that it is with no checks at all" finds "^greta_audit: INCONCLUSIVE: .*GRETA_SOFT_CHECK" unchecked off
check "all of them are looked at if that is asked for" clean unchecked race
check "a barrier in a condition is found" finds \
    "BARRIER_DIVERGENCE.*within_a_wave.* waits at a barrier in .*barriers.hip:15 with 32 of 64 threads" judge barriers-BUG
check "so are waves that wait at different ones" finds \
    "between_waves.* wait at different barriers: in .*barriers.hip:[0-9]+, and in .*barriers.hip:[0-9]+" \
    cat barriers-BUG.out/report.txt
check "threads that have returned do not count" clean judge barriers-FIXED
check "for which it is ruled out" finds "BARRIER_DIVERGENCE +RULED_OUT" cat barriers-FIXED.out/report.txt

# ---- undefined values ----
export GRETA_SOFT_CHECK=init
check "undefined compiles as a bug, without optimisation" \
    hipcc -g -O0 --offload-arch=gfx90a "$sources/undefined.hip" -o undefined-BUG
check "undefined compiles as FIXED" compile undefined FIXED
check "undefined values are found" finds "FINDINGS UNINITIALISED_READ" judge undefined-BUG
found=undefined-BUG.out/report.txt
check "of device memory, stored on, with the line" finds \
    "copies.* uses what it read at offset .*, by storing it to device memory in .*undefined.hip:14" cat $found
check "of LDS, deciding a branch" finds \
    "branches.* uses what it read at offset .* of LDS, .* to decide a branch" cat $found
check "of a private array, becoming an address" finds \
    "indexes.* uses .* as an address in .*undefined.hip:42" cat $found
check "copies that nobody uses are no finding" status 1 grep -E "(unused|padded)[^ ]* .* uses" $found
check "nor is anything in the twin" clean judge undefined-FIXED

# ---- cooperative launches ----
export GRETA_SOFT_CHECK=race
for variant in BUG FIXED; do
    check "grid_race compiles as $variant" compile grid_race $variant
done
check "a missing barrier of the grid is a race" finds "FINDINGS KERNEL_RACE" judge grid_race-BUG
check "with both lines" finds "hands_over.* has a data race .*grid_race.hip:1[26].*grid_race.hip:1[26]" \
    cat grid_race-BUG.out/report.txt
check "a barrier of the grid orders its groups" clean judge grid_race-FIXED
unset GRETA_SOFT_CHECK

# ---- through one argument into the memory of another ----
for variant in BUG FIXED; do
    check "astray compiles as $variant" compile astray $variant
done
check "a store that is in another live allocation is named" finds "FINDINGS (SIZE_MISMATCH|BAD_OFFSET)" judge astray-BUG
check "with its argument, the allocation it should be in, and its line" finds \
    "scatter.* writes .* past the end of a block of 1024 bytes through its argument (to|#0), which is at offset 20 of .*astray.hip:8" \
    cat astray-BUG.out/report.txt
check "so is a load that is before its allocation" finds \
    "back.* reads .* in front of .* through its argument (from|#0), which is at offset 0 of .*astray.hip:12" \
    cat astray-BUG.out/report.txt
check "pointers of tables, chosen ones and those that start elsewhere are in order" \
    status 1 grep -E "in_order[^ ]* .* through" astray-BUG.out/report.txt
check "nothing is said of the twin" clean judge astray-FIXED

# ---- from one private array into the next ----
# private PROGRAM ARCHITECTURE: both overflows are named, with array, element, line and thread
private() {
    finds "SIZE_MISMATCH: kernel bins.* (reads|writes) sum\[83\] = count\[3\] in bins.* at .*locals.hip:12: .*thread 37,0,0 of block 0,0,0" \
        with "GRETA_SOFT_ARCH=$2" "$audit" run --device soft --out "$1.out" -- "./$1" &&
        finds "kernel fill.* first\[80\] = second\[0\] in fill.* at .*locals.hip:24" cat "$1.out/report.txt"
}
for level in 0 2; do
    for variant in BUG FIXED; do
        check "locals compiles as $variant at -O$level" \
            hipcc -g -O$level -D$variant --offload-arch=gfx90a "$sources/locals.hip" -o locals-$variant-$level
    done
    check "an index that comes into the next private array is named" private locals-BUG-$level gfx90a
    check "pointers that are chosen, exchanged or kept in tables are in order, at -O$level" \
        status 1 grep -q "kernel in_order .* = " locals-BUG-$level.out/report.txt
    check "nothing is said of the twin at -O$level" clean judge locals-FIXED-$level
done
check "neighbours are told apart however small they are, bytes with loaded indices, too" \
    finds "kernel near_by.* letters\[50\] = others\[2\] in near_by.* at .*locals.hip:36" cat locals-BUG-0.out/report.txt
check "and shorts" finds "kernel .*near_by.* near_by at .*locals.hip:42: few\[5\] = next\[1\]" \
    env "LD_LIBRARY_PATH=$BUILD_DIR/lib/soft" ./locals-BUG-0

# ---- past a tensor into the next one of the same block ----
tensors() {
    "${CC:-cc}" -std=gnu11 "-I$SOURCE_DIR/include" "$sources/tensors.c" -o tensors "-L$BUILD_DIR/lib" -lgcore \
        "-Wl,-rpath,$BUILD_DIR/lib" && hipcc -g -O2 --genco --offload-arch=gfx90a "$sources/tensors.hip" -o tensors.co
}
check "tensors compiles" tensors
check "a kernel that leaves its tensor is named, with both tensors, its line and thread" finds \
    "SIZE_MISMATCH: kernel scale .* (reads|writes) just past the end of tensor key .256 bytes. through its argument (tensor|#0), which is at offset 0 of tensor value .256 bytes. .*tensors.hip:6 .thread 0,0,0 of block 0,0,0." \
    "$audit" run --device soft --out tensors-BUG.out -- ./tensors tensors.co bug
check "so is an access that begins in its tensor and ends outside" finds \
    "quads.* writes just past the end of tensor query .248 bytes. through its argument (tensor|#0), which is at offset 248 of .*tensors.hip:13 .thread 15,0,0" \
    cat tensors-BUG.out/report.txt
check "not a kernel that works on the whole block where nothing is named" \
    status 1 grep -E "kernel whole.* through" tensors-BUG.out/report.txt
check "nor the twin" clean "$audit" run --device soft --out tensors-FIXED.out -- ./tensors tensors.co

# ---- memory that kernels allocate themselves ----
check "heap compiles" compile heap PLAIN
# faults HOW SENTENCE: what the audit says of that bug.
faults() { finds "$2" "$audit" run --device soft --out "heap-$1.out" -- ./heap-PLAIN "$1"; }
check "device malloc and free keep what they promise" clean "$audit" run --device soft --out heap.out -- ./heap-PLAIN
check "an access past a block of four bytes is named" status 1 faults past \
    "ROOT_CAUSE SIZE_MISMATCH: kernel numbers .* read just past the end of a block of 4 bytes that malloc.. in a kernel returned, in numbers at .*heap.hip:11 .thread 0,0,0"
check "so is one before it" status 1 faults before \
    "ROOT_CAUSE BAD_OFFSET: kernel numbers .* read 4 bytes in front of a block of 4 bytes .*heap.hip:11"
check "and one after it was freed" status 1 faults freed \
    "ROOT_CAUSE USE_AFTER_FREE: kernel use .* read a block of 800 bytes that malloc.. in a kernel returned, after it was freed, in use at .*heap.hip:25"
check "and a second free" status 1 faults twice \
    "ROOT_CAUSE DOUBLE_FREE: kernel again .* frees a block of 24 bytes .* for the second time"
check "what is never freed is a leak, with its kernel and line" faults lost \
    "FINDINGS LEAK: 192 blocks .4608 bytes in all. that malloc.. in kernel lose .event [0-9]+. returned in lose at .*heap.hip:39 are never freed"
check "of two calls in one line the one that is freed is none" status 1 grep 7680 heap-lost.out/report.txt
check "memory of hipMalloc is not the kernel's to free" status 1 finds "free.. of an address that malloc.. in a kernel has not returned" \
    run ./heap-PLAIN foreign

# ---- invalid addresses ----
check "pointers compiles" compile pointers PLAIN
# points HOW SENTENCE: what the audit says of that pointer.
points() { finds "$2" "$audit" run --device soft --out "pointers-$1.out" -- ./pointers-PLAIN "$1"; }
check "an atomic that is not aligned is called that" status 1 points misaligned \
    "ROOT_CAUSE UPSTREAM_KERNEL_FAULT: kernel count .* updates 4 bytes atomically at offset 6 of a block of 256 bytes through its argument counters, which is no multiple of their size, in count at .*pointers.hip:7 .thread 0,0,0 of block 0,0,0., at the instruction global_atomic_[a-z_0-9]+ v[0-9]"
without_lines() {
    hipcc -O2 --offload-arch=gfx90a "$sources/pointers.hip" -o pointers-STRIPPED &&
        finds "$1" "$audit" run --device soft --out pointers-STRIPPED.out -- ./pointers-STRIPPED host
}
check "without lines the instruction is still named" status 1 without_lines \
    "INVALID_POINTER: kernel copy .* read address .*, at the instruction global_load_dword v[0-9]+, v.[0-9]+:[0-9]+., off; hipDeviceSynchronize"
check "so is memory of the host" status 1 points host \
    "ROOT_CAUSE INVALID_POINTER: kernel copy .* read address 0x[0-9a-f]+ through its argument from: memory of the host that .*pointers.hip:11"
check "and a null pointer with an index" status 1 points null \
    "ROOT_CAUSE INVALID_POINTER: kernel copy .* read address 0xc through its argument from: a null pointer, .*pointers.hip:11"
check "an index below zero without a sign is laid to the pointer that it was for" status 1 points wrapped \
    "ROOT_CAUSE BAD_OFFSET: kernel shift .* read 17179868924 bytes past the end of a block of 256 bytes through its argument from, in shift at .*pointers.hip:15"
check "so is one far above, though another argument points closer to it" status 1 points far \
    "ROOT_CAUSE BAD_OFFSET: kernel shift .* read 16776960 bytes past the end of a block of 256 bytes through its argument from, in shift at .*pointers.hip:15"
check "what its threads had still to do is not known" \
    grep -q "BARRIER_DIVERGENCE *INCONCLUSIVE *1 of 3 launches ended in a fault (kernel shift)" pointers-wrapped.out/report.txt
check "nothing is said of the twin" clean "$audit" run --device soft --out pointers.out -- ./pointers-PLAIN

# ---- kernels that do not end; faults without a recording ----
soft() { env "LD_LIBRARY_PATH=$BUILD_DIR/lib/soft" "$@"; }
check "endless compiles" compile endless PLAIN
check "the watchdog stops it and says where it is" status 1 \
    finds "kernel .*waits.*, block [01],0,0, .*still running after 1 s .*waits at .*endless.hip:[67]" \
    soft GRETA_SOFT_WATCHDOG=1 ./endless-PLAIN
check "it stops a launch of very many groups, each of which ends" status 1 \
    finds "kernel .*brief.*still running after 1 s " soft GRETA_SOFT_WATCHDOG=1 ./endless-PLAIN many
check "a kernel that ends is left alone" finds hipSuccess soft GRETA_SOFT_WATCHDOG=60 ./endless-PLAIN ends
check "beyond compiles" compile beyond BUG
check "without a recording a line says what an access missed" status 1 \
    finds "kernel .*, block [0-9,]*, thread [0-9,]*: .*beyond.hip:[0-9]+; (just|[0-9]+ bytes) past the end of an allocation of" \
    soft ./beyond-BUG
check "or that the address is none of the device" status 1 finds "pointers.hip:11; memory of the host that " \
    soft ./pointers-PLAIN host
check "or a null pointer" status 1 finds "at 0xc .*pointers.hip:11; a null pointer; nearest argument: 2" \
    soft ./pointers-PLAIN null
check "or not aligned" status 1 finds "pointers.hip:7; an atomic of 4 bytes has to be aligned" \
    soft ./pointers-PLAIN misaligned

# ---- all of it on the other GPU ----
export GRETA_SOFT_CHECK=all
libraries=/usr/lib/$(uname -m)-linux-gnu/amdgcn/bitcode
if command -v clang-19 >/dev/null && command -v ld.lld-19 >/dev/null &&
    [ -e "$libraries/oclc_isa_version_940.bc" ]; then
    cp -r "$libraries" bitcode
    cp bitcode/oclc_isa_version_940.bc bitcode/oclc_isa_version_942.bc
    compile_942() {
        clang-19 -x hip -g -O2 "-D$2" --offload-arch=gfx942 "--rocm-device-lib-path=$PWD/bitcode" \
            --rocm-path=/usr "$sources/$1.hip" -o "$1-$2-942" -lamdhip64 -lstdc++ -lm
    }
    check "races compiles for gfx942" compile_942 races BUG
    check "races are found there, too" finds "FINDINGS (KERNEL_RACE|UNINITIALISED_READ)" \
        with GRETA_SOFT_ARCH=gfx942 "$audit" run --device soft --out races-942.out -- ./races-BUG-942
    check "with a missing fence among them" finds \
        "last_block.* has a data race .*races.hip:47.*races.hip:55" cat races-942.out/report.txt
    check "locals compiles for gfx942" compile_942 locals BUG
    check "private arrays are told apart there, too" private locals-BUG-942 gfx942
    for program in races undefined locals; do
        check "the twin of $program compiles for gfx942" compile_942 $program FIXED
        check "and is clean" clean with GRETA_SOFT_ARCH=gfx942 \
            "$audit" run --device soft --out $program-942.out -- ./$program-FIXED-942
    done
else
    skip "checks on gfx942" "there is no clang-19 with device libraries"
fi
finish
