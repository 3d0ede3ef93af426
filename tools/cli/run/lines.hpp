// What a program prints, line by line.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tutti::cli {

class Lines {
 public:
  using Take = std::function<void(std::string_view line)>;  // without its end

  // Hands over each line that is complete, and a part of one that is longer than kLongest.
  void add(std::string_view text, const Take& take);
  // What is left, if anything, is a line, too.
  void finish(const Take& take);

  static constexpr std::size_t kLongest = std::size_t{1} << 20;

 private:
  std::string rest_;  // without an end of line
};

}  // namespace tutti::cli
