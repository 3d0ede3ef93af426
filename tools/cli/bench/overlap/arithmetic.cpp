#include "bench/overlap/arithmetic.hpp"

#include <fmt/core.h>

#include <limits>

#include "base/try.hpp"
#include "bench/overlap/kernels.hpp"

namespace tutti::cli {
namespace {

// Of a well-known generator: every value comes up, none twice in 2^32 steps.
constexpr std::uint32_t kFactor = 1664525, kAddend = 1013904223;

class CudaArithmetic final : public LibraryMatmul {
 public:
  CudaArithmetic(CudaDriver& cuda, std::size_t threads, std::uint32_t steps)
      : cuda_(cuda), threads_(threads), steps_(steps) {}

  Status run(const MatmulOperands& operands, Stream stream) override {
    Arithmetic work{static_cast<const std::uint32_t*>(operands.a),
                    static_cast<std::uint32_t*>(operands.c), kFactor, kAddend, steps_};
    void* arguments[] = {&work};
    return cuda_.launch({.kernel = arithmetic_kernel(),
                         .blocks = static_cast<int>(threads_ / kArithmeticThreads),
                         .threads = kArithmeticThreads,
                         .arguments = arguments,
                         .stream = stream});
  }
  std::string library() const override { return "arithmetic"; }

 private:
  CudaDriver& cuda_;
  const std::size_t threads_;
  const std::uint32_t steps_;
};

class HostArithmetic final : public LibraryMatmul {
 public:
  HostArithmetic(std::size_t threads, std::uint32_t steps) : threads_(threads), steps_(steps) {}

  Status run(const MatmulOperands& operands, Stream) override {
    const auto seed = *static_cast<const std::uint32_t*>(operands.a);
    for (std::size_t t = 0; t < threads_; ++t) {
      std::uint32_t x = seed + static_cast<std::uint32_t>(t);
      for (std::uint32_t step = 0; step < steps_; ++step) x = x * kFactor + kAddend;
      static_cast<std::uint32_t*>(operands.c)[t] = x;
    }
    return Status::ok();
  }
  std::string library() const override { return "arithmetic"; }

 private:
  const std::size_t threads_;
  const std::uint32_t steps_;
};

}  // namespace

Result<std::uint32_t> arithmetic_steps(const MatmulShape& shape, std::size_t threads) {
  const std::size_t products = shape.m * shape.n * shape.k;  // of extents that were checked
  const std::size_t steps = (products + threads - 1) / threads;
  if (steps <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(steps);
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("m x n x k = {} is more than {} threads step through: at most 2^32 each",
                  products, threads));
}

// Steps are composed: two of x -> f x + a are x -> f^2 x + (f + 1) a.
std::uint32_t arithmetic_result(std::uint32_t first, std::uint32_t steps) {
  std::uint32_t factor = kFactor, addend = kAddend;
  for (; steps > 0; steps >>= 1) {
    if ((steps & 1) != 0) first = first * factor + addend;
    addend *= factor + 1;
    factor *= factor;
  }
  return first;
}

Result<std::unique_ptr<LibraryMatmul>> make_arithmetic(CudaDriver* cuda, const MatmulShape& shape,
                                                       std::size_t threads) {
  TUTTI_ASSIGN(const std::uint32_t steps, arithmetic_steps(shape, threads));
  if (cuda == nullptr) {
    return std::unique_ptr<LibraryMatmul>(std::make_unique<HostArithmetic>(threads, steps));
  }
  if (arithmetic_kernel() == nullptr) {
    return Status(StatusCode::kUnavailable, "this build has no CUDA kernels");
  }
  return std::unique_ptr<LibraryMatmul>(std::make_unique<CudaArithmetic>(*cuda, threads, steps));
}

}  // namespace tutti::cli
