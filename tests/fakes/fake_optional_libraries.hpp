// Libraries that are there or not, as a test says.
#pragma once

#include "drivers/optional_libraries.hpp"

namespace tutti {

class FakeOptionalLibraries final : public OptionalLibraries {
 public:
  Result<FoundLibrary> cublas_lt() override { return cublas_lt_answer; }
  Result<FoundLibrary> ucx() override { return ucx_answer; }
  Result<FoundLibrary> cublas_lt_answer = Status(StatusCode::kUnavailable, "no cuBLASLt");
  Result<FoundLibrary> ucx_answer = Status(StatusCode::kUnavailable, "no UCX");
};

}  // namespace tutti
