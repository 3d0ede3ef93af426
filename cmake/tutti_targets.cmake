# Flags and functions every room uses.

# Designated initialisers may leave out members: what they leave out is zero or its default. Under a
# sanitizer, whose checks make g++ warn of what cannot happen, warnings are no errors.
set(strict OFF)
if(TUTTI_WERROR AND NOT TUTTI_SANITIZER)
  set(strict ON)
endif()
add_library(tutti_warnings INTERFACE)
target_compile_options(tutti_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
    -Woverloaded-virtual -Wno-missing-field-initializers>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>
  $<$<AND:$<BOOL:${strict}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<AND:$<BOOL:${strict}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>)

# The optimiser of g++ 12 finds errors inside std::vector and std::string that are none. The
# sanitizers look for the real ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(false_warnings -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
  string(REPLACE ";" "," forwarded "${false_warnings}")
  target_compile_options(tutti_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${false_warnings}>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${forwarded}>)
endif()

# Host and device round alike: no contraction, no fast-math.
add_library(tutti_flags INTERFACE)
target_compile_options(tutti_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false --expt-relaxed-constexpr ${TUTTI_CUDA_COMPRESSION}>)
target_include_directories(tutti_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_compile_definitions(tutti_flags INTERFACE TUTTI_WITH_CUDA=$<BOOL:${TUTTI_WITH_CUDA}>)

if(TUTTI_SANITIZER STREQUAL "address")
  # Null pointers and accesses beyond an object are AddressSanitizer's; to check for them twice takes a
  # quarter of the time to compile.
  set(sanitizer -fsanitize=address,undefined -fno-sanitize=null,object-size,pointer-overflow
                -fno-sanitize-recover=all)
elseif(TUTTI_SANITIZER STREQUAL "thread")
  # A memcpy that the compiler expands in place is one that ThreadSanitizer does not see.
  set(sanitizer -fsanitize=thread -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset)
elseif(TUTTI_SANITIZER STREQUAL "fuzzer")
  # The executables add libFuzzer itself. A number that its type cannot hold is a finding, too.
  set(sanitizer -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow
                -fno-sanitize-recover=all)
  set(stand_in -include ${PROJECT_SOURCE_DIR}/cmake/clang_tidy_prelude.hpp)
elseif(TUTTI_SANITIZER)
  message(FATAL_ERROR "TUTTI_SANITIZER is \"${TUTTI_SANITIZER}\"; it takes address, thread, fuzzer or "
                      "nothing")
endif()
if(TUTTI_SANITIZER)
  target_compile_options(tutti_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${sanitizer} ${stand_in} -fno-omit-frame-pointer>)
  target_link_options(tutti_flags INTERFACE ${sanitizer})
endif()

# UBSan doubles the time to compile GoogleMock, so tests are compiled without it: the library that they
# test has it. Targets link this last, so that its option comes after those of tutti_flags.
add_library(tutti_undefined_unchecked INTERFACE)
if(TUTTI_SANITIZER STREQUAL "address")
  target_compile_options(tutti_undefined_unchecked INTERFACE -fno-sanitize=undefined)
endif()

# tutti_by_folder(TARGET): if CMAKE_UNITY_BUILD is on, the target's sources of one folder are compiled as
# one translation unit, in a third of the time. Names in anonymous namespaces must therefore be unique
# within a folder. Generated sources are compiled alone. Targets that do not call this are not affected.
set(tutti_unity_build ${CMAKE_UNITY_BUILD})
set(CMAKE_UNITY_BUILD OFF)
function(tutti_by_folder target)
  if(NOT tutti_unity_build)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${source} is_ours)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} is_generated)
    if(is_ours AND NOT is_generated AND source MATCHES "\\.cpp$")
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(GET folder FILENAME folder)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
    UNITY_BUILD_CODE_BEFORE_INCLUDE "// NOLINTNEXTLINE(bugprone-suspicious-include)")
endfunction()

# tutti_room(base a.cpp b.cpp): the object library tutti_base, part of libtutti.
function(tutti_room name)
  add_library(tutti_${name} OBJECT ${ARGN})
  target_link_libraries(tutti_${name}
    PUBLIC tutti_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads
    PRIVATE tutti_warnings)
  target_precompile_headers(tutti_${name} REUSE_FROM tutti_precompiled)
  tutti_by_folder(tutti_${name})
endfunction()

# tutti_lightly_optimised(TARGET...): what runs briefly. -O1 compiles it in 60 % of the time that -O3
# takes.
function(tutti_lightly_optimised)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  endforeach()
endfunction()

# tutti_not_optimised(TARGET...): what mostly waits for what it calls, as tests do: -O0, in a third of
# the time, whatever the preset says.
function(tutti_not_optimised)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  endforeach()
endfunction()

# tutti_always_optimised(TARGET...): what computes much, and is to be fast in every build. g++ takes a
# precompiled header at the optimisation it was made with alone.
function(tutti_always_optimised)
  foreach(target ${ARGN})
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
      target_precompile_headers(${target} REUSE_FROM tutti_precompiled)
    else()
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O2>)
    endif()
  endforeach()
endfunction()
