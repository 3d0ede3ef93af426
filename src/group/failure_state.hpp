// The first failure of a communicator, and everything a message needs to explain it. Written by the
// operation that failed, by a peer's announcement or by abort(), from any thread; read without
// blocking.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "bootstrap/rank_names.hpp"
#include "device/kernel_args.hpp"
#include "group/recorder/flight_recorder.hpp"
#include "group/recorder/snapshot.hpp"
#include "operation/operation.hpp"
#include "operation/timeout.hpp"
#include "tutti/communicator.hpp"
#include "tutti/status.hpp"

namespace tutti {

class FailureState {
 public:
  // `record` and `notices` are the engine's; all must outlive this object's last use. The recorder,
  // if any, is told of the first failure and of who was missing.
  FailureState(FailureRecord& record, std::uint32_t& notices, FlightRecorder* recorder = nullptr,
               RankNames names = {})
      : record_(record), notices_(notices), recorder_(recorder), names_(std::move(names)) {}

  // What waits take that have no timeout of their own.
  void set_timeout(const Timeout& timeout);
  Timeout timeout_of(const Operation& operation) const;

  // Remembers a call, so that a record with its sequence number can be explained.
  void note(const Operation& operation);

  // Poisons: sets the notice that every wait of this rank looks at. True if it was the first.
  bool fail(const Status& cause) { return fail(cause, Source::kCaller, {}); }

  // Takes up a record that a kernel or a host thread has completed. True if it is the first
  // failure.
  bool collect();
  // Likewise one of a wait that the host watches; it stays unless there is one already.
  bool collect(const FailureRecord& watched);
  // Likewise a mismatch, which also explains a wait that has taken too long: the page of rank
  // `record.missing_rank` says what that rank runs in place of the record's operation. Null: the
  // page does not say it any more.
  bool collect_difference(const FailureRecord& record, const RecordedOperation* other);
  // A wait has taken too long, and nobody knows it yet.
  bool has_waited_too_long() const;

  // The same for an operation that ran out of time without a record of who was missing: the other
  // ranks' accounts will tell where they are; so long is waited for them.
  bool fail_waiting(const Status& cause, std::string operation, int rank, int ranks,
                    std::chrono::milliseconds patience = std::chrono::milliseconds(200));

  // The same of a wait that is known to have been for rank `missing`.
  struct Wait {
    std::string operation;
    int rank = -1, missing = -1;  // that waited, and was waited for; -1: not known
  };
  bool fail_in(const Status& cause, Wait wait);

  // Another rank's failure: this rank's first, or an account of the one that it knows already.
  // Where this rank found that a peer runs another operation, the peer's account says which; where
  // it waited for nobody knows whom, each account says where that rank is.
  void hear(int rank, const Status& failure);
  // Rank `rank` has left in order; `last` says when, "after all_reduce/ring #41 (...)". A wait for
  // more than it has sent fails from now on.
  void hear_of_leaving(int rank, std::string last);
  bool has_left(int rank) const;
  // Likewise of this rank, for the others; empty if it has failed.
  std::string last_words() const;
  // Waits for the account of the peer that runs another operation, if there is one to come; where
  // it is not known which peer that is, for those of all.
  void await_account(std::chrono::milliseconds limit);
  // Whether accounts of a wait are still to come, or to be given; as long as there is patience.
  bool awaits_accounts();
  // True once, where this rank was told of a failure that wants its account: that a peer found it
  // in another operation; or, if it answers that, that a peer waited too long, or found it in
  // another operation without a wait of this rank's that says so.
  struct Answers {
    bool to_waits = false, to_mismatches = false;
  };
  bool account_due(Answers answers);
  // `whereabouts` is the answer to a wait.
  Status account(const std::string& whereabouts);

  // The latest operation that was noted; its row is null where there is none.
  Operation latest() const;

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  // The cause; where a wait was cut short by it, with what that wait was; where ranks disagreed,
  // with what the other one runs.
  Status status() const;
  // The same as values.
  Communicator::Failure values() const;

 private:
  // Where the other ranks are, while or after this one waited as `wait_` says.
  struct Inquiry {
    Deadline until;
    std::vector<std::string> said;  // by rank; empty: nothing yet
  };
  enum class Source : std::uint8_t { kCaller, kRecord, kPeer };
  // How a failure was heard of, and what is asked because of it.
  struct Circumstances {
    int teller = -1;  // the rank whose failure it is, of Source::kPeer
    std::optional<Inquiry> inquiry = std::nullopt;
    std::optional<Wait> wait = std::nullopt;
  };
  bool fail(const Status& cause, Source source, Circumstances circumstances);
  void add_wait(Communicator::Failure& failure) const;
  void add_wait(Communicator::Failure& failure, const Wait& wait) const;

  bool record_complete() const;
  bool collect_complete();
  void watch_record(const FailureRecord& watched);
  // The one that is complete: the host's, which is taken only where the engine's was not.
  const FailureRecord& record() const;
  // These are called with the lock held.
  Timeout timeout_locked(const Operation& operation) const;
  Status from_record() const;
  std::string describe_awaited() const;
  std::string describe_wait() const;
  std::string describe_timeout() const;
  std::string describe_left() const;
  std::string missing() const { return names_.of(record().missing_rank); }
  std::string waiting() const { return names_.of(record().waiting_rank); }
  std::string describe_operation(std::uint64_t sequence) const;
  bool may_be_captured(std::uint64_t sequence) const;
  bool found_mismatch() const;
  bool was_told_of_mismatch() const;
  bool was_told_of_wait() const {
    return source_ == Source::kPeer && cause_.code() == StatusCode::kTimeout;
  }
  bool was_told_of_mismatch_alone() const {
    return source_ == Source::kPeer && cause_.code() == StatusCode::kMismatch && !record_complete();
  }
  std::string describe_others() const;
  bool is_silent() const;

  static constexpr std::size_t kRemembered = 256;

  FailureRecord& record_;    // the engine's
  FailureRecord watched_{};  // of a wait that the host watches
  std::atomic<bool> has_watched_{false};
  std::uint32_t& notices_;
  FlightRecorder* recorder_;
  const RankNames names_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  std::condition_variable heard_;
  Status cause_;
  Source source_ = Source::kCaller;
  int teller_ = -1;
  std::string account_;  // what runs that disagrees: at the peer, or if it found that, here
  std::string seen_;     // " #41 ": the account is a page's, of the operation with this number
  bool account_given_ = false;  // what this rank runs was told
  std::optional<Inquiry> inquiry_;
  std::optional<Wait> wait_;         // that no record tells of
  std::map<int, std::string> left_;  // by rank: its last words
  Timeout timeout_;
  std::uint64_t latest_ = 0;
  std::array<Operation, kRemembered> recent_{};
};

}  // namespace tutti
