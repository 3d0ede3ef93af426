#include "executors/network/partitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti {
namespace {

using Kind = NetworkStep::Kind;

Status no_program(std::size_t step, std::string_view why) {
  return {StatusCode::kInternal, fmt::format("step {} of a network program {}", step, why)};
}

Status check_step(const NetworkProgram& program, std::size_t index, int ranks) {
  const NetworkStep& step = program.steps[index];
  const bool moves = step.kind == Kind::kSend || step.kind == Kind::kReceive;
  if (moves && (step.peer < 0 || step.peer >= ranks)) return no_program(index, "has no peer");
  const std::size_t places = step.places.size();
  const bool fits = step.kind == Kind::kReceive ? places <= 1
                    : step.kind == Kind::kSum   ? places >= 1
                    : step.count == 0           ? places <= 1
                                                : places == 1;
  if (!fits) return no_program(index, "has another number of places than its kind");
  for (const int before : step.after) {
    if (before < 0 || static_cast<std::size_t>(before) >= index) {
      return no_program(index, "waits for a step that is not before it");
    }
  }
  return Status::ok();
}

// Chunks of `step` that overlap the elements [first, first + count). A range of 0 elements is
// ordered with all of the other one.
struct ChunkSpan {
  std::uint32_t begin = 0, end = 0;
};
ChunkSpan overlapping(const ChunkedProgram::Step& step, std::size_t chunk_elements,
                      std::size_t first, std::size_t count) {
  const ChunkSpan all = {step.first_chunk, step.first_chunk + step.chunks};
  if (count == 0 || step.what.count == 0) return all;
  const std::size_t low = std::max(first, step.what.first);
  const std::size_t high = std::min(first + count, step.what.first + step.what.count);
  if (low >= high) return {};
  const auto chunk_at = [&](std::size_t element) {
    return step.first_chunk +
           static_cast<std::uint32_t>((element - step.what.first) / chunk_elements);
  };
  return {chunk_at(low), chunk_at(high - 1) + 1};
}

// Visits (earlier chunk, later chunk) of each wait.
template <class Visit>
void for_each_wait(const ChunkedProgram& program, NetworkRule omitted, const Visit& visit) {
  for (const ChunkedProgram::Step& step : program.steps) {
    for (std::uint32_t chunk = step.first_chunk; chunk < step.first_chunk + step.chunks; ++chunk) {
      const auto range = program.range_of(chunk);
      for (const int before : step.what.after) {
        auto span = overlapping(program.steps[static_cast<std::size_t>(before)],
                                program.chunk_elements, step.what.first + range.first, range.count);
        if (omitted == NetworkRule::kOverlap) span.end = std::min(span.end, span.begin + 1);
        for (std::uint32_t earlier = span.begin; earlier < span.end; ++earlier) {
          visit(earlier, chunk);
        }
      }
    }
  }
}

void connect_chunks(ChunkedProgram& program, NetworkRule omitted) {
  program.waits_for.assign(program.chunk_count(), 0);
  program.dependents_at.assign(program.chunk_count() + 1, 0);
  for_each_wait(program, omitted, [&](std::uint32_t earlier, std::uint32_t later) {
    ++program.waits_for[later];
    ++program.dependents_at[earlier + 1];
  });
  for (std::size_t k = 1; k < program.dependents_at.size(); ++k) {
    program.dependents_at[k] += program.dependents_at[k - 1];
  }
  program.dependents.resize(program.dependents_at.back());
  std::vector<std::uint32_t> next(program.dependents_at.begin(), program.dependents_at.end() - 1);
  for_each_wait(program, omitted, [&](std::uint32_t earlier, std::uint32_t later) {
    program.dependents[next[earlier]++] = later;
  });
}

// Gives a step its number among those with its peer, and counts its chunks.
void count_messages(ChunkedProgram& program, std::uint32_t index, std::size_t element_bytes,
                    std::vector<std::uint32_t>& sends) {
  ChunkedProgram::Step& step = program.steps[index];
  const auto peer = static_cast<std::size_t>(step.what.peer);
  if (step.what.kind == Kind::kSend) {
    step.ordinal = sends[peer]++;
    program.sends_to[peer] += step.chunks;
  } else if (step.what.kind == Kind::kReceive) {
    step.ordinal = static_cast<std::uint32_t>(program.receives[peer].size());
    program.receives[peer].push_back(index);
    program.receives_from[peer] += step.chunks;
    program.bytes_from[peer] += step.what.count * element_bytes + step.chunks * cost_of_message(0);
  }
}

Result<ChunkedProgram> chunked(const PartitionRequest& request, std::size_t count) {
  NetworkShape shape = request.shape;
  shape.count = count;
  return cut_into_chunks(request.schedule(shape), request);
}

std::size_t most_scratch_bytes(const PartitionRequest& request, std::size_t count,
                               std::span<const int> ranks) {
  NetworkShape shape = request.shape;
  shape.count = count;
  std::size_t most = 0;
  const auto look_at = [&](int rank) {
    shape.rank = rank;
    most = std::max(most, request.schedule(shape).scratch);
  };
  for (const int rank : ranks) look_at(rank);
  for (int rank = 0; ranks.empty() && rank < shape.ranks; ++rank) look_at(rank);
  return most * request.element_bytes;
}

}  // namespace

ChunkedProgram::Range ChunkedProgram::range_of(std::uint32_t chunk) const {
  const Step& step = steps[step_of[chunk]];
  const std::size_t first = (chunk - step.first_chunk) * chunk_elements;
  return {first, std::min(chunk_elements, step.what.count - first)};
}

std::size_t chunk_elements(const PartitionRequest& request) {
  const std::size_t unit = std::max<std::size_t>(request.shape.unit, 1);
  return std::max<std::size_t>(request.chunk_bytes / (request.element_bytes * unit), 1) * unit;
}

Result<ChunkedProgram> cut_into_chunks(NetworkProgram made, const PartitionRequest& request) {
  const NetworkShape& shape = request.shape;
  ChunkedProgram program;
  program.chunk_elements = chunk_elements(request);
  program.scratch = made.scratch;
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  program.receives.resize(ranks);
  program.sends_to.resize(ranks);
  program.receives_from.resize(ranks);
  program.bytes_from.resize(ranks);
  std::vector<std::uint32_t> sends(ranks);
  for (std::size_t index = 0; index < made.steps.size(); ++index) {
    TUTTI_TRY(check_step(made, index, shape.ranks));
    const std::size_t chunks =
        std::max<std::size_t>(ceil_div(made.steps[index].count, program.chunk_elements), 1);
    const std::size_t first = program.step_of.size();
    if (first + chunks > std::numeric_limits<std::uint32_t>::max()) {
      return no_program(index, "has too many chunks: they must be larger");
    }
    program.steps.push_back({std::move(made.steps[index]), static_cast<std::uint32_t>(first),
                             static_cast<std::uint32_t>(chunks), 0});
    program.step_of.resize(first + chunks, static_cast<std::uint32_t>(index));
    count_messages(program, static_cast<std::uint32_t>(index), request.element_bytes, sends);
  }
  connect_chunks(program, request.omitted);
  return program;
}

// Elements of a partition: a multiple of the unit, or everything.
std::size_t partition_elements(const PartitionRequest& request, std::span<const int> ranks) {
  const std::size_t whole = request.shape.count;
  const std::size_t unit = std::max<std::size_t>(request.shape.unit, 1);
  // No schedule keeps more than a vector of each rank.
  const auto vectors = static_cast<std::size_t>(request.shape.ranks);
  if (whole <= request.most_scratch_bytes / request.element_bytes / vectors) return whole;
  std::size_t elements = whole;
  for (;;) {
    const std::size_t scratch = most_scratch_bytes(request, elements, ranks);
    if (scratch <= request.most_scratch_bytes || elements <= unit) {
      // As many partitions, but of one length: a short one at the end would cost all hops again.
      const std::size_t even = ceil_div(whole, ceil_div(whole, elements));
      return std::min(round_up(even, unit), elements);
    }
    const std::size_t parts = ceil_div(scratch, request.most_scratch_bytes);
    elements = std::max((elements - 1) / parts / unit, std::size_t{1}) * unit;
  }
}

Result<NetworkPartitions> make_partitions(const PartitionRequest& request) {
  NetworkPartitions made;
  made.elements = partition_elements(request);
  const std::size_t count = made.elements == 0 ? 1 : ceil_div(request.shape.count, made.elements);
  made.count = static_cast<std::uint32_t>(count);
  if (count > 1) {
    TUTTI_ASSIGN(made.full, chunked(request, made.elements));
  }
  TUTTI_ASSIGN(made.last, chunked(request, request.shape.count - (count - 1) * made.elements));
  return made;
}

bool PartitionCache::same(const Entry& entry, const PartitionRequest& request) {
  const NetworkShape &a = entry.request.shape, &b = request.shape;
  return entry.request.schedule == request.schedule && a.count == b.count && a.rank == b.rank &&
         a.ranks == b.ranks && a.root == b.root && a.to == b.to && a.stride == b.stride &&
         a.unit == b.unit && a.one_way == b.one_way &&
         entry.request.element_bytes == request.element_bytes &&
         entry.request.chunk_bytes == request.chunk_bytes &&
         entry.request.most_scratch_bytes == request.most_scratch_bytes &&
         std::equal(entry.node_of.begin(), entry.node_of.end(), b.node_of.begin(), b.node_of.end());
}

Result<std::shared_ptr<const NetworkPartitions>> PartitionCache::find(
    const PartitionRequest& request) {
  for (const Entry& entry : entries_) {
    if (same(entry, request)) return entry.made;
  }
  TUTTI_ASSIGN(NetworkPartitions made, make_partitions(request));
  Entry entry{request,
              {request.shape.node_of.begin(), request.shape.node_of.end()},
              std::make_shared<const NetworkPartitions>(std::move(made))};
  auto result = entry.made;
  if (entries_.size() < kMostEntries) {
    entries_.push_back(std::move(entry));
  } else {
    entries_[next_] = std::move(entry);
    next_ = (next_ + 1) % kMostEntries;
  }
  return result;
}

}  // namespace tutti
