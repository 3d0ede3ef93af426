#include "executors/nccl/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/bytes.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "drivers/cuda.hpp"
#include "executors/nccl/lowering.hpp"
#include "memory/device_scope.hpp"
#include "planning/choose.hpp"
#include "topology/topology.hpp"

namespace tutti {
namespace {

// For the end of a failed communicator, whose kernels return at once.
constexpr std::chrono::seconds kAbortLimit{5};

unsigned windows_named_by(const ExecutorParts& parts, const Topology& topology) {
  unsigned named = kNeedsNothing;
  if (!topology.nccl || parts.deterministic) return named;
  for (const Needs need : {kNeedsNcclWindows, kNeedsNcclCopyEngines}) {
    if (names_row_that_needs(need, topology, parts.table, parts.tune)) named |= need;
  }
  return named;
}

// Number 0 is what prepare_nccl() runs.
std::string words_of(const Operation& operation) {
  return operation.sequence == 0 ? "prepare_nccl()" : to_string(operation);
}

}  // namespace

// While it is given to NCCL.
struct NcclExecutor::Given : Binding {
  NcclSession::Call under_way;
  std::optional<OperationWatch::Ticket> watched;  // not where it is captured
};

NcclExecutor::~NcclExecutor() = default;

NcclExecutor::NcclExecutor(GroupServices& group, const ExecutorParts& parts)
    : group_(group),
      driver_(parts.nccl),
      named_(windows_named_by(parts, group.topology())),
      batch_(driver_),
      session_(driver_, group.cuda()),
      windows_(NcclMover::kKernels, driver_, group.cuda()),
      copies_(NcclMover::kCopyEngines, driver_, group.cuda()) {
  windows_.session().keep_windows_for(graphs_);
  copies_.session().keep_windows_for(graphs_);
}

int NcclExecutor::rank() const { return group_.bootstrap().rank(); }
int NcclExecutor::size() const { return group_.bootstrap().size(); }

void NcclExecutor::add_facts(Request& request, const Buffers* buffers) const {
  const bool may_open = buffers == nullptr || !request.capturing;
  request.nccl_ready = session_.is_open() || may_open;
  request.windows = {.ready = windows_.are_open() || may_open, .none = windows_.why_none()};
  request.copies = {.ready = copies_.are_open() || may_open, .none = copies_.why_none()};
  if (buffers == nullptr) return;
  request.in_blocks = NcclWindows::can_hold(buffers->input_segment, buffers->input) &&
                      NcclWindows::can_hold(buffers->output_segment, buffers->output);
  // Nobody can make NCCL's communicator for a message: all ranks would have to come.
  if (is_pairwise(request.collective)) request.nccl_ready = session_.is_open();
}

// What is NCCL's may have to be made. Whether windows may be needed is known beforehand to all
// ranks alike: settings, tables and options were compared when the communicator was made, and a
// call that names an algorithm is made on every rank.
bool NcclExecutor::may_exchange(const Call& call) const {
  if (!group_.topology().nccl) return false;
  if (!session_.is_open()) return true;
  unsigned needs = named_windows();
  if (!call.options.algorithm.empty()) {
    const auto row = find_algorithm(call.collective, call.options.algorithm);
    needs = row.is_ok() ? (*row)->needs : unsigned{kNeedsNothing};
  }
  return ((needs & kNeedsNcclWindows) != 0 && !windows_.settled()) ||
         ((needs & kNeedsNcclCopyEngines) != 0 && !copies_.settled());
}

// At the first eager operation whose algorithm needs it. Where the ranks find that they can have no
// windows, another algorithm is chosen.
Result<Executor::Ready> NcclExecutor::prepare(PlannedOperation& operation) {
  if (!operation.captured()) TUTTI_TRY(open());
  if (!session_.is_open()) {
    return Status(StatusCode::kUnavailable,
                  "NCCL's communicator cannot be made inside a capture: call prepare_nccl() first");
  }
  NcclWindows* const windows = windows_for(*operation.operation.row);
  if (windows != nullptr && !windows->are_open()) {
    TUTTI_TRY(open_windows(*windows));
    return Ready::kPlanAgain;
  }
  operation.binding = &given_.take();
  return Ready::kYes;
}

Status NcclExecutor::prepare_all(unsigned needs) {
  TUTTI_TRY(open());
  return open_windows(needs == kNeedsNothing ? named_windows() : needs);
}

NcclWindows* NcclExecutor::windows_for(const Algorithm& row) {
  if ((row.needs & kNeedsNcclCopyEngines) != 0) return &copies_;
  return (row.needs & kNeedsNcclWindows) != 0 ? &windows_ : nullptr;
}

NcclWindows::Group NcclExecutor::window_group() {
  return {group_.bootstrap(), group_.timeout(), [this] { return group_.has_failed(); }};
}

Status NcclExecutor::open_windows(unsigned needs) {
  if ((needs & kNeedsNcclWindows) != 0) TUTTI_TRY(open_windows(windows_));
  return (needs & kNeedsNcclCopyEngines) != 0 ? open_windows(copies_) : Status::ok();
}

Status NcclExecutor::open_windows(NcclWindows& windows) {
  if (!has_symmetric_memory() || size() == 1 || windows.settled()) return Status::ok();
  const DeviceScope scope(*group_.cuda(), group_.device());
  TUTTI_TRY(scope.status());
  // For what warms them up: NCCL makes its copy engines ready at the first operation on windows.
  const bool copies = &windows == &copies_;
  if (copies) {
    TUTTI_ASSIGN(const GroupServices::OwnMemory own, group_.own_memory());
    TUTTI_TRY(group_.exchanged(windows.hold(*own.segment, window_group())));
  }
  TUTTI_TRY(group_.exchanged(windows.open(window_group())));
  group_.forget_plans();  // they may be of another mind now
  return copies && windows.are_open() ? warm_up(windows.session()) : Status::ok();
}

// Of the watch: a communicator's operations end in order.
int NcclExecutor::lane_of(const NcclSession& session) {
  return &session == &session_ ? 0 : &session == &windows_.session() ? 1 : 2;
}

NcclSession& NcclExecutor::session_of(const Algorithm& algorithm) {
  NcclWindows* const windows = windows_for(algorithm);
  return windows != nullptr ? windows->session() : session_;
}

Status NcclExecutor::open() {
  if (group_.has_failed()) return group_.failure();
  if (session_.is_open()) return Status::ok();
  if (!group_.topology().nccl || group_.cuda() == nullptr) {
    return {StatusCode::kUnavailable,
            "NCCL is not loadable on every rank (see TUTTI_NCCL_LIBRARY)"};
  }
  TUTTI_TRY(group_.own_memory().status());  // which warms it up
  NcclId id{};
  Status own = make_watch();
  if (own.is_ok() && rank() == 0) {
    auto made = driver_->unique_id();
    if (made.is_ok()) id = *made;
    own = made.status();
  }
  TUTTI_ASSIGN(const auto ids, group_.exchanged(group_.bootstrap().all_gather(
                                   own.is_ok() ? view_of(id) : ByteView{}, group_.deadline())));
  TUTTI_TRY(own);
  for (int r = 0; r < size(); ++r) {
    if (ids[static_cast<std::size_t>(r)].size() == sizeof(NcclId)) continue;
    return {StatusCode::kNccl, fmt::format("{} could not {}", group_.bootstrap().names().of(r),
                                           r == 0 ? "make an NCCL id" : "prepare NCCL")};
  }
  // From here on the others wait in NCCL for this rank.
  const DeviceScope scope(*group_.cuda(), group_.device());
  if (!scope.status().is_ok()) return group_.fail(scope.status());
  const Status opened =
      session_.open({.id = from_bytes<NcclId>(ids.front()), .rank = rank(), .size = size()},
                    group_.deadline(), [this] { return group_.has_failed(); });
  if (!opened.is_ok()) return started_nothing(opened.code()) ? opened : group_.fail(opened);
  return warm_up(session_);
}

Status NcclExecutor::make_watch() {
  if (watch_ != nullptr) return Status::ok();
  TUTTI_ASSIGN(watch_, OperationWatch::create(*group_.cuda(), group_.device()));
  return Status::ok();
}

// NCCL connects its ranks when an algorithm is used for the first time, which a capture forbids:
// each range of sizes once, now, in the staging of eager operations.
Status NcclExecutor::warm_up(NcclSession& session) {
  if (size() == 1) return Status::ok();
  TUTTI_ASSIGN(const GroupServices::OwnMemory own, group_.own_memory());
  if (own.segment == nullptr) return Status::ok();
  // The others begin to warm up: a rank that cannot must not go on without it.
  const auto made = group_.cuda()->create_stream(group_.device());
  if (!made.is_ok()) return group_.fail(made.status());
  const Stream stream = *made;
  Status status = warm_up_on(stream, session, own);
  if (status.is_ok()) status = wait_for_warm_up(stream);
  const Status destroyed = group_.cuda()->destroy_stream(stream);
  if (status.is_ok()) return destroyed;
  return group_.fail(status);
}

Status NcclExecutor::warm_up_on(Stream stream, NcclSession& session,
                                const GroupServices::OwnMemory& own) {
  const NcclSession::Call call = session.enter();
  if (!call) return group_.failure();
  TUTTI_TRY(group_.streams().enter(stream, {}));
  TUTTI_ASSIGN(const auto ticket,
               watch_->begin(lane_of(session), Operation{}, std::chrono::milliseconds(0), stream));
  for (std::size_t bytes = 1 * KiB; bytes <= own.staging_bytes; bytes *= 4) {
    TUTTI_TRY(warm_up_nccl_with(session, own.staging, bytes, {rank(), size()}, stream));
  }
  return watch_->end(ticket, stream);
}

// The watchdog sees what is late, and can say more of it: this wait ends a little later.
Status NcclExecutor::wait_for_warm_up(Stream stream) {
  const Deadline end(group_.timeout() + std::chrono::seconds(1));
  while (!end.passed()) {
    TUTTI_ASSIGN(const bool finished, group_.cuda()->stream_finished(stream));
    if (group_.has_failed()) return group_.failure();
    if (finished) return Status::ok();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return {StatusCode::kTimeout, "prepare_nccl(): earlier work did not end before the deadline"};
}

Result<Ticket> NcclExecutor::enqueue(PlannedOperation& operation) {
  NcclSession& session = session_of(*operation.operation.row);
  auto& given = static_cast<Given&>(*operation.binding);
  given.under_way = session.enter();
  if (!given.under_way) return group_.failure();  // NCCL ends where the group has failed
  const Status status = give(session, operation, given);
  if (!status.is_ok()) return status;
  return given.watched.value_or(OperationWatch::kUnwatched);
}

Status NcclExecutor::give(NcclSession& session, PlannedOperation& operation, Given& given) {
  const Call& call = operation.call;
  if (operation.captured()) {
    TUTTI_TRY(retain_graph(operation.stream));
  } else {
    TUTTI_ASSIGN(given.watched, watch_->begin(lane_of(session), operation.operation,
                                              call.options.timeout, call.stream));
  }
  return give_to_nccl(session, call, {rank(), size()});
}

Status NcclExecutor::settle(PlannedOperation& operation, const Status& handed_over) {
  auto& given = static_cast<Given&>(*std::exchange(operation.binding, nullptr));
  Status status;
  if (given.under_way) status = handed_over;
  if (const auto watched = std::exchange(given.watched, std::nullopt)) {
    const Status ended = watch_->end(*watched, operation.call.stream);
    if (status.is_ok()) status = ended;
  }
  given.under_way.leave();
  given_.give_back(given);
  return status;
}

bool NcclExecutor::has_ended(Ticket ticket) {
  return !session_.is_open() || watch_->has_ended(ticket);
}

std::uint64_t NcclExecutor::ended_through(std::uint64_t started) {
  const auto oldest = session_.is_open() ? watch_->oldest() : std::nullopt;
  return oldest ? std::min(started, oldest->operation.sequence - 1) : started;
}

// NCCL frees no communicator while there are graphs with its operations: see close().
Status NcclExecutor::retain_graph(const StreamState& state) {
  if (state.capture_id == capture_) return Status::ok();
  TUTTI_TRY(group_.cuda()->retain_on_graph(state.graph, [graphs = graphs_] { --*graphs; }));
  capture_ = state.capture_id;
  ++*graphs_;
  return Status::ok();
}

Status NcclExecutor::known_error() {
  Status error = session_.async_error();
  if (error.is_ok()) error = windows_.session().async_error();
  if (error.is_ok()) error = copies_.session().async_error();
  if (error.is_ok()) return error;
  return error.with_context(group_.position());
}

// Its own errors; what the device says; an operation that is late.
Status NcclExecutor::check() {
  if (!session_.is_open()) return Status::ok();
  TUTTI_TRY(known_error());
  TUTTI_ASSIGN(const auto late, watch_->look(OperationWatch::Clock::now(), group_.timeout()));
  if (!late) return Status::ok();
  const std::string words = words_of(late->operation);
  const std::string more =
      late->operations > 1 ? fmt::format(" and {} after it", late->operations - 1) : "";
  group_.fail_waiting(
      Status(StatusCode::kTimeout,
             fmt::format("{}{}: {} waited {:.3f} s in NCCL, which does not tell for whom ({})",
                         words, more, group_.bootstrap().names().of(rank()), late->waited.count(),
                         to_string(group_.timeout_of(late->operation)))),
      words + more);
  return Status::ok();
}

std::string NcclExecutor::position() {
  if (!session_.is_open()) return {};
  const auto oldest = watch_->oldest();
  if (!oldest) return {};
  return words_of(oldest->operation) + (oldest->begun ? "" : ", to which its stream has not come");
}

void NcclExecutor::end_sessions(NcclSession::How how) {
  session_.end(how);
  windows_.end(how);
  copies_.end(how);
}

void NcclExecutor::cancel() {
  if (session_.is_open()) end_sessions(NcclSession::How::kAbort);
}

void NcclExecutor::drain(Deadline deadline) {
  if (!session_.is_open()) return;
  while (!group_.has_failed() && watch_->oldest()) {
    if (const Status failure = check(); !failure.is_ok()) (void)group_.fail(failure);
    if (deadline.passed()) {
      (void)group_.fail({StatusCode::kTimeout, "destroyed while NCCL still ran an operation"});
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void NcclExecutor::close(Deadline deadline) {
  if (!session_.is_open()) return;
  const bool failed = group_.has_failed();
  end_sessions(failed ? NcclSession::How::kAbort : NcclSession::How::kDestroy);
  if (*graphs_ > 0) return;  // it ends with them
  const Deadline limit = failed ? Deadline(kAbortLimit) : deadline;
  if (session_.wait_ended(limit) && windows_.wait_ended(limit) && copies_.wait_ended(limit)) return;
  log(LogLevel::kWarn, "NCCL's communicator did not end in time and is not freed");
}

Status NcclExecutor::add_segment(const SymmetricSegment& segment) {
  if (segment.capacity == 0) return Status::ok();  // a user's: see windows.hpp
  for (NcclWindows* windows : {&windows_, &copies_}) {
    const bool were_open = windows->are_open();
    TUTTI_TRY(group_.exchanged(windows->hold(segment, window_group())));
    if (were_open && !windows->are_open()) group_.forget_plans();
  }
  return Status::ok();
}

void NcclExecutor::remove_segment(const std::byte* local) {
  windows_.let_go(local);
  copies_.let_go(local);
}

}  // namespace tutti
