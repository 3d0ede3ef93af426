#include "fused/host_fused.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/units.hpp"
#include "matmul/gated_arguments.hpp"
#include "matmul/host.hpp"
#include "pipelines/program.hpp"

namespace tutti::fused {
namespace {

using Flag = std::uint32_t;

constexpr std::size_t kAnyColumns = 1;  // of A: a plan of one k-group does not count them

std::atomic_ref<Flag> atomic(const Flag* word) { return std::atomic_ref(const_cast<Flag&>(*word)); }

// What the schedule does in this rank's and its peers' memory.
class ArrivingRank {
 public:
  struct Places {
    int rank = 0, chunks = 1, m = 0;
    std::size_t row_bytes = 0, ended_offset = 0, a_offset = 0;
    GroupOfRows own{};
  };

  ArrivingRank(const Places& places, const HostFused::Call& call) : places_(places), call_(call) {}

  ArrivalWaits waits_for_chunks() {
    return {.flags = flags_of(places_.rank),
            .failure = &no_chunk_,
            .timeout_ns = 1,
            .epoch = call_.epoch};
  }
  ArrivalWaits waits_for_ends() {
    return {.flags = ended_of(places_.rank),
            .failure = &no_end_,
            .timeout_ns = 1,
            .epoch = call_.epoch - 1};
  }

  // --- the gate's words ---

  Flag relaxed(const Flag* word) const { return atomic(word).load(std::memory_order_relaxed); }
  // Each wait begins with this, and ends with it after polls that have succeeded.
  Flag acquire(const Flag* word) {
    awaited_ = word;
    if (waiting_) waiting_->arrived();
    waiting_.reset();
    is_over_ = false;
    return atomic(word).load(std::memory_order_acquire);
  }
  void store(Flag* word, Flag value) const { *word = value; }
  void release(Flag* word, Flag value) const { *word = value; }
  bool claim(Flag* word) const { return std::exchange(*word, 1) == 0; }
  // Time is up when patience is, which pause() finds.
  std::uint64_t now() const {
    return is_over_ ? std::numeric_limits<std::uint64_t>::max() : std::uint64_t{0};
  }
  void pause() {
    if (!waiting_) waiting_.emplace(call_.patience, places_.rank, writer_of(awaited_));
    is_over_ = !waiting_->goes_on();
  }
  void before_bulk_loads() const {}

  // --- the schedule's actions ---

  void put(int peer, GroupOfRows rows) const {
    std::memcpy(gathered_of(peer) + bytes(rows.begin), own_row(rows.begin),
                bytes(rows.end - rows.begin));
  }
  void tell_arrived(int peer, int flag) const { tell(flags_of(peer) + flag); }
  bool multiply(GroupOfRows rows, bool own) {
    const std::byte* const a =
        own ? own_row(rows.begin) : gathered_of(places_.rank) + bytes(rows.begin);
    status_ = call_.multiply(
        {.a = a,
         .c = {static_cast<std::size_t>(rows.begin), static_cast<std::size_t>(rows.end)},
         .buffers = {}});
    return status_.is_ok();
  }
  void finish() const {
    if (call_.gathered == nullptr) return;
    const int begin = places_.own.begin, end = places_.own.end;
    const std::byte* const from = gathered_of(places_.rank);
    copy(0, from, bytes(begin));
    copy(bytes(begin), call_.shard, bytes(end - begin));
    copy(bytes(end), from + bytes(end), bytes(places_.m - end));
  }
  void tell_ended(int peer) const { tell(ended_of(peer) + places_.rank); }

  // After the schedule has failed.
  Status failure() const {
    if (!status_.is_ok()) return status_;
    if (no_end_.failed != 0) {
      return waiting_->failure({"the end of its last call", no_end_.seen, no_end_.epoch});
    }
    const auto [shard, chunk] = std::div(no_chunk_.chunk, places_.chunks);
    return waiting_->failure(
        {fmt::format("chunk {} of shard {}", chunk, shard), no_chunk_.seen, no_chunk_.epoch});
  }

 private:
  std::size_t bytes(int rows) const { return static_cast<std::size_t>(rows) * places_.row_bytes; }
  std::byte* memory_of(int rank) const { return call_.memory[static_cast<std::size_t>(rank)]; }
  Flag* flags_of(int rank) const { return reinterpret_cast<Flag*>(memory_of(rank)); }
  Flag* ended_of(int rank) const {
    return reinterpret_cast<Flag*>(memory_of(rank) + places_.ended_offset);
  }
  std::byte* gathered_of(int rank) const { return memory_of(rank) + places_.a_offset; }
  const std::byte* own_row(int row) const { return call_.shard + bytes(row - places_.own.begin); }
  // In this rank's memory.
  int writer_of(const Flag* word) const {
    const Flag* const ended = ended_of(places_.rank);
    if (word >= ended) return static_cast<int>(word - ended);
    return static_cast<int>(word - flags_of(places_.rank)) / places_.chunks;
  }
  // What was written, and read, before is so for whoever sees the epoch.
  void tell(Flag* word) const { atomic(word).store(call_.epoch, std::memory_order_release); }
  void copy(std::size_t offset, const std::byte* from, std::size_t size) const {
    std::byte* const to = call_.gathered + offset;
    if (size > 0 && to != from) std::memcpy(to, from, size);  // else it is in place
  }

  const Places places_;
  const HostFused::Call& call_;
  GateFailure no_chunk_, no_end_;
  const Flag* awaited_ = nullptr;
  std::optional<HostWaiting> waiting_;
  bool is_over_ = false;
  Status status_;  // of a multiplication
};

}  // namespace

int host_chunks_of_shard(const FusedRows& rows) {
  const std::size_t shard = ceil_div(rows.m, static_cast<std::size_t>(rows.ranks));
  return static_cast<int>(std::clamp(ceil_div(shard, kHostMatmulRows), std::size_t{1},
                                     static_cast<std::size_t>(kMostArrivalFlags / rows.ranks)));
}

ArrivalGate arriving_gate(const ArrivalPlan& plan, std::size_t m, int tile_rows) {
  ArrivalGate gate;
  gate.chunks = chunks_of(plan, m, kAnyColumns);
  const MatmulTile tile{.name = "host", .m = tile_rows};
  OwnMatmulArguments grid;
  grid.order.wide = {.rows = 1, .columns = 1};
  const auto first =
      static_cast<std::size_t>(plan.own) * static_cast<std::size_t>(gate.chunks.shard_rows);
  fill_sweep({.tile = &tile}, grid, plan, first < m, gate);
  return gate;
}

// A tile is a whole chunk, unless that is higher than what is multiplied at once.
HostFused::HostFused(const FusedRows& rows, int rank) : rows_(rows) {
  const ArrivalPlan plan{.shards = rows.ranks, .chunks = host_chunks_of_shard(rows), .own = rank};
  tile_rows_ =
      std::min(chunks_of(plan, rows.m, kAnyColumns).chunk_rows, static_cast<int>(kHostMatmulRows));
  gate_ = arriving_gate(plan, rows.m, tile_rows_);
  const auto flags = static_cast<std::size_t>(plan.shards) * static_cast<std::size_t>(plan.chunks);
  ended_offset_ = flags * sizeof(Flag);
  a_offset_ = round_up(ended_offset_ + static_cast<std::size_t>(rows.ranks) * sizeof(Flag),
                       pipelines::kWorkspaceAlignment);
}

Status HostFused::run(const Call& call) const {
  ArrivingRank rank({.rank = gate_.chunks.own,
                     .chunks = gate_.chunks.chunks,
                     .m = gate_.chunks.m,
                     .row_bytes = rows_.row_bytes,
                     .ended_offset = ended_offset_,
                     .a_offset = a_offset_,
                     .own = {gate_.parts.end[0], gate_.parts.end[1]}},
                    call);
  const ArrivingCall arriving{.gate = gate_,
                              .tile_rows = tile_rows_,
                              .ranks = rows_.ranks,
                              .arrived = rank.waits_for_chunks(),
                              .ended = rank.waits_for_ends()};
  return run_arriving(rank, arriving) ? Status::ok() : rank.failure();
}

}  // namespace tutti::fused
