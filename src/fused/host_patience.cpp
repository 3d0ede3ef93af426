#include "fused/host_patience.hpp"

#include <fmt/format.h>

#include <atomic>

namespace tutti::fused {

bool HostWaiting::goes_on() {
  if (!wait_.pause()) return true;
  tell_awaited(std::uint64_t{1} << writer_);
  if (patience_.group_status) group_ = patience_.group_status();
  if (!group_.is_ok()) return false;
  left_ = patience_.has_left && patience_.has_left(writer_);
  if (left_) return false;
  timeout_ = patience_.timeout();
  return RunningClock::now() - begin_ < timeout_;
}

// Relaxed: a word by itself.
void HostWaiting::tell_awaited(std::uint64_t ranks) const {
  if (patience_.waits_for == nullptr) return;
  std::atomic_ref(*patience_.waits_for).store(ranks, std::memory_order_relaxed);
}

std::string HostWaiting::text(std::string_view waits) const {
  const auto name = [this](int rank) {
    return patience_.name_of ? patience_.name_of(rank) : fmt::format("rank {}", rank);
  };
  return fmt::format("all_gather_matmul: {} {} {}", name(rank_), waits, name(writer_));
}

Status HostWaiting::failure(const AwaitedWord& word) const {
  if (!group_.is_ok()) return group_;
  const std::string seen =
      fmt::format("{} is at epoch {}, not {}", word.name, word.seen, word.epoch);
  if (left_) {
    return {StatusCode::kPeerFailed,
            fmt::format("{}, which left the group: {}", text("waits for"), seen)};
  }
  const std::string waited = fmt::format("waited {} ms for", timeout_.count());
  return {StatusCode::kTimeout, fmt::format("{}: {}", text(waited), seen)};
}

}  // namespace tutti::fused
