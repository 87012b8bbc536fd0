# Writes greta_build.h: what this build is made of. Runs in every build, and rewrites the header only
# if something in it changed, so that nothing is compiled again needlessly. Works without git.

cmake_minimum_required(VERSION 3.22)

set(commit "unknown")
set(dirty 0)
find_program(GIT git)
# If this folder is not a clone, git would describe a repository that contains it.
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
    execute_process(
        COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse HEAD
        OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
        RESULT_VARIABLE status)
    if(status EQUAL 0)
        set(commit ${head})
        execute_process(
            COMMAND ${GIT} -C ${SOURCE_DIR} --no-optional-locks status --porcelain
                    --untracked-files=no
            OUTPUT_VARIABLE changes ERROR_QUIET)
        if(NOT "${changes}" STREQUAL "")
            set(dirty 1)
        endif()
    endif()
endif()

configure_file(${SOURCE_DIR}/cmake/greta_build.h.in ${OUTPUT} @ONLY)
