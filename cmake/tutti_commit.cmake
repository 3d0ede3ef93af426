# Writes which commit the sources are of into OUTPUT, where that has changed. Runs at each build:
#   cmake -D SOURCE=... -D OUTPUT=... -D GIT=... [-D COMMIT=...] -P tutti_commit.cmake
# COMMIT stands for a repository that is not there, as in a tarball.
cmake_policy(VERSION 3.25)

function(git out)
  set(${out} "" PARENT_SCOPE)
  execute_process(COMMAND "${GIT}" ${ARGN} WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE text
    RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    set(${out} "${text}" PARENT_SCOPE)
  endif()
endfunction()

set(commit "${COMMIT}")
# Not that of a repository around this one.
if(NOT commit AND GIT AND EXISTS "${SOURCE}/.git")
  git(commit rev-parse --short=12 HEAD)
  git(changes status --porcelain -- include src tools/cli cmake CMakeLists.txt CMakePresets.json)
  if(commit AND changes)
    string(APPEND commit "-dirty")
  endif()
endif()
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define TUTTI_COMMIT \"@commit@\"\n" @ONLY)
