# What `make install` puts where.

set(headers ${CMAKE_INSTALL_INCLUDEDIR})
# pkg-config files find the rest relative to their own place, so that an installation can be moved.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up "${up}")
foreach(library gcore greta)
    if(TARGET ${library})
        install(TARGETS ${library} ${library}_static
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
        configure_file(cmake/${library}.pc.in generated/${library}.pc @ONLY)
        install(FILES ${PROJECT_BINARY_DIR}/generated/${library}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    endif()
endforeach()
if(TARGET gcore_preload)
    install(TARGETS gcore_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(GRETA_PROGRAMS)
    install(TARGETS ${GRETA_PROGRAMS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET amdhip64_6)
    install(TARGETS amdhip64_5 amdhip64_6 amdhip64_7
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/soft)
    install(FILES ${PROJECT_BINARY_DIR}/lib/soft/libamdhip64.so
        ${PROJECT_BINARY_DIR}/lib/soft/libhiprtc.so ${PROJECT_BINARY_DIR}/lib/soft/libhiprtc.so.5
        ${PROJECT_BINARY_DIR}/lib/soft/libhiprtc.so.6 ${PROJECT_BINARY_DIR}/lib/soft/libhiprtc.so.7
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/soft)
endif()

foreach(folder gcore greta)
    if(EXISTS ${PROJECT_SOURCE_DIR}/include/${folder})
        install(DIRECTORY include/${folder} DESTINATION ${headers} 
            FILES_MATCHING PATTERN *.h PATTERN *.def)
    endif()
endforeach()

install(FILES README.md LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

foreach(section 1 3 5 7)
    greta_glob(pages docs/man/*.${section})
    if(pages)
        install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    endif()
endforeach()

# The programs print their completions themselves, from the tables of their options:
# completions/bash/NAME, completions/zsh/_NAME, completions/fish/NAME.fish
if(GRETA_PROGRAMS AND NOT CMAKE_CROSSCOMPILING)
    set(folder_bash bash-completion/completions)
    set(folder_zsh zsh/site-functions)
    set(folder_fish fish/vendor_completions.d)
    set(completions)
    foreach(target IN LISTS GRETA_PROGRAMS)
        get_target_property(program ${target} OUTPUT_NAME)
        set(file_bash ${program})
        set(file_zsh _${program})
        set(file_fish ${program}.fish)
        foreach(shell bash zsh fish)
            set(file ${PROJECT_BINARY_DIR}/completions/${shell}/${file_${shell}})
            add_custom_command(OUTPUT ${file}
                COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completions/${shell}
                COMMAND ${target} --completion ${shell} > ${file}
                DEPENDS ${target} VERBATIM COMMENT "Completions of ${program} for ${shell}")
            list(APPEND completions ${file})
            install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder_${shell}})
        endforeach()
    endforeach()
    add_custom_target(completions ALL DEPENDS ${completions})
endif()
