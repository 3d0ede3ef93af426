// One rank of tests/faults/between_hosts.sh: reduces again and again for so many seconds, as rank 0
// counts them, and checks each result. It says "ready" after the first one, and how it ended.
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

int tell(const Status& failure, Clock::time_point began) {
  fmt::print("failed in {:.3f} s: {}\n", seconds_since(began), failure.to_string());
  return 1;
}

// The first element is 0 once rank 0 wants to end.
int reduce_for(Communicator& group, double seconds) {
  constexpr std::size_t kCount = 64 * 1024;
  const std::int32_t ranks = group.size();
  const Clock::time_point began = Clock::now();
  int operations = 0;
  std::size_t wrong = 0;
  for (bool goes_on = true; goes_on; ++operations) {
    std::vector<std::int32_t> values(kCount, group.rank() + operations);
    values.front() = group.rank() == 0 && seconds_since(began) < seconds ? 1 : 0;
    const Clock::time_point called = Clock::now();
    const Status reduced = all_reduce(group, {.input = values.data(),
                                              .output = values.data(),
                                              .count = kCount,
                                              .dtype = DataType::kInt32});
    if (!reduced) return tell(reduced, called);
    goes_on = values.front() != 0;
    for (std::size_t k = 1; k < kCount; ++k) {
      wrong += values[k] != ranks * (ranks - 1) / 2 + ranks * operations ? 1 : 0;
    }
    if (operations == 0) fmt::print("ready\n");
  }
  fmt::print("{} wrong values\n", wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto began = tutti::test::Clock::now();
  auto group = tutti::Communicator::create_from_environment({.backend = tutti::Backend::kHost});
  if (!group) return tutti::test::tell(group.status(), began);
  return tutti::test::reduce_for(*group, argc > 1 ? std::atof(argv[1]) : 1);
}
