// A group on the fake NCCL whose memory may lie in windows.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "nccl_group.hpp"

namespace tutti::test {

// With memory of its own.
class Windows {
 public:
  static constexpr int kRanks = 2;

  explicit Windows(std::size_t granularity = 2 * MiB)
      : world(kRanks, kPatience, NcclGroup::Nccl::kPrepared, granularity) {}

  FakeNccl& nccl() { return world.nccl; }
  Communicator& group(int rank) { return world.group(rank); }

  // Collective; a status per rank.
  template <class Step>
  std::array<Status, kRanks> each(Step&& step) {
    std::array<Status, kRanks> answers;
    on_all_ranks(kRanks, [&](int r) { answers[static_cast<std::size_t>(r)] = step(r); });
    return answers;
  }
  template <class Step>
  void all(Step&& step) {
    for (const Status& answer : each(std::forward<Step>(step))) require_ok(answer);
  }

  using Memory = std::array<SymmetricMemory, kRanks>;
  Memory allocate(std::size_t bytes = 4096) {
    Memory memory;
    all([&](int r) {
      auto made = group(r).allocate(bytes);
      if (made.is_ok()) memory[static_cast<std::size_t>(r)] = *std::move(made);
      return made.status();
    });
    return memory;
  }

  AllReduce call(const Memory& memory, int rank, std::string_view algorithm) {
    auto* const data = static_cast<float*>(memory[static_cast<std::size_t>(rank)].data());
    return {.input = data,
            .output = data + 512,
            .count = 100,
            .stream = world.stream(rank),
            .options = {.algorithm = algorithm}};
  }
  std::array<Status, kRanks> reduce(const Memory& memory, std::string_view algorithm) {
    return each([&](int r) { return all_reduce(group(r), call(memory, r, algorithm)); });
  }
  void open() {
    all([&](int r) { return group(r).impl().prepare_executor(kNcclExecutor, kNeedsNcclWindows); });
  }
  // What `auto` and people are told of the row.
  std::string explanation(int rank) { return explain(group(rank), "all_reduce", {.count = 100}); }

  int count(const std::string& name) {
    int found = 0;
    for (const auto& each : nccl().calls()) found += each.name == name;
    return found;
  }
  // Of all all_reduce calls since `first`, how many NCCL takes its symmetric kernels for.
  int in_windows(std::size_t first) {
    const auto calls = nccl().calls();
    return static_cast<int>(std::count_if(calls.begin() + static_cast<std::ptrdiff_t>(first),
                                          calls.end(),
                                          [](const auto& each) { return each.in_windows; }));
  }

  NcclGroup world;
};

}  // namespace tutti::test
