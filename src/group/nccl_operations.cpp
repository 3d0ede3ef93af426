// What runs on NCCL: its communicator's set-up and end, calls of it, and the watch over both.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/bytes.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "drivers/cuda.hpp"
#include "group/communicator_impl.hpp"
#include "group/nccl_calls.hpp"
#include "memory/device_scope.hpp"

namespace tutti {
namespace {

// For the end of a failed communicator, whose kernels return at once.
constexpr std::chrono::seconds kAbortLimit{5};

bool leaves_usable(StatusCode code) {
  return code == StatusCode::kUnsupported || code == StatusCode::kInvalidArgument ||
         code == StatusCode::kUnavailable;
}

// Number 0 is what prepare_nccl() runs.
std::string words_of(const Operation& operation) {
  return operation.sequence == 0 ? "prepare_nccl()" : to_string(operation);
}

}  // namespace

Status CommunicatorImpl::prepare_nccl() {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(prepare_nccl_locked());
  return open_windows(named_windows_);
}

Status CommunicatorImpl::prepare_nccl_windows(unsigned needs) {
  const std::lock_guard lock(mutex_);
  TUTTI_TRY(prepare_nccl_locked());
  return open_windows(needs);
}

// What the chosen row needs of NCCL, made at the first eager operation that takes such a row. Where
// the ranks find that they can have no windows, another row is chosen.
Status CommunicatorImpl::prepare_nccl_for(PlannedOperation& prepared) {
  if (!prepared.captured) TUTTI_TRY(prepare_nccl_locked());
  if (!nccl_.is_open()) {
    return {StatusCode::kUnavailable,
            "NCCL's communicator cannot be made inside a capture: call prepare_nccl() first"};
  }
  NcclWindows* const windows = windows_for(*prepared.operation.row);
  if (windows == nullptr || windows->are_open()) return Status::ok();
  TUTTI_TRY(open_windows(*windows));
  TUTTI_ASSIGN(prepared.operation.row, choose_row(prepared));
  failure_->note(prepared.operation);
  return Status::ok();
}

// Windows cost an exchange for each allocation, a second communicator of NCCL's and address space,
// so nobody has them whom no row runs on. Whether one may be chosen is known beforehand to all
// ranks alike: settings, tables and options were compared when the communicator was made, and a
// call that names a row is made on every rank.
unsigned CommunicatorImpl::windows_that_are_named() const {
  unsigned named = kNeedsNothing;
  if (heap_ == nullptr || options_.deterministic) return named;
  const std::string& tune = settings_.tune;
  for (const Needs need : {kNeedsNcclWindows, kNeedsNcclCopyEngines}) {
    if (names_row_that_needs(need, topology_, *table_, tune)) named |= need;
  }
  return named;
}

bool CommunicatorImpl::may_open_windows(const Call& call) const {
  unsigned needs = named_windows_;
  if (!call.options.algorithm.empty()) {
    const auto row = find_algorithm(call.collective, call.options.algorithm);
    needs = row.is_ok() ? (*row)->needs : unsigned{kNeedsNothing};
  }
  return ((needs & kNeedsNcclWindows) != 0 && !windows_.settled()) ||
         ((needs & kNeedsNcclCopyEngines) != 0 && !copies_.settled());
}

NcclWindows* CommunicatorImpl::windows_for(const Algorithm& row) {
  if ((row.needs & kNeedsNcclCopyEngines) != 0) return &copies_;
  return (row.needs & kNeedsNcclWindows) != 0 ? &windows_ : nullptr;
}

NcclWindows::Group CommunicatorImpl::window_group() {
  return {*bootstrap_, timeout_.load(), [this] { return failure_->failed(); }};
}

Status CommunicatorImpl::open_windows(unsigned needs) {
  if ((needs & kNeedsNcclWindows) != 0) TUTTI_TRY(open_windows(windows_));
  return (needs & kNeedsNcclCopyEngines) != 0 ? open_windows(copies_) : Status::ok();
}

Status CommunicatorImpl::open_windows(NcclWindows& windows) {
  if (heap_ == nullptr || size() == 1 || windows.settled()) return Status::ok();
  const DeviceScope scope(*drivers_.cuda, device_);
  TUTTI_TRY(scope.status());
  // For what warms them up: NCCL makes its copy engines ready at the first operation on windows.
  const bool copies = &windows == &copies_;
  if (copies) TUTTI_TRY(exchanged(windows.hold(*own_, window_group())));
  TUTTI_TRY(exchanged(windows.open(window_group())));
  plans_.clear();  // they may be of another mind now
  return copies && windows.are_open() ? warm_up_nccl(windows.session()) : Status::ok();
}

Status CommunicatorImpl::hold_in_windows(const SymmetricSegment& segment) {
  for (NcclWindows* windows : {&windows_, &copies_}) {
    const bool were_open = windows->are_open();
    TUTTI_TRY(exchanged(windows->hold(segment, window_group())));
    if (were_open && !windows->are_open()) plans_.clear();
  }
  return Status::ok();
}

NcclSession& CommunicatorImpl::session_of(const PlannedOperation& prepared) {
  NcclWindows* const windows = windows_for(*prepared.operation.row);
  return windows != nullptr ? windows->session() : nccl_;
}

Status CommunicatorImpl::prepare_nccl_locked() {
  if (failure_->failed()) return failure_->status();
  if (nccl_.is_open()) return Status::ok();
  if (!topology_.nccl || backend() != Backend::kCuda) {
    return {StatusCode::kUnavailable,
            "NCCL is not loadable on every rank (see TUTTI_NCCL_LIBRARY)"};
  }
  NcclId id{};
  Status own;
  if (rank() == 0) {
    auto made = drivers_.nccl->unique_id();
    if (made.is_ok()) id = *made;
    own = made.status();
  }
  TUTTI_ASSIGN(const auto ids, exchanged(bootstrap_->all_gather(
                                   own.is_ok() ? view_of(id) : ByteView{}, deadline())));
  TUTTI_TRY(own);
  if (ids.front().size() != sizeof(NcclId)) {
    return {StatusCode::kNccl,
            fmt::format("{} could not make an NCCL id", bootstrap_->names().of(0))};
  }
  const DeviceScope scope(*drivers_.cuda, device_);
  TUTTI_TRY(scope.status());
  if (nccl_watch_ == nullptr) {
    TUTTI_ASSIGN(nccl_watch_, OperationWatch::create(*drivers_.cuda, device_));
  }
  const Status opened =
      nccl_.open({.id = from_bytes<NcclId>(ids.front()), .rank = rank(), .size = size()},
                 deadline(), [this] { return failure_->failed(); });
  if (!opened.is_ok()) return leaves_usable(opened.code()) ? opened : fail(opened);
  return warm_up_nccl(nccl_);
}

// NCCL connects its ranks when an algorithm is used for the first time, which a capture forbids:
// each range of sizes once, now, in the staging of eager operations.
Status CommunicatorImpl::warm_up_nccl(NcclSession& session) {
  if (own_ == nullptr || size() == 1) return Status::ok();
  TUTTI_ASSIGN(const Stream stream, drivers_.cuda->create_stream(device_));
  Status status = warm_up_nccl_on(stream, session);
  if (status.is_ok()) status = wait_for_warm_up(stream);
  const Status destroyed = drivers_.cuda->destroy_stream(stream);
  if (status.is_ok()) return destroyed;
  return fail(status);
}

Status CommunicatorImpl::warm_up_nccl_on(Stream stream, NcclSession& session) {
  const NcclSession::Call call = session.enter();
  if (!call) return failure_->status();
  TUTTI_TRY(engine_->enter_stream(stream));
  TUTTI_ASSIGN(const auto ticket,
               nccl_watch_->begin(Operation{}, std::chrono::milliseconds(0), stream));
  std::byte* const scratch = own_->local + layout_.staging_offset(0);
  for (std::size_t bytes = 1 * KiB; bytes <= layout_.staging_bytes; bytes *= 4) {
    TUTTI_TRY(warm_up_nccl_with(session, scratch, bytes, {rank(), size()}, stream));
  }
  return nccl_watch_->end(ticket, stream);
}

// The watchdog sees what is late, and can say more of it: this wait ends a little later.
Status CommunicatorImpl::wait_for_warm_up(Stream stream) {
  const Deadline end(timeout_.load() + std::chrono::seconds(1));
  while (!end.passed()) {
    TUTTI_ASSIGN(const bool finished, drivers_.cuda->stream_finished(stream));
    if (failure_->failed()) return failure_->status();
    if (finished) return Status::ok();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return {StatusCode::kTimeout, "prepare_nccl(): earlier work did not end before the deadline"};
}

Status CommunicatorImpl::start_on_nccl(PlannedOperation& prepared) {
  const Call& call = prepared.call;
  NcclSession& session = session_of(prepared);
  prepared.nccl_call = session.enter();
  if (!prepared.nccl_call) return failure_->status();  // NCCL ends where the group has failed
  record_start(prepared, 0);
  Status status;
  if (prepared.captured) {
    status = retain_nccl_graph(call.stream);
  } else {
    const auto ticket = nccl_watch_->begin(prepared.operation, call.options.timeout, call.stream);
    status = ticket.status();
    if (ticket.is_ok()) prepared.watched = *ticket;
  }
  if (status.is_ok()) status = give_to_nccl(session, prepared.call, {rank(), size()});
  if (status.is_ok()) return status;
  recorder_->end(prepared.operation.sequence, false);
  return leaves_usable(status.code()) ? status : fail(status);
}

Status CommunicatorImpl::settle(PlannedOperation& prepared, const Status& given) {
  if (!prepared.nccl_call) return Status::ok();
  const std::lock_guard lock(mutex_);
  Status status = given;
  if (prepared.watched) {
    const Status ended = nccl_watch_->end(*prepared.watched, prepared.call.stream);
    if (status.is_ok()) status = ended;
  }
  prepared.nccl_call.leave();
  if (!status.is_ok()) return leaves_usable(status.code()) ? status : fail(status);
  // Release, as in start().
  if (prepared.watched) started_.store(prepared.operation.sequence, std::memory_order_release);
  return status;
}

// NCCL frees no communicator while there are graphs with its operations: see close_nccl().
Status CommunicatorImpl::retain_nccl_graph(Stream stream) {
  TUTTI_ASSIGN(const StreamState state, engine_->stream_state(stream));
  if (state.capture_id == nccl_capture_) return Status::ok();
  TUTTI_TRY(drivers_.cuda->retain_on_graph(state.graph, [graphs = nccl_graphs_] { --*graphs; }));
  nccl_capture_ = state.capture_id;
  ++*nccl_graphs_;
  return Status::ok();
}

Status CommunicatorImpl::nccl_error() {
  Status error = nccl_.async_error();
  if (error.is_ok()) error = windows_.session().async_error();
  if (error.is_ok()) error = copies_.session().async_error();
  return error.is_ok() ? error : error.with_context(whereabouts());
}

// What is wrong in NCCL: its own errors; what the device says; an operation that is late.
Status CommunicatorImpl::nccl_failure() {
  TUTTI_TRY(nccl_error());
  TUTTI_ASSIGN(const auto late, nccl_watch_->look(OperationWatch::Clock::now(), timeout_.load()));
  if (!late) return Status::ok();
  const std::string words = words_of(late->operation);
  const std::string more =
      late->operations > 1 ? fmt::format(" and {} behind it", late->operations - 1) : "";
  const Status cause(
      StatusCode::kTimeout,
      fmt::format("{}{}: {} waited {:.3f} s in NCCL, which does not tell for whom (the deadline "
                  "is TUTTI_TIMEOUT_MS or the communicator's timeout)",
                  words, more, bootstrap_->names().of(rank()), late->waited.count()));
  if (failure_->fail_waiting(cause, words + more, rank(), size())) tell(cause);
  return Status::ok();
}

void CommunicatorImpl::watch_nccl() {
  if (!nccl_.is_open() || failure_->failed()) return;
  if (const Status failure = nccl_failure(); !failure.is_ok()) (void)fail(failure);
}

// Where this rank is, for one that waits in NCCL.
std::string CommunicatorImpl::whereabouts() {
  if (!nccl_.is_open()) return {};
  if (const auto oldest = nccl_watch_->oldest()) {
    return words_of(oldest->operation) +
           (oldest->begun ? "" : ", to which its stream has not come");
  }
  const Operation latest = failure_->latest();
  if (latest.row == nullptr) return "no operation yet";
  return to_string(latest) + (engine_->caught_up() ? ", which has ended" : "");
}

void CommunicatorImpl::end_failed_nccl() {
  if (!nccl_.is_open() || !failure_->failed() || failure_->awaits_accounts()) return;
  nccl_.end(NcclSession::How::kAbort);
  windows_.end(NcclSession::How::kAbort);
  copies_.end(NcclSession::How::kAbort);
}

// Waits for this rank's operations, while the watchdog still looks after them.
void CommunicatorImpl::drain_nccl(Deadline deadline) {
  if (!nccl_.is_open()) return;
  while (!failure_->failed() && nccl_watch_->oldest()) {
    watch_nccl();
    if (deadline.passed()) {
      (void)fail({StatusCode::kTimeout, "destroyed while NCCL still ran an operation"});
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void CommunicatorImpl::close_nccl(Deadline deadline) {
  if (!nccl_.is_open()) return;
  const bool failed = failure_->failed();
  const auto how = failed ? NcclSession::How::kAbort : NcclSession::How::kDestroy;
  nccl_.end(how);
  windows_.end(how);
  copies_.end(how);
  if (*nccl_graphs_ > 0) return;  // it ends with them
  const Deadline limit = failed ? Deadline(kAbortLimit) : deadline;
  if (nccl_.wait_ended(limit) && windows_.wait_ended(limit) && copies_.wait_ended(limit)) return;
  log(LogLevel::kWarn, "NCCL's communicator has not ended in time and is left behind");
}

}  // namespace tutti
