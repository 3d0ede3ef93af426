#include "base/system_error.hpp"

#include <sys/resource.h>

#include <fmt/format.h>

#include <cerrno>
#include <limits>
#include <system_error>

namespace tutti {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::string limit_of_descriptors() {
  const std::uint64_t limit = descriptor_limit();
  return limit == kUnlimited ? "no more" : fmt::format("{}", limit);
}

std::string advice_on_error(int error) {
  switch (error) {
    case EMFILE:
      return fmt::format(
          "; this process may have {} descriptors: raise the limit (ulimit -n), or close some",
          limit_of_descriptors());
    case ETOOMANYREFS:
      return fmt::format(
          "; {} descriptors of this user may be under way between processes: raise the limit of "
          "open files (ulimit -n)",
          limit_of_descriptors());
    case ENFILE:
      return "; the whole system may have no more files open: raise fs.file-max (sysctl)";
    default:
      return {};
  }
}

}  // namespace

std::uint64_t descriptor_limit() {
  rlimit limit{};
  const bool unknown = ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY;
  return unknown ? kUnlimited : limit.rlim_cur;
}

StatusCode code_of_system_error(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ETOOMANYREFS:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
      return StatusCode::kResourceExhausted;
    default:
      return StatusCode::kSystem;
  }
}

std::string system_error_text(int error) {
  return std::generic_category().message(error) + advice_on_error(error);
}

Status system_failure(std::string_view what, int error, std::source_location where) {
  return {code_of_system_error(error), fmt::format("{}: {}", what, system_error_text(error)),
          where};
}

bool is_lack_of_descriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ETOOMANYREFS;
}

}  // namespace tutti
