#include "output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/fd.hpp"
#include "base/try.hpp"

namespace tutti::cli {
namespace {

struct Temporary {
  Fd fd;
  std::string path;
};

Result<Temporary> create_beside(const std::string& path) {
  Temporary made;
  made.path = path + ".XXXXXX";
  made.fd = Fd(::mkostemp(made.path.data(), O_CLOEXEC));
  if (!made.fd.valid()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot write '{}': {}; name a file in a folder that exists and can "
                              "be written to",
                              path, std::strerror(errno)));
  }
  return made;
}

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return {StatusCode::kSystem, std::strerror(errno)};
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Status::ok();
}

// mkostemp makes 0600; a result is as readable as any file its user makes.
mode_t ordinary_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

Status fill_and_rename(const Temporary& temporary, const std::string& path, std::string_view text) {
  TUTTI_TRY(write_all(temporary.fd.get(), text));
  if (::fchmod(temporary.fd.get(), ordinary_mode()) != 0 || ::fsync(temporary.fd.get()) != 0 ||
      ::rename(temporary.path.c_str(), path.c_str()) != 0) {
    return {StatusCode::kSystem, std::strerror(errno)};
  }
  return Status::ok();
}

}  // namespace

Status check_writable(const std::string& path) {
  std::error_code ignored;
  if (path.empty()) return {StatusCode::kInvalidArgument, "the name of the file is empty"};
  if (std::filesystem::is_directory(path, ignored)) {
    return {StatusCode::kInvalidArgument, fmt::format("cannot write '{}': it is a folder", path)};
  }
  if (std::filesystem::exists(path, ignored) && ::access(path.c_str(), W_OK) != 0) {
    return {StatusCode::kInvalidArgument,
            fmt::format("cannot write '{}': {}", path, std::strerror(errno))};
  }
  TUTTI_ASSIGN(const Temporary temporary, create_beside(path));
  ::unlink(temporary.path.c_str());
  return Status::ok();
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  TUTTI_ASSIGN(const Temporary temporary, create_beside(path));
  const Status status = fill_and_rename(temporary, path, text);
  if (!status.is_ok()) ::unlink(temporary.path.c_str());
  return status.with_context(fmt::format("cannot write '{}'", path));
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  }
  return text;
}

}  // namespace tutti::cli
