# The GPU kernels of src/kernels/hip: one bundle of code objects, embedded in the kernels layer by
# src/kernels/hip/image.c. Without a clang that has the AMDGPU target, greta is built without them.

set(GRETA_GPU_ARCHES gfx90a gfx942 gfx1100)
set(GRETA_GPU_CLANG "" CACHE STRING "clang that compiles the GPU kernels (found if empty; OFF: none)")
set(GRETA_GPU_BUNDLE "" CACHE FILEPATH "GPU kernels that another build of the same sources compiled, instead of compiling them")

set(greta_gpu_flags -x hip --cuda-device-only --gpu-bundle-output -nogpulib -nogpuinc -O3)
foreach(arch IN LISTS GRETA_GPU_ARCHES)
    list(APPEND greta_gpu_flags --offload-arch=${arch})
endforeach()

# Sets `out` to whether a compiler makes a bundle for all architectures, given these additional flags.
function(greta_gpu_try clang out)
    set(folder ${PROJECT_BINARY_DIR}/gpu)
    file(MAKE_DIRECTORY ${folder})
    file(WRITE ${folder}/try.hip "extern \"C\" __attribute__((global)) void f(int *p) { *p = 1; }\n")
    execute_process(COMMAND ${clang} ${greta_gpu_flags} ${ARGN} -c try.hip -o try.bundle
        WORKING_DIRECTORY ${folder} RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE said)
    if(result STREQUAL "0" AND NOT said MATCHES "warning")
        set(${out} TRUE PARENT_SCOPE)
    else()
        set(${out} FALSE PARENT_SCOPE)
    endif()
endfunction()

# Finds and caches GRETA_GPU_COMPILER, and whether it can compress bundles. If no compiler works, it is empty, and
# GRETA_GPU_REFUSED names those that were tried.
function(greta_gpu_find)
    if(DEFINED CACHE{GRETA_GPU_COMPILER} AND "${GRETA_GPU_TRIED}" STREQUAL "${GRETA_GPU_CLANG}")
        return()
    endif()
    set(GRETA_GPU_TRIED "${GRETA_GPU_CLANG}" CACHE INTERNAL "")
    set(candidates clang-19 clang-20 clang-21 clang-18 clang-17 clang /opt/rocm/llvm/bin/clang clang-16 clang-15 clang-14)
    if(GRETA_GPU_CLANG)
        set(candidates ${GRETA_GPU_CLANG})
    elseif(NOT GRETA_GPU_CLANG STREQUAL "")
        set(candidates)
    endif()
    set(refused)
    foreach(name IN LISTS candidates)
        find_program(clang ${name} NO_CACHE)
        if(clang)
            greta_gpu_try(${clang} works)
            if(works)
                greta_gpu_try(${clang} compresses --offload-compress)
                set(GRETA_GPU_COMPILER ${clang} CACHE INTERNAL "")
                set(GRETA_GPU_COMPRESSES ${compresses} CACHE INTERNAL "")
                return()
            endif()
            list(APPEND refused ${name})
        endif()
        unset(clang)
    endforeach()
    set(GRETA_GPU_COMPILER "" CACHE INTERNAL "")
    set(GRETA_GPU_REFUSED "${refused}" CACHE INTERNAL "")
endfunction()

# Sets `out` to why there are no GPU kernels, what follows from it and what to do.
function(greta_gpu_lacking out)
    list(JOIN GRETA_GPU_ARCHES ", " arches)
    set(why "No clang with the AMDGPU target (${arches}) was found")
    if(GRETA_GPU_REFUSED)
        list(JOIN GRETA_GPU_REFUSED ", " refused)
        set(why "Not all of ${arches} can be compiled with ${refused}: that takes clang 17 or newer and its lld")
    endif()
    set(${out} "${why}; --exec isa will not work, and a GPU needs hiprtc. Debian: apt install clang-19 lld-19" PARENT_SCOPE)
endfunction()

# Joins the source into one file for rtc.c, which compiles it at run time.
function(greta_gpu_source sources)
    set(joined ${PROJECT_BINARY_DIR}/gpu/kernels.hip)
    add_custom_command(OUTPUT ${joined}
        COMMAND ${CMAKE_COMMAND} -DINPUT=kernels/hip/kernels.hip -DFOLDER=${PROJECT_SOURCE_DIR}/src
            -DOUTPUT=${joined} -P ${PROJECT_SOURCE_DIR}/cmake/join_source.cmake
        DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/cmake/join_source.cmake
        COMMENT "Joining the source of the GPU kernels" VERBATIM)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/hip/rtc.c PROPERTIES
        COMPILE_DEFINITIONS "GRETA_GPU_SOURCE=\"${joined}\"" OBJECT_DEPENDS ${joined})
endfunction()

# Makes image.c embed a bundle and state its origin.
function(greta_gpu_embed image origin)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/hip/image.c PROPERTIES
        COMPILE_DEFINITIONS "GRETA_GPU_IMAGE=\"${image}\";GRETA_GPU_ORIGIN=\"${origin}\""
        OBJECT_DEPENDS ${image})
endfunction()

# Takes the bundle of another build, which must exist and be no older than the sources.
function(greta_gpu_reuse)
    get_filename_component(image ${GRETA_GPU_BUNDLE} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(NOT EXISTS ${image})
        message(FATAL_ERROR "GRETA_GPU_BUNDLE: there is no ${image}; build it first, or leave the option out")
    endif()
    foreach(source IN LISTS sources)
        if(${source} IS_NEWER_THAN ${image})
            message(FATAL_ERROR "GRETA_GPU_BUNDLE: ${source} is newer than ${image}; build that again, or leave the option out")
        endif()
    endforeach()
    list(JOIN GRETA_GPU_ARCHES ", " arches)
    message(STATUS "GPU kernels: ${arches}, taken from ${image}")
    configure_file(${image} ${PROJECT_BINARY_DIR}/gpu/kernels.bundle COPYONLY)
    greta_gpu_embed(${PROJECT_BINARY_DIR}/gpu/kernels.bundle "${arches} (another build)")
endfunction()

# For tests only: the code for GPUs with waves of 32, compiled for a GPU that the interpreter supports (see device.hip).
function(greta_gpu_wave32 sources)
    set(image ${PROJECT_BINARY_DIR}/gpu/wave32.bundle)
    add_custom_command(OUTPUT ${image}
        COMMAND ${GRETA_GPU_COMPILER} -x hip --cuda-device-only --gpu-bundle-output -nogpulib -nogpuinc -O2
            --offload-arch=gfx90a -DGRETA_AS_WAVE32 -gline-tables-only
            -I${PROJECT_SOURCE_DIR}/src -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
            -c ${PROJECT_SOURCE_DIR}/src/kernels/hip/kernels.hip -o ${image}
        DEPENDS ${sources}
        COMMENT "Compiling the GPU kernels for waves of 32" VERBATIM)
    add_custom_target(greta_wave32 DEPENDS ${image})
    set_property(GLOBAL PROPERTY GRETA_GPU_WAVE32 ${image})
endfunction()

# Makes the bundle, or takes that of another build, for image.c to embed.
function(greta_gpu_kernels)
    greta_glob(sources src/kernels/hip/*.hip src/kernels/hip/*.def)
    list(APPEND sources ${PROJECT_SOURCE_DIR}/src/model/quant/tensor_type.def)
    greta_gpu_source("${sources}")
    if(GRETA_GPU_BUNDLE)
        greta_gpu_reuse()
        return()
    endif()
    greta_gpu_find()
    list(JOIN GRETA_GPU_ARCHES ", " arches)
    if(NOT GRETA_GPU_COMPILER)
        greta_gpu_lacking(lacking)
        message(STATUS "GPU kernels: none. ${lacking}") # scripts/build repeats this line
        file(REMOVE ${PROJECT_BINARY_DIR}/gpu/kernels.bundle) # from an earlier configuration; tests check whether it exists
        return()
    endif()
    get_filename_component(name ${GRETA_GPU_COMPILER} NAME)
    message(STATUS "GPU kernels: ${arches}, compiled by ${name}")
    set(image ${PROJECT_BINARY_DIR}/gpu/kernels.bundle)
    set(compress)
    if(GRETA_GPU_COMPRESSES)
        set(compress --offload-compress)
    endif()
    add_custom_command(OUTPUT ${image}
        COMMAND ${GRETA_GPU_COMPILER} ${greta_gpu_flags} ${compress} -gline-tables-only
            -Wall -Wextra -Wno-unused-parameter $<$<BOOL:${GRETA_WERROR}>:-Werror>
            -I${PROJECT_SOURCE_DIR}/src -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
            -c ${PROJECT_SOURCE_DIR}/src/kernels/hip/kernels.hip -o ${image}
        DEPENDS ${sources}
        COMMENT "Compiling the GPU kernels for ${arches}" VERBATIM COMMAND_EXPAND_LISTS)
    greta_gpu_embed(${image} "${arches} (${name})")
    greta_gpu_wave32("${sources}")
endfunction()
