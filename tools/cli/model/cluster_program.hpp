// What the ranks of a cluster run, in the form that the simulation needs: which peers are meant is
// apart from what is done with them, so that ranks that do the same with different peers have one
// program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "executors/network/partitions.hpp"
#include "model/cluster_model.hpp"
#include "model/simulate.hpp"
#include "tutti/status.hpp"

namespace tutti::model {

// One partition's, for any rank. Peers are numbered in the order in which the rank meets them.
struct PeerlessProgram {
  struct Step {
    NetworkStep::Kind kind = NetworkStep::Kind::kSend;
    bool within = false;        // the peer is on the rank's node
    std::int32_t peer = -1;     // number; -1: none
    std::uint32_t ordinal = 0;  // among the sends to, or the receives from, the peer
    std::uint32_t first_chunk = 0, chunks = 1;
    std::uint32_t added = 0;  // vectors that are added to another
    double bytes = 0;
  };
  std::vector<Step> steps;
  // By chunk, as ChunkedProgram has them.
  std::vector<std::uint32_t> step_of, waits_for, dependents, dependents_at;
  std::vector<std::vector<std::uint32_t>> sends, receives;  // steps, by number of the peer
  double chunk_bytes = 0;

  double bytes_of(std::uint32_t chunk) const {
    const Step& step = steps[step_of[chunk]];
    const double left = step.bytes - chunk_bytes * (chunk - step.first_chunk);
    return left < chunk_bytes ? left : chunk_bytes;
  }
};

// What one rank does: the programs of full partitions, which are all but the last, and of the last.
struct Behaviour {
  std::array<int, 2> programs = {-1, -1};
  std::vector<int> peers;  // ranks, by their numbers
};

// Makes the programs of ranks as the network executor cuts them, and keeps one of each.
class ClusterProgram {
 public:
  // kExact: what ranks run. kAlike: nearly that, so that ranks do the same which have shares of
  // different lengths, or begin with different ones. Counts are rounded until all shares have one
  // length, and what waits for a part of another range waits for all of it. No bound of its error
  // is proved: a short share that goes around a ring may be late or early at each rank. Where
  // tests compare it with all ranks, its time is -7 to +8 % off.
  enum class Form : std::uint8_t { kExact, kAlike };
  static Result<std::unique_ptr<ClusterProgram>> make(const SimulatedOperation& operation,
                                                      const ClusterModel& cluster, Form form);

  std::uint32_t partitions() const { return partitions_; }
  Form form() const { return form_; }
  double padded_part() const { return padded_part_; }
  const ClusterModel& cluster() const { return cluster_; }

  // kUnsupported: too many programs that are not alike.
  Result<Behaviour> behaviour(int rank);
  const PeerlessProgram& program(int index) const {
    return *programs_[static_cast<std::size_t>(index)].what;
  }
  std::size_t steps_of(const Behaviour& behaviour) const;

 private:
  struct Interned {
    std::vector<std::int64_t> key;
    std::unique_ptr<PeerlessProgram> what;
  };

  ClusterProgram(const SimulatedOperation& operation, const ClusterModel& cluster, Form form);
  Status cut();
  void even_out();
  NetworkProgram program_of(int rank, std::size_t count) const;
  bool on_one_node(int a, int b) const {
    return a / cluster_.ranks_per_node == b / cluster_.ranks_per_node;
  }
  Result<int> intern(NetworkProgram made, int rank, std::vector<int>& peers);
  Result<std::unique_ptr<PeerlessProgram>> peerless(NetworkProgram&& made,
                                                    const std::vector<int>& numbers, int rank);

  const ClusterModel cluster_;
  const Form form_;
  std::vector<int> node_of_;
  PartitionRequest request_;
  std::array<std::size_t, 2> counts_ = {};  // of full partitions, and of the last one
  std::uint32_t partitions_ = 1;
  double padded_part_ = 0;
  std::size_t chunks_ = 0;  // of all that is kept
  std::vector<Interned> programs_;
  std::unordered_multimap<std::uint64_t, int> by_hash_;
  std::vector<int> number_of_;  // by rank, while a program is made; -1: not met
};

}  // namespace tutti::model
