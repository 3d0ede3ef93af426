// A small file's text.
#pragma once

#include <optional>
#include <string>

#include "tutti/status.hpp"

namespace tutti {

// Nothing where there is no such file. kSystem where there is one that cannot be read.
Result<std::optional<std::string>> read_text_file(const std::string& path);

}  // namespace tutti
