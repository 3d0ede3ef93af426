#include "output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/fd.hpp"
#include "base/text_file.hpp"
#include "base/try.hpp"
#include "base/write_all.hpp"

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

Status write_text(int fd, std::string_view text) {
  const int error = write_all(fd, text);
  return error == 0 ? Status::ok() : Status(StatusCode::kSystem, std::strerror(error));
}

// mkostemp makes 0600; a new result is as readable as any file its user makes.
mode_t ordinary_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// What `path` stands for, and what is there.
struct Target {
  std::string path;
  std::optional<struct stat> there;

  bool is_file() const { return !there || S_ISREG(there->st_mode); }
};

Result<Target> follow(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::filesystem::path at = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(at, error); ++links) {
    if (links == kMostLinks) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("cannot write '{}': {}", path, std::strerror(ELOOP)));
    }
    at = at.parent_path() / std::filesystem::read_symlink(at, error);
  }
  Target target{.path = at.string(), .there = {}};
  struct stat status {};
  if (::stat(target.path.c_str(), &status) == 0) target.there = status;
  return target;
}

// Gives the new file the owner and mode of the old one; false where this user may not.
bool keep_ownership(int fd, const Target& target) {
  if (!target.there) return ::fchmod(fd, ordinary_mode()) == 0;
  struct stat own {};
  if (::fstat(fd, &own) != 0) return false;
  const bool same = own.st_uid == target.there->st_uid && own.st_gid == target.there->st_gid;
  if (!same && ::fchown(fd, target.there->st_uid, target.there->st_gid) != 0) return false;
  return ::fchmod(fd, target.there->st_mode & 07777) == 0;
}

Status write_into(const Target& target, std::string_view text) {
  const int truncate = target.is_file() ? O_TRUNC : 0;
  const Fd fd(::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | truncate));
  if (!fd.valid()) return {StatusCode::kSystem, std::strerror(errno)};
  return write_text(fd.get(), text);
}

Status replace(const Target& target, std::string_view text) {
  TUTTI_ASSIGN(const Temporary temporary, create_beside(target.path));
  if (!keep_ownership(temporary.fd.get(), target)) {
    ::unlink(temporary.path.c_str());
    return write_into(target, text);
  }
  Status status = write_text(temporary.fd.get(), text);
  if (status.is_ok() && (::fsync(temporary.fd.get()) != 0 ||
                         ::rename(temporary.path.c_str(), target.path.c_str()) != 0)) {
    status = {StatusCode::kSystem, std::strerror(errno)};
  }
  if (!status.is_ok()) ::unlink(temporary.path.c_str());
  return status;
}

}  // namespace

Status check_writable(const std::string& path) {
  if (path.empty()) return {StatusCode::kInvalidArgument, "the name of the file is empty"};
  TUTTI_ASSIGN(const Target target, follow(path));
  const auto refuse = [&](std::string_view why) {
    return Status(StatusCode::kInvalidArgument, fmt::format("cannot write '{}': {}", path, why));
  };
  if (target.there && S_ISDIR(target.there->st_mode)) return refuse("it is a folder");
  if (target.there && S_ISSOCK(target.there->st_mode)) return refuse("it is a socket");
  if (target.there && ::access(target.path.c_str(), W_OK) != 0) {
    return refuse(std::strerror(errno));
  }
  if (!target.is_file()) return Status::ok();
  TUTTI_ASSIGN(const Temporary temporary, create_beside(target.path));
  ::unlink(temporary.path.c_str());
  return Status::ok();
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  TUTTI_ASSIGN(const Target target, follow(path));
  const Status status = target.is_file() ? replace(target, text) : write_into(target, text);
  return status.with_context(fmt::format("cannot write '{}'", path));
}

Result<std::string> read_file(const std::string& path) {
  TUTTI_ASSIGN(auto text, read_text_file(path));
  if (text) return *std::move(text);
  return Status(StatusCode::kInvalidArgument,
                fmt::format("cannot read '{}': {}", path, std::strerror(ENOENT)));
}

}  // namespace tutti::cli
