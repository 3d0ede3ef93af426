#include "group/failure_state.hpp"

#include <fmt/format.h>

namespace tutti {
namespace {

// An account begins with the operation that its rank is at.
std::string_view head_of(std::string_view account) { return account.substr(0, account.find(": ")); }

}  // namespace

void FailureState::set_timeout(const Timeout& timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}

Timeout FailureState::timeout_of(const Operation& operation) const {
  const std::lock_guard lock(mutex_);
  return timeout_locked(operation);
}

Timeout FailureState::timeout_locked(const Operation& operation) const {
  if (operation.timeout.count() > 0) return {operation.timeout, TimeoutSource::kCall};
  return timeout_;
}

void FailureState::note(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  recent_[operation.sequence % kRemembered] = operation;
  latest_ = operation.sequence;
}

bool FailureState::fail(const Status& cause, Source source, Circumstances circumstances) {
  const std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  cause_ = cause;
  source_ = source;
  teller_ = circumstances.teller;
  inquiry_ = std::move(circumstances.inquiry);
  wait_ = std::move(circumstances.wait);
  if (recorder_ != nullptr) recorder_->fail(cause);
  failed_.store(true, std::memory_order_release);
  std::atomic_ref(notices_).fetch_or(Notice::kAbort, std::memory_order_release);
  return true;
}

bool FailureState::collect() { return record_complete() && collect_complete(); }

bool FailureState::collect(const FailureRecord& watched) {
  {
    const std::lock_guard lock(mutex_);
    if (record_complete()) return false;
    watch_record(watched);
  }
  return collect_complete();
}

// Under the lock, once.
void FailureState::watch_record(const FailureRecord& watched) {
  watched_ = watched;
  watched_.state = 1;
  has_watched_.store(true, std::memory_order_release);  // nothing writes it any more
}

bool FailureState::collect_difference(const FailureRecord& record, const RecordedOperation* other) {
  {
    const std::lock_guard lock(mutex_);
    if (failed() || (record_complete() && !has_waited_too_long())) return false;
    if (other == nullptr) {
      account_ = "they have differed before it";
    } else {
      seen_ = fmt::format(" #{} ", other->sequence);
      account_ = fmt::format("{} runs {}", names_.of(record.missing_rank), to_string(*other));
    }
    watch_record(record);
  }
  return collect_complete();
}

// A wait that the host watches is the group's failure at once.
bool FailureState::has_waited_too_long() const {
  return !failed() && !has_watched_.load(std::memory_order_acquire) && record_complete() &&
         record_.reason == static_cast<std::uint32_t>(FailureReason::kTimeout);
}

bool FailureState::collect_complete() {
  const auto reason = static_cast<FailureReason>(record().reason);
  const bool waited = reason == FailureReason::kTimeout || reason == FailureReason::kAborted ||
                      reason == FailureReason::kMismatch || reason == FailureReason::kLeft;
  if (recorder_ != nullptr && waited) recorder_->waited_for(record().missing_rank);
  if (failed()) return false;
  Status found;
  {
    const std::lock_guard lock(mutex_);
    found = from_record();
  }
  return fail(found, Source::kRecord, {});
}

bool FailureState::fail_waiting(const Status& cause, std::string operation, int rank, int ranks,
                                std::chrono::milliseconds patience) {
  return fail(cause, Source::kCaller,
              {.inquiry = Inquiry{Deadline(patience),
                                  std::vector<std::string>(static_cast<std::size_t>(ranks))},
               .wait = Wait{std::move(operation), rank}});
}

bool FailureState::fail_in(const Status& cause, Wait wait) {
  if (recorder_ != nullptr && wait.missing >= 0) recorder_->waited_for(wait.missing);
  return fail(cause, Source::kCaller, {.wait = std::move(wait)});
}

void FailureState::hear(int rank, const Status& failure) {
  if (fail(failure, Source::kPeer, {.teller = rank})) return;
  const std::lock_guard lock(mutex_);
  if (inquiry_ && rank >= 0 && static_cast<std::size_t>(rank) < inquiry_->said.size()) {
    std::string& said = inquiry_->said[static_cast<std::size_t>(rank)];
    said = head_of(failure.message());
    if (recorder_ != nullptr && said != wait_->operation) recorder_->waited_for(rank);
    heard_.notify_all();
  } else if (found_mismatch() && record().missing_rank == rank) {
    // A page says less of an operation than its rank does.
    const std::string_view at = head_of(failure.message());
    const bool says_more = !seen_.empty() && at.find(seen_) != std::string_view::npos;
    if (!account_.empty() && !says_more) return;
    account_ = fmt::format("{} runs {}", names_.of(rank), at);
    heard_.notify_all();
  }
}

// Release: the words are there before the notice. Waits for memory of peers know only so many
// ranks.
void FailureState::hear_of_leaving(int rank, std::string last) {
  const std::lock_guard lock(mutex_);
  left_[rank] = std::move(last);
  if (rank >= kMaxRanks) return;
  std::atomic_ref(notices_).fetch_or(Notice::left(rank), std::memory_order_release);
}

bool FailureState::has_left(int rank) const {
  const std::lock_guard lock(mutex_);
  return left_.contains(rank);
}

std::string FailureState::last_words() const {
  if (failed()) return {};
  const Operation last = latest();
  return last.is_known() ? "after " + to_string(last) : "before its first operation";
}

void FailureState::await_account(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const bool asks = inquiry_ && cause_.code() == StatusCode::kMismatch;
  if (!asks && !found_mismatch()) return;
  (void)Deadline(limit).wait(heard_, lock, [&] { return asks ? !is_silent() : !account_.empty(); });
}

bool FailureState::awaits_accounts() {
  const std::lock_guard lock(mutex_);
  if (!inquiry_) return was_told_of_wait() && !account_given_;
  bool silent = false;
  for (std::size_t r = 0; r < inquiry_->said.size(); ++r) {
    if (static_cast<int>(r) == wait_->rank || !inquiry_->said[r].empty()) continue;
    if (inquiry_->until.passed() && recorder_ != nullptr)
      recorder_->waited_for(static_cast<int>(r));
    silent = true;
  }
  return silent && !inquiry_->until.passed();
}

bool FailureState::account_due(Answers answers) {
  const std::lock_guard lock(mutex_);
  const bool due = was_told_of_mismatch() || (answers.to_waits && was_told_of_wait()) ||
                   (answers.to_mismatches && was_told_of_mismatch_alone());
  if (account_given_ || !due) return false;
  account_given_ = true;
  return true;
}

// Whether another rank has not said where it is.
bool FailureState::is_silent() const {
  for (std::size_t r = 0; r < inquiry_->said.size(); ++r) {
    if (static_cast<int>(r) != wait_->rank && inquiry_->said[r].empty()) return true;
  }
  return false;
}

Status FailureState::account(const std::string& whereabouts) {
  const std::lock_guard lock(mutex_);
  if (was_told_of_mismatch_alone()) account_ = "this rank is at " + whereabouts;
  if (was_told_of_wait() || was_told_of_mismatch_alone())
    return {cause_.code(), fmt::format("{}: {}", whereabouts, cause_.message())};
  // Whoever hears this before the cause has the cause from it.
  return {cause_.code(), fmt::format("{}: run by {}; {}", describe_operation(record().sequence),
                                     waiting(), cause_.message())};
}

Operation FailureState::latest() const {
  const std::lock_guard lock(mutex_);
  return recent_[latest_ % kRemembered];
}

bool FailureState::found_mismatch() const {
  return source_ == Source::kRecord &&
         record().reason == static_cast<std::uint32_t>(FailureReason::kMismatch);
}

// While an operation of its own was under way.
bool FailureState::was_told_of_mismatch() const {
  return source_ != Source::kRecord && cause_.code() == StatusCode::kMismatch && record_complete();
}

Status FailureState::status() const {
  if (!failed()) return Status::ok();
  const std::lock_guard lock(mutex_);
  std::string more = account_;
  if (inquiry_) {
    more = describe_others();
  } else if (record_complete() &&
             record().reason == static_cast<std::uint32_t>(FailureReason::kAborted)) {
    more = describe_wait();
  } else if (was_told_of_mismatch()) {
    more = fmt::format("{} runs {}", waiting(), describe_operation(record().sequence));
  }
  if (more.empty() || cause_.message().find(more) != std::string::npos) return cause_;
  return {cause_.code(), fmt::format("{}; {}", cause_.message(), more), cause_.where()};
}

Communicator::Failure FailureState::values() const {
  const Status said = status();
  Communicator::Failure failure{.code = said.code(), .text = said.message()};
  if (said.is_ok()) return failure;
  const std::lock_guard lock(mutex_);
  failure.failed_rank = teller_;
  if (record_complete()) {
    add_wait(failure);
  } else if (wait_) {
    add_wait(failure, *wait_);
  }
  return failure;
}

void FailureState::add_wait(Communicator::Failure& failure, const Wait& wait) const {
  failure.operation = wait.operation;
  failure.waiting_rank = wait.rank;
  failure.missing_rank = wait.missing;
  for (const Operation& operation : recent_) {
    if (operation.is_known() && failure.operation.starts_with(to_string(operation)))
      failure.sequence = operation.sequence;
  }
}

void FailureState::add_wait(Communicator::Failure& failure) const {
  const FailureRecord& record = this->record();
  const auto reason = static_cast<FailureReason>(record.reason);
  const bool alone = reason == FailureReason::kOverlap || reason == FailureReason::kNotRegistered;
  const bool differs = reason == FailureReason::kMismatch;
  failure.operation = describe_awaited();
  failure.sequence = record.signal != 0 ? 0 : record.sequence;
  failure.waiting_rank = record.waiting_rank;
  failure.missing_rank = alone ? -1 : record.missing_rank;
  if (alone) return;
  failure.expected = differs ? record.expected_signature : record.expected_epoch;
  failure.seen = differs ? record.seen_signature : record.seen_epoch;
}

const FailureRecord& FailureState::record() const {
  return has_watched_.load(std::memory_order_acquire) ? watched_ : record_;
}

bool FailureState::record_complete() const {
  auto& state = const_cast<std::uint32_t&>(record().state);
  return std::atomic_ref(state).load(std::memory_order_acquire) != 0;
}

Status FailureState::from_record() const {
  switch (static_cast<FailureReason>(record().reason)) {
    case FailureReason::kTimeout:
      return {StatusCode::kTimeout, fmt::format("{}; {}", describe_wait(), describe_timeout())};
    case FailureReason::kMismatch:
      return {
          StatusCode::kMismatch,
          fmt::format("{}: {} runs another operation than {} at this point: signature "
                      "{:08x} here, {:08x} there (operation, algorithm, count, dtype, op, buffer "
                      "kind and offset must agree{})",
                      describe_operation(record().sequence), missing(), waiting(),
                      record().expected_signature, record().seen_signature,
                      may_be_captured(record().sequence)
                          ? "; graphs that share a channel, as those captured on one stream do, "
                            "must run one after the other, in the same order on every rank"
                          : "")};
    case FailureReason::kOverlap:
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: another operation of this communicator ran at the same time on {}: "
                          "order the streams, run graphs that share a channel one after the other, "
                          "or use two communicators",
                          describe_operation(record().sequence), waiting())};
    case FailureReason::kNotRegistered:
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: replayed on {} before finish_capture() registered its buffers",
                          describe_operation(record().sequence), waiting())};
    case FailureReason::kOtherCount:
      return {
          StatusCode::kMismatch,
          fmt::format("{}: {} has a piece of {} elements where {} was told of {} (the counts of "
                      "all ranks must agree)",
                      describe_operation(record().sequence), missing(), record().seen_epoch,
                      waiting(), record().expected_epoch)};
    case FailureReason::kTooMany:
      return {StatusCode::kInvalidArgument,
              fmt::format("{}: {} has a count of {} on its device, and max_count is {}",
                          describe_operation(record().sequence), missing(), record().seen_epoch,
                          record().expected_epoch)};
    case FailureReason::kLeft:
      return {StatusCode::kPeerFailed, describe_left()};
    case FailureReason::kAborted:
    case FailureReason::kNone:
      break;
  }
  return {StatusCode::kAborted, describe_wait()};
}

std::string FailureState::describe_awaited() const {
  if (record().signal != 0) return fmt::format("wait_signal on channel {}", record().signal - 1);
  return describe_operation(record().sequence);
}

std::string FailureState::describe_wait() const {
  return fmt::format("{}: {} waited {:.3f} s for {}: expected {} {}, seen {} (block {})",
                     describe_awaited(), waiting(), static_cast<double>(record().waited_ns) * 1e-9,
                     missing(), record().signal != 0 ? "signal" : "flag", record().expected_epoch,
                     record().seen_epoch, record().block);
}

// What waited for signals is no operation with a number; its own timeout shows in that it gave up
// before the communicator's.
std::string FailureState::describe_timeout() const {
  const Operation& operation = recent_[record().sequence % kRemembered];
  const bool known = record().signal == 0 && operation.sequence == record().sequence;
  if (known) return to_string(timeout_locked(operation));
  const std::chrono::nanoseconds waited(record().waited_ns);
  const Timeout usual = timeout_;
  return waited < usual.value ? "this call's own timeout" : to_string(usual);
}

std::string FailureState::describe_left() const {
  const auto said = left_.find(record().missing_rank);
  const std::string came =
      record().signal == 0
          ? std::string()
          : fmt::format(" (signal {}, {} came)", record().expected_epoch, record().seen_epoch);
  return fmt::format(
      "{}{}: {} waits for {}, which left the group {}: every rank must make the same calls before "
      "it destroys its communicator",
      describe_awaited(), came, waiting(), missing(), said == left_.end() ? "" : said->second);
}

std::string FailureState::describe_others() const {
  std::string text;
  bool silent = false;
  for (std::size_t r = 0; r < inquiry_->said.size(); ++r) {
    const std::string& said = inquiry_->said[r];
    if (static_cast<int>(r) == wait_->rank || said == wait_->operation) continue;
    silent = silent || said.empty();
    const char* const comma = text.empty() ? "" : ", ";
    text += said.empty() ? fmt::format("{}{} does not answer", comma, names_.of(r))
                         : fmt::format("{}{} is at {}", comma, names_.of(r), said);
  }
  if (silent && !inquiry_->until.passed()) return "the other ranks are being asked where they are";
  return text.empty() ? "every other rank is in it, too" : text;
}

// Graphs are replayed long after they were captured.
bool FailureState::may_be_captured(std::uint64_t sequence) const {
  const Operation& operation = recent_[sequence % kRemembered];
  return operation.sequence != sequence || operation.captured;
}

std::string FailureState::describe_operation(std::uint64_t sequence) const {
  const Operation& operation = recent_[sequence % kRemembered];
  if (!operation.is_known() || operation.sequence != sequence) {
    return fmt::format("operation #{}", sequence);
  }
  return to_string(operation);
}

}  // namespace tutti
