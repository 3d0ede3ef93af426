// A program cut into partitions and chunks, and which chunk waits for which: what an engine needs
// of an operation that does not depend on where its buffers lie. Kept for the next operation of the
// kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/network_program.hpp"
#include "executors/network/rules.hpp"
#include "tutti/status.hpp"

namespace tutti {

// One partition's program with its chunks, which are numbered step by step. Chunk k of a step is
// the k-th `chunk_elements` of its range.
struct ChunkedProgram {
  struct Step {
    NetworkStep what;
    std::uint32_t first_chunk = 0, chunks = 0;
    std::uint32_t ordinal = 0;  // among the steps of its kind with its peer
  };
  struct Range {
    std::size_t first = 0, count = 0;  // elements, from the begin of the step's range
  };
  std::vector<Step> steps;
  std::vector<std::uint32_t> step_of;        // by chunk
  std::vector<std::uint32_t> waits_for;      // by chunk: how many chunks
  std::vector<std::uint32_t> dependents;     // those of chunk c begin at dependents_at[c] and end
  std::vector<std::uint32_t> dependents_at;  // at dependents_at[c + 1]
  std::vector<std::vector<std::uint32_t>> receives;    // by peer: steps, by ordinal
  std::vector<std::uint32_t> sends_to, receives_from;  // chunks, by peer
  std::vector<std::size_t> bytes_from;                 // by peer, as flow control counts them
  std::size_t chunk_elements = 1;
  std::size_t scratch = 0;  // elements

  std::size_t chunk_count() const { return step_of.size(); }
  Range range_of(std::uint32_t chunk) const;
};

// What flow control counts of a message: its header takes memory, too.
constexpr std::size_t cost_of_message(std::size_t payload_bytes) { return payload_bytes + 128; }

// A whole operation.
struct NetworkPartitions {
  std::size_t elements = 0;  // of `count`, in each partition but the last one
  std::uint32_t count = 1;
  ChunkedProgram full, last;  // `full` of all partitions but the last one

  const ChunkedProgram& program(std::uint32_t partition) const {
    return partition + 1 < count ? full : last;
  }
};

struct PartitionRequest {
  NetworkSchedule schedule = nullptr;
  NetworkShape shape;
  std::size_t element_bytes = 1, chunk_bytes = 1;
  std::size_t most_scratch_bytes = 1;  // of a partition; a single unit may need more
  NetworkRule omitted = NetworkRule::kNone;
};

// Ranks cut alike, since the scratch of the rank that has most decides. kInternal: a program that
// cannot be run.
Result<NetworkPartitions> make_partitions(const PartitionRequest& request);

// Its parts. The elements of a chunk; those of each partition but the last one, by the scratch of
// `ranks`, or of all ranks if there are none; and the chunks of a program, whatever the request's
// schedule is.
std::size_t chunk_elements(const PartitionRequest& request);
std::size_t partition_elements(const PartitionRequest& request, std::span<const int> ranks = {});
Result<ChunkedProgram> cut_into_chunks(NetworkProgram program, const PartitionRequest& request);

// Keeps what was made for the last requests.
class PartitionCache {
 public:
  Result<std::shared_ptr<const NetworkPartitions>> find(const PartitionRequest& request);

 private:
  struct Entry {
    PartitionRequest request;
    std::vector<int> node_of;
    std::shared_ptr<const NetworkPartitions> made;
  };
  static bool same(const Entry& entry, const PartitionRequest& request);

  static constexpr std::size_t kMostEntries = 32;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;  // which one is replaced
};

}  // namespace tutti
