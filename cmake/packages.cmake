# SPDX-License-Identifier: MIT
# What `cmake --install` puts beside the programs and the library: manual page, completions, the files that pkg-config and
# find_package read, the licence. And the Debian package that `cpack` makes of all of it.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tilewise)
set(version_file ${CMAKE_CURRENT_BINARY_DIR}/tilewise-config-version.cmake)
write_basic_package_version_file(${version_file} COMPATIBILITY SameMinorVersion)
install(TARGETS tilewise EXPORT tilewise LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ${original_libraries} EXPORT tilewise LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tilewise_cli gpu_helper RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/tilewise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The library has no dependencies to find, so the list of targets is the whole package configuration.
install(EXPORT tilewise NAMESPACE tilewise:: FILE tilewise-config.cmake DESTINATION ${package_dir})
install(FILES ${version_file} DESTINATION ${package_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)  # its name in Debian

# Written while installing: only then the prefix is known. It may be relative to the current folder, so it is made absolute.
set(pc_template ${PROJECT_SOURCE_DIR}/cmake/tilewise.pc.in)
set(pc_file ${CMAKE_CURRENT_BINARY_DIR}/tilewise.pc)
cmake_path(APPEND pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
install(CODE "set(PROJECT_VERSION \"${PROJECT_VERSION}\")
set(PROJECT_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
set(pc_libdir [[${pc_libdir}]])
set(pc_includedir [[${pc_includedir}]])
get_filename_component(pc_prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
configure_file(\"${pc_template}\" \"${pc_file}\" @ONLY)")
install(FILES ${pc_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The command prints its manual and its completions.
if(NOT CMAKE_CROSSCOMPILING)
    set(manual ${CMAKE_CURRENT_BINARY_DIR}/share)
    file(MAKE_DIRECTORY ${manual})
    set(printed)
    foreach(pair "help --man|tilewise.1|${CMAKE_INSTALL_MANDIR}/man1"
                 "completion bash|tilewise|${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
                 "completion zsh|_tilewise|${CMAKE_INSTALL_DATADIR}/zsh/site-functions"
                 "completion fish|tilewise.fish|${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
        string(REPLACE "|" ";" pair "${pair}")
        list(GET pair 0 words)
        list(GET pair 1 name)
        list(GET pair 2 folder)
        separate_arguments(words)
        add_custom_command(OUTPUT ${manual}/${name} COMMAND tilewise_cli ${words} > ${manual}/${name} DEPENDS tilewise_cli VERBATIM)
        list(APPEND printed ${manual}/${name})
        install(FILES ${manual}/${name} DESTINATION ${folder})
    endforeach()
    add_custom_target(tilewise_manual ALL DEPENDS ${printed})
endif()

# Only what is installed is built before: not the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tilewise)
set(CPACK_PACKAGE_CONTACT "The tilewise developers <tilewise@example.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++")
if(PROJECT_IS_TOP_LEVEL)
    include(CPack)
endif()
