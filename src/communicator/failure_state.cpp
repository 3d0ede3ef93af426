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

bool FailureState::fail(const Status& cause, bool found_here) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  cause_ = cause;
  found_here_ = found_here;
  if (recorder_ != nullptr) recorder_->fail(cause);
  failed_.store(true, std::memory_order_release);
  std::atomic_ref(abort_word_).store(1, std::memory_order_release);
  return true;
}

bool FailureState::collect() {
  if (!record_complete()) return false;
  const auto reason = static_cast<FailureReason>(record_.reason);
  const bool waited = reason == FailureReason::kTimeout || reason == FailureReason::kAborted ||
                      reason == FailureReason::kMismatch;
  if (recorder_ != nullptr && waited) recorder_->waited_for(record_.missing_rank);
  return !failed() && fail(from_record(), true);
}

void FailureState::hear(int rank, std::string_view account) {
  const std::lock_guard lock(mutex_);
  if (!found_mismatch() || record_.missing_rank != rank || !account_.empty()) return;
  // An account begins with the operation.
  account_ = fmt::format("rank {} runs {}", rank, account.substr(0, account.find(": ")));
  heard_.notify_all();
}

void FailureState::await_account(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  if (!found_mismatch()) return;
  heard_.wait_for(lock, limit, [&] { return !account_.empty(); });
}

std::optional<std::string> FailureState::account_due() {
  const std::lock_guard lock(mutex_);
  if (!was_told_of_mismatch() || account_given_) return std::nullopt;
  account_given_ = true;
  return fmt::format("{}: run by rank {}", describe_operation(record_.sequence),
                     record_.waiting_rank);
}

bool FailureState::found_mismatch() const {
  return found_here_ && record_.reason == static_cast<std::uint32_t>(FailureReason::kMismatch);
}

// While an operation of its own was under way.
bool FailureState::was_told_of_mismatch() const {
  return !found_here_ && cause_.code() == StatusCode::kMismatch && record_complete();
}

Status FailureState::status() const {
  if (!failed()) return Status::ok();
  const std::lock_guard lock(mutex_);
  std::string more = account_;
  if (record_complete() && record_.reason == static_cast<std::uint32_t>(FailureReason::kAborted)) {
    more = describe_wait();
  } else if (was_told_of_mismatch()) {
    more =
        fmt::format("rank {} runs {}", record_.waiting_rank, describe_operation(record_.sequence));
  }
  if (more.empty()) return cause_;
  return {cause_.code(), fmt::format("{}; {}", cause_.message(), more), cause_.where()};
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
