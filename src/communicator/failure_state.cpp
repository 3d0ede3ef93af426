#include "communicator/failure_state.hpp"

#include <fmt/format.h>

namespace tutti {

std::string to_string(const Operation& operation) {
  return fmt::format("{} #{} ({} x {}, {})", operation.row->id, operation.sequence, operation.count,
                     to_string(operation.dtype), to_string(operation.op));
}

void FailureState::note(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  recent_[operation.sequence % kRemembered] = operation;
}

bool FailureState::fail(const Status& cause) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  cause_ = cause;
  if (recorder_ != nullptr) recorder_->fail(cause);
  failed_.store(true, std::memory_order_release);
  std::atomic_ref(abort_word_).store(1, std::memory_order_release);
  return true;
}

bool FailureState::collect() {
  if (!record_complete()) return false;
  if (recorder_ != nullptr) recorder_->waited_for(record_.missing_rank);
  return !failed() && fail(from_record());
}

Status FailureState::status() const {
  if (!failed()) return Status::ok();
  const std::lock_guard lock(mutex_);
  const bool cut_short =
      record_complete() && record_.reason == static_cast<std::uint32_t>(FailureReason::kAborted);
  if (!cut_short) return cause_;
  return {cause_.code(), fmt::format("{}; {}", cause_.message(), describe_wait()), cause_.where()};
}

bool FailureState::record_complete() const {
  return std::atomic_ref(record_.state).load(std::memory_order_acquire) != 0;
}

Status FailureState::from_record() const {
  switch (static_cast<FailureReason>(record_.reason)) {
    case FailureReason::kTimeout:
      return {StatusCode::kTimeout,
              fmt::format("{} (the deadline is TUTTI_TIMEOUT_MS or the communicator's timeout)",
                          describe_wait())};
    case FailureReason::kMismatch:
      return {
          StatusCode::kMismatch,
          fmt::format("{}: rank {} runs another operation than rank {} at this point: signature "
                      "{:08x} here, {:08x} there (operation, algorithm, count, dtype, op, buffer "
                      "kind and offset must agree)",
                      describe_operation(record_.sequence), record_.missing_rank,
                      record_.waiting_rank, record_.expected_signature, record_.seen_signature)};
    case FailureReason::kOverlap:
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: another operation of this communicator ran at the same time on rank "
                          "{}: order the streams, or use two communicators",
                          describe_operation(record_.sequence), record_.waiting_rank)};
    case FailureReason::kNotRegistered:
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: replayed on rank {} before finish_capture() registered its buffers",
                          describe_operation(record_.sequence), record_.waiting_rank)};
    case FailureReason::kAborted:
    case FailureReason::kNone:
      break;
  }
  return {StatusCode::kAborted, describe_wait()};
}

std::string FailureState::describe_wait() const {
  return fmt::format(
      "{}: rank {} waited {:.3f} s for rank {}: expected flag {}, seen {} (block {})",
      describe_operation(record_.sequence), record_.waiting_rank,
      static_cast<double>(record_.waited_ns) * 1e-9, record_.missing_rank, record_.expected_epoch,
      record_.seen_epoch, record_.block);
}

// Called with the lock held, or before anybody else can see the object fail.
std::string FailureState::describe_operation(std::uint64_t sequence) const {
  const Operation& operation = recent_[sequence % kRemembered];
  if (operation.row == nullptr || operation.sequence != sequence) {
    return fmt::format("operation #{}", sequence);
  }
  return to_string(operation);
}

}  // namespace tutti
