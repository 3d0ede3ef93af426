#include "executors/copy_engine/barrier_words.hpp"

#include <iterator>
#include <utility>

namespace tutti {
namespace {

using Kind = CudaMemoryOperation::Kind;

void store_byte(std::uint8_t& byte, std::uint8_t value) {
  std::atomic_ref(byte).store(value, std::memory_order_seq_cst);
}

template <class F>
void for_each_peer(int ranks, int rank, F&& f) {
  for (int step = 1; step < ranks; ++step) f((rank + step) % ranks);
}

}  // namespace

std::vector<CudaMemoryOperation> barrier_operations(const BarrierPages& pages, int rank,
                                                    const BarrierTurn& turn) {
  const int ranks = static_cast<int>(pages.size());
  const auto parity = turn.number % 2;
  BarrierPage& own = *pages[rank];
  std::vector<CudaMemoryOperation> operations{{Kind::kWrite, &own.begun, turn.number}};
  for_each_peer(ranks, rank, [&](int peer) {
    operations.push_back({Kind::kWrite, &pages[peer]->arrived[parity][rank], turn.value});
  });
  for_each_peer(ranks, rank, [&](int peer) {
    operations.push_back({Kind::kWaitAtLeast, &own.arrived[parity][peer], turn.value});
  });
  operations.push_back({Kind::kWaitAtLeast, &own.health, healthy_word(ranks)});
  operations.push_back({Kind::kWrite, &own.ended, turn.number});
  return operations;
}

void leave_peers(const BarrierPages& pages, int rank) {
  for_each_peer(static_cast<int>(pages.size()), rank,
                [&](int peer) { store_byte(health_of(*pages[peer], peer, rank), 0); });
}

// A quarter of the cycle beyond the latest value: far beyond all values that a stream still awaits,
// and less than the half at which the comparison turns.
void end_barriers(const BarrierPages& pages, int rank, const BarrierTurn& last) {
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 62;
  BarrierPage& own = *pages[rank];
  store_byte(health_of(own, rank, rank), 0x7f);
  for (auto& slots : own.arrived) {
    for_each_peer(static_cast<int>(pages.size()), rank, [&](int peer) {
      std::atomic_ref(slots[peer]).store(last.value + kBeyond, std::memory_order_seq_cst);
    });
  }
}

// Health is read after the arrival: a released stream arrives at anything, with its byte cleared.
// `ended` is read last: a peer's next value is there only after this stream has passed the barrier.
std::optional<BarrierView> BarrierView::of(const BarrierPages& pages, int rank,
                                           const BarrierTurn& turn, const WordReader& read) {
  BarrierPage& own = *pages[rank];
  BarrierView view(turn, static_cast<int>(pages.size()), rank);
  for_each_peer(view.ranks_, rank, [&](int peer) {
    const std::uint64_t arrived = read(own.arrived[turn.number % 2][peer]);
    const std::uint64_t health = read(own.health) >> 8 * place_in_health(rank, peer);
    view.seen_[peer] = {arrived, (health & 0xff) != 0};
  });
  if (has_reached(read(own.ended), turn.number)) return std::nullopt;
  return view;
}

int BarrierView::missing_rank() const {
  constexpr std::pair<bool, bool> kOrder[] = {{true, false}, {false, false}, {false, true}};
  for (const auto& [is_healthy, has_come] : kOrder) {
    for (int step = 1; step < ranks_; ++step) {
      const int peer = (rank_ + step) % ranks_;
      if (seen_[peer].is_healthy == is_healthy && has_arrival(peer) == has_come) return peer;
    }
  }
  return -1;
}

std::optional<std::uint32_t> BarrierView::other_operation(int peer) const {
  const auto& [arrived, is_healthy] = seen_[peer];
  if (arrived == turn_.slot || arrived == turn_.value || !is_healthy) return std::nullopt;
  return static_cast<std::uint32_t>(arrived - turn_.before - 1);
}

}  // namespace tutti
