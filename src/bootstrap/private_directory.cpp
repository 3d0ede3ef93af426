#include "bootstrap/private_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/fd.hpp"
#include "base/system_error.hpp"
#include "base/try.hpp"
#include "base/write_all.hpp"

namespace tutti {
namespace {

constexpr std::size_t kMaxWordBytes = 1023;  // every file system takes so long a link

Status failure(std::string_view what, const std::string& path, int error) {
  const Status failed = system_failure(fmt::format("cannot {} {}", what, path), error);
  return error == ENOENT ? Status(StatusCode::kUnavailable, failed.message()) : failed;
}

bool is_private(const struct stat& info) {
  return info.st_uid == ::geteuid() && (info.st_mode & 07777) == 0700;
}

std::string says_why_not_private(const struct stat& info) {
  return fmt::format("belongs to user {} with mode {:o}, but must belong to user {} with mode 700",
                     info.st_uid, info.st_mode & 07777, ::geteuid());
}

}  // namespace

Result<std::string> runtime_directory(std::string_view configured) {
  if (!configured.empty()) {
    std::string path(configured);
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("TUTTI_RUNTIME_DIR is \"{}\", which is no directory; make it, or "
                                "leave the variable unset",
                                configured));
    }
    if (is_private(info)) return path;
    return Status(
        StatusCode::kPermission,
        fmt::format("TUTTI_RUNTIME_DIR is \"{}\", which {}; chmod 700 one of your own, or "
                    "leave the variable unset",
                    configured, says_why_not_private(info)));
  }
  const char* session = std::getenv("XDG_RUNTIME_DIR");
  struct stat info {};
  if (session != nullptr && ::stat(session, &info) == 0 && S_ISDIR(info.st_mode) &&
      is_private(info)) {
    return std::string(session);
  }
  return std::string("/tmp");
}

Status check_private_directory(const std::string& path) {
  struct stat info {};  // of a link itself, where it is one; no descriptor is needed
  if (::lstat(path.c_str(), &info) != 0) return failure("look at the directory", path, errno);
  if (!S_ISDIR(info.st_mode)) return failure("use the directory", path, ENOTDIR);
  if (is_private(info)) return Status::ok();
  return {StatusCode::kPermission, fmt::format("{} {}; remove it, or set TUTTI_RUNTIME_DIR", path,
                                               says_why_not_private(info))};
}

Status make_private_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    ::chmod(path.c_str(), 0700);  // whatever the umask took away
  } else if (errno != EEXIST) {
    const bool refused = errno == EROFS || errno == EACCES || errno == EPERM;
    const Status made = failure("make the directory", path, errno);
    if (!refused) return made;
    return {made.code(), made.message() + "; TUTTI_RUNTIME_DIR names another place"};
  }
  return check_private_directory(path);
}

Result<std::optional<std::string>> read_private_file(const std::string& path,
                                                     std::size_t max_bytes) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid() && errno == ENOENT) return std::optional<std::string>();
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return failure("open", path, errno);
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return Status(StatusCode::kPermission,
                  fmt::format("{} must be a file of user {} that nobody else can read: chown, and "
                              "chmod 600",
                              path, ::geteuid()));
  }
  std::string text(max_bytes + 1, '\0');
  const ssize_t bytes = ::pread(file.get(), text.data(), text.size(), 0);
  if (bytes < 0) return failure("read", path, errno);
  if (static_cast<std::size_t>(bytes) > max_bytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} holds more than {} bytes", path, max_bytes));
  }
  text.resize(static_cast<std::size_t>(bytes));
  return std::optional(std::move(text));
}

Status write_private_file(const std::string& path, std::string_view text) {
  const std::string draft = fmt::format("{}.{}", path, ::getpid());
  remove_file(draft);
  const Fd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return failure("create", draft, errno);
  const int error = write_all(file.get(), text);
  Status written = error == 0 ? Status::ok() : failure("write", draft, error);
  if (written.is_ok() && ::rename(draft.c_str(), path.c_str()) != 0) {
    written = failure("create", path, errno);
  }
  if (!written.is_ok()) remove_file(draft);
  return written;
}

void write_word(const std::string& path, std::string text) {
  text.resize(std::min(text.size(), kMaxWordBytes));
  // What is there already says as much.
  [[maybe_unused]] const int failed = ::symlink(text.c_str(), path.c_str());
}

std::optional<std::string> read_word(const std::string& path) {
  std::array<char, kMaxWordBytes + 1> text{};
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  if (length <= 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(length));
}

void remove_file(const std::string& path) { ::unlink(path.c_str()); }

void remove_directory(const std::string& path) { ::rmdir(path.c_str()); }

bool move_directory(const std::string& from, const std::string& to) {
  return ::rename(from.c_str(), to.c_str()) == 0;
}

}  // namespace tutti
