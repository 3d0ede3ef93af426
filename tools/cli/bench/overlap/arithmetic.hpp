// Work that touches no memory: threads on every multiprocessor, each of which steps a recurrence.
// What slows it down beside an all_gather takes multiprocessors, not bandwidth.
#pragma once

#include <cstdint>

#include "drivers/matmul.hpp"

namespace tutti::cli {

// x becomes factor * x + addend, `steps` times; thread t begins with *seed + t. It is the kernel's
// parameter.
struct Arithmetic {
  const std::uint32_t* seed;
  std::uint32_t* results;  // one of each thread
  std::uint32_t factor, addend, steps;
};

inline constexpr int kArithmeticThreads = 1024;  // of a block; a multiprocessor has one

// As many steps in all, over so many threads, as the matmul has multiplications. kInvalidArgument
// where that is more than a thread can count.
Result<std::uint32_t> arithmetic_steps(const MatmulShape& shape, std::size_t threads);

// What a thread comes to that begins with `first`.
std::uint32_t arithmetic_result(std::uint32_t first, std::uint32_t steps);

// Reads the seed where A begins and writes results where C begins. On the device, `threads` of them
// in blocks of kArithmeticThreads; without a driver on the calling thread, one after the other.
// kUnavailable in a build without CUDA that is given a driver.
Result<std::unique_ptr<LibraryMatmul>> make_arithmetic(CudaDriver* cuda, const MatmulShape& shape,
                                                       std::size_t threads);

}  // namespace tutti::cli
