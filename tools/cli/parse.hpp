// Values that options are made of.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/status.hpp"
#include "tutti/types.hpp"

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

// on or off; nccl-tests' 1 and 0, too.
Result<bool> parse_switch(std::string_view option, std::string_view text);

// A size of a message. More than any machine has is refused, so that sizes can be counted with.
inline constexpr std::size_t kMostMessageBytes = std::size_t{64} << 40;
Result<std::size_t> parse_size(std::string_view option, std::string_view text);
// The elements of so many rows; the same limit.
Result<std::size_t> elements_of(int rows, int hidden, DataType dtype);

}  // namespace tutti::cli
