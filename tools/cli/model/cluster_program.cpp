#include "model/cluster_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti::model {
namespace {

using Kind = NetworkStep::Kind;

// Of all programs that are kept: 4 GB.
constexpr std::size_t kMostChunks = 64'000'000;

bool is_message(const NetworkStep& step) {
  return step.kind == Kind::kSend || step.kind == Kind::kReceive;
}

// How the chunks of a step wait for those of an earlier one: all for all, each for those at its
// place, or otherwise by where the ranges lie.
enum class Waits : std::uint8_t { kNone, kForAll, kByPlace };
Waits waits_of(const NetworkStep& step, const NetworkStep& earlier, std::size_t chunk) {
  if (step.count == 0 || earlier.count == 0) return Waits::kForAll;
  if (step.first >= earlier.first + earlier.count || earlier.first >= step.first + step.count) {
    return Waits::kNone;
  }
  return step.count <= chunk && earlier.count <= chunk ? Waits::kForAll : Waits::kByPlace;
}

// Where a step waits for steps of other ranges, it waits for a step without elements instead, which
// waits for all of them.
NetworkProgram waiting_for_whole_steps(NetworkProgram made, std::size_t chunk) {
  NetworkProgram whole;
  whole.scratch = made.scratch;
  std::vector<int> moved_to(made.steps.size());
  std::map<std::vector<int>, int> joints;
  for (std::size_t index = 0; index < made.steps.size(); ++index) {
    NetworkStep step = std::move(made.steps[index]);
    std::vector<int> alike, others;
    for (const int before : step.after) {
      const int at = moved_to[static_cast<std::size_t>(before)];
      const NetworkStep& earlier = whole.steps[static_cast<std::size_t>(at)];
      const bool at_one_place = step.first == earlier.first && step.count == earlier.count;
      const bool for_a_part = waits_of(step, earlier, chunk) == Waits::kByPlace && !at_one_place;
      (for_a_part ? others : alike).push_back(at);
    }
    if (!others.empty()) {
      const auto [joint, is_new] = joints.emplace(others, static_cast<int>(whole.steps.size()));
      if (is_new) whole.steps.push_back({.kind = Kind::kCopy, .after = std::move(others)});
      alike.push_back(joint->second);
    }
    step.after = std::move(alike);
    moved_to[index] = static_cast<int>(whole.steps.size());
    whole.steps.push_back(std::move(step));
  }
  return whole;
}

// All of a program that its chunks depend on, but for who the peers are.
std::vector<std::int64_t> key_of(const NetworkProgram& made, const std::vector<int>& numbers,
                                 const std::vector<bool>& within, std::size_t chunk) {
  std::vector<std::int64_t> key;
  for (std::size_t index = 0; index < made.steps.size(); ++index) {
    const NetworkStep& step = made.steps[index];
    key.push_back(static_cast<std::int64_t>(step.kind) * 2 + (within[index] ? 1 : 0));
    key.push_back(numbers[index]);
    key.push_back(static_cast<std::int64_t>(step.count));
    key.push_back(static_cast<std::int64_t>(step.places.size()));
    key.push_back(static_cast<std::int64_t>(step.after.size()));
    for (const int before : step.after) {
      const NetworkStep& earlier = made.steps[static_cast<std::size_t>(before)];
      const Waits waits = waits_of(step, earlier, chunk);
      key.push_back(before);
      key.push_back(static_cast<std::int64_t>(waits));
      key.push_back(waits == Waits::kByPlace ? static_cast<std::int64_t>(step.first) -
                                                   static_cast<std::int64_t>(earlier.first)
                                             : 0);
    }
  }
  return key;
}

std::uint64_t hash_of(const std::vector<std::int64_t>& key) {
  WordHash hash;
  for (const std::int64_t word : key) hash.add(static_cast<std::uint64_t>(word));
  return hash.value();
}

std::size_t chunks_in(const NetworkProgram& made, std::size_t chunk) {
  std::size_t chunks = 0;
  for (const NetworkStep& step : made.steps) chunks += chunks_of(step, chunk);
  return chunks;
}

}  // namespace

ClusterProgram::ClusterProgram(const SimulatedOperation& operation, const ClusterModel& cluster,
                               Form form)
    : cluster_(cluster), form_(form) {
  node_of_.reserve(static_cast<std::size_t>(cluster.ranks()));
  for (int rank = 0; rank < cluster.ranks(); ++rank) {
    node_of_.push_back(rank / cluster.ranks_per_node);
  }
  number_of_.assign(node_of_.size(), -1);
  request_.schedule = operation.schedule;
  request_.shape.ranks = cluster.ranks();
  request_.shape.root = operation.root;
  request_.shape.count = operation.count;
  request_.shape.stride = operation.stride;
  request_.shape.unit = std::max<std::size_t>(operation.unit, 1);
  request_.shape.node_of = node_of_;
  request_.element_bytes = operation.element_bytes;
  request_.chunk_bytes = operation.chunk_bytes;
  request_.most_scratch_bytes = operation.most_scratch_bytes;
}

Result<std::unique_ptr<ClusterProgram>> ClusterProgram::make(const SimulatedOperation& operation,
                                                             const ClusterModel& cluster,
                                                             Form form) {
  std::unique_ptr<ClusterProgram> made(new ClusterProgram(operation, cluster, form));
  TUTTI_TRY(made->cut());
  return made;
}

// All ranks have as much scratch (network_program.hpp), so a few tell where partitions end.
Status ClusterProgram::cut() {
  const int ranks = cluster_.ranks();
  const std::array<int, 3> some = {0, ranks / 2, ranks - 1};
  const std::size_t count = request_.shape.count, elements = partition_elements(request_, some);
  const std::size_t partitions =
      elements == 0 ? 1 : std::max<std::size_t>(ceil_div(count, elements), 1);
  if (partitions > std::numeric_limits<std::uint32_t>::max()) {
    return {StatusCode::kInvalidArgument,
            fmt::format("the message has {} partitions: they must have more scratch", partitions)};
  }
  partitions_ = static_cast<std::uint32_t>(partitions);
  counts_ = {elements, count - (partitions - 1) * elements};
  if (form_ == Form::kAlike && request_.shape.stride == 0 && count > 0) even_out();
  return Status::ok();
}

// Makes both counts multiples of a unit of each rank, so that what all send together differs the
// least. A shorter partition is made up for in the last one, as far as that stays the shorter one.
void ClusterProgram::even_out() {
  const std::size_t even = static_cast<std::size_t>(cluster_.ranks()) * request_.shape.unit;
  const std::size_t full = counts_[0], others = partitions_ - 1;
  const auto count = static_cast<std::int64_t>(request_.shape.count);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t units : {full / even, ceil_div(full, even)}) {
    const std::size_t elements = std::max<std::size_t>(units, 1) * even;
    const std::int64_t left = count - static_cast<std::int64_t>(elements * others);
    std::size_t last = left <= 0 ? even : ceil_div(static_cast<std::size_t>(left), even) * even;
    if (others > 0) last = std::min(last, elements);
    const std::int64_t more = static_cast<std::int64_t>(elements * others + last) - count;
    if (std::abs(more) >= std::abs(least)) continue;
    least = more;
    counts_ = {elements, last};
  }
  padded_part_ = static_cast<double>(least) / static_cast<double>(count);
}

NetworkProgram ClusterProgram::program_of(int rank, std::size_t count) const {
  NetworkShape shape = request_.shape;
  shape.rank = rank;
  shape.count = count;
  NetworkProgram made = request_.schedule(shape);
  // Which are there matters, and not in which order a schedule names them.
  for (NetworkStep& step : made.steps) std::sort(step.after.begin(), step.after.end());
  return form_ == Form::kAlike ? waiting_for_whole_steps(std::move(made), chunk_elements(request_))
                               : made;
}

Result<Behaviour> ClusterProgram::behaviour(int rank) {
  Behaviour behaviour;
  for (const std::size_t part : {std::size_t{0}, std::size_t{1}}) {
    if (part == 0 && partitions_ == 1) continue;
    TUTTI_ASSIGN(behaviour.programs[part],
                 intern(program_of(rank, counts_[part]), rank, behaviour.peers));
  }
  for (const int peer : behaviour.peers) number_of_[static_cast<std::size_t>(peer)] = -1;
  return behaviour;
}

std::size_t ClusterProgram::steps_of(const Behaviour& behaviour) const {
  std::size_t steps = 0;
  for (const int index : behaviour.programs) {
    if (index >= 0) steps += program(index).steps.size();
  }
  return steps;
}

Result<int> ClusterProgram::intern(NetworkProgram made, int rank, std::vector<int>& peers) {
  std::vector<int> numbers(made.steps.size(), -1);
  std::vector<bool> within(made.steps.size());
  for (std::size_t index = 0; index < made.steps.size(); ++index) {
    const NetworkStep& step = made.steps[index];
    if (!is_message(step)) continue;
    if (step.peer < 0 || step.peer >= cluster_.ranks() || step.peer == rank) {
      return Status(StatusCode::kInternal,
                    fmt::format("step {} of the program of rank {} has no peer", index, rank));
    }
    int& number = number_of_[static_cast<std::size_t>(step.peer)];
    if (number < 0) {
      number = static_cast<int>(peers.size());
      peers.push_back(step.peer);
    }
    numbers[index] = number;
    within[index] = on_one_node(rank, step.peer);
  }
  std::vector<std::int64_t> key = key_of(made, numbers, within, chunk_elements(request_));
  const std::uint64_t hash = hash_of(key);
  for (auto [found, end] = by_hash_.equal_range(hash); found != end; ++found) {
    if (programs_[static_cast<std::size_t>(found->second)].key == key) return found->second;
  }
  chunks_ += chunks_in(made, chunk_elements(request_));
  if (chunks_ > kMostChunks) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{} ranks have more than {} different programs, of more than {} "
                              "chunks together: simulate fewer ranks, or larger chunks",
                              cluster_.ranks(), programs_.size(), kMostChunks));
  }
  TUTTI_ASSIGN(auto what, peerless(std::move(made), numbers, rank));
  programs_.push_back({std::move(key), std::move(what)});
  const int index = static_cast<int>(programs_.size()) - 1;
  by_hash_.emplace(hash, index);
  return index;
}

Result<std::unique_ptr<PeerlessProgram>> ClusterProgram::peerless(NetworkProgram&& made,
                                                                  const std::vector<int>& numbers,
                                                                  int rank) {
  TUTTI_ASSIGN(ChunkedProgram chunked, cut_into_chunks(std::move(made), request_));
  auto program = std::make_unique<PeerlessProgram>();
  const auto bytes = static_cast<double>(request_.element_bytes);
  program->chunk_bytes = static_cast<double>(chunked.chunk_elements) * bytes;
  std::size_t peers = 0;
  for (const int number : numbers) {
    if (number >= 0) peers = std::max(peers, static_cast<std::size_t>(number) + 1);
  }
  program->sends.resize(peers);
  program->receives.resize(peers);
  for (std::size_t index = 0; index < chunked.steps.size(); ++index) {
    const ChunkedProgram::Step& from = chunked.steps[index];
    PeerlessProgram::Step step;
    step.kind = from.what.kind;
    step.peer = numbers[index];
    step.first_chunk = from.first_chunk;
    step.chunks = from.chunks;
    step.bytes = static_cast<double>(from.what.count) * bytes;
    const auto places = static_cast<std::uint32_t>(from.what.places.size());
    if (step.kind == Kind::kReceive) step.added = places;
    if (step.kind == Kind::kSum) step.added = std::max(places, 1U) - 1;
    if (is_message(from.what)) {
      auto& of_kind = step.kind == Kind::kSend ? program->sends : program->receives;
      auto& with_peer = of_kind[static_cast<std::size_t>(step.peer)];
      step.within = on_one_node(rank, from.what.peer);
      step.ordinal = static_cast<std::uint32_t>(with_peer.size());
      with_peer.push_back(static_cast<std::uint32_t>(index));
    }
    program->steps.push_back(step);
  }
  program->step_of = std::move(chunked.step_of);
  program->waits_for = std::move(chunked.waits_for);
  program->dependents = std::move(chunked.dependents);
  program->dependents_at = std::move(chunked.dependents_at);
  return program;
}

}  // namespace tutti::model
