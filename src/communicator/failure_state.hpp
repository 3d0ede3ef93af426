// The first failure of a communicator, and everything a message needs to explain it. Written by the
// operation that failed, by a peer's announcement or by abort(), from any thread; read without
// blocking.
#pragma once

#include <array>
#include <atomic>
#include <mutex>

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
  bool fail(const Status& cause);

  // Takes up a record that a kernel or a host thread has completed. True if it is the first
  // failure.
  bool collect();

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  // The cause; where a wait was cut short by it, with what that wait was.
  Status status() const;

 private:
  bool record_complete() const;
  Status from_record() const;
  std::string describe_wait() const;
  std::string describe_operation(std::uint64_t sequence) const;

  static constexpr std::size_t kRemembered = 256;

  FailureRecord& record_;
  std::uint32_t& abort_word_;
  FlightRecorder* recorder_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  Status cause_;
  std::array<Operation, kRemembered> recent_{};
};

}  // namespace tutti
