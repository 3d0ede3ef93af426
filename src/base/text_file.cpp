#include "base/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <cerrno>

#include "base/fd.hpp"
#include "base/system_error.hpp"

namespace tutti {
namespace {

Status cannot_read(const std::string& path, std::string_view why) {
  return {StatusCode::kSystem, fmt::format("cannot read '{}': {}", path, why)};
}

Status cannot_read(const std::string& path, int error) {
  return system_failure(fmt::format("cannot read '{}'", path), error);
}

}  // namespace

Result<std::optional<std::string>> read_text_file(const std::string& path) {
  // Without O_NONBLOCK a FIFO would be waited for here.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return cannot_read(path, errno);
  }
  if (S_ISDIR(status.st_mode)) return cannot_read(path, EISDIR);
  if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode)) {
    return cannot_read(path, "it is neither a file nor a character device");
  }
  std::string text;
  for (char buffer[65536]; text.size() <= kMostTextBytes;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got == 0) return std::optional(std::move(text));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path, errno);
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return cannot_read(path, fmt::format("it is longer than {} bytes", kMostTextBytes));
}

}  // namespace tutti
