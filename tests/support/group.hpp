// A communicator in every rank, and something to do with it.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/device.hpp"
#include "support/run_ranks.hpp"
#include "tutti/communicator.hpp"

namespace tutti::test {

// Of groups that tests make themselves.
inline constexpr CommunicatorOptions kOnHost{.backend = Backend::kHost, .timeout = kPatience};

struct GroupSpec {
  Backend backend = Backend::kHost;
  RankKind kind = RankKind::kThreads;
  int ranks = 2;
  std::chrono::milliseconds timeout = kPatience;  // of the communicator
  std::chrono::seconds limit = 2 * kPatience;     // for everything
  bool prepared = true;                           // Communicator::prepare()
};

struct Rank {
  Communicator& group;
  Device& device;
  const GroupSpec& spec;

  int number() const { return group.rank(); }
  int size() const { return group.size(); }
  bool shares_gpu() const;       // with other ranks (TUTTI_SHARE_GPUS=1)
  void meet() const;             // collective: returns once all ranks have called it
  void meet_by_barrier() const;  // likewise, also between nodes, where no memory is symmetric
  // Collective, before memory is freed that only some of the ranks are done with: where threads
  // share a GPU, freeing waits for the kernels of all of them, and what a rank launches meanwhile
  // waits, too. Nothing elsewhere.
  void meet_before_freeing() const;
};

// Makes the group (threads by Communicator::create_in_process, processes by a unique id), runs
// `function` on every rank and returns what went wrong, as run_ranks() does. Processes are forked
// from this one: it must have no threads and must not have used CUDA.
std::string run_group(const GroupSpec& spec, const std::function<void(Rank&)>& function);

// Several groups of one kind and size, one after the other in the same ranks. Ends with the first
// in which something is wrong, which is named.
struct NamedRun {
  std::string name;
  GroupSpec spec;
  std::function<void(Rank&)> function;
};
std::string run_series(const std::vector<NamedRun>& series);

// Communicator::prepare() of all ranks of a group, which are in this process.
void prepare_all(std::span<Communicator> groups);

CommunicatorOptions options_for(const GroupSpec& spec);

}  // namespace tutti::test
