# Headers that most sources begin with, parsed once for the library and once for its tests, not once
# per source. Sources still include what they use: the tidy preset goes without.
set(standard_headers <algorithm> <array> <chrono> <functional> <map> <memory> <mutex> <optional> <span>
    <string> <string_view> <thread> <utility> <vector> <fmt/format.h>)

# Where g++ is to take a precompiled header, flags must be the same: also whether it compiles for a
# library or for an executable.
add_library(tutti_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(tutti_precompiled PRIVATE tutti_flags tutti_warnings fmt::fmt)
target_precompile_headers(tutti_precompiled PRIVATE ${standard_headers})

if(TUTTI_TESTS)
  find_package(GTest REQUIRED)
  add_executable(tutti_precompiled_tests EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(tutti_precompiled_tests PRIVATE tutti_flags tutti_warnings fmt::fmt GTest::gmock
    GTest::gtest_main tutti_undefined_unchecked)
  tutti_not_optimised(tutti_precompiled_tests)
  target_precompile_headers(tutti_precompiled_tests PRIVATE ${standard_headers} <gtest/gtest.h>
    <gmock/gmock.h>)
endif()
