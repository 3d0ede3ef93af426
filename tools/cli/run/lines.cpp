#include "run/lines.hpp"

namespace tutti::cli {

void Lines::add(std::string_view text, const Take& take) {
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
    rest_ += text.substr(0, end);
    take(rest_);
    rest_.clear();
    text.remove_prefix(end + 1);
  }
  rest_ += text;
  if (rest_.size() >= kLongest) finish(take);
}

void Lines::finish(const Take& take) {
  if (!rest_.empty()) take(rest_);
  rest_.clear();
}

}  // namespace tutti::cli
