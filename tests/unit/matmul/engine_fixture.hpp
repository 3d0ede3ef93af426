#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "fakes/fake_cuda.hpp"
#include "matmul/engine.hpp"
#include "support/check.hpp"

namespace tutti::test {

// A GPU of the fake driver with the stub of cuBLASLt. Kernels are noted, and do nothing.
class EngineFixture : public testing::Test {
 protected:
  MatmulSurroundings surroundings() {
    return {
        .cuda = [this](std::string*) { return &cuda; },
        .cublas_lt = STUB_CUBLAS_LT,
        .own_kernels = true,
        .load_own = [](CudaDriver&, const MatmulProblem&,
                       const MatmulTiling&) { return Status::ok(); },
        .run_own = [this](CudaDriver&, const CheckedMatmul&, const MatmulTiling& tiling, int,
                          Stream) { return note("own " + std::string(tiling.tile->name)); },
        .run_plain = [this](CudaDriver&, const CheckedMatmul&, Stream) { return note("plain"); }};
  }

  Status note(std::string what) {
    kernels.push_back(std::move(what));
    return Status::ok();
  }

  // [m, 128] x [128, 64] of this type, on the GPU.
  Matmul on_gpu(std::size_t m, DataType dtype) {
    constexpr std::size_t kBytes = 64 * KiB;
    const auto memory = [&] { return take(cuda.allocate(0, kBytes)); };
    return {.a = memory(), .b = memory(), .c = memory(), .m = m, .n = 64, .k = 128, .dtype = dtype};
  }

  // With a small L2, since tune() writes twice as much before each run.
  static std::shared_ptr<FakeCudaWorld> world() {
    auto made = std::make_shared<FakeCudaWorld>(1);
    made->devices[0].l2_bytes = 64 * KiB;
    return made;
  }

  FakeCuda cuda{world()};
  std::vector<std::string> kernels;
  MatmulEngine engine{surroundings()};
};

}  // namespace tutti::test
