# tutti_test(name SOURCES a.cpp b.cpp LABELS unit): an executable of GoogleTest cases linked with the
# whole library (internals included). Each suite is a ctest of its own: `name.Suite`.
function(tutti_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LABELS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE tutti_test_support tutti_warnings GTest::gmock
    GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM tutti_precompiled_tests)
  tutti_not_optimised(${name})
  tutti_by_folder(${name})
  target_link_libraries(${name} PRIVATE tutti_undefined_unchecked)
  tutti_suites(${name} ${TEST_LABELS})
endfunction()

# tutti_suites(executable LABELS...): asked for when ctest starts, so that no list is kept.
function(tutti_suites name)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  file(GENERATE OUTPUT ${file} CONTENT "set(name ${name})
set(labels ${ARGN})
set(executable $<TARGET_FILE:${name}>)
include(${PROJECT_SOURCE_DIR}/tests/find_suites.cmake)
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()
