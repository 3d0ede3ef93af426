// Libraries that no collective needs: whether they are installed, and which version. Loading one
// runs its start-up code, so it is done only when somebody asks.
#pragma once

#include <string>
#include <vector>

#include "tutti/status.hpp"

namespace tutti {

struct FoundLibrary {
  std::string version;  // "13.0.2"
  std::string path;
  std::vector<std::string> modules = {};  // UCX's: see ucx_library.hpp
};

// Failures are kUnavailable: what was tried, what is wrong with it, and which package has it.
class OptionalLibraries {
 public:
  virtual ~OptionalLibraries() = default;
  virtual Result<FoundLibrary> cublas_lt() = 0;  // for matrix products that run with a collective
  virtual Result<FoundLibrary> ucx() = 0;        // for groups that span hosts
};

// Looks each time: nothing is kept.
OptionalLibraries& real_optional_libraries();

// The same in one file, or under one name that the loader finds.
Result<FoundLibrary> look_at_cublas_lt(const std::string& library);
Result<FoundLibrary> look_at_ucx(const std::string& library);

}  // namespace tutti
