// For clang 14 alone, which cannot offer libstdc++'s std::source_location: clang-tidy and the
// builds for libFuzzer read this stand-in first. What is shipped never sees it.
#pragma once

#include <version>

#ifndef __cpp_lib_source_location
namespace std {
struct source_location {  // NOLINT(readability-identifier-naming)
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           const char* function = __builtin_FUNCTION(),
                                           unsigned line = __builtin_LINE()) {
    source_location here;
    here.file_ = file;
    here.function_ = function;
    here.line_ = line;
    return here;
  }
  constexpr unsigned line() const { return line_; }
  constexpr unsigned column() const { return 0; }
  constexpr const char* file_name() const { return file_; }
  constexpr const char* function_name() const { return function_; }

 private:
  const char* file_ = "";
  const char* function_ = "";
  unsigned line_ = 0;
};
}  // namespace std
#endif
