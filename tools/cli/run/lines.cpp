#include "run/lines.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace tutti::cli {

bool Lines::read_from(int fd, const Take& take) {
  constexpr int kMostReads = 16;  // more than a pipe holds; then others are read
  std::array<char, 65536> bytes;
  for (int reads = 0; reads < kMostReads; ++reads) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) {
      finish(take);
      return false;
    }
    std::string_view text(bytes.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
      rest_ += text.substr(0, end);
      take(rest_);
      rest_.clear();
      text.remove_prefix(end + 1);
    }
    rest_ += text;
    if (rest_.size() >= kLongest) finish(take);
  }
  return true;
}

void Lines::finish(const Take& take) {
  if (!rest_.empty()) take(rest_);
  rest_.clear();
}

}  // namespace tutti::cli
