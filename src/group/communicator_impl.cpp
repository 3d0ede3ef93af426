#include "group/communicator_impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "device/multicast/binding.hpp"
#include "device/multicast/support.hpp"
#include "drivers/cuda.hpp"
#include "drivers/nccl.hpp"
#include "drivers/network.hpp"
#include "drivers/nvml.hpp"
#include "drivers/shared_memory.hpp"
#include "group/watchdog.hpp"
#include "memory/local_allocation.hpp"

namespace tutti {

Drivers Drivers::real() {
  return {.cuda = real_cuda(),
          .nccl = real_nccl(),
          .nvml = real_nvml(),
          .multicast = why_no_multicast().empty() ? real_multicast() : nullptr,
          .network = real_network()};
}

CommunicatorImpl::~CommunicatorImpl() {
  const Deadline end = deadline();
  guarded([&] {
    // Meanwhile the others may fail, or leave, and what waits for them here must hear of it.
    for (const auto& executor : executors_) executor->drain(end);
  });
  unwatch(*this);
  bootstrap_->set_failure_handler(nullptr);
  guarded([&] {
    if (failure_ == nullptr) return;
    compare_operations();
    check_executors();
    if (collect_failure()) log_failure();  // nobody asks any more
  });
  guarded([&] {
    for (const auto& executor : executors_) executor->close(end);
  });
  // One whose memory could not be opened has no words: it never took part.
  guarded([&] { bootstrap_->leave(failure_ == nullptr ? std::string() : failure_->last_words()); });
}

Status CommunicatorImpl::fail(const Status& cause) {
  if (failure_->fail(cause)) tell(cause);
  return failure_->status();
}

void CommunicatorImpl::warn(const std::string& text) const {
  log_once(rank() == 0 ? LogLevel::kWarn : LogLevel::kInfo, text);
}

void CommunicatorImpl::tell(const Status& cause) {
  for (const auto& executor : executors_) executor->hear_of_failure();
  bootstrap_->announce_failure({.rank = rank(), .code = cause.code(), .text = cause.message()});
}

void CommunicatorImpl::report(const FailureRecord& record) {
  if (!failure_->collect(record)) return;
  tell(failure_->status());
  log_failure();
}

void CommunicatorImpl::fail_waiting(const Status& cause, const std::string& operation) {
  if (!failure_->fail_waiting(cause, operation, rank(), size())) return;
  tell(cause);
  log_failure();
}

void CommunicatorImpl::fail_in(const Status& cause, const std::string& operation, int missing) {
  if (failure_->fail_in(cause, {operation, rank(), missing})) tell(cause);
}

void CommunicatorImpl::hear(const GroupFailure& failure) {
  failure_->hear(failure.rank, {failure.code, failure.text});
  for (const auto& executor : executors_) executor->hear_of_failure();
}

// Where a failure of the group has ended it, the group has failed as soon as the caller knows.
Status CommunicatorImpl::exchanged(const Status& answer) {
  if (!answer.is_ok() && !failure_->failed()) {
    if (const auto ended_by = bootstrap_->first_failure()) hear(*ended_by);
  }
  const StatusCode code = answer.code();
  const bool ends = code == StatusCode::kTimeout || code == StatusCode::kPeerFailed ||
                    code == StatusCode::kMismatch;
  return ends ? fail(answer) : answer;
}

Result<std::shared_ptr<SymmetricSegment>> CommunicatorImpl::allocate_own(std::size_t bytes,
                                                                         Deadline deadline) {
  TUTTI_ASSIGN(auto segment, allocate_counted(bytes, deadline));
  if (topology_.multicast) TUTTI_TRY(bind_to_one_address(*segment));
  own_.push_back(segment);
  return segment;
}

Result<GroupServices::OwnMemory> CommunicatorImpl::own_memory() { return peers_->scratch(); }

bool CommunicatorImpl::waits_blindly() const {
  return std::any_of(executors_.begin(), executors_.end(),
                     [](const auto& executor) { return executor->waits_blindly(); });
}

// What an executor that does not share the group's words is in, or was when it was ended.
bool CommunicatorImpl::has_position() const {
  return std::any_of(executors_.begin(), executors_.end(), [](const auto& executor) {
    return !executor->waits_blindly() && !executor->position().empty();
  });
}

// For ranks that cannot tell for whom they wait.
std::string CommunicatorImpl::position() {
  for (const auto& executor : executors_) {
    if (std::string oldest = executor->position(); !oldest.empty()) return oldest;
  }
  const Operation latest = failure_->latest();
  if (!latest.is_known()) return "no operation yet";
  return to_string(latest) + (streams_->caught_up() ? ", which has ended" : "");
}

bool CommunicatorImpl::collect_failure() {
  if (failure_->failed() &&
      failure_->account_due({.to_waits = waits_blindly(), .to_mismatches = has_position()})) {
    const Status account = failure_->account(position());
    bootstrap_->announce_failure(
        {.rank = rank(), .code = account.code(), .text = account.message()});
  }
  if (failure_->has_waited_too_long()) compare_operations();
  if (!failure_->collect()) return false;
  tell(failure_->status());
  return true;
}

void CommunicatorImpl::compare_operations() {
  if (peer_pages_ == nullptr || failure_->failed()) return;
  const auto found = peer_pages_->look();
  if (!found) return;
  const auto& [own, other] = found->operations;
  const FailureRecord record{.sequence = own.sequence,
                             .expected_signature = own.signature,
                             .seen_signature = other ? other->signature : own.signature,
                             .waiting_rank = rank(),
                             .missing_rank = found->rank,
                             .reason = static_cast<std::uint32_t>(FailureReason::kMismatch)};
  if (!failure_->collect_difference(record, other ? &*other : nullptr)) return;
  tell(failure_->status());
  log_failure();
}

void CommunicatorImpl::log_failure() { log(LogLevel::kWarn, "{}", failure_->status().to_string()); }

void CommunicatorImpl::record_progress() {
  const std::uint64_t started = started_.load(std::memory_order_acquire);  // before the questions
  std::uint64_t ended = started;
  for (const auto& executor : executors_) ended = std::min(ended, executor->ended_through(started));
  recorder_->done_through(ended);
}

void CommunicatorImpl::check_executors() {
  for (const auto& executor : executors_) {
    if (failure_->failed()) return;
    const Status failure = executor->check();
    if (failure.is_ok() || !failure_->fail(failure)) continue;
    tell(failure);
    log_failure();
  }
}

void CommunicatorImpl::cancel_if_failed() {
  if (!failure_->failed() || failure_->awaits_accounts()) return;
  for (const auto& executor : executors_) executor->cancel();
}

Status CommunicatorImpl::prepare_executor(std::string_view name, unsigned needs) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  if (Executor* const executor = executor_named(name)) return executor->prepare_all(needs);
  return {StatusCode::kUnavailable, fmt::format("this group has no executor {}", name)};
}

Status CommunicatorImpl::status() {
  compare_operations();
  collect_failure();
  for (const auto& executor : executors_) {
    if (failure_->failed()) break;
    if (const Status error = executor->known_error(); !error.is_ok()) return fail(error);
  }
  return failure_->status();
}

Communicator::Failure CommunicatorImpl::describe_failure() {
  return status().is_ok() ? Communicator::Failure{} : failure_->values();
}

// Not under the lock: an operation that waits too long holds it.
Status CommunicatorImpl::set_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) {
    return {StatusCode::kInvalidArgument,
            fmt::format("set_timeout({} ms): a deadline must be > 0", timeout.count())};
  }
  timeout = limited(timeout);
  timeout_ = timeout;
  failure_->set_timeout({timeout, TimeoutSource::kSetTimeout});
  for (const auto& executor : executors_) TUTTI_TRY(executor->set_timeout(timeout));
  return Status::ok();
}

void CommunicatorImpl::abort(std::string_view reason) {
  (void)fail({StatusCode::kAborted,
              fmt::format("aborted on {}: {}", bootstrap_->names().of(rank()), reason)});
}

Status CommunicatorImpl::break_off(const Status& cause) { return fail(of_this_rank(cause)); }

Result<std::unique_ptr<CommunicatorImpl>> CommunicatorImpl::split(int color, int key) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  TUTTI_ASSIGN(auto group, exchanged(bootstrap_->split(color, key, deadline())));
  if (group == nullptr) return std::unique_ptr<CommunicatorImpl>();
  return create(std::move(group), options_of_part(), drivers_, node_, table_);
}

CommunicatorOptions CommunicatorImpl::options_of_part() const {
  CommunicatorOptions options = options_;
  options.device = device_;
  options.backend = backend();
  return options;
}

// This group's failure does not matter: only its connections are used.
Result<CommunicatorImpl::Shrunk> CommunicatorImpl::shrink(std::chrono::milliseconds within) {
  const std::lock_guard lock(mutex_);
  const std::chrono::milliseconds step = timeout();
  Shrunk shrunk;
  const auto create_of = [&](std::unique_ptr<Bootstrap> survivors) {
    shrunk.group.reset();
    auto made = create(std::move(survivors), options_of_part(), drivers_, node_, table_);
    if (!made.is_ok()) return made.status();
    shrunk.group = std::move(made).value();
    return Status::ok();
  };
  const Bootstrap::ShrinkLimits limits{.within = within.count() > 0 ? limited(within) : step,
                                       .patience = step};
  TUTTI_ASSIGN(shrunk.missing, bootstrap_->shrink(limits, create_of));
  if (!shrunk.missing.empty()) {
    (void)fail({StatusCode::kPeerFailed,
                fmt::format("shrink() went on without {}: use the group that it made",
                            bootstrap_->names().of(shrunk.missing))});
  }
  return shrunk;
}

Result<std::shared_ptr<SymmetricSegment>> CommunicatorImpl::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  return allocate_locked(bytes);
}

Result<std::shared_ptr<SymmetricSegment>> CommunicatorImpl::allocate_locked(std::size_t bytes) {
  if (bytes == 0) return Status(StatusCode::kInvalidArgument, "allocate(0): bytes must be > 0");
  if (bytes > kMaxAllocationBytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("allocate({}): at most {} bytes", bytes, kMaxAllocationBytes));
  }
  if (heap_ == nullptr) {
    return Status(StatusCode::kUnavailable, fmt::format("no symmetric memory: {}", why_no_heap_));
  }
  TUTTI_TRY(peers_->sweep());
  TUTTI_ASSIGN(auto segment, exchanged(allocate_counted(bytes, deadline())));
  if (topology_.multicast) TUTTI_TRY(bind_to_one_address(*segment));
  for (const auto& executor : executors_) TUTTI_TRY(executor->add_segment(*segment));
  return segment;
}

Result<std::shared_ptr<SymmetricSegment>> CommunicatorImpl::allocate_counted(std::size_t bytes,
                                                                             Deadline deadline) {
  ++allocations_;
  return heap_->allocate(bytes, deadline);
}

// Where it cannot be had, the segment goes without: rows that need it stage.
Status CommunicatorImpl::bind_to_one_address(SymmetricSegment& segment) {
  const MulticastPlace place{*bootstrap_, *drivers_.cuda, *drivers_.multicast, device_};
  const auto binding = exchanged(bind_to_multicast(place, segment, deadline()));
  if (!binding.is_ok()) {
    if (failure_->failed()) return binding.status();
    warn(fmt::format("no multicast: {}", binding.status().message()));
    return Status::ok();
  }
  segment.multicast = (*binding)->address();
  segment.binding = *binding;
  return Status::ok();
}

Result<std::shared_ptr<SymmetricSegment>> CommunicatorImpl::register_memory(void* address,
                                                                            std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  if (heap_ == nullptr) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("no peer would reach registered memory: {}", why_no_heap_));
  }
  const std::pair<void*, std::size_t> range{address, bytes};
  ++registrations_;
  TUTTI_ASSIGN(auto segments, exchanged(heap_->register_ranges({&range, 1}, deadline())));
  if (!segments.front()->zero_copy()) {
    warn(fmt::format("registered memory will be staged: {}", segments.front()->why_staged));
  }
  for (const auto& executor : executors_) TUTTI_TRY(executor->add_segment(*segments.front()));
  return segments.front();
}

Result<std::shared_ptr<void>> CommunicatorImpl::allocate_local(std::size_t bytes) {
  if (failure_->failed()) return failure_->status();
  if (bytes == 0 || bytes > kMaxAllocationBytes) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("allocate_local({}): 1 to {} bytes", bytes, kMaxAllocationBytes));
  }
  auto made = backend() == Backend::kCuda
                  ? LocalAllocation::on_gpu(*drivers_.cuda, device_, bytes,
                                            bootstrap_->passes_descriptors())
                  : LocalAllocation::on_host(real_shared_memory(), bytes);
  TUTTI_TRY(of_this_rank(made.status()));
  void* const address = (*made)->address();
  return std::shared_ptr<void>(*std::move(made), address);
}

Status CommunicatorImpl::start_capture() {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  if (backend() != Backend::kCuda) {
    return {StatusCode::kUnsupported, "the host backend captures nothing"};
  }
  return peers_->start_capture();
}

Status CommunicatorImpl::finish_capture() {
  const std::lock_guard lock(mutex_);
  if (failure_->failed()) return failure_->status();
  return peers_->finish_capture();
}

Result<std::vector<std::shared_ptr<SymmetricSegment>>> CommunicatorImpl::register_ranges(
    const std::vector<std::pair<void*, std::size_t>>& ranges, bool alike) {
  if (heap_ == nullptr) return std::vector<std::shared_ptr<SymmetricSegment>>();  // none asked for
  registrations_ += ranges.size();
  using Sizes = SymmetricHeap::Sizes;
  TUTTI_ASSIGN(auto segments, exchanged(heap_->register_ranges(
                                  ranges, deadline(), alike ? Sizes::kAlike : Sizes::kOfEachRank)));
  for (const auto& segment : segments) heap_->hide(*segment);
  return segments;
}

}  // namespace tutti
