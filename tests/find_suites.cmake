# Included by ctest for each executable of GoogleTest cases: a test for each of its suites. Parameters
# do not make suites of their own.
if(NOT EXISTS ${executable})
  add_test(${name}_is_not_built ${executable})
  return()
endif()
execute_process(COMMAND ${executable} --gtest_list_tests
  OUTPUT_VARIABLE listed RESULT_VARIABLE failed TIMEOUT 600)
if(failed)
  message(FATAL_ERROR "${executable} --gtest_list_tests: ${failed}")
endif()
string(REGEX MATCHALL "(^|\n)[A-Za-z_][A-Za-z0-9_/]*\\." suites "${listed}")
list(TRANSFORM suites REPLACE "^\n|/[0-9]+\\.$|\\.$" "")
list(TRANSFORM suites REPLACE "^.*/" "")
list(REMOVE_DUPLICATES suites)
foreach(suite ${suites})
  add_test("${name}.${suite}" ${executable} --gtest_brief=1
    "--gtest_filter=${suite}.*:*/${suite}.*:${suite}/*")
  # ctest starts what has the most cases first, so that none of these runs alone at the end.
  string(REGEX MATCHALL "(^|\n)([^ \n]*/)?${suite}(/[0-9]+)?\\.[^\n]*(\n  [^\n]*)+" cases "${listed}")
  string(REGEX MATCHALL "\n  " cases "${cases}")
  list(LENGTH cases cost)
  # A limit for what hangs, not for what is slow: many suites run next to each other.
  set_tests_properties("${name}.${suite}" PROPERTIES LABELS "${labels}" TIMEOUT 1800 COST ${cost})
endforeach()
