// A file's text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tutti/status.hpp"

namespace tutti {

inline constexpr std::size_t kMostTextBytes = std::size_t{256} << 20;

// Nothing where there is no such file. kSystem where there is one that cannot be read to its end: a
// folder, a FIFO, or more than kMostTextBytes.
Result<std::optional<std::string>> read_text_file(const std::string& path);

}  // namespace tutti
