// Values that options are made of.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/status.hpp"

namespace tutti::cli {

// kInvalidArgument.
inline Status wrong(std::string text) { return {StatusCode::kInvalidArgument, std::move(text)}; }

// The parts between commas; one, maybe empty, where there is no comma.
std::vector<std::string_view> split(std::string_view text);

struct IntRange {
  long least = 0, most = std::numeric_limits<int>::max();
};

// kInvalidArgument names `option`.
Result<int> parse_int(std::string_view option, std::string_view text, IntRange range);

}  // namespace tutti::cli
