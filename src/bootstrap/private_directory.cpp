#include "bootstrap/private_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/fd.hpp"
#include "base/try.hpp"
#include "base/write_all.hpp"

namespace tutti {
namespace {

Status failure(std::string_view what, const std::string& path, int error) {
  const auto code = error == ENOENT                      ? StatusCode::kUnavailable
                    : error == ENOSPC || error == EMFILE ? StatusCode::kResourceExhausted
                                                         : StatusCode::kSystem;
  return {code,
          fmt::format("cannot {} {}: {}", what, path, std::generic_category().message(error))};
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
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!directory.valid() || ::fstat(directory.get(), &info) != 0) {
    return failure("open the directory", path, errno);
  }
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

void remove_file(const std::string& path) { ::unlink(path.c_str()); }

void remove_directory(const std::string& path) { ::rmdir(path.c_str()); }

}  // namespace tutti
