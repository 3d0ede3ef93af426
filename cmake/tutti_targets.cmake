# Functions and flags every room uses.

add_library(tutti_warnings INTERFACE)
target_compile_options(tutti_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
    -Woverloaded-virtual>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<BOOL:${TUTTI_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<AND:$<BOOL:${TUTTI_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>)

# Host and device round alike: no contraction, no fast-math.
add_library(tutti_flags INTERFACE)
target_compile_options(tutti_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false --expt-relaxed-constexpr>)
target_include_directories(tutti_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_compile_definitions(tutti_flags INTERFACE TUTTI_WITH_CUDA=$<BOOL:${TUTTI_WITH_CUDA}>)
if(TUTTI_SANITIZER)
  target_compile_options(tutti_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TUTTI_SANITIZER} -fno-omit-frame-pointer>)
  target_link_options(tutti_flags INTERFACE -fsanitize=${TUTTI_SANITIZER})
endif()

# tutti_room(base a.cpp b.cpp): the object library tutti_base, part of libtutti.
function(tutti_room name)
  add_library(tutti_${name} OBJECT ${ARGN})
  target_link_libraries(tutti_${name}
    PUBLIC tutti_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads
    PRIVATE tutti_warnings)
endfunction()

# tutti_test(name SOURCES a.cpp [LABELS unit] [TIMEOUT 60]): an executable of GoogleTest cases linked
# with the whole library (internals included), every case a ctest of its own.
function(tutti_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LABELS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 60)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE tutti_internal tutti_warnings GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT})
endfunction()
