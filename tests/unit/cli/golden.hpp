// What a printer has to print, kept in a file.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace tutti::cli {

inline std::string golden(const std::string& name) {
  std::ifstream file(std::string(TUTTI_GOLDEN) + "/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tutti::cli
