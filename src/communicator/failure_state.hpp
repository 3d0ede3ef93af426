// The first failure of a communicator, and everything a message needs to explain it. Written by the
// operation that failed, by a peer's announcement or by abort(), from any thread; read without
// blocking.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "communicator/operation.hpp"
#include "recorder/flight_recorder.hpp"
#include "transport/work.hpp"
#include "tutti/status.hpp"

namespace tutti {

class FailureState {
 public:
  // `record` and `abort_word` are the engine's; all must outlive this object's last use. The
  // recorder, if any, is told of the first failure and of who was missing.
  FailureState(FailureRecord& record, std::uint32_t& abort_word, FlightRecorder* recorder = nullptr)
      : record_(record), abort_word_(abort_word), recorder_(recorder) {}

  // Remembers a call, so that a record with its sequence number can be explained.
  void note(const Operation& operation);

  // Poisons: sets the abort word that every wait of this rank looks at. True if it was the first.
  bool fail(const Status& cause) { return fail(cause, false); }

  // Takes up a record that a kernel or a host thread has completed. True if it is the first
  // failure.
  bool collect();

  // Another rank's account of a failure that this rank knows already: where this rank found that a
  // peer runs another operation, the peer's account says which.
  void hear(int rank, std::string_view account);
  // Waits for that account, if there is one to come.
  void await_account(std::chrono::milliseconds limit);
  // Once, where a peer found that this rank runs another operation: what it is.
  std::optional<std::string> account_due();

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  // The cause; where a wait was cut short by it, with what that wait was; where ranks disagreed,
  // with what the other one runs.
  Status status() const;

 private:
  bool record_complete() const;
  Status from_record() const;
  std::string describe_wait() const;
  std::string describe_operation(std::uint64_t sequence) const;
  bool found_mismatch() const;
  bool was_told_of_mismatch() const;
  bool fail(const Status& cause, bool found_here);

  static constexpr std::size_t kRemembered = 256;

  FailureRecord& record_;
  std::uint32_t& abort_word_;
  FlightRecorder* recorder_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  std::condition_variable heard_;
  Status cause_;
  bool found_here_ = false;     // by an operation of this rank
  std::string account_;         // what the peer runs that disagrees
  bool account_given_ = false;  // what this rank runs was told
  std::array<Operation, kRemembered> recent_{};
};

}  // namespace tutti
