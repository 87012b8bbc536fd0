# cmake -DINPUT=FILE -DFOLDER=DIR -DOUTPUT=FILE -P join_source.cmake
# Writes a source with every #include replaced by the file it names, so that hiprtc can compile it from
# memory. #line tells the compiler where each line came from.

function(join_file name out)
    file(READ ${FOLDER}/${name} text)
    # Lines are cut off one by one, because a CMake list would lose brackets and semicolons.
    set(joined "#line 1 \"src/${name}\"\n")
    set(number 1)
    while(NOT text STREQUAL "")
        string(FIND "${text}" "\n" end)
        string(SUBSTRING "${text}" 0 ${end} line)
        math(EXPR next "${end} + 1")
        string(SUBSTRING "${text}" ${next} -1 text)
        math(EXPR number "${number} + 1")
        if(line MATCHES "^#include \"([^\"]+)\"")
            join_file(${CMAKE_MATCH_1} inner)
            string(APPEND joined "${inner}#line ${number} \"src/${name}\"\n")
        else()
            string(APPEND joined "${line}\n")
        endif()
    endwhile()
    set(${out} "${joined}" PARENT_SCOPE)
endfunction()

join_file(${INPUT} all)
file(WRITE ${OUTPUT} "${all}")
