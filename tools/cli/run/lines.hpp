// What a program prints, line by line.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tutti::cli {

class Lines {
 public:
  using Take = std::function<void(std::string_view line)>;  // without its end

  // Reads what is in `fd`, which does not block, and hands over each line that is complete. False
  // once the other end is closed; what is left is then a line, too. So is a part of one that is
  // longer than kLongest.
  bool read_from(int fd, const Take& take);
  // What is left, if anything.
  void finish(const Take& take);

  static constexpr std::size_t kLongest = std::size_t{1} << 20;

 private:
  std::string rest_;  // without an end of line
};

}  // namespace tutti::cli
