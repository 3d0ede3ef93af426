// Work that touches no memory, and the clocks of multiprocessors.
#include "bench/overlap/arithmetic.hpp"

#include <gtest/gtest.h>

#include "bench/overlap/clocks.hpp"
#include "bench/overlap/operands.hpp"
#include "plain_memory.hpp"
#include "support/check.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kThreads = 5;

Operands::Setting some_setting() {
  return {.matmul = {.m = 30, .n = 20, .k = 11}, .part_bytes = 64, .threads = kThreads};
}

TEST(Arithmetic, ResultsAreThoseOfStepAfterStep) {
  for (const std::uint32_t steps : {0u, 1u, 2u, 3u, 7u, 64u, 1000u, 65537u}) {
    std::uint32_t x = 12345;
    for (std::uint32_t step = 0; step < steps; ++step) x = x * 1664525u + 1013904223u;
    EXPECT_EQ(arithmetic_result(12345, steps), x) << steps;
  }
}

TEST(Arithmetic, HasAsManyStepsAsTheMatmulHasMultiplications) {
  EXPECT_EQ(test::take(arithmetic_steps({.m = 30, .n = 20, .k = 10}, 5)), 1200u);
  EXPECT_EQ(test::take(arithmetic_steps({.m = 30, .n = 20, .k = 10}, 7)), 858u);  // rounded up
  const MatmulShape large{.m = 1 << 20, .n = 1 << 20, .k = 1 << 20};
  EXPECT_EQ(arithmetic_steps(large, 1024).status().code(), StatusCode::kInvalidArgument);
}

TEST(Arithmetic, WhatIsWrongIsFound) {
  PlainMemory memory;
  std::vector<std::uint32_t> a(30 * 11), b(11 * 20), c(kThreads), part(16), gathered(16);
  const auto bytes = [](auto& words) { return reinterpret_cast<std::byte*>(words.data()); };
  Operands operands(memory, some_setting(),
                    {bytes(a), bytes(b), bytes(c), bytes(part), bytes(gathered)});
  EXPECT_EQ(operands.product_bytes(), kThreads * 4);
  const auto wrong = [&](bool flip) { return test::take(operands.check_product(flip)).count; };
  const auto work = test::take(make_arithmetic(nullptr, some_setting().matmul, kThreads));
  for (const std::uint32_t iteration : {0u, 1u}) {
    test::require_ok(operands.fill(iteration));
    if (iteration > 0) {
      EXPECT_EQ(wrong(false), kThreads);  // of older numbers
    }
    test::require_ok(work->run({.a = a.data(), .b = b.data(), .c = c.data()}, nullptr));
    EXPECT_EQ(wrong(false), 0u);
    EXPECT_EQ(wrong(true), 1u);
  }
  c[3] ^= 1u << 31;
  const Mismatches found = test::take(operands.check_product(false));
  EXPECT_EQ(found.count, 1u);
  EXPECT_EQ(found.first, 3u);
}

TEST(Clocks, MeanOfThoseThatWereSeenTwice) {
  const ClockReading before[] = {{1000, 5000}, {0, 0}, {2000, 5000}, {7, 5000}};
  const ClockReading after[] = {{2980, 6000}, {1000, 6000}, {3755, 6000}, {0, 0}};
  EXPECT_DOUBLE_EQ(mean_megahertz(before, after), (1980.0 + 1755.0) / 2);
  EXPECT_EQ(mean_megahertz({}, {}), 0);
}

}  // namespace
}  // namespace tutti::cli
