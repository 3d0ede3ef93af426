// A file's text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tutti/status.hpp"

namespace tutti {

inline constexpr std::size_t kMostTextBytes = std::size_t{256} << 20;

// Nothing if there is no such file. kSystem if it cannot be read, is a folder, FIFO, socket or
// block device, or is longer than kMostTextBytes.
Result<std::optional<std::string>> read_text_file(const std::string& path);

}  // namespace tutti
