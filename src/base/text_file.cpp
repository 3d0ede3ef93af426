#include "base/text_file.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tutti {

Result<std::optional<std::string>> read_text_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  std::ostringstream text;
  // Copying stream to stream keeps inside what a stream buffer throws, for a folder for example.
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (file.bad() || text.fail() || !file.is_open()) {
    return Status(StatusCode::kSystem,
                  fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  }
  return std::optional(std::move(text).str());
}

}  // namespace tutti
