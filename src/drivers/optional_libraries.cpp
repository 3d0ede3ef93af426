#include "drivers/optional_libraries.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <tuple>

#include "base/knobs.hpp"
#include "base/try.hpp"
#include "drivers/dynamic_library.hpp"
#include "drivers/ucx_library.hpp"

namespace tutti {
namespace {

struct Version {
  unsigned major = 0, minor = 0, patch = 0;

  std::string text() const { return fmt::format("{}.{}.{}", major, minor, patch); }
  bool is_before(const Version& other) const {
    return std::tie(major, minor, patch) < std::tie(other.major, other.minor, other.patch);
  }
};

constexpr const char* kCublasLtNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
constexpr const char* kCublasLtPackage =
    "libcublas-13-0 of NVIDIA's repository, or pip's nvidia-cublas";
constexpr Version kFirstCublasLt = {12, 0, 0};  // what the names promise

Result<FoundLibrary> accept(const std::string& path, const Version& version, const Version& first) {
  if (!version.is_before(first)) return FoundLibrary{version.text(), path, {}};
  return Status(StatusCode::kUnavailable, fmt::format("{} is version {}: it takes {} or newer",
                                                      path, version.text(), first.text()));
}

Status lacks(const std::string& path, const std::string& missing) {
  return {StatusCode::kUnavailable, fmt::format("{} has no {}", path, missing)};
}

Result<FoundLibrary> as_found(const Result<UcxLibrary>& ucx) {
  if (!ucx.is_ok()) return ucx.status();
  return FoundLibrary{ucx->version, ucx->path, ucx->modules};
}

class RealOptionalLibraries final : public OptionalLibraries {
 public:
  Result<FoundLibrary> cublas_lt() override {
    std::string tried;
    for (const char* name : kCublasLtNames) {
      Result<FoundLibrary> found = look_at_cublas_lt(name);
      if (found.is_ok()) return found;
      tried += (tried.empty() ? "" : "; ") + found.status().message();
    }
    return Status(StatusCode::kUnavailable,
                  fmt::format("not found ({}): {} has it", tried, kCublasLtPackage));
  }

  Result<FoundLibrary> ucx() override {
    return as_found(find_ucx(Knobs::process().path("TUTTI_UCX_LIBRARY")));
  }
};

}  // namespace

Result<FoundLibrary> look_at_cublas_lt(const std::string& name) {
  TUTTI_ASSIGN(const DynamicLibrary library, DynamicLibrary::open(name));
  std::size_t (*get_version)() = nullptr;
  std::string missing;
  library.require("cublasLtGetVersion", get_version, missing);
  if (!missing.empty()) return lacks(library.path(), missing);
  const auto number = static_cast<unsigned>(get_version());  // 130002 is 13.0.2
  return accept(library.path(), {number / 10000, number / 100 % 100, number % 100}, kFirstCublasLt);
}

Result<FoundLibrary> look_at_ucx(const std::string& name) { return as_found(load_ucx(name)); }

OptionalLibraries& real_optional_libraries() {
  static RealOptionalLibraries libraries;
  return libraries;
}

}  // namespace tutti
