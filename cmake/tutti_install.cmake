# The installed copy: tutti::tutti (and tutti::tutti_static) by find_package(tutti CONFIG), tutti.pc,
# the public headers and the command.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)

# What installing copies: all that `./dev bench` builds. The command is linked with the static library, so it
# runs wherever it is copied to; it needs no rpath.
add_custom_target(tutti_product)
add_dependencies(tutti_product tutti tutti_static)
if(TUTTI_TOOLS)
  add_dependencies(tutti_product tutti_cli)
endif()

# The components are the Debian packages of tutti_package.cmake.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(DIRECTORY include/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.cuh")
install(TARGETS tutti EXPORT tutti_shared
        LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS tutti_static EXPORT tutti_static)
foreach(form shared static)
  install(EXPORT tutti_${form} NAMESPACE tutti:: DESTINATION ${package_dir})
endforeach()
if(TUTTI_TOOLS)
  install(TARGETS tutti_cli COMPONENT tools)
  install(FILES ${tutti_completions}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME tutti COMPONENT tools)
  install(FILES ${tutti_completions}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
          RENAME _tutti COMPONENT tools)
  install(FILES ${tutti_completions}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          RENAME tutti.fish COMPONENT tools)
endif()

configure_package_config_file(cmake/tutti-config.cmake.in tutti-config.cmake
  INSTALL_DESTINATION ${package_dir})
# 0.x: a minor release may break; afterwards a major one.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(tutti-config-version.cmake COMPATIBILITY ${compatibility})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tutti-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tutti-config-version.cmake DESTINATION ${package_dir})

# Paths relative to the file itself, so that a copy may be moved.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(TUTTI_WITH_CUDA)
  set(private_cuda " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static")
endif()
configure_file(cmake/tutti.pc.in tutti.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tutti.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
include(tutti_package)
