#include "executors/copy_engine/stream_waits.hpp"

namespace tutti {
namespace {

using Kind = CudaMemoryOperation::Kind;

}  // namespace

FailureRecord failed_wait(FailureRecord record, FailureReason reason,
                          RunningClock::time_point since) {
  const std::chrono::nanoseconds waited = RunningClock::now() - since;
  record.block = 0;
  record.reason = static_cast<std::uint32_t>(reason);
  record.waited_ns = static_cast<std::uint64_t>(waited.count());
  record.state = 1;
  record.signal = 0;
  return record;
}

Status StreamWaits::await(const Call& call, const PipelineWord& word, int number, Stream stream) {
  const auto at = static_cast<std::size_t>(number);
  std::uint64_t wait = 0;
  {
    const std::lock_guard lock(mutex_);
    (void)current(at);  // forgets what has ended
    wait = ++streams_[at].enqueued;
    streams_[at].pending.push_back({wait, word, call});
  }
  PipelinePage& own = page_of(on_device_, rank_);
  const std::array operations{
      CudaMemoryOperation{Kind::kWrite, &own.at[at], wait},
      CudaMemoryOperation{Kind::kWaitAtLeast, &word_in(own, word), call.epoch},
      CudaMemoryOperation{Kind::kWaitAtLeast, &own.health,
                          healthy_word(static_cast<int>(on_host_.size()))}};
  return cuda_.memory_operations(operations, stream);
}

Status StreamWaits::signal(const Call& call, int rank, const PipelineWord& word, Stream stream) {
  PipelinePage& there = page_of(on_device_, rank);
  const CudaMemoryOperation write{Kind::kWrite, &word_in(there, word), call.epoch};
  return cuda_.memory_operations({&write, 1}, stream);
}

// The latest wait that the stream has begun; null where there is none, or it was released. Under
// the lock.
const StreamWaits::Pending* StreamWaits::current(std::size_t number) {
  Watched& watched = streams_[number];
  const std::uint64_t begun = read_word(own().at[number]);
  while (!watched.pending.empty() && watched.pending.front().number < begun) {
    watched.pending.pop_front();
  }
  if (released_ || watched.pending.empty()) return nullptr;
  const Pending& front = watched.pending.front();
  if (front.number != begun) return nullptr;
  if (watched.waiting_in != front.number) {
    watched.waiting_in = front.number;
    watched.since = Clock::now();
    watched.left = -1;
  }
  return &front;
}

// For whom it waits: who writes the word, or a rank that has given up. -1: it goes on.
int StreamWaits::missing_rank(const Pending& pending) const {
  if (!has_reached(read_word(word_in(own(), pending.word)), pending.call.epoch)) {
    return pending.word.writer;
  }
  const std::uint64_t health = read_word(own().health);
  for (int peer = 0; peer < static_cast<int>(on_host_.size()); ++peer) {
    if (peer == rank_) continue;
    if ((health >> 8 * place_in_health(rank_, peer) & 0xff) == 0) return peer;
  }
  return -1;
}

FailureRecord StreamWaits::record_of(const Pending& pending, Clock::time_point since, int missing,
                                     FailureReason reason) const {
  return failed_wait({.sequence = pending.call.sequence,
                      .expected_epoch = pending.call.epoch,
                      .seen_epoch = read_word(word_in(own(), pending.word)),
                      .expected_signature = pending.call.signature,
                      .waiting_rank = rank_,
                      .missing_rank = missing},
                     reason, since);
}

std::optional<FailureRecord> StreamWaits::look_at(std::size_t number, std::uint64_t usual_ns,
                                                  std::uint32_t notices) {
  const Pending* const pending = current(number);
  if (pending == nullptr) return std::nullopt;
  Watched& watched = streams_[number];
  const int missing = missing_rank(*pending);
  if (missing < 0) {
    // It has ended. If a rank gives up later, the stream, which may be idle, does not wait for it.
    watched.pending.pop_front();
    return std::nullopt;
  }
  const Call& call = pending->call;
  // It was looked for in vain since it was seen to have left: nothing will come.
  if (watched.left == missing)
    return record_of(*pending, watched.since, missing, FailureReason::kLeft);
  if ((notices & Notice::left(missing)) != 0) watched.left = missing;
  const std::uint64_t limit = call.timeout_ns != 0 ? call.timeout_ns : usual_ns;
  if (Clock::now() - watched.since < std::chrono::nanoseconds(limit)) return std::nullopt;
  return record_of(*pending, watched.since, missing, FailureReason::kTimeout);
}

std::optional<FailureRecord> StreamWaits::look(std::uint64_t usual_ns, std::uint32_t notices) {
  const std::lock_guard lock(mutex_);
  for (std::size_t number = 0; number < streams_.size(); ++number) {
    if (auto record = look_at(number, usual_ns, notices)) return record;
  }
  return std::nullopt;
}

std::optional<FailureRecord> StreamWaits::waiting() {
  const std::lock_guard lock(mutex_);
  for (std::size_t number = 0; number < streams_.size(); ++number) {
    const Pending* const pending = current(number);
    const int missing = pending == nullptr ? -1 : missing_rank(*pending);
    if (missing < 0) continue;
    return record_of(*pending, streams_[number].since, missing, FailureReason::kAborted);
  }
  return std::nullopt;
}

// Far beyond all epochs that a stream awaits. The health of this rank's page ends the other wait.
void StreamWaits::release() {
  constexpr std::uint64_t kBeyond = std::uint64_t{1} << 62;
  const std::lock_guard lock(mutex_);
  released_ = true;
  for (auto& slot : own().words) {
    for (auto& kind : slot) {
      for (auto& words : kind) {
        for (std::uint64_t& word : words) {
          std::atomic_ref(word).store(kBeyond, std::memory_order_seq_cst);
        }
      }
    }
  }
}

}  // namespace tutti
